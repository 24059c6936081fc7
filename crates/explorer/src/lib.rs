//! The simulator for web pages: stepping sessions behind one call with JSON.
//!
//! A page passes a request and gets a reply ([`requests`]). The WebAssembly interface has no generated code: three
//! functions with addresses and lengths ([`memory`]).

#[cfg(target_family = "wasm")]
mod memory;
pub mod requests;
mod shape;
