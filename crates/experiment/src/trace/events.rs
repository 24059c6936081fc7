//! The time-sequence table.

use serde::Serialize;
use transport::arq::frame::FrameType;
use transport::tcp::{Flags, Segment};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEventKind {
    /// A host handed a frame to the network.
    Send,
    /// A frame reached a host.
    Receive,
    /// The network dropped a frame.
    Drop,
    /// The network made a second copy of a frame.
    Duplicate,
    /// A queue marked a packet as having met congestion (ECN).
    Mark,
    /// The network flipped a bit of a frame; its receiver will not accept it.
    Corrupt,
    /// A retransmission timer ran out.
    Timeout,
    /// An application read a piece of the stream.
    Deliver,
}

/// One line of the table. Fields that do not apply are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceEvent {
    /// Seconds since the start of the trial.
    pub time: f64,
    /// The flow that it is about.
    pub flow: u32,
    /// "sender" or "receiver" of the flow.
    pub host: &'static str,
    /// What happened.
    pub what: TraceEventKind,
    /// "forward" (sender to receiver) or "reverse", for events of a frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'static str>,
    /// The kind of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<&'static str>,
    /// The packet's number in the trial: the same when sent, dropped and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The subflow of a multipath connection, by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u8>,
    /// Bytes of the packet on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Payload bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// The frame's sequence number; in an ACK of an ARQ protocol that of the frame that it answers; counted
    /// from the connection's first, in TCP from the SYN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// The next sequence number that the frame's sender waits for; in TCP counted from the peer's SYN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<u32>,
    /// The frame's selective acknowledgements, half-open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sack: Vec<(u32, u32)>,
    /// Room that the frame's sender offers: packets of an ARQ protocol, bytes of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Whether a queue has marked the packet as having met congestion (ECN).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Whether the frame's data had been sent before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retransmission: bool,
    /// Why the frame was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Bytes delivered in order so far, for deliveries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
}

/// The word for a TCP segment in the table.
#[must_use]
pub const fn segment_name(segment: &Segment) -> &'static str {
    let flags = segment.flags;
    if flags.contains(Flags::RST) {
        "rst"
    } else if flags.contains(Flags::SYN) {
        if flags.contains(Flags::ACK) {
            "syn-ack"
        } else {
            "syn"
        }
    } else if flags.contains(Flags::FIN) {
        "fin"
    } else if segment.length > 0 {
        "data"
    } else {
        "ack"
    }
}

/// The word for a kind of frame in the table.
#[must_use]
pub const fn frame_name(kind: FrameType) -> &'static str {
    match kind {
        FrameType::Open => "open",
        FrameType::Challenge => "challenge",
        FrameType::Accept => "accept",
        FrameType::Data => "data",
        FrameType::Ack => "ack",
        FrameType::Update => "update",
        FrameType::Fin => "fin",
        FrameType::Ping => "ping",
        FrameType::Reset => "reset",
    }
}
