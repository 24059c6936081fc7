//! The receiving direction of the data: reordering buffer and window.

use foundation::{Duration, Instant};

use crate::ranges::RangeSet;
use crate::tcp::Autotuning;

/// The receiving direction. Positions as in [`Mapping`](super::segment::Mapping).
#[derive(Debug)]
pub(super) struct DataReceiver {
    /// The position that is expected next, and after the last byte that the application took.
    next: u64,
    read: u64,
    /// What arrived above `next`.
    early: RangeSet,
    /// Where the DATA_FIN stands, once it is known.
    fin: Option<u64>,
    /// The position after the highest that was ever offered.
    edge: u64,
    /// What may wait to be read: all of the buffer, or less while it grows with what is read in a round trip.
    limit: u64,
    buffer: u64,
    autotuning: Option<Autotuning>,
    /// Bytes that arrived more than once.
    duplicates: u64,
}

impl DataReceiver {
    /// `first`: what the buffer begins with, where it grows.
    pub fn new(buffer: u64, first: Option<u64>) -> Self {
        Self {
            limit: first.unwrap_or(buffer).min(buffer),
            autotuning: first.map(|_| Autotuning::default()),
            next: 1,
            read: 1,
            early: RangeSet::default(),
            fin: None,
            edge: 1,
            buffer,
            duplicates: 0,
        }
    }

    /// The position that is expected next: what a DATA_ACK says.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes to read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.next.min(self.fin.unwrap_or(self.next)) - self.read
    }

    /// Bytes that wait for what stands before them.
    pub fn early_bytes(&self) -> u64 {
        (0..self.early.len())
            .filter_map(|place| self.early.get(place))
            .map(|(start, end)| end - start)
            .sum()
    }

    /// Bytes that arrived more than once, on one subflow or on several.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Whether all of the data arrived, DATA_FIN included.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// `length` bytes from `start` arrived. Gives whether there is more to read.
    #[inline]
    pub fn on_data(&mut self, start: u64, length: u64) -> bool {
        let end = start + length;
        if start <= self.next && self.early.is_empty() {
            // The common case: in order, and nothing waits.
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

    /// The data ends before `position`. Gives whether that was news.
    pub fn on_fin(&mut self, position: u64) -> bool {
        if self.fin.is_some() || position < self.next {
            return false;
        }
        self.fin = Some(position);
        self.consume_fin();
        true
    }

    /// The application took something. Full segments have `segment` bytes, and the longest round trip of a subflow is
    /// `round_trip`: the buffer has room for twice what is read in one, and for what lies beyond gaps.
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

    /// Whether the buffer may still grow.
    pub const fn grows(&self) -> bool {
        self.autotuning.is_some()
    }

    /// The application takes up to `bytes`; gives how many.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        taken
    }

    /// The window that a segment which leaves now offers, counted from [`next`](Self::next): it never takes back what
    /// was offered before (RFC 8684, section 3.3.1).
    #[inline]
    pub fn offer(&mut self) -> u64 {
        self.edge = self.edge.max(self.next + self.room());
        self.edge - self.next.min(self.edge)
    }

    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.readable())
    }

    /// Whether the window grew so much by what was read that the peer should hear of it: to twice what is left of it
    /// (RFC 9293, section 3.8.6.2.2).
    pub fn is_update_due(&self) -> bool {
        let left = self.edge.saturating_sub(self.next);
        2 * left <= self.limit && self.room() >= (2 * left).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_restored_and_the_fin_counts_for_one() {
        let mut receiver = DataReceiver::new(10_000, None);
        assert!(!receiver.on_data(1001, 1000));
        assert!(receiver.on_fin(2001));
        assert_eq!((receiver.next(), receiver.early_bytes()), (1, 1000));
        assert!(receiver.on_data(1, 1000));
        assert!(receiver.is_finished());
        assert_eq!((receiver.next(), receiver.readable()), (2002, 2000));
        assert!(!receiver.on_data(501, 600), "nothing new");
        assert_eq!(receiver.duplicates(), 600);
        assert_eq!(receiver.read(5000), 2000);
    }

    #[test]
    fn the_buffer_grows_with_what_is_read_in_a_round_trip() {
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
        // 60,000 bytes in the first round trip where 10 segments were expected: twice that, and twice by what it grew.
        assert_eq!(turn(100, 20_000), (false, 500_000));
    }

    #[test]
    fn the_window_is_one_for_all_and_never_taken_back() {
        let mut receiver = DataReceiver::new(3000, None);
        assert_eq!(receiver.offer(), 3000);
        receiver.on_data(2001, 1000);
        assert_eq!(
            receiver.offer(),
            3000,
            "what waits takes no more than was offered"
        );
        receiver.on_data(1, 2000);
        assert_eq!(receiver.offer(), 0);
        assert!(!receiver.is_update_due());
        receiver.read(1500);
        assert!(receiver.is_update_due());
        assert_eq!(receiver.offer(), 1500);
    }
}
