//! Frames as bytes, in network byte order, under a CRC-32C (RFC 3385 argues for it over CRC-32).
//!
//! ```text
//!  0               1               2               3
//! +-------+-------+---------------+-------------------------------+
//! |version| kind  |  SACK ranges  |        payload length         |
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
//! | set-up block: token (24), protocol (1), 0 (1), segment size,  |
//! |   ACK every, ACK delay (2 each)                               |
//! | payload                                                       |
//! ```

use super::frame::{
    Frame, HANDSHAKE_LENGTH, HEADER_LENGTH, Handshake, Kind, MAX_SACK_RANGES, Parameters, Payload,
    SACK_LENGTH,
};

const VERSION: u8 = 1;
const CHECKSUM: std::ops::Range<usize> = 28..32;

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than the header and what it announces, or more.
    #[error("the length does not fit the header")]
    Length,
    /// Another version of the format.
    #[error("unknown version")]
    Version,
    /// A kind that this version does not have.
    #[error("unknown kind")]
    Kind,
    /// The checksum does not agree: some bits flipped on the way.
    #[error("wrong checksum")]
    Checksum,
    /// A part that this kind of frame does not carry, or lacks.
    #[error("malformed frame")]
    Malformed,
}

const fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Open => 1,
        Kind::Challenge => 2,
        Kind::Accept => 3,
        Kind::Data => 4,
        Kind::Ack => 5,
        Kind::Update => 6,
        Kind::Fin => 7,
        Kind::Ping => 8,
        Kind::Reset => 9,
    }
}

const fn kind_of(code: u8) -> Option<Kind> {
    Some(match code {
        1 => Kind::Open,
        2 => Kind::Challenge,
        3 => Kind::Accept,
        4 => Kind::Data,
        5 => Kind::Ack,
        6 => Kind::Update,
        7 => Kind::Fin,
        8 => Kind::Ping,
        9 => Kind::Reset,
        _ => return None,
    })
}

const fn carries_handshake(kind: Kind) -> bool {
    matches!(kind, Kind::Open | Kind::Challenge | Kind::Accept)
}

/// Appends `frame` to `out`; `fill` writes the payload's bytes into the slice that it is given.
///
/// # Errors
/// What `fill` gives; `out` is then as long as before.
///
/// # Panics
/// If the payload is longer than [`super::frame::MAX_PAYLOAD`], which a connection never makes.
pub fn encode<P: Payload, E>(
    frame: &Frame<P>,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&P, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    let payload_length = frame.payload.as_ref().map_or(0, Payload::length);
    let sack = frame.sack.as_slice();
    let mut header = [0_u8; HEADER_LENGTH];
    header[0] = VERSION << 4 | kind_code(frame.kind);
    header[1] = sack.len() as u8;
    header[2..4].copy_from_slice(
        &u16::try_from(payload_length)
            .expect("payload fits a datagram")
            .to_be_bytes(),
    );
    let words = [
        frame.connection,
        frame.sequence,
        frame.acknowledgement,
        frame.window,
        frame.timestamp,
        frame.echo,
    ];
    for (field, word) in header[4..28].chunks_exact_mut(4).zip(words) {
        field.copy_from_slice(&word.to_be_bytes());
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
    if let Some(payload) = &frame.payload {
        let at = out.len();
        out.resize(at + payload_length as usize, 0);
        if let Err(error) = fill(payload, &mut out[at..]) {
            out.truncate(start);
            return Err(error);
        }
    }
    let checksum = crc32c::crc32c(&out[start..]);
    out[start + CHECKSUM.start..start + CHECKSUM.end].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Reads the frame that `bytes` hold; the payload is its place in `bytes`.
///
/// # Errors
/// [`DecodeError`] for whatever is not exactly one whole frame.
pub fn decode(bytes: &[u8]) -> Result<Frame<std::ops::Range<usize>>, DecodeError> {
    let header: &[u8; HEADER_LENGTH] = bytes.first_chunk().ok_or(DecodeError::Length)?;
    if header[0] >> 4 != VERSION {
        return Err(DecodeError::Version);
    }
    let kind = kind_of(header[0] & 0x0f).ok_or(DecodeError::Kind)?;
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
    if bytes.len() != payload_at + payload_length {
        return Err(DecodeError::Length);
    }
    if (payload_length > 0) != (kind == Kind::Data) {
        return Err(DecodeError::Malformed);
    }
    let expected = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let checksum = crc32c::crc32c(&header[..CHECKSUM.start]);
    let checksum = crc32c::crc32c_append(checksum, &[0; 4]);
    if crc32c::crc32c_append(checksum, &bytes[HEADER_LENGTH..]) != expected {
        return Err(DecodeError::Checksum);
    }
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut frame = Frame::new(kind, word(4));
    frame.sequence = word(8);
    frame.acknowledgement = word(12);
    frame.window = word(16);
    frame.timestamp = word(20);
    frame.echo = word(24);
    for i in 0..sack_count {
        let at = HEADER_LENGTH + SACK_LENGTH * i;
        frame.sack.push(word(at), word(at + 4));
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
        frame.payload = Some(payload_at..bytes.len());
    }
    Ok(frame)
}
