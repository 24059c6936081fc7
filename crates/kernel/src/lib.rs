//! The Linux kernel's own transports: `TCP_INFO`, and MPTCP (RFC 8684) with a path manager in user space.
//!
//! Depends on `transport` (path policies) and `foundation`. All functions act in the network namespace of the calling thread,
//! be it an emulated host's or the machine's. They must not change a setting that the caller does not name.

#![cfg(target_os = "linux")]

mod error;
pub mod mptcp;
pub mod netlink;
mod socket_options;
mod tcp_info;

pub use error::Error;
pub use socket_options::{read_option, set_option};
pub use tcp_info::TcpInfo;
