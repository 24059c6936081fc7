//! All integration tests of the crate in one binary.

mod machine;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod sockets;
