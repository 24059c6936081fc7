//! All integration tests of the crate in one binary.

mod capture;
mod common;
mod echo;
mod echo_memory;
mod hops;
mod ping;
mod unprivileged;
