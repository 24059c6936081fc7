//! All integration tests of the crate in one binary.

mod common;
mod hostile;
mod kill;
#[cfg(feature = "quic")]
mod quic;
mod relay;
mod security;
mod transfer;
mod untrusted;
mod versions;
