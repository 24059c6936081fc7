//! Linux's own transports under the project's control: MPTCP (RFC 8684), whose path manager can stand in user space.
//!
//! What is here acts in the network namespace that the calling thread is in, whichever that is: an emulated host's or the
//! machine's own. Nothing is changed but what a caller asks for by name.

mod error;
#[cfg(target_os = "linux")]
pub mod mptcp;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod tcp_info;

pub use error::Error;
#[cfg(target_os = "linux")]
pub use tcp_info::TcpInfo;
