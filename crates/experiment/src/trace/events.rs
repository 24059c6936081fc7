//! Rows of the event table.

use foundation::omit_unset;
use serde::{Deserialize, Serialize};
use transport::arq::frame::FrameType;
use transport::tcp::{Flags, Segment};

use super::quic_packet::QuicPacket;

/// The kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEventKind {
    /// A host sent a frame.
    #[default]
    Send,
    /// A frame reached a host.
    Receive,
    /// The network dropped a frame.
    Drop,
    /// The network duplicated a frame.
    Duplicate,
    /// A queue marked a packet with ECN CE.
    Mark,
    /// The network flipped a bit of a frame; the receiver discards it.
    Corrupt,
    /// A retransmission timer expired.
    Timeout,
    /// An application read from the stream.
    Deliver,
}

/// The events that a table contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceDetail {
    /// Every event.
    #[default]
    All,
    /// Drops, marks, bit errors, timeouts, and sent retransmissions.
    Losses,
}

impl TraceDetail {
    /// Returns whether the table contains an event of this kind.
    #[must_use]
    pub const fn includes(self, what: TraceEventKind, is_retransmission: bool) -> bool {
        match what {
            TraceEventKind::Send => is_retransmission || matches!(self, Self::All),
            TraceEventKind::Receive | TraceEventKind::Deliver | TraceEventKind::Duplicate => {
                matches!(self, Self::All)
            }
            TraceEventKind::Drop
            | TraceEventKind::Mark
            | TraceEventKind::Corrupt
            | TraceEventKind::Timeout => true,
        }
    }
}

omit_unset! {
    /// One row of the table. Fields that do not apply are omitted.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct TraceEvent {
        /// Seconds since the start of the trial.
        pub time: f64,
        /// Flow.
        pub flow: u32,
        /// "sender" or "receiver" of the flow.
        pub host: &'static str,
        /// The kind of an event.
        pub what: TraceEventKind,
        /// "forward" (sender to receiver) or "reverse", for frames.
        pub direction: Option<&'static str>,
        /// Type of the frame.
        pub frame: Option<&'static str>,
        /// Packet id in the trial: the same when sent, dropped and received.
        pub id: Option<u64>,
        /// Number of the subflow of a multipath connection.
        pub subflow: Option<u8>,
        /// Bytes on the wire.
        pub size: Option<u32>,
        /// Payload bytes.
        pub length: Option<u32>,
        /// Sequence number relative to the first of the connection (in TCP, to the SYN). In an ACK of an ARQ protocol, that of
        /// the acknowledged frame.
        pub sequence: Option<u32>,
        /// Cumulative acknowledgement number; in TCP relative to the peer's SYN.
        pub acknowledgement: Option<u32>,
        /// Packet number of QUIC.
        pub packet_number: Option<u64>,
        /// All packets of a datagram of QUIC, of which the fields above describe the last.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub packets: Vec<QuicPacket>,
        /// Selective acknowledgements as half-open ranges.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub sack: Vec<(u32, u32)>,
        /// Advertised receive window: packets for ARQ protocols, bytes for TCP.
        pub window: Option<u64>,
        /// Whether the packet has an ECN CE mark.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub marked: bool,
        /// Whether it is a retransmission.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub retransmission: bool,
        /// Reason of a drop.
        pub reason: Option<&'static str>,
        /// Bytes delivered in order so far, for deliveries.
        pub delivered: Option<u64>,
    }
}

/// Returns the type of a TCP segment in the table.
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

/// Returns the type of an ARQ frame in the table.
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
        FrameType::Probe => "probe",
        FrameType::ProbeReply => "probe-reply",
        FrameType::Reset => "reset",
    }
}
