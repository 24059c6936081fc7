//! Packets: a size, a route, and a body that the network does not interpret.

use foundation::Ecn;

use crate::nat::ExternalAddress;

/// Bytes of the IPv4 (20, RFC 791) and UDP (8, RFC 768) headers around every datagram. Links count
/// them in every world, so that a simulated path and a real one carry the same bytes.
pub const UDP_IPV4_OVERHEAD: u32 = 28;

/// A host, which sends and receives packets. An index into the network's table of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// A link in one direction. An index into the network's table of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A sequence of links that ends at a host. An index into the network's table of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// A packet: the fields that links read, and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// Id in traces, assigned by [`Network::send`](crate::Network::send); a duplicate has the same id.
    pub id: u64,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// The route.
    pub route: RouteId,
    /// Number of links of the route already crossed.
    pub hop: u8,
    /// The body.
    pub body: B,
}

impl<B> Packet<B> {
    /// Returns a packet of `size` bytes (headers included) at the start of `route`.
    #[must_use]
    pub const fn new(route: RouteId, size: u32, body: B) -> Self {
        Self {
            id: 0,
            size,
            route,
            hop: 0,
            body,
        }
    }
}

/// A borrowed packet, as passed to observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRef<'a, B> {
    /// Id in traces; a duplicate has the id of its original.
    pub id: u64,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// The route.
    pub route: RouteId,
    /// Number of links of the route already crossed.
    pub hop: u8,
    /// The body.
    pub body: &'a B,
}

/// The body of a packet. The network clones it to duplicate a packet, flips a bit to corrupt it, and reads its flow and
/// ECN field for queue disciplines.
pub trait Body: Clone {
    /// Flips one bit, selected by `choice` (uniform over `u64`).
    ///
    /// A typed body instead sets the flag that represents a checksum failure.
    fn flip_bit(&mut self, choice: u64);

    /// Sets the ECN field to CE if it is ECT(0), ECT(1) or CE (RFC 3168, section 5). Returns whether it was; otherwise the
    /// body stays unchanged and the network drops the packet instead.
    fn mark_congestion_experienced(&mut self) -> bool {
        false
    }

    /// Returns the ECN code point.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Returns the priority, from 0 (best effort) to 7 (most urgent), like the class selectors of RFC 2474.
    fn priority(&self) -> u8 {
        0
    }

    /// Returns the connection of the body, as address translators see it; `None` for a packet that passes them without a
    /// mapping, such as a fragment without ports.
    fn connection(&self) -> Option<Connection> {
        Some(Connection::default())
    }

    /// Returns the address by which the outside of a translator knows the connection: of a packet from the inside, that of a
    /// translator that it has passed, of a packet from the outside, the one that it is addressed to. `None` for bodies that do not
    /// carry it, which reach any mapping of their connection.
    fn external(&self) -> Option<ExternalAddress> {
        None
    }

    /// Sets this address.
    fn translate(&mut self, _: Option<ExternalAddress>) {}

    /// Returns the acknowledgement of a TCP segment with ACK and without SYN; `None` for other packets.
    fn acknowledgement(&self) -> Option<TcpAck> {
        None
    }

    /// Returns the flow number of the body among the flows of its route. Flow queues distinguish flows by route and this
    /// number, which need not be uniformly distributed.
    fn flow(&self) -> u64 {
        0
    }
}

/// The connection of a packet, as address translators see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Number of the connection, the same in both directions, and different from those of all other connections of the link.
    pub number: u64,
    /// Whether the packet starts the connection.
    pub opens: bool,
    /// Whether the peers identify it by addresses and ports, not by a number in its packets.
    pub is_bound: bool,
    /// Whether the packet is an ICMP error about a packet of the connection (RFC 5508, section 4).
    pub is_error: bool,
}

/// The acknowledgement of a TCP segment, as far as queue disciplines read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpAck {
    /// Cumulative acknowledgement number.
    pub number: u32,
    /// Whether it has no data, no flag but ACK, ECE and CWR, and no option but timestamps and SACK.
    pub is_pure: bool,
    /// The flags ECE and CWR.
    pub signals: [bool; 2],
    /// The timestamps option: value and echo, in ticks of the clocks of both ends, modulo 2^32 (RFC 7323, section 3.2).
    pub timestamps: Option<(u32, u32)>,
    blocks: [(u32, u32); 4],
    count: usize,
}

impl TcpAck {
    /// Returns a cumulative acknowledgement without flags and options.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self {
            number,
            is_pure: true,
            signals: [false; 2],
            timestamps: None,
            blocks: [(0, 0); 4],
            count: 0,
        }
    }

    /// Adds a SACK block; a fifth one is ignored, since a header has no room for it.
    pub const fn select(&mut self, block: (u32, u32)) {
        if self.count < self.blocks.len() {
            self.blocks[self.count] = block;
            self.count += 1;
        }
    }

    /// Returns the SACK blocks.
    #[must_use]
    pub fn selected(&self) -> &[(u32, u32)] {
        &self.blocks[..self.count]
    }
}

/// The bytes of a datagram. An empty datagram stays unchanged.
impl Body for Vec<u8> {
    fn flip_bit(&mut self, choice: u64) {
        let bits = self.len() as u64 * 8;
        if let Some(bit) = choice.checked_rem(bits) {
            self[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}
