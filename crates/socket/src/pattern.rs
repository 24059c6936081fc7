//! A payload that any end can generate and check: each byte follows from its position in the stream.

use transport::arq::StreamRange;

/// 2^64 over the golden ratio: the upper bits of its multiples have no short period.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Eight bytes of the pattern.
const fn eight_bytes(number: u64) -> [u8; 8] {
    let mixed = (number + 1).wrapping_mul(STEP);
    (mixed ^ (mixed >> 32)).to_le_bytes()
}

/// Appends the pattern's bytes of `range` to `out`.
pub fn append(range: StreamRange, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + range.length as usize, 0);
    fill(range, &mut out[start..]);
}

/// Writes the pattern's bytes of `range` into `out`.
pub fn fill(range: StreamRange, out: &mut [u8]) {
    let mut number = range.offset / 8;
    let skip = (range.offset % 8) as usize;
    let (head, rest) = out.split_at_mut(((8 - skip) % 8).min(out.len()));
    if !head.is_empty() {
        head.copy_from_slice(&eight_bytes(number)[skip..skip + head.len()]);
        number += 1;
    }
    for part in rest.chunks_mut(8) {
        part.copy_from_slice(&eight_bytes(number)[..part.len()]);
        number += 1;
    }
}

/// Whether `bytes` equal the pattern from `offset` on.
#[must_use]
pub fn matches(offset: u64, bytes: &[u8]) -> bool {
    let mut piece = [0; 1024];
    let mut at = offset;
    bytes.chunks(piece.len()).all(|part| {
        let expected = &mut piece[..part.len()];
        let range = StreamRange {
            offset: at,
            length: part.len() as u32,
        };
        fill(range, expected);
        at += part.len() as u64;
        expected == part
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_agree_with_the_whole() {
        let mut whole = vec![0; 200];
        fill(
            StreamRange {
                offset: 0,
                length: 200,
            },
            &mut whole,
        );
        for start in 0..40 {
            for end in start..60 {
                assert!(matches(start as u64, &whole[start..end]));
            }
        }
        // A wrong byte, or one at the wrong position, is detected.
        assert!(!matches(8, &whole[..64]));
        whole[150] ^= 1;
        assert!(!matches(0, &whole));
    }
}
