//! Received data: in order up to a position, and in ranges above it (RFC 2018; RFC 2883).

use crate::ranges::RangeSet;

/// Reassembly of a stream of positions.
#[derive(Debug)]
pub struct Reassembly {
    next: u64,
    /// State of gaps and duplicates; `None` before the first one.
    gaps: Option<Box<Gaps>>,
}

/// Data above gaps, and the blocks to report.
#[derive(Debug, Default)]
struct Gaps {
    above: RangeSet,
    /// Ranges above the next position, the most recently grown first (RFC 2018, section 4).
    recent: [(u64, u64); 4],
    recent_count: usize,
    /// Duplicate range to report (RFC 2883, section 4).
    duplicate: Option<(u64, u64)>,
}

impl Reassembly {
    /// Returns an empty reassembly whose first expected position is `next`.
    pub const fn new(next: u64) -> Self {
        Self { next, gaps: None }
    }

    /// Returns the next expected position.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether there is data above a gap.
    #[inline]
    pub fn has_gap(&self) -> bool {
        self.gaps.as_ref().is_some_and(|gaps| !gaps.above.is_empty())
    }

    /// Returns the bytes from the next expected position to the end of all received data; 0 without a gap.
    #[inline]
    pub fn beyond_gap(&self) -> u64 {
        let last = self.gaps.as_ref().and_then(|gaps| gaps.above.last());
        last.map_or(0, |(_, end)| end - self.next)
    }

    /// Returns the ranges received above a gap, the lowest first.
    pub fn above(&self) -> impl Iterator<Item = (u64, u64)> {
        self.gaps.iter().flat_map(|gaps| gaps.above.iter())
    }

    /// Adds the data from the next expected position up to `end`, unless there is data above a gap. Returns whether it did.
    #[inline]
    pub fn append(&mut self, end: u64) -> bool {
        let appends = !self.has_gap();
        if appends {
            self.next = end;
        }
        appends
    }

    /// Adds `start..end` and returns how much of it is new. `report`: report duplicates with a DSACK.
    pub fn insert(&mut self, start: u64, end: u64, report: bool) -> u64 {
        if report && start < self.next && end > start {
            self.report_duplicate(start, end.min(self.next));
        }
        let start = start.max(self.next);
        if start >= end {
            return 0;
        }
        if start == self.next && self.append(end) {
            return end - start;
        }
        self.gaps
            .get_or_insert_default()
            .insert(start, end, report, &mut self.next)
    }

    /// Schedules a DSACK for `start..end`.
    pub fn report_duplicate(&mut self, start: u64, end: u64) {
        if start < end {
            self.gaps.get_or_insert_default().duplicate = Some((start, end));
        }
    }

    /// Whether a DSACK is to be reported.
    pub const fn reports_duplicate(&self) -> bool {
        matches!(&self.gaps, Some(gaps) if gaps.duplicate.is_some())
    }

    /// Clears the reported DSACK.
    #[inline]
    pub fn clear_duplicate(&mut self) {
        if let Some(gaps) = &mut self.gaps {
            gaps.duplicate = None;
        }
    }

    /// Returns the number of blocks to report.
    #[inline]
    pub fn block_count(&self) -> usize {
        self.gaps.as_ref().map_or(0, |gaps| gaps.block_count())
    }

    /// Reports at most `room` blocks: the DSACK, then the ranges, the most recent first.
    #[inline]
    pub fn blocks(&self, room: usize, mut report: impl FnMut(u64, u64)) {
        let Some(gaps) = &self.gaps else { return };
        let ranges = gaps.recent[..gaps.recent_count].iter().copied();
        for (start, end) in gaps.duplicate.into_iter().chain(ranges).take(room) {
            report(start, end);
        }
    }
}

impl Gaps {
    /// Adds `start..end` at or above the next expected position `next`, which it may advance.
    fn insert(&mut self, start: u64, end: u64, report: bool, next: &mut u64) -> u64 {
        if report && self.duplicate.is_none() {
            // RFC 2883, section 4.2: report the first duplicate part.
            self.duplicate = self.above.first_overlap(start, end);
        }
        let mut new = 0;
        self.above.insert(start, end, |from, to| new += to - from);
        self.note_recent(start);
        if let Some((low, high)) = self.above.first()
            && low <= *next
        {
            *next = high;
            self.above.remove_below(high);
            self.drop_old(high);
        }
        new
    }

