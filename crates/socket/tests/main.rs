//! Every integration test of the crate, linked once: each file here is a module.

mod common;
mod hostile;
mod kill;
mod relay;
mod security;
mod transfer;
mod untrusted;
mod versions;
