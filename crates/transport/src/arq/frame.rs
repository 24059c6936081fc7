//! The one frame format of all ARQ protocols, so that a comparison compares the protocols.

/// Bytes of the fixed header: version and kind, count of SACK ranges, payload length, connection,
/// sequence, acknowledgement, window, timestamp, echo, checksum.
pub const HEADER_LENGTH: usize = 32;
/// Bytes of one selective-acknowledgement range.
pub const SACK_LENGTH: usize = 8;
/// Bytes of the block that set-up frames carry.
pub const HANDSHAKE_LENGTH: usize = 32;
/// SACK ranges in one frame. As in TCP (RFC 2018 has three beside a timestamp) the receiver repeats
/// its ranges in turn, so that a few a frame tell the sender all.
pub const MAX_SACK_RANGES: usize = 4;
/// Most payload bytes in one frame: the largest IPv4 datagram less IP, UDP and ARQ headers.
pub const MAX_PAYLOAD: u32 = 65_535 - 20 - 8 - HEADER_LENGTH as u32;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The opener asks for a connection; with a token it proves that it receives at its address.
    Open,
    /// The listener's answer to an `Open` without token: the token, and no state kept.
    Challenge,
    /// The listener's answer to an `Open` with a valid token.
    Accept,
    /// One numbered packet of the stream.
    Data,
    /// Answers a frame: cumulative acknowledgement, SACK ranges, window, and the echo of what
    /// triggered it (its sequence number and timestamp).
    Ack,
    /// As `Ack`, but triggered by nothing: the window has opened.
    Update,
    /// The end of the stream; numbered and retransmitted like data.
    Fin,
    /// Asks for an `Ack`: keep-alive and zero-window probe.
    Ping,
    /// The connection is over, at once; `sequence` holds a [`ResetReason`].
    Reset,
}

/// Why a peer reset a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetReason {
    /// The peer knows no such connection: it was restarted, or forgot it.
    Unknown,
    /// The peer's application gave up.
    Aborted,
    /// The peer accepts no more connections now.
    Busy,
    /// A relay on the way reports that the peer's port is closed.
    Refused,
}

impl ResetReason {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Aborted => 1,
            Self::Busy => 2,
            Self::Refused => 3,
        }
    }

    /// The reason of a number; what is not known counts as `Aborted`.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Unknown,
            2 => Self::Busy,
            3 => Self::Refused,
            _ => Self::Aborted,
        }
    }
}

/// A range of the application's byte stream: what a payload is to a sender that keeps no buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamRange {
    /// Bytes before it in the stream.
    pub offset: u64,
    /// Its own bytes.
    pub length: u32,
}

/// Whatever stands for the bytes of a packet. In simulation no bytes exist and a [`StreamRange`]
/// does; a socket driver uses a buffer.
pub trait Payload {
    /// The number of bytes that it stands for.
    fn length(&self) -> u32;
}

impl Payload for StreamRange {
    fn length(&self) -> u32 {
        self.length
    }
}

/// Selective acknowledgement: up to [`MAX_SACK_RANGES`] half-open ranges of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRanges {
    ranges: [(u32, u32); MAX_SACK_RANGES],
    count: u8,
}

impl SackRanges {
    /// Adds `start..end`; what does not fit is left out.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(slot) = self.ranges.get_mut(usize::from(self.count)) {
            *slot = (start, end);
            self.count += 1;
        }
    }

    /// The ranges.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count)]
    }
}

/// What the two ends agree on at set-up. The opener proposes, the listener takes it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The protocol's number (see [`super::config::Kind`]).
    pub protocol: u8,
    /// Largest payload of a packet, in bytes.
    pub segment_size: u16,
    /// One ACK for so many packets that arrive in order.
    pub acknowledge_every: u16,
    /// How long an ACK may wait for that, in units of 100 µs.
    pub acknowledge_delay: u16,
}

/// The block that `Open`, `Challenge` and `Accept` carry. An `Open` is never shorter than its answer,
/// so that a listener amplifies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Proof of address: all zero where there is none.
    pub token: [u8; 24],
    /// The parameters proposed, or confirmed.
    pub parameters: Parameters,
}

/// A frame. `P` stands for the payload: a [`StreamRange`] on the way out, whatever the driver has on
/// the way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// What the frame is for.
    pub kind: Kind,
    /// The connection, chosen at random by the opener.
    pub connection: u32,
    /// Packet number modulo 2^32. In an `Ack`: the number of the frame that triggered it.
    pub sequence: u32,
    /// The next packet number that the sender of this frame waits for.
    pub acknowledgement: u32,
    /// Packets from `acknowledgement` on that the sender of this frame has room for.
    pub window: u32,
    /// When this frame was sent, in µs of its sender's clock, modulo 2^32.
    pub timestamp: u32,
    /// In an answer: the `timestamp` of what triggered it.
    pub echo: u32,
    /// Packets received beyond `acknowledgement`.
    pub sack: SackRanges,
    /// The set-up block, in set-up frames only.
    pub handshake: Option<Box<Handshake>>,
    /// The payload, in data frames only.
    pub payload: Option<P>,
}

impl<P> Frame<P> {
    /// A frame of this kind with everything else zero.
    #[must_use]
    pub const fn new(kind: Kind, connection: u32) -> Self {
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

    /// The same frame around another form of its payload.
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

    /// Bytes before the payload.
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
    /// Bytes of the frame as a UDP payload.
    #[must_use]
    pub fn length(&self) -> usize {
        self.header_length() + self.payload.as_ref().map_or(0, |p| p.length() as usize)
    }
}
