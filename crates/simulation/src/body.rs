//! Packet bodies in simulation: a typed frame, segment or datagram, without bytes.

pub use experiment::Side;
use experiment::plan::IPV4_HEADER;
pub use experiment::trace::Content;
use network::{Body, Packet, RouteId, UDP_IPV4_OVERHEAD};
use transport::mptcp;
use transport::tcp::Ecn;

/// The body of a simulated packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Flow, numbered from 0 in the order of starts.
    pub flow: u32,
    /// Destination end of the flow.
    pub to: Side,
    /// Path, as an index of those the flow may use.
    pub way: u8,
    /// Priority, from 0 to 7.
    pub priority: u8,
    /// Whether a bit flipped; the checksum of a real packet would fail.
    pub corrupt: bool,
    /// Content.
    pub content: Content,
}

impl Body for Parcel {
    fn flip_bit(&mut self, _: u64) {
        self.corrupt = true;
    }

    fn ecn(&self) -> Ecn {
        match &self.content {
            Content::Tcp(segment) | Content::Mptcp(mptcp::Segment { tcp: segment, .. }) => segment.ecn,
            Content::Quic(datagram) => datagram.ecn,
            _ => Ecn::NotEct,
        }
    }

    fn mark_congestion_experienced(&mut self) -> bool {
        match &mut self.content {
            Content::Tcp(segment) | Content::Mptcp(mptcp::Segment { tcp: segment, .. })
                if segment.ecn != Ecn::NotEct =>
            {
                segment.ecn = Ecn::Ce;
                true
            }
            Content::Quic(datagram) if datagram.ecn != Ecn::NotEct => {
                datagram.ecn = Ecn::Ce;
                true
            }
            _ => false,
        }
    }

    fn priority(&self) -> u8 {
        self.priority
    }

    fn flow(&self) -> u64 {
        // A router sees the two directions as two flows (RFC 8290, section 4.1.1 hashes the 5-tuple).
        u64::from(self.flow) << 1 | u64::from(self.to == Side::Sender)
    }
}

/// Returns the bytes of a packet on the wire, all headers included.
#[inline]
fn wire_size(content: &Content) -> u32 {
    match content {
        Content::Tcp(segment) => IPV4_HEADER + segment.header_length() + segment.length,
        Content::Mptcp(segment) => IPV4_HEADER + segment.header_length() + segment.tcp.length,
        Content::Arq(frame) => frame.length() as u32 + UDP_IPV4_OVERHEAD,
        Content::Quic(datagram) => datagram.bytes.len() as u32 + UDP_IPV4_OVERHEAD,
        Content::Datagram(length) => length + UDP_IPV4_OVERHEAD,
        Content::Message(message) => IPV4_HEADER + message.length,
        // The IPv4 header, 8 bytes of ICMP, and the IPv4 header and 8 bytes of the dropped packet (RFC 792).
        Content::TooBig { .. } => IPV4_HEADER + 8 + IPV4_HEADER + 8,
    }
}

/// Returns a packet with `content` on `route`.
#[must_use]
#[inline]
pub fn packet(
    route: RouteId,
    flow: u32,
    to: Side,
    way: u8,
    priority: u8,
    content: Content,
) -> Packet<Parcel> {
    let size = wire_size(&content);
    Packet::new(
        route,
        size,
        Parcel {
            flow,
            to,
            way,
            priority,
            corrupt: false,
            content,
        },
    )
}
