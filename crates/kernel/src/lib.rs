//! The Linux kernel's own transports: `TCP_INFO`, and MPTCP (RFC 8684) with a path manager in user space.
//!
//! Depends on `transport` (path policies) and `foundation`. All functions act in the network namespace of the calling thread,
//! be it an emulated host's or the machine's. They must not change a setting that the caller does not name.

mod error;
#[cfg(target_os = "linux")]
pub mod mptcp;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(target_os = "linux")]
mod socket_options;
#[cfg(target_os = "linux")]
mod tcp_info;

pub use error::Error;
#[cfg(target_os = "linux")]
pub use socket_options::{read_option, set_option};
#[cfg(target_os = "linux")]
pub use tcp_info::TcpInfo;
