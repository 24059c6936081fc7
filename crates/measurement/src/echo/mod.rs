//! The server that answers: datagrams, connections and connections with data on their SYN, on one port number.
//!
//! A datagram is answered by one as long, a connection's request by as many bytes: once it is as long as its header says,
//! or, without one, once its sender has closed his side.
//! Nobody gets more bytes than he sent, whatever he sends, and none where he sends too often.

#[cfg(target_os = "linux")]
mod connections;
pub mod limits;
pub mod message;
#[cfg(target_os = "linux")]
mod server;

use serde::Serialize;

pub use limits::{Limiter, Limits};
#[cfg(target_os = "linux")]
pub use server::Server;

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Datagrams that were answered.
    pub datagrams: u64,
    /// Datagrams that were no requests: too short, of another version, replies.
    pub malformed: u64,
    /// Datagrams and connections that were not answered since there were too many.
    pub limited: u64,
    /// Connections that were answered.
    pub connections: u64,
    /// Those of them whose request came with the SYN (RFC 7413).
    pub fast_opened: u64,
    /// Requests over a TCP in user space that were answered.
    pub user_transactions: u64,
    /// Connections that broke off, said nothing for too long, or sent too much.
    pub broken: u64,
    /// Bytes of requests, of all kinds, without headers.
    pub received: u64,
    /// Bytes of answers, likewise.
    pub sent: u64,
}
