//! Parsing of unencrypted QUIC packets (RFC 9000, sections 17 and 19), for counters and traces.

use crate::{CONNECTION_ID, TAG};

/// Type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// Retry or version negotiation, without frames.
    Other,
    /// 1-RTT.
    OneRtt,
}

impl PacketType {
    /// Returns the name, for traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::ZeroRtt => "0-rtt",
            Self::Handshake => "handshake",
            Self::Other => "retry",
            Self::OneRtt => "1-rtt",
        }
    }
}

/// A packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'d> {
    /// Type.
    pub kind: PacketType,
    /// The low bits of the packet number.
    pub number: u32,
    /// How many bits of the packet number the packet has.
    pub number_bits: u8,
    /// Bytes of the packet with its header and tag.
    pub length: usize,
    payload: &'d [u8],
}

/// A frame, as far as counters and traces need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'d> {
    /// PADDING.
    Padding,
    /// ACK, or PATH_ACK of draft-ietf-quic-multipath.
    Ack(Ack<'d>),
    /// STREAM.
    Stream {
        /// Stream ID.
        id: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Payload bytes.
        length: u64,
        /// Whether the stream ends with this frame.
        fin: bool,
    },
    /// CRYPTO.
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Bytes of the handshake.
        length: u64,
    },
    /// DATAGRAM (RFC 9221).
    Datagram {
        /// Payload bytes.
        length: u64,
    },
    /// CONNECTION_CLOSE.
    Close,
    /// MAX_DATA, with the limit in bytes.
    MaxData(u64),
    /// PATH_NEW_CONNECTION_ID, with the path ID.
    PathConnectionId(u64),
    /// Any other frame, with its name in qlog.
    Other(&'static str),
}

/// The ranges of an ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'d> {
    /// Path ID of the packet numbers. `None` in an ACK frame, which is about the first path.
    pub path: Option<u64>,
    /// Largest acknowledged packet number.
    pub largest: u64,
    first_range: u64,
    ranges: u64,
    rest: &'d [u8],
}

impl Ack<'_> {
    /// Calls `each` for each range of acknowledged packet numbers, both ends included, the highest first. Stops at a malformed
    /// range.
    pub fn ranges(&self, mut each: impl FnMut(u64, u64)) {
        let mut reader = Reader(self.rest);
        let mut high = self.largest;
        let Some(mut low) = high.checked_sub(self.first_range) else {
            return;
        };
        each(low, high);
        for _ in 0..self.ranges {
            let (Some(gap), Some(length)) = (reader.integer(), reader.integer()) else {
                return;
            };
            let Some(next) = low.checked_sub(gap.saturating_add(2)) else {
                return;
            };
            high = next;
            let Some(next) = high.checked_sub(length) else {
                return;
            };
            low = next;
            each(low, high);
        }
    }
}

/// Reads numbers and bytes from the front of a slice.
#[derive(Clone, Copy)]
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn take(&mut self, bytes: usize) -> Option<&'d [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// Reads a variable-length integer (RFC 9000, section 16).
    fn integer(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        let start = u64::from(first & 0x3f);
        Some(
            more.iter()
                .fold(start, |number, &byte| number << 8 | u64::from(byte)),
        )
    }

    fn integers(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.integer().map(drop))
    }

    /// Skips bytes after their number. Returns the number.
    fn skip_counted(&mut self) -> Option<u64> {
        let bytes = self.integer()?;
        self.take(usize::try_from(bytes).ok()?)?;
        Some(bytes)
    }
}

/// Calls `each` for each packet of a datagram, until one is malformed.
pub fn packets<'d>(datagram: &'d [u8], mut each: impl FnMut(Packet<'d>)) {
    let mut reader = Reader(datagram);
    while !reader.0.is_empty() {
        let before = reader.0.len();
        let Some(mut packet) = packet(&mut reader) else {
            return;
        };
        packet.length = before - reader.0.len();
        each(packet);
    }
}

