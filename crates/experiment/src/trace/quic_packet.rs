//! Packets of a datagram of QUIC and their frames, with the names of qlog (draft-ietf-quic-qlog-quic-events-12).

use foundation::omit_unset;
use quic::wire::{Frame, Packet};
use serde::Serialize;

/// A packet of a datagram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuicPacket {
    /// Type of the packet.
    pub kind: &'static str,
    /// Packet number; `None` of packets without one.
    pub number: Option<u64>,
    /// Bytes with header and tag.
    pub length: usize,
    /// Its frames, each run of PADDING as one.
    pub frames: Vec<QuicFrame>,
}

omit_unset! {
    /// A frame.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct QuicFrame {
        /// Name of the type.
        pub frame_type: &'static str,
        /// Stream.
        pub stream_id: Option<u64>,
        /// Offset of the first byte.
        pub offset: Option<u64>,
        /// Whether the stream ends with the frame.
        pub fin: Option<bool>,
        /// Bytes of payload or padding.
        pub length: Option<u64>,
        /// Path ID, of frames that have one.
        pub path_id: Option<u64>,
        /// Acknowledged packet numbers, both ends included, ascending.
        pub acked_ranges: Option<Vec<(u64, u64)>>,
    }
}

impl QuicFrame {
    fn of(frame: Frame<'_>) -> Self {
        let named = |frame_type| Self {
            frame_type,
            ..Self::default()
        };
        match frame {
            Frame::Padding => Self {
                length: Some(1),
                ..named("padding")
            },
            Frame::Ack(ack) => {
                let mut ranges = Vec::new();
                ack.ranges(|low, high| ranges.push((low, high)));
                ranges.reverse();
                Self {
                    acked_ranges: Some(ranges),
                    path_id: ack.path,
                    ..named(if ack.path.is_some() { "path_ack" } else { "ack" })
                }
            }
            Frame::Stream {
                id,
                offset,
                length,
                fin,
            } => Self {
                stream_id: Some(id),
                offset: Some(offset),
                fin: Some(fin),
                length: Some(length),
                ..named("stream")
            },
            Frame::Crypto { offset, length } => Self {
                offset: Some(offset),
                length: Some(length),
                ..named("crypto")
            },
            Frame::Datagram { length } => Self {
                length: Some(length),
                ..named("datagram")
            },
            Frame::Close => named("connection_close"),
            Frame::MaxData(_) => named("max_data"),
            Frame::PathConnectionId(path) => Self {
                path_id: Some(path),
                ..named("path_new_connection_id")
            },
            Frame::Other(name) => named(name),
        }
    }
}

impl QuicPacket {
    /// Returns a packet with its full number.
    pub(super) fn of(packet: &Packet<'_>, number: Option<u64>) -> Self {
        let mut frames: Vec<QuicFrame> = Vec::new();
        packet.frames(|frame| match frames.last_mut() {
            Some(last) if frame == Frame::Padding && last.frame_type == "padding" => {
                last.length = last.length.map(|length| length + 1);
            }
            _ => frames.push(QuicFrame::of(frame)),
        });
        Self {
            kind: packet.kind.name(),
            number,
            length: packet.length,
            frames,
        }
    }
}
