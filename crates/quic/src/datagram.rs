//! The body of a simulated packet: a UDP datagram with its code point.

use std::net::SocketAddr;

use foundation::Ecn;

/// A UDP datagram with one or several QUIC packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The UDP payload.
    pub bytes: Box<[u8]>,
    /// Payload bytes of streams.
    pub data: u32,
    /// ECN code point of the IP header.
    pub ecn: Ecn,
    /// ID of the path that carries it; `None` of a connection with one path.
    pub path: Option<u8>,
    /// Address of the client as its server sees it behind an address translator: source or destination. `None` without one.
    pub client: Option<SocketAddr>,
}