/// Reads a packet; its length follows from the reader.
fn packet<'d>(reader: &mut Reader<'d>) -> Option<Packet<'d>> {
    let first = reader.byte()?;
    let number_length = usize::from(first & 0b11) + 1;
    let number_bits = 8 * number_length as u8;
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |number, &byte| number << 8 | u32::from(byte))
    };
    if first & 0x80 == 0 {
        reader.take(CONNECTION_ID)?;
        let number = number(reader.take(number_length)?);
        let payload = reader.take(reader.0.len().checked_sub(TAG)?)?;
        reader.0 = &[];
        return Some(Packet {
            kind: PacketType::OneRtt,
            number,
            number_bits,
            length: 0,
            payload,
        });
    }
    let version = reader.take(4)?;
    for _ in 0..2 {
        let length = reader.byte()?;
        reader.take(usize::from(length))?;
    }
    let kind = match first >> 4 & 0b11 {
        _ if version == [0; 4] => PacketType::Other,
        0 => PacketType::Initial,
        1 => PacketType::ZeroRtt,
        2 => PacketType::Handshake,
        _ => PacketType::Other,
    };
    if kind == PacketType::Other {
        reader.0 = &[];
        return Some(Packet {
            kind,
            number: 0,
            number_bits: 0,
            length: 0,
            payload: &[],
        });
    }
    if kind == PacketType::Initial {
        reader.skip_counted()?;
    }
    let length = usize::try_from(reader.integer()?).ok()?;
    let mut body = Reader(reader.take(length)?);
    let number = number(body.take(number_length)?);
    let payload = body.take(body.0.len().checked_sub(TAG)?)?;
    Some(Packet {
        kind,
        number,
        number_bits,
        length: 0,
        payload,
    })
}

impl<'d> Packet<'d> {
    /// Returns the full packet number, given the one expected next (RFC 9000, appendix A.3).
    #[must_use]
    pub fn full_number(&self, expected: u64) -> u64 {
        let window = 1u64 << self.number_bits;
        let candidate = expected & !(window - 1) | u64::from(self.number);
        if candidate + window / 2 <= expected {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }

    /// Calls `each` for each frame, until one is malformed or of an unknown type.
    pub fn frames(&self, each: impl FnMut(Frame<'d>)) {
        frames(self.payload, each);
    }

    /// Returns the frames' bytes.
    #[must_use]
    pub const fn payload(&self) -> &'d [u8] {
        self.payload
    }
}

/// Calls `each` for each frame of a packet's payload, until one is malformed or of an unknown type.
pub fn frames<'d>(payload: &'d [u8], mut each: impl FnMut(Frame<'d>)) {
    let mut reader = Reader(payload);
    while !reader.0.is_empty() {
        let Some(frame) = frame(&mut reader) else {
            return;
        };
        each(frame);
    }
}

fn frame<'d>(reader: &mut Reader<'d>) -> Option<Frame<'d>> {
    let kind = reader.integer()?;
    let name = match kind {
        0x00 => return Some(Frame::Padding),
        0x01 => "ping",
        0x02 | 0x03 => return ack(reader, None, kind == 0x03).map(Frame::Ack),
        0x3e | 0x3f => {
            let path = reader.integer()?;
            return ack(reader, Some(path), kind == 0x3f).map(Frame::Ack);
        }
        0x06 => {
            let offset = reader.integer()?;
            let length = reader.skip_counted()?;
            return Some(Frame::Crypto { offset, length });
        }
        0x08..=0x0f => return stream(reader, kind),
        0x10 => return reader.integer().map(Frame::MaxData),
        0x3e78 => {
            let path = reader.integer()?;
            connection_id(reader)?;
            return Some(Frame::PathConnectionId(path));
        }
        0x1c | 0x1d => {
            reader.integers(if kind == 0x1c { 2 } else { 1 })?;
            reader.skip_counted()?;
            return Some(Frame::Close);
        }
        0x30 => {
            let length = reader.0.len() as u64;
            reader.0 = &[];
            return Some(Frame::Datagram { length });
        }
        0x31 => {
            return reader.skip_counted().map(|length| Frame::Datagram { length });
        }
        0x1e => "handshake_done",
        0x1f => "immediate_ack",
        _ => skip(reader, kind)?,
    };
    Some(Frame::Other(name))
}

