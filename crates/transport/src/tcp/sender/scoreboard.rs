//! The segments in flight and their state (RFC 6675, section 4).
//!
//! Segments are in a queue in stream order, found by binary search, with numbers that do not change when the front leaves.
//! Totals are updated incrementally, and lost segments wait in a heap, so that no operation scans the window.

mod resegment;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use foundation::{Instant, Ring};

use super::sent_segment::{Marks, SentSegment};
use crate::ranges::RangeSet;

/// Segments and payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Segments.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl Amount {
    /// Returns the amount of one segment.
    #[inline]
    #[must_use]
    pub fn of(record: &SentSegment) -> Self {
        Self {
            packets: 1,
            bytes: u64::from(record.length),
        }
    }
}

/// An [`Amount`] of segments in flight. The largest window of TCP has 1 GiB (RFC 7323, section 2.3).
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u32,
    bytes: u32,
}

impl Tally {
    #[inline]
    const fn amount(self) -> Amount {
        Amount {
            packets: self.packets as u64,
            bytes: self.bytes as u64,
        }
    }

    #[inline]
    fn add(&mut self, record: &SentSegment) {
        self.packets += 1;
        self.bytes += record.length;
    }

    #[inline]
    fn remove(&mut self, record: &SentSegment) {
        self.packets -= 1;
        self.bytes -= record.length;
    }
}

/// Segments at the front of the window that the peer acknowledged together. Each was sent once, in stream order, and
/// neither selectively acknowledged nor considered lost, so that the first and the last one represent all.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub first: &'a SentSegment,
    pub last: &'a SentSegment,
    pub amount: Amount,
}

/// State that exists once a segment was selectively acknowledged or lost.
#[derive(Debug, Default)]
struct Repair {
    /// Ranges that the peer has selectively acknowledged.
    blocks: RangeSet,
    /// Numbers of lost segments to retransmit, lowest first; may contain obsolete entries.
    waiting: BinaryHeap<Reverse<u64>>,
    /// Retransmissions in send order: number and time; may contain obsolete entries.
    retransmissions: VecDeque<(u64, Instant)>,
}

/// The segments in flight.
#[derive(Debug, Default)]
pub struct Scoreboard {
    records: Ring<SentSegment>,
    /// Number of the first segment.
    base: u64,
    /// Payload bytes of all segments.
    out_bytes: u32,
    sacked: Tally,
    lost: Tally,
    retransmitted: Tally,
    /// State of losses; `None` before the first one.
    repair: Option<Box<Repair>>,
    /// Lowest number that may be in its first transmission and neither delivered nor lost (for RACK).
    undecided: u64,
    /// Lowest number that counting has found neither lost nor delivered, and the selectively acknowledged segments from
    /// there on (`IsLost` of RFC 6675).
    counted: u64,
    sacked_from_counted: u32,
    /// Highest selectively acknowledged position; 0 for none.
    highest_sacked: u64,
}

impl Repair {
    /// Removes the state of segments below position `acknowledged` and number `base`.
    fn trim(&mut self, acknowledged: u64, base: u64) {
        if !self.blocks.is_empty() {
            self.blocks.remove_below(acknowledged);
        }
        while self
            .retransmissions
            .front()
            .is_some_and(|&(number, _)| number < base)
        {
            self.retransmissions.pop_front();
        }
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.waiting.clear();
        self.retransmissions.clear();
    }
}

impl Scoreboard {
    /// Whether nothing is in flight.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns all segments above the cumulative acknowledgement.
    #[inline]
    #[must_use]
    pub const fn out(&self) -> Amount {
        Amount {
            packets: self.records.len() as u64,
            bytes: self.out_bytes as u64,
        }
    }

    /// Returns the selectively acknowledged segments.
    #[inline]
    #[must_use]
    pub const fn sacked(&self) -> Amount {
        self.sacked.amount()
    }

    /// Returns the segments considered lost, retransmitted or not.
    #[inline]
    #[must_use]
    pub const fn lost(&self) -> Amount {
        self.lost.amount()
    }

    /// Returns the segments whose retransmission is in flight.
    #[inline]
    #[must_use]
    pub const fn retransmitted(&self) -> Amount {
        self.retransmitted.amount()
    }

    /// Returns the estimated bytes in flight (pipe of RFC 6675).
    #[inline]
    #[must_use]
    pub const fn pipe_bytes(&self) -> u64 {
        // Lost segments are both in flight and retransmitted, so that the sum may exceed 32 bits.
        self.out_bytes as u64 + self.retransmitted.bytes as u64
            - self.sacked.bytes as u64
            - self.lost.bytes as u64
    }

