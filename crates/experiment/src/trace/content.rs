//! What packets of flows carry, as types: in simulation nothing else exists, on wall time they are read from bytes.

use transport::arq::{Frame, StreamRange};
use transport::mptcp;
use transport::tcp::Segment;

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Opens the flow; with files it sends.
    Sender,
    /// Waits for the flow.
    Receiver,
}

impl Side {
    /// "sender" or "receiver".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// What carries a request or response that is one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageProtocol {
    /// UDP.
    Udp,
    /// ICMP echo.
    Icmp,
}

/// A packet of a request or response that is one datagram: all of it, or a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What carries it.
    pub protocol: MessageProtocol,
    /// Whether it is of a request, not of a response.
    pub asks: bool,
    /// Which request it is, or is the response to, from 1.
    pub number: u32,
    /// The first byte of IP's payload in it (RFC 791, section 3.2): 0 unless it is a further fragment.
    pub offset: u32,
    /// Bytes of IP's payload in it, the header of the carrier included in the first.
    pub length: u32,
    /// Bytes of IP's payload of the whole datagram.
    pub whole: u32,
}

impl Message {
    /// Whether it is not all of the datagram.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.length < self.whole
    }
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A frame of an ARQ protocol, in UDP.
    Arq(Frame<StreamRange>),
    /// A TCP segment.
    Tcp(Segment),
    /// A segment of multipath TCP.
    Mptcp(mptcp::Segment),
    /// A datagram of so many payload bytes.
    Datagram(u32),
    /// A request or response that is one datagram, or a fragment of it.
    Message(Message),
    /// ICMP's word that a packet was larger than the path's MTU (RFC 1191).
    TooBig {
        /// The MTU that it met, in bytes.
        mtu: u32,
    },
}
