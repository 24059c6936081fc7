//! Measurements of real paths: round trips, transactions, captures, and probes of each hop.
//!
//! Sending schedules and the matching of answers are state machines without clock or socket; drivers next to them use
//! Linux sockets. The crate may depend on `socket`, `stack`, `kernel`, `transport` and `foundation`. It sends packets only to
//! the host that the caller names, and it does not interpret measurements: inference is part of the Python package.

#![cfg(target_os = "linux")]

pub mod capture;
pub mod datagram;
pub mod echo;
pub mod hops;
pub mod ping;
pub mod rights;
pub mod stamp;
pub mod system;
pub mod timestamps;

pub mod transact;
pub mod user;

pub use kernel::Error;
pub use stamp::Stamp;
