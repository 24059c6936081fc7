//! Frames as bytes in network byte order with a CRC-32C (RFC 3385 recommends it over CRC-32).
//!
//! ```text
//!  0               1               2               3
//! +-------+-------+---------------+-------------------------------+
//! |version| type  |  SACK ranges  |        payload length         |
//! +-------+-------+---------------+-------------------------------+
//! |                          connection                           |
//! |                           sequence                            |
//! |                        acknowledgement                        |
//! |                            window                             |
//! |                           timestamp                           |
//! |                             echo                              |
//! |                           checksum                            |
//! +---------------------------------------------------------------+
//! | SACK ranges: start, end (each 4 bytes)                        |
//! | setup block: token (24), protocol (1), 0 (1), segment size,   |
//! |   ACK every, ACK delay (2 each)                               |
//! | payload                                                       |
//! ```
//!
//! The payload of a data frame is one packet of the stream, or several consecutive ones (see [`FrameType::Data`]).
//!
//! A protected frame ([`Layout::PROTECTED`]) has the same header. It carries the low half of a record number instead of
//! the checksum, an encrypted payload, and an authentication tag after it. So captures and relays read packet numbers
//! and ACKs of both.

use super::frame::{
    Frame, FrameType, HANDSHAKE_LENGTH, HEADER_LENGTH, Handshake, MAX_SACK_RANGES, Parameters, Payload,
    SACK_LENGTH,
};

const CHECKSUM: std::ops::Range<usize> = 28..32;

/// A variant of the format: version number, and bytes after the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    version: u8,
    trailer: usize,
}

impl Layout {
    /// Frames with a checksum.
    pub const PLAIN: Self = Self {
        version: 1,
        trailer: 0,
    };
    /// Frames with an encrypted payload, a record number and an authentication tag.
    pub const PROTECTED: Self = Self {
        version: 2,
        trailer: 16,
    };

    /// Returns the number of bytes after the payload.
    #[must_use]
    pub const fn trailer(self) -> usize {
        self.trailer
    }

    /// Returns the layout of a datagram, by its first byte; `None` for other protocols.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let version = bytes.first()? >> 4;
        [Self::PLAIN, Self::PROTECTED]
            .into_iter()
            .find(|layout| layout.version == version)
    }
}

/// A frame that was split into its fields, but not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unverified {
    /// The fields; the payload is a range of the bytes.
    pub frame: Frame<std::ops::Range<usize>>,
    /// The checksum, or the low half of the record number.
    pub check: u32,
    /// Where the payload starts.
    pub payload_at: usize,
}

/// Why bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The length contradicts the header.
    #[error("the length does not fit the header")]
    Length,
    /// A different version of the format.
    #[error("unknown version")]
    Version,
    /// An unknown type.
    #[error("unknown type")]
    Type,
    /// The checksum differs: bits were corrupted on the path.
    #[error("wrong checksum")]
    Checksum,
    /// A part is missing, or this type does not allow it.
    #[error("malformed frame")]
    Malformed,
}

const fn type_code(kind: FrameType) -> u8 {
    match kind {
        FrameType::Probe => 0,
        FrameType::Open => 1,
        FrameType::Challenge => 2,
        FrameType::Accept => 3,
        FrameType::Data => 4,
        FrameType::Ack => 5,
        FrameType::Update => 6,
        FrameType::Fin => 7,
        FrameType::Ping => 8,
        FrameType::Reset => 9,
        // 10 to 14 are handshakes of protected connections.
        FrameType::ProbeReply => 15,
    }
}

const fn type_of(code: u8) -> Option<FrameType> {
    Some(match code {
        0 => FrameType::Probe,
        1 => FrameType::Open,
        2 => FrameType::Challenge,
        3 => FrameType::Accept,
        4 => FrameType::Data,
        5 => FrameType::Ack,
        6 => FrameType::Update,
        7 => FrameType::Fin,
        8 => FrameType::Ping,
        9 => FrameType::Reset,
        15 => FrameType::ProbeReply,
        _ => return None,
    })
}

const fn carries_handshake(kind: FrameType) -> bool {
    matches!(kind, FrameType::Open | FrameType::Challenge | FrameType::Accept)
}

