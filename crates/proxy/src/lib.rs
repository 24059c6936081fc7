//! The TCP relay: connections of the operating system's TCP, carried over the project's TCP and an emulated path, and datagrams of
//! UDP, carried over the same path.
//!
//! Each connection is split in three (RFC 3135, section 2.4): the client's connection to the relay, a connection between
//! two user-space hosts at the ends of the path, and the relay's connection to the target. The two ends of a connection share
//! nothing but the path, like two hosts: all information crosses it in packets.
//!
//! [`Proxy`] is the machine: two [`Stack`](stack::Stack)s, the networks between them, and the sockets behind the [`Socket`] trait. It reads no
//! clock and waits for nothing, so tests run it in virtual time with sockets in memory. [`Relay`] runs it on wall time.

#![forbid(unsafe_code)]
// Without Linux there is only the machine.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod datagram;
mod end;
#[cfg(target_os = "linux")]
mod event_loop;
mod lanes;
mod negotiation;
mod options;
mod proxy;
mod report;
mod socket;
mod target;
mod udp_packet;
#[cfg(target_os = "linux")]
mod udp_sockets;
#[cfg(target_os = "linux")]
mod visitors;

#[cfg(target_os = "linux")]
pub use event_loop::{Handle, Relay, RelayError};
pub use lanes::{Direction, HOSTS};
pub use negotiation::Mode;
pub use options::{Listener, ProxyOptions, RelayOptions, UdpListener};
pub use proxy::{Greeting, Proxy, Request};
pub use report::{Delays, Failure, Report};
pub use socket::Socket;
pub use stack::Key;
pub use target::Target;
pub use udp_packet::UdpClient;
