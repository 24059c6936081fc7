//! Receiving direction of the data: reassembly and receive window.

use foundation::{Duration, Instant};

use crate::ranges::RangeSet;
use crate::tcp::Autotuning;

/// Receiving direction. Positions as in [`Mapping`](super::segment::Mapping).
#[derive(Debug)]
pub(super) struct DataReceiver {
    /// Next expected position, and the position after the last byte read.
    next: u64,
    read: u64,
    /// Ranges received above `next`.
    early: RangeSet,
    /// Position of the DATA_FIN, once known.
    fin: Option<u64>,
    /// Right right_edge of the largest window offered.
    right_edge: u64,
    /// Current buffer limit: all of `buffer`, or less while it grows.
    limit: u64,
    buffer: u64,
    autotuning: Option<Autotuning>,
    /// Bytes received more than once.
    duplicates: u64,
}

impl DataReceiver {
    /// `first` is the initial limit of a buffer that grows.
    pub fn new(buffer: u64, first: Option<u64>) -> Self {
        Self {
            limit: first.unwrap_or(buffer).min(buffer),
            autotuning: first.map(|_| Autotuning::default()),
            next: 1,
            read: 1,
            early: RangeSet::default(),
            fin: None,
            right_edge: 1,
            buffer,
            duplicates: 0,
        }
    }

    /// Returns the next expected position, which a DATA_ACK carries.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the bytes ready to read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.next.min(self.fin.unwrap_or(self.next)) - self.read
    }

    /// Returns the ranges received above a gap.
    pub const fn early(&self) -> &RangeSet {
        &self.early
    }

    /// Returns the bytes received more than once, on one subflow or on several.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns whether all data and the DATA_FIN arrived.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Adds `length` bytes from `start`. Returns whether more data is ready to read.
    #[inline]
    pub fn on_data(&mut self, start: u64, length: u64) -> bool {
        let end = start + length;
        if start <= self.next && self.early.is_empty() {
            // Common case: in order, without gaps.
            let new = end.saturating_sub(self.next);
            self.duplicates += length - new;
            self.next += new;
            self.consume_fin();
            return new > 0;
        }
        let mut new = 0;
        self.early
            .insert(start.max(self.next), end, |from, to| new += to - from);
        self.duplicates += length - new;
        self.advance()
    }

    fn advance(&mut self) -> bool {
        let Some((start, end)) = self.early.first() else {
            return false;
        };
        if start > self.next {
            return false;
        }
        self.next = end;
        self.early.remove_below(end);
        self.consume_fin();
        true
    }

    fn consume_fin(&mut self) {
        if self.fin == Some(self.next) {
            self.next += 1;
        }
    }

    /// Records that the data stops before `position`. Returns whether that is new.
    pub fn on_fin(&mut self, position: u64) -> bool {
        if self.fin.is_some() || position < self.next {
            return false;
        }
        self.fin = Some(position);
        self.consume_fin();
        true
    }

    /// Grows the buffer after a read to hold twice the data read in `round_trip`, the longest round trip of a
    /// subflow, plus the data beyond gaps. A full segment has `segment` bytes.
    pub fn grow(&mut self, now: Instant, segment: u32, round_trip: Duration) {
        let (read, unread) = (self.read, self.readable());
        let end = self.early.last().map_or(self.next, |(_, end)| end);
        let Some(autotuning) = &mut self.autotuning else {
            return;
        };
        autotuning.set_round_trip(round_trip);
        let wanted = autotuning.on_read(now, read, unread, segment, end - self.next);
        self.limit = self.limit.max(wanted.unwrap_or(0)).min(self.buffer);
        if self.limit == self.buffer {
            self.autotuning = None;
        }
    }

    /// Returns whether the buffer can still grow.
    pub const fn grows(&self) -> bool {
        self.autotuning.is_some()
    }

    /// Reads up to `bytes`. Returns the bytes read.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        taken
    }

    /// Returns the window to offer in the next segment, relative to [`next`](Self::next). An offered window is never
    /// reduced (RFC 8684, section 3.3.1).
    #[inline]
    pub fn offer(&mut self) -> u64 {
        self.right_edge = self.right_edge.max(self.next + self.room());
        self.right_edge - self.next.min(self.right_edge)
    }

    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.readable())
    }

    /// Returns whether reads have opened the window to at least twice its last offer, which requires a window update
    /// (RFC 9293, section 3.8.6.2.2).
    pub fn is_update_due(&self) -> bool {
        let left = self.right_edge.saturating_sub(self.next);
        2 * left <= self.limit && self.room() >= (2 * left).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reassembles_data_and_counts_the_fin_as_one() {
        let mut receiver = DataReceiver::new(10_000, None);
        assert!(!receiver.on_data(1001, 1000));
        assert!(receiver.on_fin(2001));
        assert_eq!((receiver.next(), receiver.early().total()), (1, 1000));
        assert!(receiver.on_data(1, 1000));
        assert!(receiver.is_finished());
        assert_eq!((receiver.next(), receiver.readable()), (2002, 2000));
        assert!(!receiver.on_data(501, 600), "nothing new");
        assert_eq!(receiver.duplicates(), 600);
        assert_eq!(receiver.read(5000), 2000);
    }

    #[test]
    fn buffer_grows_with_data_read_per_round_trip() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut receiver = DataReceiver::new(500_000, Some(60_000));
        assert_eq!(receiver.offer(), 60_000);
        let mut turn = |ms: u64, bytes: u64| {
            receiver.on_data(receiver.next(), bytes);
            receiver.read(u64::MAX);
            receiver.grow(at(ms), 1000, Duration::from_millis(100));
            (receiver.grows(), receiver.offer())
        };
        assert_eq!(turn(0, 20_000), (true, 60_000));
        assert_eq!(turn(50, 20_000), (true, 60_000), "no round trip yet");
        // 60,000 bytes in the first round trip instead of 10 segments: the limit is twice that, and doubles with the
        // growth.
        assert_eq!(turn(100, 20_000), (false, 500_000));
    }

    #[test]
    fn offered_window_is_never_reduced() {
        let mut receiver = DataReceiver::new(3000, None);
        assert_eq!(receiver.offer(), 3000);
        receiver.on_data(2001, 1000);
        assert_eq!(
            receiver.offer(),
            3000,
            "out-of-order data does not reduce the offer"
        );
        receiver.on_data(1, 2000);
        assert_eq!(receiver.offer(), 0);
        assert!(!receiver.is_update_due());
        receiver.read(1500);
        assert!(receiver.is_update_due());
        assert_eq!(receiver.offer(), 1500);
    }
}