/// Appends `frame` to `out`; `append` appends the payload. Bytes that it leaves out are 0.
///
/// # Errors
/// Errors of `append`; `out` is unchanged then.
///
/// # Panics
/// If the payload is longer than [`super::frame::MAX_PAYLOAD`], which no connection generates.
pub fn encode<P: Payload, E>(
    frame: &Frame<P>,
    out: &mut Vec<u8>,
    append: impl FnOnce(&P, &mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    write(Layout::PLAIN, 0, frame, out, append)?;
    let checksum = crc32c::crc32c(&out[start..]);
    out[start + CHECKSUM.start..start + CHECKSUM.end].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends the header with `check` and the payload of `frame` to `out`, without a trailer. Returns where the payload
/// starts. `append` appends the payload; bytes that it leaves out are 0.
///
/// # Errors
/// Errors of `append`; `out` is unchanged then.
///
/// # Panics
/// If the payload is longer than [`super::frame::MAX_PAYLOAD`], which no connection generates.
pub fn write<P: Payload, E>(
    layout: Layout,
    check: u32,
    frame: &Frame<P>,
    out: &mut Vec<u8>,
    append: impl FnOnce(&P, &mut Vec<u8>) -> Result<(), E>,
) -> Result<usize, E> {
    let start = out.len();
    let payload_length = frame.payload.as_ref().map_or(0, Payload::length);
    let sack = frame.sack.as_slice();
    let mut header = [0_u8; HEADER_LENGTH];
    header[0] = layout.version << 4 | type_code(frame.kind);
    header[1] = sack.len() as u8;
    header[2..4].copy_from_slice(
        &u16::try_from(payload_length)
            .expect("payload fits a datagram")
            .to_be_bytes(),
    );
    let fields = [
        frame.connection,
        frame.sequence,
        frame.acknowledgement,
        frame.window,
        frame.timestamp,
        frame.echo,
        check,
    ];
    for (target, field) in header[4..].chunks_exact_mut(4).zip(fields) {
        target.copy_from_slice(&field.to_be_bytes());
    }
    out.extend_from_slice(&header);
    for &(first, end) in sack {
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&end.to_be_bytes());
    }
    if let Some(handshake) = &frame.handshake {
        let p = handshake.parameters;
        out.extend_from_slice(&handshake.token);
        out.extend_from_slice(&[p.protocol, 0]);
        for number in [p.segment_size, p.acknowledge_every, p.acknowledge_delay] {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
    let payload_at = out.len();
    if let Some(payload) = &frame.payload {
        if let Err(error) = append(payload, out) {
            out.truncate(start);
            return Err(error);
        }
        out.resize(payload_at + payload_length as usize, 0);
    }
    Ok(payload_at)
}

/// Parses the frame in `bytes`; the payload is returned as a range of `bytes`.
///
/// # Errors
/// [`DecodeError`] unless `bytes` is exactly one complete frame.
pub fn decode(bytes: &[u8]) -> Result<Frame<std::ops::Range<usize>>, DecodeError> {
    let Unverified { frame, check, .. } = read(Layout::PLAIN, bytes)?;
    let checksum = crc32c::crc32c(&bytes[..CHECKSUM.start]);
    let checksum = crc32c::crc32c_append(checksum, &[0; 4]);
    if crc32c::crc32c_append(checksum, &bytes[HEADER_LENGTH..]) != check {
        return Err(DecodeError::Checksum);
    }
    Ok(frame)
}

/// Splits `bytes` into fields without verifying its checksum or tag. Use it to read packet numbers and ACKs of frames
/// of others, or before the verification.
///
/// # Errors
/// [`DecodeError`] unless the lengths fit.
pub fn read(layout: Layout, bytes: &[u8]) -> Result<Unverified, DecodeError> {
    let header: &[u8; HEADER_LENGTH] = bytes.first_chunk().ok_or(DecodeError::Length)?;
    if header[0] >> 4 != layout.version {
        return Err(DecodeError::Version);
    }
    let kind = type_of(header[0] & 0x0f).ok_or(DecodeError::Type)?;
    let sack_count = usize::from(header[1]);
    if sack_count > MAX_SACK_RANGES {
        return Err(DecodeError::Malformed);
    }
    let payload_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let handshake_at = HEADER_LENGTH + SACK_LENGTH * sack_count;
    let payload_at = handshake_at
        + if carries_handshake(kind) {
            HANDSHAKE_LENGTH
        } else {
            0
        };
    if bytes.len() != payload_at + payload_length + layout.trailer {
        return Err(DecodeError::Length);
    }
    if (payload_length > 0) != matches!(kind, FrameType::Data | FrameType::Probe) {
        return Err(DecodeError::Malformed);
    }
    let u32_at = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut frame = Frame::new(kind, u32_at(4));
    frame.sequence = u32_at(8);
    frame.acknowledgement = u32_at(12);
    frame.window = u32_at(16);
    frame.timestamp = u32_at(20);
    frame.echo = u32_at(24);
    for i in 0..sack_count {
        let at = HEADER_LENGTH + SACK_LENGTH * i;
        frame.sack.push(u32_at(at), u32_at(at + 4));
    }
    if carries_handshake(kind) {
        let mut token = [0; 24];
        token.copy_from_slice(&bytes[handshake_at..handshake_at + 24]);
        let parameters = Parameters {
            protocol: bytes[handshake_at + 24],
            segment_size: half(handshake_at + 26),
            acknowledge_every: half(handshake_at + 28),
            acknowledge_delay: half(handshake_at + 30),
        };
        frame.handshake = Some(Box::new(Handshake { token, parameters }));
    }
    if payload_length > 0 {
        frame.payload = Some(payload_at..payload_at + payload_length);
    }
    Ok(Unverified {
        frame,
        check: u32_at(CHECKSUM.start),
        payload_at,
    })
}
