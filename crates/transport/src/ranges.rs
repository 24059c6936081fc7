//! A set of sequence numbers as sorted, disjoint, half-open ranges.

use std::collections::VecDeque;

/// Set of ranges, for data that a receiver has out of order and for selective acknowledgements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
}

impl RangeSet {
    /// Adds `start..end` and calls `added` for each part that was not in the set.
    #[inline]
    pub fn insert(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        match self.ranges.back_mut() {
            Some(last) if start < last.0 => self.insert_below(start, end, added),
            Some(last) if start <= last.1 => {
                if end > last.1 {
                    added(last.1, end);
                    last.1 = end;
                }
            }
            _ => {
                added(start, end);
                self.ranges.push_back((start, end));
            }
        }
    }

    /// Adds a range that starts below the highest one.
    fn insert_below(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) {
        // The first range that can touch the new one ends at or after `start`.
        let first = self.ranges.partition_point(|&(_, e)| e < start);
        let (mut low, mut high, mut from) = (start, end, start);
        let mut last = first;
        while let Some(&(s, e)) = self.ranges.get(last).filter(|&&(s, _)| s <= end) {
            if from < s {
                added(from, s);
            }
            from = from.max(e);
            low = low.min(s);
            high = high.max(e);
            last += 1;
        }
        if from < end {
            added(from, end);
        }
        if last == first {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            self.ranges.drain(first + 1..last);
        }
    }

    /// Returns the range that contains all of `start..end`.
    #[must_use]
    pub fn covering(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let range = self.get(self.position(start)?)?;
        (end <= range.1).then_some(range)
    }

    /// Returns the lowest part of `start..end` that is in the set.
    #[must_use]
    pub fn first_overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let at = self.ranges.partition_point(|&(_, e)| e <= start);
        let &(low, high) = self.ranges.get(at).filter(|&&(low, _)| low < end)?;
        Some((low.max(start), high.min(end)))
    }

    /// Returns the lowest range.
    #[must_use]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// Returns the highest range.
    #[must_use]
    pub fn last(&self) -> Option<(u64, u64)> {
        self.ranges.back().copied()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Removes everything below `floor`.
    pub fn remove_below(&mut self, floor: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.1 <= floor {
                self.ranges.pop_front();
            } else {
                front.0 = front.0.max(floor);
                break;
            }
        }
    }

    /// Returns the index of the range that contains `sequence`.
    #[must_use]
    pub fn position(&self, sequence: u64) -> Option<usize> {
        let at = self.ranges.partition_point(|&(_, end)| end <= sequence);
        self.ranges
            .get(at)
            .filter(|&&(start, _)| start <= sequence)
            .map(|_| at)
    }

    /// Returns the range with an index, counted from the lowest.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<(u64, u64)> {
        self.ranges.get(position).copied()
    }

    /// Returns the size of all ranges.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.ranges.iter().map(|&(start, end)| end - start).sum()
    }

    /// Returns all ranges, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().copied()
    }

    /// Returns the number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether `sequence` is in the set.
    #[must_use]
    pub fn contains(&self, sequence: u64) -> bool {
        self.position(sequence).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set(inserts in prop::collection::vec((0_u64..60, 0_u64..12), 0..40), floor in 0_u64..60) {
            let (mut ranges, mut model) = (RangeSet::default(), BTreeSet::new());
            for (start, length) in inserts {
                let mut added = Vec::new();
                ranges.insert(start, start + length, |a, b| added.extend(a..b));
                let fresh: Vec<u64> = (start..start + length).filter(|s| model.insert(*s)).collect();
                prop_assert_eq!(added, fresh);
            }
            ranges.remove_below(floor);
            for start in 0..72 {
                for end in start + 1..start + 6 {
                    let whole = (start..end).all(|s| ranges.contains(s));
                    prop_assert_eq!(ranges.covering(start, end).is_some(), whole);
                    let first = (start..end).find(|s| ranges.contains(*s));
                    let overlap = ranges.first_overlap(start, end);
                    prop_assert_eq!(overlap.map(|(low, _)| low), first);
                    prop_assert!(overlap.is_none_or(|(low, high)| (low..high).all(|s| ranges.contains(s))));
                }
            }
            for sequence in 0..80 {
                prop_assert_eq!(ranges.contains(sequence), sequence >= floor && model.contains(&sequence));
            }
            for i in 1..ranges.len() {
                prop_assert!(ranges.get(i - 1).unwrap().1 < ranges.get(i).unwrap().0, "disjoint and not touching");
            }
        }
    }
}
