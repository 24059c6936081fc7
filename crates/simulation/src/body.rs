//! What packets carry in simulation: a typed frame, segment or datagram. No bytes exist.

use experiment::plan::IPV4_HEADER;
pub use experiment::trace::{Content, Side};
use network::{Body, Packet, RouteId, UDP_IPV4_OVERHEAD};
use transport::mptcp;
use transport::tcp::Ecn;

/// A packet's load on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The flow, numbered from 0 in the order in which flows begin.
    pub flow: u32,
    /// The end of the flow that it is for.
    pub to: Side,
    /// The way that it takes, by its place among those that the flow may use.
    pub way: u8,
    /// Whether a bit flipped on the way; the checksum of the real packet would tell.
    pub corrupt: bool,
    /// The rest.
    pub content: Content,
}

impl Body for Parcel {
    fn flip_bit(&mut self, _: u64) {
        self.corrupt = true;
    }

    fn mark_congestion_experienced(&mut self) -> bool {
        match &mut self.content {
            Content::Tcp(segment) | Content::Mptcp(mptcp::Segment { tcp: segment, .. })
                if segment.ecn != Ecn::NotEct =>
            {
                segment.ecn = Ecn::Ce;
                true
            }
            _ => false,
        }
    }

    fn flow(&self) -> u64 {
        // The two directions of a flow are two flows to a router (RFC 8290, section 4.1.1 hashes the 5-tuple).
        u64::from(self.flow) << 1 | u64::from(self.to == Side::Sender)
    }
}

/// Bytes on the wire of what a packet carries, with all headers.
#[inline]
fn wire_size(content: &Content) -> u32 {
    match content {
        Content::Tcp(segment) => IPV4_HEADER + segment.header_length() + segment.length,
        Content::Mptcp(segment) => IPV4_HEADER + segment.header_length() + segment.tcp.length,
        Content::Arq(frame) => frame.length() as u32 + UDP_IPV4_OVERHEAD,
        Content::Datagram(length) => length + UDP_IPV4_OVERHEAD,
        Content::Message(message) => IPV4_HEADER + message.length,
        // The IPv4 header, ICMP's 8 bytes, and the header and 8 bytes of what was dropped (RFC 792).
        Content::TooBig { .. } => IPV4_HEADER + 8 + IPV4_HEADER + 8,
    }
}

/// The packet that carries `content` along `route`.
#[must_use]
#[inline]
pub fn packet(route: RouteId, flow: u32, to: Side, way: u8, content: Content) -> Packet<Parcel> {
    let size = wire_size(&content);
    Packet::new(
        route,
        size,
        Parcel {
            flow,
            to,
            way,
            corrupt: false,
            content,
        },
    )
}