/// Skips the content of a frame. Returns the name of its type.
fn skip(reader: &mut Reader<'_>, kind: u64) -> Option<&'static str> {
    // Frames that consist of this number of integers.
    let (integers, name) = match kind {
        0x04 => (3, "reset_stream"),
        0x05 => (2, "stop_sending"),
        0x11 => (2, "max_stream_data"),
        0x12 | 0x13 => (1, "max_streams"),
        0x14 => (1, "data_blocked"),
        0x15 => (2, "stream_data_blocked"),
        0x16 | 0x17 => (1, "streams_blocked"),
        0x19 => (1, "retire_connection_id"),
        0xaf => (4, "ack_frequency"),
        // draft-ietf-quic-multipath-21, section 4.
        0x3e75 => (2, "path_abandon"),
        0x3e76 => (2, "path_status_backup"),
        0x3e77 => (2, "path_status_available"),
        0x3e79 => (2, "path_retire_connection_id"),
        0x3e7a => (1, "max_path_id"),
        0x3e7b => (1, "paths_blocked"),
        0x3e7c => (2, "path_cids_blocked"),
        0x07 => {
            reader.skip_counted()?;
            return Some("new_token");
        }
        0x18 => {
            connection_id(reader)?;
            return Some("new_connection_id");
        }
        0x1a | 0x1b => {
            reader.take(8)?;
            return Some(if kind == 0x1a {
                "path_challenge"
            } else {
                "path_response"
            });
        }
        _ => return None,
    };
    reader.integers(integers)?;
    Some(name)
}

/// Skips a connection ID with its sequence numbers, length and reset token (RFC 9000, section 19.15).
fn connection_id(reader: &mut Reader<'_>) -> Option<()> {
    reader.integers(2)?;
    let length = reader.byte()?;
    reader.take(usize::from(length) + 16).map(drop)
}

fn ack<'d>(reader: &mut Reader<'d>, path: Option<u64>, has_marks: bool) -> Option<Ack<'d>> {
    let largest = reader.integer()?;
    reader.integer()?;
    let ranges = reader.integer()?;
    let first_range = reader.integer()?;
    let rest = reader.0;
    for _ in 0..ranges {
        reader.integers(2)?;
    }
    if has_marks {
        reader.integers(3)?;
    }
    Some(Ack {
        path,
        largest,
        first_range,
        ranges,
        rest,
    })
}

