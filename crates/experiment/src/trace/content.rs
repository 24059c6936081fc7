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
    /// ICMP's word that a packet was larger than the path's MTU (RFC 1191).
    TooBig {
        /// The MTU that it met, in bytes.
        mtu: u32,
    },
}