    /// Returns the end of the highest selectively acknowledged segment; 0 for none.
    #[inline]
    #[must_use]
    pub const fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// Returns the first segment.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&SentSegment> {
        self.records.front()
    }

    /// Returns the number of the first segment.
    #[must_use]
    pub const fn first_number(&self) -> u64 {
        self.base
    }

    /// Returns the number after that of the last segment.
    #[must_use]
    pub fn end_number(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// Returns the segment with a number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&SentSegment> {
        self.records
            .get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    #[inline]
    fn get_mut(&mut self, number: u64) -> Option<&mut SentSegment> {
        self.records
            .get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Returns the number of the segment that contains `position`, or of the first above it.
    #[inline]
    #[must_use]
    pub fn number_at(&self, position: u64) -> u64 {
        // Most segments have the same size, so a guess is usually right.
        let (Some(first), Some(last)) = (self.records.front(), self.records.back()) else {
            return self.base;
        };
        if position >= last.end() {
            return self.end_number();
        }
        let guess = position.saturating_sub(first.start) / u64::from(first.length.max(1));
        if let Some(record) = self.records.get(guess as usize)
            && record.start <= position
            && position < record.end()
        {
            return self.base + guess;
        }
        self.base + self.records.partition_point(|r| r.end() <= position) as u64
    }

    /// Adds a new segment.
    #[inline]
    pub fn push(&mut self, record: SentSegment) {
        self.out_bytes += record.length;
        self.records.push(record);
    }

    /// Returns the run of segments at the front that end at or below `acknowledged`.
    #[inline]
    pub fn run(&self, acknowledged: u64) -> Option<Run<'_>> {
        let is_next =
            |record: &&SentSegment| record.end() <= acknowledged && !record.marks.has(Marks::RECOVERY);
        let first = self.records.front().filter(is_next)?;
        let (mut last, mut count) = (first, 1);
        while let Some(record) = self.records.get(count).filter(is_next) {
            last = record;
            count += 1;
        }
        Some(Run {
            first,
            last,
            amount: Amount {
                packets: count as u64,
                bytes: last.start + u64::from(last.length) - first.start,
            },
        })
    }

    /// Removes the [run](Self::run) of this amount.
    #[inline]
    pub fn pop_run(&mut self, run: Amount) {
        self.records.skip(run.packets as usize);
        self.out_bytes -= run.bytes as u32;
        self.base += run.packets;
        self.counted = self.counted.max(self.base);
        self.undecided = self.undecided.max(self.base);
    }

    /// Removes and returns the first segment if it ends at or below `acknowledged`.
    #[inline]
    pub fn pop_acknowledged(&mut self, acknowledged: u64) -> Option<SentSegment> {
        self.records.front().filter(|r| r.end() <= acknowledged)?;
        let record = self.records.pop()?;
        self.out_bytes -= record.length;
        if record.marks.has(Marks::SACKED) {
            self.sacked.remove(&record);
            if self.base >= self.counted {
                self.sacked_from_counted -= 1;
            }
        }
        if record.marks.has(Marks::LOST) {
            self.lost.remove(&record);
        }
        if record.marks.has(Marks::RETRANSMITTED) {
            self.retransmitted.remove(&record);
        }
        self.base += 1;
        self.counted = self.counted.max(self.base);
        self.undecided = self.undecided.max(self.base);
        Some(record)
    }

    /// Trims the state below `acknowledged` after the segments below it were popped: cuts the first segment if it is partly
    /// acknowledged.
    #[inline]
    pub fn trim_front(&mut self, acknowledged: u64) {
        if let Some(first) = self.records.get_mut(0)
            && first.start < acknowledged
        {
            let gone = (acknowledged - first.start) as u32;
            first.start = acknowledged;
            first.length -= gone;
            self.out_bytes -= gone;
            for (mark, amount) in [
                (Marks::SACKED, &mut self.sacked),
                (Marks::LOST, &mut self.lost),
                (Marks::RETRANSMITTED, &mut self.retransmitted),
            ] {
                if first.marks.has(mark) {
                    amount.bytes -= gone;
                }
            }
        }
        if let Some(repair) = &mut self.repair {
            if self.records.is_empty() {
                repair.clear();
            } else {
                repair.trim(acknowledged, self.base);
            }
        }
        if self.highest_sacked <= acknowledged {
            self.highest_sacked = 0;
        }
    }

    /// Processes a SACK block `start..end`. Calls `sacked` for each newly acknowledged segment, after marking it, with its
    /// marks before and the highest selectively acknowledged position before.
    pub fn sack(&mut self, start: u64, end: u64, mut sacked: impl FnMut(&SentSegment, Marks, u64)) {
        let mut parts = [(0, 0); 4];
        let mut count = 0;
        let mut rest = None;
        let repair = self.repair.get_or_insert_default();
        repair.blocks.insert(start, end, |from, to| {
            if count < parts.len() {
                parts[count] = (from, to);
                count += 1;
            } else {
                // The block joins many ranges: process everything from here to its end.
                rest.get_or_insert(from);
            }
        });
        for &(from, to) in &parts[..count] {
            self.sack_part(from, to, &mut sacked);
        }
        if let Some(from) = rest {
            self.sack_part(from, end, &mut sacked);
        }
    }

    fn sack_part(&mut self, from: u64, to: u64, sacked: &mut impl FnMut(&SentSegment, Marks, u64)) {
        let mut number = self.number_at(from);
        while let Some(record) = self.get(number).copied().filter(|r| r.start < to) {
            // A partly delivered segment is not delivered.
            if !record.marks.has(Marks::SACKED) && self.covers(&record) {
                self.mark_sacked(number, sacked);
            }
            number += 1;
        }
    }

    /// Whether the peer has selectively acknowledged all of a segment.
    fn covers(&self, record: &SentSegment) -> bool {
        let blocks = self.repair.as_ref().map(|repair| &repair.blocks);
        blocks.is_some_and(|blocks| blocks.covering(record.start, record.end()).is_some())
    }

    fn mark_sacked(&mut self, number: u64, sacked: &mut impl FnMut(&SentSegment, Marks, u64)) {
        let highest = self.highest_sacked;
        let Some(record) = self.get_mut(number) else {
            return;
        };
        let before = record.marks;
        record.marks.set(Marks::SACKED);
        record.marks.clear(Marks::LOST);
        record.marks.clear(Marks::RETRANSMITTED);
        let record = *record;
        self.sacked.add(&record);
        if before.has(Marks::LOST) {
            self.lost.remove(&record);
        }
        if before.has(Marks::RETRANSMITTED) {
            self.retransmitted.remove(&record);
        }
        if number >= self.counted {
            self.sacked_from_counted += 1;
        }
        sacked(&record, before, highest);
        self.highest_sacked = highest.max(record.end());
    }

    /// Marks a segment and its retransmission as lost. Returns whether the mark is new.
    pub fn mark_lost(&mut self, number: u64) -> bool {
        let Some(record) = self.get_mut(number) else {
            return false;
        };
        let before = record.marks;
        if before.has(Marks::SACKED) || (before.has(Marks::LOST) && !before.has(Marks::RETRANSMITTED)) {
            return false;
        }
        record.marks.set(Marks::LOST);
        record.marks.clear(Marks::RETRANSMITTED);
        let record = *record;
        if before.has(Marks::RETRANSMITTED) {
            self.retransmitted.remove(&record);
        }
        if !before.has(Marks::LOST) {
            self.lost.add(&record);
        }
        let repair = self.repair.get_or_insert_default();
        repair.waiting.push(Reverse(number));
        true
    }

    /// Returns the lowest lost segment that waits for its retransmission.
    pub fn next_waiting(&mut self) -> Option<u64> {
        let Self {
            records,
            base,
            repair,
            ..
        } = self;
        let waiting = &mut repair.as_mut()?.waiting;
        while let Some(&Reverse(number)) = waiting.peek() {
            let index = number.checked_sub(*base);
            if index.is_some_and(|index| {
                records
                    .get(index as usize)
                    .is_some_and(SentSegment::awaits_retransmission)
            }) {
                return Some(number);
            }
            waiting.pop();
        }
        None
    }

    /// Marks a segment as retransmitted at `now`.
    pub fn retransmit(&mut self, number: u64, now: Instant) -> Option<&mut SentSegment> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let record = self.records.get_mut(index)?;
        if !record.marks.has(Marks::RETRANSMITTED) {
            record.marks.set(Marks::RETRANSMITTED);
            self.retransmitted.add(record);
        }
        record.marks.set(Marks::EVER_RETRANSMITTED);
        record.sent_at = now;
        let repair = self.repair.get_or_insert_default();
        repair.retransmissions.push_back((number, now));
        Some(record)
    }

    /// Returns the snapshot of a segment's last transmission.
    pub fn snapshot_mut(&mut self, number: u64) -> Option<&mut crate::congestion::Snapshot> {
        self.get_mut(number).map(|record| &mut record.snapshot)
    }

    /// Sets a mark of the last segment.
    pub fn push_back_mark(&mut self, mark: Marks) {
        if let Some(last) = self.get_mut(self.end_number().wrapping_sub(1)) {
            last.marks.set(mark);
        }
    }

    /// Returns the earliest transmission that is neither delivered nor lost: the older one of the first transmissions, in
    /// stream order, and the retransmissions, in send order.
    pub fn oldest_undecided(&mut self) -> Option<u64> {
        let open = |r: &SentSegment| !r.marks.has(Marks::SACKED) && !r.awaits_retransmission();
        let first = loop {
            match self.get(self.undecided) {
                Some(r) if open(r) && !r.marks.has(Marks::EVER_RETRANSMITTED) => {
                    break Some((r.sent_at, self.undecided));
                }
                Some(_) => self.undecided += 1,
                None => break None,
            }
        };
        let again = loop {
            let repair = self.repair.as_deref();
            let Some(&(number, at)) = repair.and_then(|repair| repair.retransmissions.front()) else {
                break None;
            };
            if self.get(number).is_some_and(|r| open(r) && r.sent_at == at) {
                break Some((at, number));
            }
            if let Some(repair) = &mut self.repair {
                repair.retransmissions.pop_front();
            }
        };
        match (first, again) {
            (Some(first), Some(again)) => Some(if first.0 <= again.0 { first.1 } else { again.1 }),
            (first, again) => first.or(again).map(|(_, number)| number),
        }
    }

    /// Marks segments with at least `threshold` selectively acknowledged segments above them as lost, and calls `lost` for
    /// each new one (`IsLost` of RFC 6675, by counting).
    pub fn mark_lost_by_count(&mut self, threshold: u64, mut lost: impl FnMut(&SentSegment)) {
        while let Some(record) = self.get(self.counted).copied() {
            let sacked = u32::from(record.marks.has(Marks::SACKED));
            if u64::from(self.sacked_from_counted - sacked) < threshold {
                break;
            }
            if sacked == 0 && !record.marks.has(Marks::LOST) && self.mark_lost(self.counted) {
                lost(&record);
            }
            self.sacked_from_counted -= sacked;
            self.counted += 1;
        }
    }

    /// Clears all loss marks after a spurious recovery, and restarts counting.
    pub fn clear_losses(&mut self) {
        if let Some(repair) = &mut self.repair {
            repair.waiting.clear();
        }
        self.clear_marks(Marks::LOST);
        self.lost = Tally::default();
        self.recount();
    }

    /// Clears all selective acknowledgements: the peer discarded the data (RFC 2018, section 8).
    pub fn clear_sacks(&mut self) {
        self.clear_marks(Marks::SACKED);
        self.sacked = Tally::default();
        if let Some(repair) = &mut self.repair {
            repair.blocks.clear();
        }
        self.highest_sacked = 0;
        self.recount();
    }

    fn clear_marks(&mut self, mark: Marks) {
        for index in 0..self.records.len() {
            if let Some(record) = self.records.get_mut(index) {
                record.marks.clear(mark);
            }
        }
    }

    /// Resets the cursors and rebuilds the queue of retransmissions.
    fn recount(&mut self) {
        self.counted = self.base;
        self.undecided = self.base;
        self.sacked_from_counted = self.sacked.packets;
        let retransmissions = &mut self.repair.get_or_insert_default().retransmissions;
        retransmissions.clear();
        for (index, record) in self.records.iter().enumerate() {
            if record.marks.has(Marks::EVER_RETRANSMITTED) {
                retransmissions.push_back((self.base + index as u64, record.sent_at));
            }
        }
        let retransmissions = retransmissions.make_contiguous();
        retransmissions.sort_unstable_by_key(|&(number, at)| (at, number));
    }

    /// Whether the first segment is acknowledged selectively but not cumulatively: the peer has discarded it (RFC 2018,
    /// section 8).
    #[must_use]
    pub fn front_is_sacked(&self) -> bool {
        self.front().is_some_and(|r| r.marks.has(Marks::SACKED))
    }
}