fn stream<'d>(reader: &mut Reader<'d>, kind: u64) -> Option<Frame<'d>> {
    let id = reader.integer()?;
    let offset = if kind & 0b100 == 0 { 0 } else { reader.integer()? };
    let length = if kind & 0b10 == 0 {
        reader.0.len() as u64
    } else {
        reader.integer()?
    };
    reader.take(usize::try_from(length).ok()?)?;
    Some(Frame::Stream {
        id,
        offset,
        length,
        fin: kind & 1 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 9000, appendix A.1.
    #[test]
    fn reads_integers_of_the_rfc() {
        let read = |bytes: &[u8]| Reader(bytes).integer();
        let eight = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(read(&eight), Some(151_288_809_941_952_652));
        assert_eq!(read(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
        assert_eq!(read(&[0x7b, 0xbd]), Some(15_293));
        assert_eq!(read(&[0x25]), Some(37));
        assert_eq!(read(&[0x40]), None);
    }

    /// The example of RFC 9000, appendix A.3.
    #[test]
    fn expands_the_packet_number_of_the_rfc() {
        let packet = Packet {
            kind: PacketType::OneRtt,
            number: 0x9b32,
            number_bits: 16,
            length: 0,
            payload: &[],
        };
        assert_eq!(packet.full_number(0xa82f_30eb), 0xa82f_9b32);
    }

    #[test]
    fn reads_short_packet_with_ack_and_stream() {
        let mut bytes = vec![0x41];
        bytes.extend([7; CONNECTION_ID]);
        bytes.extend([0x01, 0x02]);
        // ACK: largest 20, delay 0, one further range, first range 3 (17 to 20), gap 1, length 2 (12 to 14).
        bytes.extend([0x02, 20, 0, 1, 3, 1, 2]);
        // STREAM with offset and FIN: stream 4, offset 300, to the end of the packet.
        bytes.extend([0x0d, 4, 0x41, 0x2c, 1, 2, 3]);
        bytes.extend([0; TAG]);
        let (mut ranges, mut found) = (Vec::new(), Vec::new());
        packets(&bytes, |packet| {
            assert_eq!((packet.kind, packet.number), (PacketType::OneRtt, 0x0102));
            packet.frames(|frame| match frame {
                Frame::Ack(ack) => ack.ranges(|low, high| ranges.push((low, high))),
                other => found.push(other),
            });
        });
        assert_eq!(ranges, [(17, 20), (12, 14)]);
        let stream = Frame::Stream {
            id: 4,
            offset: 300,
            length: 3,
            fin: true,
        };
        assert_eq!(found, [stream]);
    }

    #[test]
    fn names_frames_and_stops_at_unknown_ones() {
        // PING, CRYPTO at 2 with 3 bytes, MAX_DATA, HANDSHAKE_DONE, NEW_CONNECTION_ID, a type without meaning, and PING.
        let mut bytes = vec![0x01, 0x06, 2, 3, 9, 9, 9, 0x10, 0x41, 0x00, 0x1e, 0x18, 1, 0, 8];
        bytes.extend([7; 8 + 16]);
        bytes.extend([0x3f, 0x01]);
        let mut found = Vec::new();
        frames(&bytes, |frame| found.push(frame));
        let named = Frame::Other;
        let crypto = Frame::Crypto { offset: 2, length: 3 };
        let rest = ["handshake_done", "new_connection_id"].map(named);
        assert_eq!(
            found,
            [&[named("ping"), crypto, Frame::MaxData(256)][..], &rest].concat()
        );
    }

    /// draft-ietf-quic-multipath-21, section 4.
    #[test]
    fn reads_frames_of_several_paths() {
        // PATH_ACK_ECN of path 3, PATH_NEW_CONNECTION_ID of path 2, and the frames that only have a name.
        let mut bytes = vec![0x3f, 3, 20, 0, 0, 3, 1, 2, 3];
        bytes.extend([0x7e, 0x78, 2, 1, 0, 8]);
        bytes.extend([7; 8 + 16]);
        bytes.extend([
            0x7e, 0x75, 1, 0, 0x7e, 0x76, 1, 5, 0x7e, 0x77, 1, 6, 0x7e, 0x79, 1, 0,
        ]);
        bytes.extend([0x7e, 0x7a, 9, 0x7e, 0x7b, 9, 0x7e, 0x7c, 1, 0]);
        let mut found = Vec::new();
        frames(&bytes, |frame| match frame {
            Frame::Ack(ack) => ack.ranges(|low, high| assert_eq!((ack.path, low, high), (Some(3), 17, 20))),
            other => found.push(other),
        });
        let names = [
            "path_abandon",
            "path_status_backup",
            "path_status_available",
            "path_retire_connection_id",
            "max_path_id",
            "paths_blocked",
            "path_cids_blocked",
        ];
        assert_eq!(
            found,
            [&[Frame::PathConnectionId(2)][..], &names.map(Frame::Other)].concat()
        );
    }
}
