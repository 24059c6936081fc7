//! The segments in flight and what is known of each (RFC 6675, section 4).
//!
//! Records stand in a queue in the order of the stream, found by binary search; they carry numbers that
//! stay when the queue's head leaves. Everything that loss recovery asks for is counted as it changes,
//! and what is to be sent again waits in a heap: nothing ever scans the window.

mod resegment;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use foundation::Instant;

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
    #[inline]
    pub fn add(&mut self, record: &SentSegment) {
        self.packets += 1;
        self.bytes += u64::from(record.length);
    }

    #[inline]
    pub fn remove(&mut self, record: &SentSegment) {
        self.packets -= 1;
        self.bytes -= u64::from(record.length);
    }
}

/// The segments in flight.
#[derive(Debug, Default)]
pub struct Scoreboard {
    records: VecDeque<SentSegment>,
    /// The number of the first record.
    base: u64,
    /// All records.
    out: Amount,
    sacked: Amount,
    lost: Amount,
    retransmitted: Amount,
    /// What the peer says it holds above the cumulative acknowledgement.
    blocks: RangeSet,
    /// Numbers of lost records to be sent again, lowest first; some may be so no more.
    waiting: BinaryHeap<Reverse<u64>>,
    /// Retransmissions in the order in which they left: number and time. Some may be over.
    retransmissions: VecDeque<(u64, Instant)>,
    /// Below this number no record is in its first transmission and undecided (for RACK).
    undecided: u64,
    /// Below this number every record has been taken for lost or was delivered, by counting; and
    /// how many from there on are selectively acknowledged (RFC 6675, `IsLost`).
    counted: u64,
    sacked_from_counted: u64,
    /// Highest position selectively acknowledged, 0 for none.
    highest_sacked: u64,
}

impl Scoreboard {
    /// Whether nothing is in flight.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All segments not yet acknowledged cumulatively.
    #[inline]
    #[must_use]
    pub const fn out(&self) -> Amount {
        self.out
    }

    /// Selectively acknowledged segments.
    #[inline]
    #[must_use]
    pub const fn sacked(&self) -> Amount {
        self.sacked
    }

    /// Segments taken for lost, sent again or not.
    #[inline]
    #[must_use]
    pub const fn lost(&self) -> Amount {
        self.lost
    }

    /// Segments whose retransmission is in flight.
    #[inline]
    #[must_use]
    pub const fn retransmitted(&self) -> Amount {
        self.retransmitted
    }

    /// Bytes in the network as far as is known: RFC 6675's pipe.
    #[inline]
    #[must_use]
    pub const fn pipe_bytes(&self) -> u64 {
        self.out.bytes + self.retransmitted.bytes - self.sacked.bytes - self.lost.bytes
    }

