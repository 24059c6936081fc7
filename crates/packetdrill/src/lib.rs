//! Runs packetdrill scripts against the project's TCP on virtual time and reports the first mismatch.
//!
//! The crate depends on `transport` and `foundation` and opens no sockets. It neither runs shell commands nor evaluates
//! code: the commands in scripts are interpreted here, and the caller's [`Interpreter`](interpreter::Interpreter)
//! evaluates code snippets.

#![forbid(unsafe_code)]

pub mod files;
pub mod interpreter;
pub mod language;
pub mod run;
