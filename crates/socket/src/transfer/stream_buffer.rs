//! Bytes of an outgoing stream, kept until they are acknowledged.

use std::collections::VecDeque;

use transport::arq::StreamRange;

/// The written and not yet acknowledged part of a stream, in its original pieces. Retransmissions read from it, so
/// they never differ from the first transmission.
#[derive(Debug, Default)]
pub struct StreamBuffer {
    pieces: VecDeque<(u64, Vec<u8>)>,
    end: u64,
}

impl StreamBuffer {
    /// Appends a piece.
    pub fn push(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() {
            let start = self.end;
            self.end += piece.len() as u64;
            self.pieces.push_back((start, piece));
        }
    }

    /// Returns how many bytes were appended since the start of the stream.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Appends `range` to `out`, with zeros for released bytes.
    pub fn append(&self, range: StreamRange, out: &mut Vec<u8>) {
        let (mut at, end) = (range.offset, range.offset + u64::from(range.length));
        let mut piece = self
            .pieces
            .partition_point(|(start, bytes)| start + bytes.len() as u64 <= at);
        while let Some((start, bytes)) = self.pieces.get(piece).filter(|(start, _)| *start < end) {
            out.resize(out.len() + start.saturating_sub(at) as usize, 0);
            at = at.max(*start);
            let from = (at - start) as usize;
            let length = ((end - at) as usize).min(bytes.len() - from);
            out.extend_from_slice(&bytes[from..from + length]);
            at += length as u64;
            piece += 1;
        }
    }

    /// Releases and returns the next piece that ends at or before `offset`.
    pub fn release(&mut self, offset: u64) -> Option<Vec<u8>> {
        let (start, bytes) = self.pieces.front()?;
        (start + bytes.len() as u64 <= offset)
            .then(|| self.pieces.pop_front().map(|(_, bytes)| bytes))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_across_pieces() {
        let mut buffer = StreamBuffer::default();
        for piece in [&b"abc"[..], b"", b"d", b"efgh"] {
            buffer.push(piece.to_vec());
        }
        let read = |buffer: &StreamBuffer, offset, length: u32| {
            let mut out = Vec::new();
            buffer.append(StreamRange { offset, length }, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(buffer.end(), 8);
        for start in 0..8_usize {
            for end in start..=8 {
                assert_eq!(
                    read(&buffer, start as u64, (end - start) as u32),
                    "abcdefgh"[start..end]
                );
            }
        }
        assert_eq!(buffer.release(2), None);
        assert_eq!(buffer.release(4).as_deref(), Some(&b"abc"[..]));
        assert_eq!(buffer.release(4).as_deref(), Some(&b"d"[..]));
        assert_eq!(buffer.release(4), None);
        assert_eq!(read(&buffer, 2, 4), "\0\0ef");
    }
}
