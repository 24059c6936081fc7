//! The bytes of a stream between two offsets: sent and unacknowledged, or received and unread.

use std::collections::VecDeque;

/// A buffer of stream bytes by offset. Gaps read as zeros until they are filled.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    start: u64,
    ring: VecDeque<u8>,
}

impl Bytes {
    /// The offset after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.ring.len() as u64
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.ring.extend(bytes);
    }

    /// Writes bytes at an offset, over existing ones; drops those before the first offset.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let before = self.start.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (offset, bytes) = (offset + before as u64, &bytes[before..]);
        if bytes.is_empty() {
            return;
        }
        if offset == self.end() {
            return self.append(bytes);
        }
        let at = (offset - self.start) as usize;
        let over = self.ring.len().saturating_sub(at).min(bytes.len());
        let (inside, beyond) = bytes.split_at(over);
        if at > self.ring.len() {
            self.ring.resize(at, 0);
        }
        let (first, second) = self.ring.as_mut_slices();
        let in_first = first.len().saturating_sub(at).min(over);
        if in_first > 0 {
            first[at..at + in_first].copy_from_slice(&inside[..in_first]);
        }
        if in_first < over {
            let from = (at + in_first) - first.len();
            second[from..from + over - in_first].copy_from_slice(&inside[in_first..]);
        }
        self.append(beyond);
    }

    /// Copies buffered bytes from an offset into `out`.
    pub(crate) fn copy(&self, offset: u64, out: &mut [u8]) {
        debug_assert!(offset >= self.start && offset + out.len() as u64 <= self.end());
        let at = (offset - self.start) as usize;
        let (first, second) = self.ring.as_slices();
        let in_first = first.len().saturating_sub(at).min(out.len());
        if in_first > 0 {
            out[..in_first].copy_from_slice(&first[at..at + in_first]);
        }
        let rest = out.len() - in_first;
        if rest > 0 {
            let from = at + in_first - first.len();
            out[in_first..].copy_from_slice(&second[from..from + rest]);
        }
    }

    /// Moves buffered bytes from the front into `out`.
    pub(crate) fn take(&mut self, out: &mut [u8]) {
        self.copy(self.start, out);
        self.forget_before(self.start + out.len() as u64);
    }

    /// Drops the bytes before an offset.
    pub(crate) fn forget_before(&mut self, offset: u64) {
        let count = offset.saturating_sub(self.start).min(self.ring.len() as u64) as usize;
        self.ring.drain(..count);
        self.start += count as u64;
        // Releases the memory of a large buffer once it is empty.
        if self.ring.is_empty() && self.ring.capacity() > SPARE_CAPACITY {
            self.ring = VecDeque::new();
        }
    }
}

/// Capacity in bytes that an empty buffer may keep.
const SPARE_CAPACITY: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares the buffer with a plain vector of the whole stream.
        #[test]
        fn reads_what_was_written(
            steps in prop::collection::vec((0_u64..400, prop::collection::vec(any::<u8>(), 0..120), 0_u64..60), 1..60),
        ) {
            let (mut bytes, mut whole) = (Bytes::default(), Vec::<u8>::new());
            let mut start = 0_u64;
            for (ahead, data, taken) in steps {
                let offset = (start + ahead).saturating_sub(50);
                bytes.put(offset, &data);
                let end = offset as usize + data.len();
                if end as u64 > start && !data.is_empty() {
                    if whole.len() < end {
                        whole.resize(end, 0);
                    }
                    let from = (start as usize).max(offset as usize);
                    whole[from..end].copy_from_slice(&data[from - offset as usize..]);
                }
                let taken = taken.min(whole.len() as u64 - start);
                let mut out = vec![0; taken as usize];
                bytes.take(&mut out);
                prop_assert_eq!(&out[..], &whole[start as usize..(start + taken) as usize]);
                start += taken;
                prop_assert_eq!(bytes.end(), whole.len() as u64);
                let mut rest = vec![0; whole.len() - start as usize];
                bytes.copy(start, &mut rest);
                prop_assert_eq!(&rest[..], &whole[start as usize..]);
            }
        }
    }
}
