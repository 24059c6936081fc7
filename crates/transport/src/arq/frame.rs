//! The frame format shared by all ARQ protocols, so that comparisons concern the protocols only.

/// Length of the fixed header: version and type, number of SACK ranges, payload length, connection, sequence,
/// acknowledgement, window, timestamp, echo, checksum.
pub const HEADER_LENGTH: usize = 32;
/// Length of one SACK range.
pub const SACK_LENGTH: usize = 8;
/// Length of the setup block.
pub const HANDSHAKE_LENGTH: usize = 32;
/// SACK ranges in one frame. As in TCP (RFC 2018 has three next to a timestamp) the receiver rotates its ranges, so
/// that a few frames cover all of them.
pub const MAX_SACK_RANGES: usize = 4;
/// Maximum payload of a frame: the largest IPv4 datagram minus the IP, UDP and ARQ headers.
pub const MAX_PAYLOAD: u32 = 65_535 - 20 - 8 - HEADER_LENGTH as u32;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// The opener requests a connection; with a token it proves that it receives at its address.
    Open,
    /// The listener's reply to an `Open` without token: the token. The listener stores no state.
    Challenge,
    /// The listener's reply to an `Open` with a valid token.
    Accept,
    /// One numbered packet of the stream, or several consecutive ones: a payload longer than the connection's segment size
    /// continues with the next numbers. All packets of a frame but the last have the segment size.
    Data,
    /// The reply to a frame: cumulative acknowledgement, SACK ranges, window, and the echo of the triggering frame's
    /// sequence number and timestamp.
    Ack,
    /// As `Ack`, but unsolicited: the window has opened.
    Update,
    /// The end of the stream; numbered and retransmitted like data.
    Fin,
    /// Requests an `Ack`: keep-alive and zero-window probe.
    Ping,
    /// Padding that tests whether the path carries a frame of this length; `sequence` is the number of the probe.
    Probe,
    /// The reply to a `Probe`, with its `sequence` and timestamp.
    ProbeReply,
    /// The connection is aborted; `sequence` contains a [`ResetReason`].
    Reset,
}

/// Why a peer reset a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetReason {
    /// The peer has no such connection: it was restarted, or has closed it.
    Unknown,
    /// The peer's application aborted.
    Aborted,
    /// The peer accepts no more connections now.
    Busy,
    /// A relay on the path reports that the peer's port is closed.
    Refused,
    /// The peer accepts protected connections only.
    Protected,
}

impl ResetReason {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Aborted => 1,
            Self::Busy => 2,
            Self::Refused => 3,
            Self::Protected => 4,
        }
    }

    /// Returns the reason with this number; unknown ones become `Aborted`.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Unknown,
            2 => Self::Busy,
            3 => Self::Refused,
            4 => Self::Protected,
            _ => Self::Aborted,
        }
    }
}

/// A range of the application's byte stream, which represents a payload without a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamRange {
    /// Position in the stream.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

/// The payload of a packet. Simulation uses a [`StreamRange`] without bytes; a socket driver uses a buffer.
pub trait Payload: Sized {
    /// Returns the number of bytes.
    fn length(&self) -> u32;
    /// Splits it into parts of `size` bytes; the last may be shorter.
    fn split(self, size: u32) -> Vec<Self>;
}

/// Returns the number of packets of `segment` bytes in a payload of `length` bytes.
#[must_use]
#[inline]
pub const fn packets(length: u32, segment: u32) -> u32 {
    // Most frames have one packet, and a division takes longer than a comparison.
    if length <= segment {
        1
    } else {
        length.div_ceil(segment)
    }
}

impl Payload for StreamRange {
    fn length(&self) -> u32 {
        self.length
    }

    fn split(self, size: u32) -> Vec<Self> {
        (0..self.length)
            .step_by(size as usize)
            .map(|at| Self {
                offset: self.offset + u64::from(at),
                length: size.min(self.length - at),
            })
            .collect()
    }
}

/// Selective acknowledgement: up to [`MAX_SACK_RANGES`] half-open ranges of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRanges {
    ranges: [(u32, u32); MAX_SACK_RANGES],
    count: u8,
}

impl SackRanges {
    /// Adds `start..end`, unless the set is full.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(slot) = self.ranges.get_mut(usize::from(self.count)) {
            *slot = (start, end);
            self.count += 1;
        }
    }

    /// Returns the ranges.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count)]
    }
}

/// Parameters that both ends share. The opener proposes them and the listener adopts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The protocol's number (see [`super::config::ArqProtocol`]).
    pub protocol: u8,
    /// Largest payload of a packet, in bytes.
    pub segment_size: u16,
    /// Number of in-order packets per ACK.
    pub acknowledge_every: u16,
    /// Delay of an ACK, in units of 100 µs.
    pub acknowledge_delay: u16,
}

/// The setup block of `Open`, `Challenge` and `Accept`. An `Open` is never shorter than its reply, so that a listener
/// cannot amplify traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Proof of address; all zero if there is none.
    pub token: [u8; 24],
    /// The proposed or confirmed parameters.
    pub parameters: Parameters,
}

/// A frame. `P` represents the payload: a [`StreamRange`] in outgoing frames, the driver's representation in incoming
/// ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// Its type.
    pub kind: FrameType,
    /// The connection number, drawn by the opener.
    pub connection: u32,
    /// Packet number modulo 2^32. In an `Ack`: the number of the triggering frame.
    pub sequence: u32,
    /// The next packet number that the sender of this frame expects.
    pub acknowledgement: u32,
    /// Number of packets from `acknowledgement` that the sender of this frame has room for.
    pub window: u32,
    /// Sending time in µs of the sender's clock, modulo 2^32.
    pub timestamp: u32,
    /// In a reply: the `timestamp` of the triggering frame.
    pub echo: u32,
    /// Packets received beyond `acknowledgement`.
    pub sack: SackRanges,
    /// The setup block, in setup frames only.
    pub handshake: Option<Box<Handshake>>,
    /// The payload, in data frames and probes only.
    pub payload: Option<P>,
}

impl<P> Frame<P> {
    /// Creates a frame of this type with zero in all other fields.
    #[must_use]
    pub const fn new(kind: FrameType, connection: u32) -> Self {
        Self {
            kind,
            connection,
            sequence: 0,
            acknowledgement: 0,
            window: 0,
            timestamp: 0,
            echo: 0,
            sack: SackRanges {
                ranges: [(0, 0); MAX_SACK_RANGES],
                count: 0,
            },
            handshake: None,
            payload: None,
        }
    }

    /// Converts the payload.
    pub fn map_payload<Q>(self, change: impl FnOnce(P) -> Q) -> Frame<Q> {
        Frame {
            kind: self.kind,
            connection: self.connection,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            window: self.window,
            timestamp: self.timestamp,
            echo: self.echo,
            sack: self.sack,
            handshake: self.handshake,
            payload: self.payload.map(change),
        }
    }

    /// Returns the length of the frame without the payload.
    #[must_use]
    pub fn header_length(&self) -> usize {
        let handshake = if self.handshake.is_some() {
            HANDSHAKE_LENGTH
        } else {
            0
        };
        HEADER_LENGTH + SACK_LENGTH * self.sack.as_slice().len() + handshake
    }
}

impl<P: Payload> Frame<P> {
    /// Returns the length of the frame as a UDP payload.
    #[must_use]
    pub fn length(&self) -> usize {
        self.header_length() + self.payload.as_ref().map_or(0, |p| p.length() as usize)
    }
}