    /// Moves the range that contains `position` to the front and removes the ranges it merged.
    fn note_recent(&mut self, position: u64) {
        let Some(range) = self.above.position(position).and_then(|at| self.above.get(at)) else {
            return;
        };
        let mut kept = [(0, 0); 4];
        kept[0] = range;
        let mut count = 1;
        for &(start, end) in &self.recent[..self.recent_count] {
            if count < kept.len() && (end <= range.0 || start >= range.1) {
                kept[count] = (start, end);
                count += 1;
            }
        }
        (self.recent, self.recent_count) = (kept, count);
    }

    /// Removes the ranges up to the next expected position `next`.
    fn drop_old(&mut self, next: u64) {
        let mut count = 0;
        for index in 0..self.recent_count {
            if self.recent[index].1 > next {
                self.recent[count] = self.recent[index];
                count += 1;
            }
        }
        if let (0, Some(oldest)) = (count, self.above.first()) {
            // More ranges than `recent` stores: report the lowest one.
            self.recent[0] = oldest;
            count = 1;
        }
        self.recent_count = count;
    }

    const fn block_count(&self) -> usize {
        self.recent_count + self.duplicate.is_some() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(reassembly: &Reassembly) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        reassembly.blocks(4, |start, end| all.push((start, end)));
        all
    }

    #[test]
    fn blocks_as_in_rfc_2018() {
        // RFC 2018, section 4, case 2: the first segment of 5000..5500 is lost, the next seven arrive.
        let mut r = Reassembly::new(5000);
        for i in 1..8 {
            assert_eq!(r.insert(5000 + 500 * i, 5500 + 500 * i, true), 500);
            assert_eq!((r.next(), blocks(&r)), (5000, vec![(5500, 5500 + 500 * i)]));
        }
        // Case 3: the 2nd, 4th, 6th and 8th of eight are lost.
        let mut r = Reassembly::new(5000);
        let mut seen = Vec::new();
        for i in [0, 2, 4, 6] {
            r.insert(5000 + 500 * i, 5500 + 500 * i, true);
            seen.push(blocks(&r));
        }
        assert_eq!(r.next(), 5500);
        assert_eq!(seen[3], [(8000, 8500), (7000, 7500), (6000, 6500)]);
        // "Suppose that the 4th packet is received out of order": it joins two ranges and is reported first.
        r.insert(6500, 7000, true);
        assert_eq!(blocks(&r), [(6000, 7500), (8000, 8500)]);
        // The 2nd fills the gap up to there.
        r.insert(5500, 6000, true);
        assert_eq!((r.next(), blocks(&r)), (7500, vec![(8000, 8500)]));
    }

    #[test]
    fn duplicates_as_in_rfc_2883() {
        // RFC 2883, section 4.1.1: a full segment, 3000..3500 again below 4000.
        let mut r = Reassembly::new(3000);
        r.insert(3000, 4000, true);
        assert_eq!(r.insert(3000, 3500, true), 0);
        assert_eq!(blocks(&r), [(3000, 3500)]);
        // Section 4.1.2: out of order data 4500..5000 stays behind the duplicate block.
        r.clear_duplicate();
        r.insert(4500, 5000, true);
        r.insert(3000, 3500, true);
        assert_eq!(blocks(&r), [(3000, 3500), (4500, 5000)]);
        // Section 4.1.3: a duplicate of out-of-order data; its block is within the second one.
        r.clear_duplicate();
        r.insert(5000, 5500, true);
        assert_eq!(r.insert(5000, 5500, true), 0);
        assert_eq!(blocks(&r), [(5000, 5500), (4500, 5500)]);
    }

    proptest! {
        #[test]
        fn reassembles_any_order(mut cuts in prop::collection::vec((0_u64..40, 1_u64..8), 1..60)) {
            let mut r = Reassembly::new(0);
            let mut received = [false; 64];
            cuts.extend([(0, 20), (20, 28)]);
            for (start, length) in cuts {
                let fresh = (start..start + length).filter(|&i| !std::mem::replace(&mut received[i as usize], true)).count();
                let below = r.next();
                prop_assert_eq!(r.insert(start, start + length, true), fresh as u64);
                let in_order = received.iter().position(|h| !h).unwrap() as u64;
                prop_assert_eq!(r.next(), in_order);
                if (fresh as u64) < length {
                    let (s, e) = blocks(&r)[0];
                    prop_assert!(start <= s && e <= start + length, "the duplicate {}..{} of {}+{}", s, e, start, length);
                    prop_assert!(s < below || !r.has_gap() || received[s as usize]);
                }
                r.clear_duplicate();
                for (s, e) in blocks(&r) {
                    prop_assert!((s..e).all(|i| received[i as usize]) && !received[e as usize] && s > r.next());
                }
                prop_assert_eq!(blocks(&r).is_empty(), !r.has_gap());
            }
        }
    }
}
