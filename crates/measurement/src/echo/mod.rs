//! The echo server: datagrams, connections, and connections with data on their SYN, on one port number.
//!
//! A datagram is answered by one of the same length. A connection's request is answered by the same number of bytes,
//! once it is as long as its header announces or, without a header, once the sender has closed its side. No source
//! receives more bytes than it sent, and a source that sends too often gets no reply.

mod connections;
pub mod limits;
mod server;

use serde::Serialize;

pub use limits::{Limiter, Limits};
pub use server::Server;

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answered datagrams.
    pub datagrams: u64,
    /// Datagrams that were no requests: too short, of a different version, replies.
    pub malformed: u64,
    /// Datagrams and connections that were refused because of a limit.
    pub limited: u64,
    /// Answered connections.
    pub connections: u64,
    /// Answered connections whose request arrived with the SYN (RFC 7413).
    pub fast_opened: u64,
    /// Answered requests over a user-space TCP.
    pub user_transactions: u64,
    /// Connections that were reset, idle for too long, or sent too much.
    pub broken: u64,
    /// Bytes of all requests, without headers.
    pub received: u64,
    /// Bytes of all replies, without headers.
    pub sent: u64,
}
