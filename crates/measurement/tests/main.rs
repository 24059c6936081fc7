//! Every integration test of the crate, linked once: each file here is a module.

mod capture;
mod common;
mod echo;
mod echo_memory;
mod hops;
mod ping;
mod unprivileged;
