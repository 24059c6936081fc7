//! Packet contents as types. Simulated packets consist of them; in other worlds they are parsed from bytes.

use foundation::Instant;
use transport::arq::{Frame, StreamRange};
use transport::mptcp;
use transport::tcp::Segment;

/// The protocol of requests and responses of one datagram each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageProtocol {
    /// UDP.
    Udp,
    /// ICMP echo.
    Icmp,
}

/// A datagram with a request or a response, or a fragment of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Protocol.
    pub protocol: MessageProtocol,
    /// Whether it belongs to a request, not a response.
    pub is_request: bool,
    /// Number of the request, from 1.
    pub number: u32,
    /// Fragment offset in bytes of the IP payload (RFC 791, section 3.2): 0 except for later fragments.
    pub offset: u32,
    /// Bytes of the IP payload in this packet, including the UDP or ICMP header in the first.
    pub length: u32,
    /// Bytes of the IP payload of the whole datagram.
    pub whole: u32,
}

impl Message {
    /// Returns whether it is a fragment.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.length < self.whole
    }
}

/// A datagram without feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Payload bytes.
    pub length: u32,
    /// Departure from the sender, if known.
    pub sent_at: Option<Instant>,
}

/// The content of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A frame of an ARQ protocol, in UDP.
    Arq(Frame<StreamRange>),
    /// A TCP segment.
    Tcp(Segment),
    /// A datagram of QUIC.
    Quic(quic::Datagram),
    /// A segment of multipath TCP.
    Mptcp(mptcp::Segment),
    /// A datagram without feedback.
    Datagram(Datagram),
    /// A request or response of one datagram, or a fragment of it.
    Message(Message),
    /// An ICMP error for a packet larger than the MTU (RFC 1191).
    TooBig {
        /// The MTU in bytes.
        mtu: u32,
    },
}

impl Content {
    /// Returns the payload bytes.
    #[must_use]
    pub fn payload(&self) -> u32 {
        match self {
            Self::Arq(frame) => frame.payload.map_or(0, |range| range.length),
            Self::Tcp(segment) | Self::Mptcp(mptcp::Segment { tcp: segment, .. }) => segment.length,
            Self::Quic(datagram) => datagram.data,
            Self::Datagram(datagram) => datagram.length,
            Self::Message(message) => message.length,
            Self::TooBig { .. } => 0,
        }
    }
}
