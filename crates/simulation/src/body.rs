//! Packet bodies in simulation: a typed frame, segment or datagram, without bytes.

use std::net::{Ipv4Addr, SocketAddr};

pub use experiment::Side;
use experiment::acknowledgement::acknowledgement;
use experiment::plan::IPV4_HEADER;
pub use experiment::trace::Content;
use experiment::trace::content::{Datagram, Message};
use network::{Body, Connection, ExternalAddress, Packet, RouteId, TcpAck, UDP_IPV4_OVERHEAD};
use transport::arq::{Frame, StreamRange};
use transport::tcp::{Ecn, Flags};
use transport::{mptcp, tcp};

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

    /// TCP identifies connections by addresses, each subflow of multipath TCP for itself. Frames of the ARQ protocols have a
    /// connection number, and a new address is that of the same connection, as for protected transfers.
    fn connection(&self) -> Option<Connection> {
        let (is_bound, opens) = match &self.content {
            Content::Tcp(segment) | Content::Mptcp(mptcp::Segment { tcp: segment, .. }) => {
                let flags = segment.flags;
                (true, flags.contains(Flags::SYN) && !flags.contains(Flags::ACK))
            }
            // Only TCP receives it.
            Content::TooBig { .. } => (true, false),
            _ => (false, false),
        };
        Some(Connection {
            number: u64::from(self.flow) << 8 | u64::from(self.way),
            opens,
            is_bound,
            is_error: matches!(self.content, Content::TooBig { .. }),
        })
    }

    fn external(&self) -> Option<ExternalAddress> {
        match &self.content {
            Content::Quic(datagram) => external_address(datagram.client?),
            _ => None,
        }
    }

    fn translate(&mut self, external: Option<ExternalAddress>) {
        if let Content::Quic(datagram) = &mut self.content {
            datagram.client = external.map(client_address);
        }
    }

    /// Segments of multipath TCP have options that each later one does not repeat.
    fn acknowledgement(&self) -> Option<TcpAck> {
        match &self.content {
            Content::Tcp(segment) => acknowledgement(segment),
            _ => None,
        }
    }

    fn flow(&self) -> u64 {
        // A router sees the two directions as two flows (RFC 8290, section 4.1.1 hashes the 5-tuple).
        u64::from(self.flow) << 1 | u64::from(self.to == Side::Sender)
    }
}

/// Returns the address of a client behind a translator: one of those for providers (RFC 6598).
fn client_address(external: ExternalAddress) -> SocketAddr {
    let [high, low] = external.host.to_be_bytes();
    SocketAddr::new(Ipv4Addr::new(100, 64, high, low).into(), external.port)
}

/// Returns the address outside of a translator that [`client_address`] stands for.
fn external_address(client: SocketAddr) -> Option<ExternalAddress> {
    let SocketAddr::V4(address) = client else {
        return None;
    };
    let [_, _, high, low] = address.ip().octets();
    Some(ExternalAddress {
        host: u16::from_be_bytes([high, low]),
        port: address.port(),
    })
}

/// A packet of one protocol, which becomes the content of a parcel. Most kinds have no destructor, so that the compiler writes
/// them once, in their place in the network.
pub(crate) trait Outbound {
    /// Returns the bytes on the wire, all headers included.
    fn wire_size(&self) -> u32;
    fn content(self) -> Content;
}

/// Implements [`Outbound`] for the type of a variant of [`Content`].
macro_rules! outbound {
    ($packet:ty, $variant:ident, |$value:ident| $size:expr) => {
        impl Outbound for $packet {
            #[inline]
            fn wire_size(&self) -> u32 {
                let $value = self;
                $size
            }

            #[inline]
            fn content(self) -> Content {
                Content::$variant(self)
            }
        }
    };
}

outbound!(tcp::Segment, Tcp, |segment| IPV4_HEADER
    + segment.header_length()
    + segment.length);
outbound!(mptcp::Segment, Mptcp, |segment| IPV4_HEADER
    + segment.header_length()
    + segment.tcp.length);
outbound!(Frame<StreamRange>, Arq, |frame| frame.length() as u32
    + UDP_IPV4_OVERHEAD);
outbound!(quic::Datagram, Quic, |datagram| datagram.bytes.len() as u32
    + UDP_IPV4_OVERHEAD);
outbound!(Datagram, Datagram, |datagram| datagram.length + UDP_IPV4_OVERHEAD);
outbound!(Message, Message, |message| IPV4_HEADER + message.length);

impl Outbound for Content {
    fn wire_size(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_size(),
            Self::Mptcp(segment) => segment.wire_size(),
            Self::Arq(frame) => frame.wire_size(),
            Self::Quic(datagram) => datagram.wire_size(),
            Self::Datagram(datagram) => datagram.wire_size(),
            Self::Message(message) => message.wire_size(),
            // The IPv4 header, 8 bytes of ICMP, and the IPv4 header and 8 bytes of the dropped packet (RFC 792).
            Self::TooBig { .. } => IPV4_HEADER + 8 + IPV4_HEADER + 8,
        }
    }

    fn content(self) -> Content {
        self
    }
}

/// Returns a parcel that has not been corrupted.
#[inline]
pub(crate) const fn parcel(flow: u32, to: Side, way: u8, priority: u8, content: Content) -> Parcel {
    Parcel {
        flow,
        to,
        way,
        priority,
        corrupt: false,
        content,
    }
}

/// Returns a packet with `content` on `route`.
#[must_use]
pub fn packet(
    route: RouteId,
    flow: u32,
    to: Side,
    way: u8,
    priority: u8,
    content: Content,
) -> Packet<Parcel> {
    let size = content.wire_size();
    Packet::new(route, size, parcel(flow, to, way, priority, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5508, section 4: an error belongs to the connection of the dropped packet, and neither starts nor extends its mapping.
    #[test]
    fn errors_of_routers_belong_to_the_connection_of_the_dropped_packet() {
        let error = packet(RouteId(0), 7, Side::Sender, 2, 0, Content::TooBig { mtu: 1000 });
        let connection = error.body.connection().unwrap();
        let expected = Connection {
            number: 7 << 8 | 2,
            opens: false,
            is_bound: true,
            is_error: true,
        };
        assert_eq!(connection, expected);
    }
}
