//! All integration tests of the crate in one binary.

mod common;
mod hostile;
mod kill;
mod relay;
mod security;
mod transfer;
mod untrusted;
mod versions;
