//! Mappings between a subflow's stream and the data.

use std::collections::VecDeque;

/// A range that is contiguous in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Offset in the subflow's stream, from 0.
    pub offset: u64,
    /// Position in the data, from 1.
    pub data: u64,
    /// Bytes.
    pub length: u64,
    /// Another subflow carries it too.
    pub reinjected: bool,
}

impl Run {
    /// Returns the offset after its last byte.
    pub const fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// Disjoint runs in the order of the subflow's stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    pub(super) runs: VecDeque<Run>,
}

impl Mappings {
    /// Appends a range at the end of the subflow's stream.
    #[inline]
    pub fn append(&mut self, offset: u64, data: u64, length: u64) {
        if let Some(last) = self.runs.back_mut()
            && !last.reinjected
            && last.end() == offset
            && last.data + last.length == data
        {
            last.length += length;
            return;
        }
        self.runs.push_back(Run {
            offset,
            data,
            length,
            reinjected: false,
        });
    }

    /// Returns the index of the first run that ends above `offset`.
    #[inline]
    fn place(&self, offset: u64) -> usize {
        // Nearly all lookups are in the first or the last run, or after it.
        let count = self.runs.len();
        match (self.runs.front(), self.runs.back()) {
            (_, Some(last)) if last.end() <= offset => count,
            (_, Some(last)) if last.offset <= offset => count - 1,
            (Some(first), _) if first.end() <= offset => self.runs.partition_point(|run| run.end() <= offset),
            _ => 0,
        }
    }

    /// Adds a received mapping. Ranges that are mapped already keep their mapping.
    pub fn add(&mut self, offset: u64, data: u64, length: u64) {
        let end = offset + length;
        let at = self.place(offset);
        if at == self.runs.len() {
            self.append(offset, data, length);
            return;
        }
        // Only unmapped ranges are added.
        let (mut at, mut from) = (at, offset);
        while from < end {
            let next = self.runs.get(at).map_or(end, |run| run.offset.clamp(from, end));
            if from < next {
                self.runs.insert(
                    at,
                    Run {
                        offset: from,
                        data: data + (from - offset),
                        length: next - from,
                        reinjected: false,
                    },
                );
                at += 1;
            }
            match self.runs.get(at) {
                Some(run) => from = run.end().max(next),
                None => from = end.max(next),
            }
            at += 1;
        }
    }

    /// Returns the data position of the byte at `offset`, and the number of contiguous bytes from there.
    #[inline]
    pub fn find(&self, offset: u64) -> Option<(u64, u64)> {
        let at = self.place(offset);
        let run = self.runs.get(at).filter(|run| run.offset <= offset)?;
        let inside = offset - run.offset;
        Some((run.data + inside, run.length - inside))
    }

    /// Removes everything below `offset`.
    pub fn release(&mut self, offset: u64) {
        while let Some(front) = self.runs.front_mut() {
            if front.end() <= offset {
                self.runs.pop_front();
                continue;
            }
            let removed = offset.saturating_sub(front.offset);
            front.offset += removed;
            front.data += removed;
            front.length -= removed;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn first_mapping_of_each_byte_persists(
            mapped in prop::collection::vec((0_u64..60, 1_u64..12), 0..30),
            released in 0_u64..60,
        ) {
            // The data runs backwards in blocks of 10, so that blocks cannot merge.
            let place = |offset: u64| 1000 - (offset / 10) * 10 + offset % 10;
            let mut mappings = Mappings::default();
            let mut known = [false; 80];
            for (offset, length) in mapped {
                let length = length.min(10 - offset % 10);
                mappings.add(offset, place(offset), length);
                known[offset as usize..(offset + length) as usize].fill(true);
            }
            mappings.release(released);
            for offset in 0..80 {
                let found = mappings.find(offset);
                prop_assert_eq!(found.is_some(), known[offset as usize] && offset >= released, "{}", offset);
                if let Some((data, rest)) = found {
                    prop_assert_eq!(data, place(offset));
                    prop_assert!((offset..offset + rest).all(|o| known[o as usize]));
                }
            }
        }
    }
}