    /// The end of the highest segment selectively acknowledged; 0 for none.
    #[inline]
    #[must_use]
    pub const fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// The first record.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&SentSegment> {
        self.records.front()
    }

    /// The number of the first record.
    #[must_use]
    pub const fn first_number(&self) -> u64 {
        self.base
    }

    /// The number after that of the last record.
    #[must_use]
    pub fn end_number(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// The record of a number.
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

    /// The number of the record that holds `position`, or of the first above it.
    #[inline]
    #[must_use]
    pub fn number_at(&self, position: u64) -> u64 {
        // Most segments are of one size: a guess is right or nearly so.
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

    /// A new segment left.
    #[inline]
    pub fn push(&mut self, record: SentSegment) {
        self.out.add(&record);
        self.records.push_back(record);
    }

    /// Takes the first record away where it ends at or below `acknowledged`.
    #[inline]
    pub fn pop_acknowledged(&mut self, acknowledged: u64) -> Option<SentSegment> {
        let first = self.records.front().filter(|r| r.end() <= acknowledged)?;
        let record = *first;
        self.records.pop_front();
        self.out.remove(&record);
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

    /// The cumulative acknowledgement moved to `acknowledged`, and all records below are gone: cuts the
    /// first one where it was acknowledged in part, and forgets what stood below.
    #[inline]
    pub fn trim_front(&mut self, acknowledged: u64) {
        if let Some(first) = self.records.front_mut()
            && first.start < acknowledged
        {
            let gone = acknowledged - first.start;
            first.start = acknowledged;
            first.length -= gone as u32;
            self.out.bytes -= gone;
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
        if !self.blocks.is_empty() {
            self.blocks.remove_below(acknowledged);
        }
        while self
            .retransmissions
            .front()
            .is_some_and(|&(number, _)| number < self.base)
        {
            self.retransmissions.pop_front();
        }
        if self.records.is_empty() {
            self.blocks.clear();
            self.waiting.clear();
            self.retransmissions.clear();
        }
        if self.highest_sacked <= acknowledged {
            self.highest_sacked = 0;
        }
    }

    /// The peer says that it holds `start..end`. Calls `sacked` for each record that is thereby known
    /// to have arrived, after it was marked, with the marks it had before and the highest position
    /// selectively acknowledged before. Gives whether the block said anything new.
    pub fn sack(&mut self, start: u64, end: u64, mut sacked: impl FnMut(&SentSegment, Marks, u64)) -> bool {
        let mut parts = [(0, 0); 4];
        let mut count = 0;
        let mut rest = None;
        self.blocks.insert(start, end, |from, to| {
            if count < parts.len() {
                parts[count] = (from, to);
                count += 1;
            } else {
                // A block that joins many: everything from here to its end is looked at.
                rest.get_or_insert(from);
            }
        });
        for &(from, to) in &parts[..count] {
            self.sack_part(from, to, &mut sacked);
        }
        if let Some(from) = rest {
            self.sack_part(from, end, &mut sacked);
        }
        count > 0
    }

    fn sack_part(&mut self, from: u64, to: u64, sacked: &mut impl FnMut(&SentSegment, Marks, u64)) {
        let mut number = self.number_at(from);
        while let Some(record) = self.get(number).copied().filter(|r| r.start < to) {
            // A record of which only a part has arrived has not arrived.
            if !record.marks.has(Marks::SACKED) && self.blocks.covering(record.start, record.end()).is_some()
            {
                self.mark_sacked(number, sacked);
            }
            number += 1;
        }
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

    /// A record is taken for lost (its retransmission too, if one is out). Gives whether that is new.
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
        self.waiting.push(Reverse(number));
        true
    }

    /// The lowest lost record that waits to be sent again.
    pub fn next_waiting(&mut self) -> Option<u64> {
        while let Some(&Reverse(number)) = self.waiting.peek() {
            let waits = |r: &SentSegment| r.marks.has(Marks::LOST) && !r.marks.has(Marks::RETRANSMITTED);
            if self.get(number).is_some_and(waits) {
                return Some(number);
            }
            self.waiting.pop();
        }
        None
    }

    /// A record leaves again.
    pub fn retransmit(&mut self, number: u64, now: Instant) -> Option<&mut SentSegment> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let record = self.records.get_mut(index)?;
        if !record.marks.has(Marks::RETRANSMITTED) {
            record.marks.set(Marks::RETRANSMITTED);
            self.retransmitted.add(record);
        }
        record.marks.set(Marks::EVER_RETRANSMITTED);
        record.sent_at = now;
        self.retransmissions.push_back((number, now));
        Some(record)
    }

    /// Where a record keeps the estimator's state of its last departure.
    pub fn snapshot_mut(&mut self, number: u64) -> Option<&mut crate::congestion::Snapshot> {
        self.get_mut(number).map(|record| &mut record.snapshot)
    }

    /// Sets a mark of the last record.
    pub fn push_back_mark(&mut self, mark: Marks) {
        if let Some(last) = self.records.back_mut() {
            last.marks.set(mark);
        }
    }

    /// The earliest transmission about which nothing is known yet: the older one of the first
    /// transmissions in the order of the stream and the retransmissions in the order in which they left.
    pub fn oldest_undecided(&mut self) -> Option<u64> {
        let waits = |r: &SentSegment| r.marks.has(Marks::LOST) && !r.marks.has(Marks::RETRANSMITTED);
        let open = |r: &SentSegment| !r.marks.has(Marks::SACKED) && !waits(r);
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
            let Some(&(number, at)) = self.retransmissions.front() else {
                break None;
            };
            match self.get(number) {
                Some(r) if open(r) && r.sent_at == at => break Some((at, number)),
                _ => self.retransmissions.pop_front(),
            };
        };
        match (first, again) {
            (Some(first), Some(again)) => Some(if first.0 <= again.0 { first.1 } else { again.1 }),
            (first, again) => first.or(again).map(|(_, number)| number),
        }
    }

    /// RFC 6675's `IsLost` by counting: a record is lost once `threshold` segments above it are selectively
    /// acknowledged. Calls `lost` for each that is so now and was not before.
    pub fn mark_lost_by_count(&mut self, threshold: u64, mut lost: impl FnMut(&SentSegment)) {
        while let Some(record) = self.get(self.counted).copied() {
            let sacked = u64::from(record.marks.has(Marks::SACKED));
            if self.sacked_from_counted - sacked < threshold {
                break;
            }
            if sacked == 0 && !record.marks.has(Marks::LOST) && self.mark_lost(self.counted) {
                lost(&record);
            }
            self.sacked_from_counted -= sacked;
            self.counted += 1;
        }
    }

    /// What was taken for lost was not: forgets all such marks, and lets the counting start anew.
    pub fn forget_losses(&mut self) {
        self.waiting.clear();
        for record in &mut self.records {
            record.marks.clear(Marks::LOST);
        }
        self.lost = Amount::default();
        self.recount();
    }

    /// The peer threw away what it had acknowledged selectively (RFC 2018, section 8).
    pub fn forget_sacks(&mut self) {
        for record in &mut self.records {
            record.marks.clear(Marks::SACKED);
        }
        self.sacked = Amount::default();
        self.blocks.clear();
        self.highest_sacked = 0;
        self.recount();
    }

    /// The cursors start anew, and every retransmission stands in the queue again.
    fn recount(&mut self) {
        self.counted = self.base;
        self.undecided = self.base;
        self.sacked_from_counted = self.sacked.packets;
        self.retransmissions.clear();
        for (index, record) in self.records.iter().enumerate() {
            if record.marks.has(Marks::EVER_RETRANSMITTED) {
                self.retransmissions
                    .push_back((self.base + index as u64, record.sent_at));
            }
        }
        let retransmissions = self.retransmissions.make_contiguous();
        retransmissions.sort_unstable_by_key(|&(number, at)| (at, number));
    }

    /// Whether the peer acknowledged the first record selectively though not cumulatively: it has then
    /// thrown it away (RFC 2018, section 8).
    #[must_use]
    pub fn front_is_sacked(&self) -> bool {
        self.front().is_some_and(|r| r.marks.has(Marks::SACKED))
    }
}
