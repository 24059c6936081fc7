//! Protocol machines and networks on wall time over UDP sockets: file transfer, a relay that behaves like a network,
//! and the endpoints of a study.
//!
//! The crate drives `transport`, `security` and `network` and may depend on them and on `foundation`. It contains no
//! protocol logic of its own: it owns sockets, threads and clocks. Each socket has one thread and no lock, and each system call
//! moves a train of datagrams.
//!
//! With the feature `quic`, the module of this name has ends of QUIC with TLS 1.3.
//!
//! [`transfer`] needs the files and directories of Unix; the rest compiles for Windows, too.

#![forbid(unsafe_code)]

pub mod addresses;
pub mod client;
pub mod clock;
pub mod datagrams;
pub mod endpoint;
pub mod error;
pub mod memory;
pub mod outbox;
pub mod pattern;
pub mod payload;
#[cfg(feature = "quic")]
pub mod quic;
pub mod relay;
pub mod rest;
pub mod server;
pub mod session;
pub mod spin;
pub mod system_error;
#[cfg(unix)]
pub mod transfer;
pub mod wait;
pub mod wire;

pub use error::Error;
pub use wire::Protection;
