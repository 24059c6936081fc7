//! What travels: a packet of a known size on a known route, around a body that the network never reads.

/// Bytes of the IPv4 (20, RFC 791) and UDP (8, RFC 768) headers around every datagram. A link charges
/// them in every world, so that a simulated path and a real one carry the same.
pub const UDP_IPV4_OVERHEAD: u32 = 28;

/// A host: where packets are sent from and delivered to. An index into the network's table of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// A link in one direction. An index into the network's table of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A sequence of links that ends at a host. An index into the network's table of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// A packet on its way: what a link must know of it, and a body that it carries unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// The packet's name in traces, given by [`Network::send`](crate::Network::send); a duplicate keeps it.
    pub id: u64,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// The links that it takes.
    pub route: RouteId,
    /// How many links of the route lie behind it.
    pub hop: u8,
    /// What it carries.
    pub body: B,
}

impl<B> Packet<B> {
    /// A packet of `size` bytes (headers included) at the start of `route`.
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

/// A packet inside the network, as an observer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRef<'a, B> {
    /// The packet's name in traces; a duplicate has its original's.
    pub id: u64,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// The links that it takes.
    pub route: RouteId,
    /// How many links of the route lie behind it.
    pub hop: u8,
    /// What it carries.
    pub body: &'a B,
}

impl<B: Clone> PacketRef<'_, B> {
    /// A packet of its own.
    #[must_use]
    pub fn to_packet(self) -> Packet<B> {
        Packet {
            id: self.id,
            size: self.size,
            route: self.route,
            hop: self.hop,
            body: self.body.clone(),
        }
    }
}

/// What a packet may carry. The network clones a body to duplicate its packet, flips a bit of it to
/// corrupt it, and asks queue disciplines' questions; it does nothing else with it.
pub trait Body: Clone {
    /// Corrupts the body: flips one bit, which `choice` (uniform over all of `u64`) picks.
    ///
    /// A body that is not bytes marks itself as corrupt in whatever way its checksum would notice.
    fn flip_bit(&mut self, choice: u64);

    /// Marks the body as having met congestion, if the ends of its transport can tell: its ECN field is ECT(0),
    /// ECT(1) or CE and becomes CE (RFC 3168, section 5). Says whether they can; otherwise nothing changes,
    /// and the packet is dropped where it would have been marked.
    fn mark_congestion_experienced(&mut self) -> bool {
        false
    }

    /// Which flow the body belongs to, among those that take the same route: disciplines that queue by flow
    /// tell flows apart by route and this number, which need not be spread evenly.
    fn flow(&self) -> u64 {
        0
    }
}

/// The bytes of a datagram. An empty one has no bit to flip and stays as it is.
impl Body for Vec<u8> {
    fn flip_bit(&mut self, choice: u64) {
        let bits = self.len() as u64 * 8;
        if let Some(bit) = choice.checked_rem(bits) {
            self[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}
