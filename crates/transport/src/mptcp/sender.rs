//! Sending direction of the data: written, scheduled and acknowledged positions.

use std::collections::VecDeque;

use crate::ranges::RangeSet;

/// A range of data to schedule again: positions from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reinjection {
    pub start: u64,
    pub end: u64,
    /// Number of the subflow that carried it, used again only without an alternative.
    pub previous: u8,
}

/// When a partial segment waits for more data (Nagle's algorithm).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nagle {
    /// While data is unacknowledged (RFC 9293, section 3.7.4).
    Classic,
    /// While another partial segment is (`tcp_minshall_check` of Linux).
    Minshall,
}

/// Sending direction. Positions count from 1, as in [`Mapping`](super::segment::Mapping).
#[derive(Debug)]
pub(super) struct DataSender {
    /// Lowest unacknowledged position, next position to schedule, and end of the written data.
    pub una: u64,
    pub next: u64,
    pub written: u64,
    /// Right right_edge of the peer's receive window (RFC 8684, section 3.3.1).
    pub right_edge: u64,
    pub finishing: bool,
    /// End of the last partial segment (Minshall's variant of Nagle's algorithm).
    pub small_end: u64,
    /// Last position retransmitted on another subflow because the window was full.
    pub last_unblocked: u64,
    buffer: u64,
    reinjections: VecDeque<Reinjection>,
    /// Unacknowledged ranges sent on any subflow, with gaps if schedulers send ahead.
    sent: RangeSet,
}

impl DataSender {
    pub fn new(buffer: u64) -> Self {
        Self {
            una: 1,
            next: 1,
            written: 1,
            right_edge: 1,
            finishing: false,
            small_end: 0,
            last_unblocked: 0,
            buffer,
            reinjections: VecDeque::new(),
            sent: RangeSet::default(),
        }
    }

    /// Returns the free bytes of the send buffer.
    pub const fn room(&self) -> u64 {
        self.buffer.saturating_sub(self.written - self.una_of_bytes())
    }

    const fn una_of_bytes(&self) -> u64 {
        if self.una < self.written {
            self.una
        } else {
            self.written
        }
    }

    /// Appends up to `bytes`. Returns the bytes accepted.
    pub fn write(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.room());
        self.written += taken;
        taken
    }

    /// Returns the acknowledged bytes.
    pub const fn acknowledged(&self) -> u64 {
        self.una_of_bytes() - 1
    }

    /// Returns whether all data was written and scheduled, so that only a DATA_FIN remains.
    pub const fn has_sent_all(&self) -> bool {
        self.finishing && self.next >= self.written
    }

    /// Returns whether the DATA_FIN was acknowledged.
    pub const fn fin_acknowledged(&self) -> bool {
        self.finishing && self.una > self.written
    }

    /// Processes a DATA_ACK. Returns the newly acknowledged bytes, and whether the position advanced.
    #[inline]
    pub fn on_data_ack(&mut self, position: u64, window: u64) -> (u64, bool) {
        // A position beyond the sent data is invalid.
        if position > self.next + u64::from(self.has_sent_all()) {
            return (0, false);
        }
        self.right_edge = self.right_edge.max(position + window);
        if position <= self.una {
            return (0, false);
        }
        let before = self.acknowledged();
        self.una = position;
        while self
            .reinjections
            .front()
            .is_some_and(|reinjection| reinjection.end <= position)
        {
            self.reinjections.pop_front();
        }
        (self.acknowledged() - before, true)
    }

    /// Schedules all data from `position` on again, as new data; what precedes it counts as acknowledged. Returns as
    /// [`on_data_ack`](Self::on_data_ack).
    pub fn restart_at(&mut self, position: u64) -> (u64, bool) {
        let result = self.on_data_ack(position, 0);
        self.reinjections.clear();
        self.next = position;
        result
    }

    /// Returns the bytes written and not scheduled.
    #[inline]
    pub const fn unsent(&self) -> u64 {
        self.written - self.next
    }

    /// Returns whether all written data is scheduled, and none again.
    #[inline]
    pub fn has_scheduled_all(&self) -> bool {
        self.unsent() == 0 && self.reinjections.is_empty()
    }

    /// Returns the bytes scheduled and not acknowledged.
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.next - self.una_of_bytes()
    }

    /// Records the transmission of `start..end`. Returns whether any of it was sent before, on any subflow.
    #[inline]
    pub fn mark_sent(&mut self, start: u64, end: u64) -> bool {
        self.sent.remove_below(self.una);
        let mut new = 0;
        self.sent
            .insert(start.max(self.una), end, |from, to| new += to - from);
        new < end - start
    }

    /// Schedules `start..end`, which subflow `previous` carried, on another subflow too.
    pub fn reinject(&mut self, start: u64, end: u64, previous: u8) {
        let start = start.max(self.una);
        if start < end {
            self.reinjections.push_back(Reinjection { start, end, previous });
        }
    }

    /// Returns the next range to reinject.
    pub fn next_reinjection(&mut self) -> Option<Reinjection> {
        while let Some(front) = self.reinjections.front_mut() {
            front.start = front.start.max(self.una);
            if front.start < front.end {
                return Some(*front);
            }
            self.reinjections.pop_front();
        }
        None
    }

    /// Removes the first `bytes` of the range that [`next_reinjection`](Self::next_reinjection) returned.
    pub fn consume_reinjection(&mut self, bytes: u64) {
        if let Some(front) = self.reinjections.front_mut() {
            front.start += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_ack_advances_una_and_right_edge() {
        let mut sender = DataSender::new(1000);
        assert_eq!(sender.write(1500), 1000);
        sender.next = 501;
        assert_eq!(sender.on_data_ack(502, 1000), (0, false), "never sent");
        assert_eq!(sender.on_data_ack(301, 1000), (300, true));
        assert_eq!((sender.una, sender.right_edge, sender.room()), (301, 1301, 300));
        assert_eq!(sender.on_data_ack(201, 1200), (0, false), "an old ACK");
        assert_eq!(sender.right_edge, 1401, "its window reaches further");
        sender.finishing = true;
        sender.next = sender.written;
        assert_eq!(
            sender.on_data_ack(1002, 0),
            (700, true),
            "RFC 8684, section 3.3.3: one for the DATA_FIN"
        );
        assert!(sender.fin_acknowledged());
    }

    #[test]
    fn first_transmission_out_of_order_is_no_retransmission() {
        let mut sender = DataSender::new(1000);
        sender.write(1000);
        sender.next = 1001;
        assert!(!sender.mark_sent(201, 301));
        assert!(!sender.mark_sent(1, 101), "first transmission behind later data");
        assert!(!sender.mark_sent(101, 201));
        assert!(sender.mark_sent(250, 350), "part of it was sent before");
        sender.on_data_ack(301, 0);
        assert!(sender.mark_sent(201, 301), "acknowledged data was sent");
        assert!(!sender.mark_sent(350, 450));
    }

    #[test]
    fn acknowledged_data_is_not_reinjected() {
        let mut sender = DataSender::new(1000);
        sender.write(1000);
        sender.next = 1001;
        sender.reinject(1, 101, 0);
        sender.reinject(301, 401, 1);
        sender.on_data_ack(51, 0);
        let reinjection = sender.next_reinjection().unwrap();
        assert_eq!(
            (reinjection.start, reinjection.end, reinjection.previous),
            (51, 101, 0)
        );
        sender.consume_reinjection(50);
        assert_eq!(sender.next_reinjection().unwrap().start, 301);
        sender.on_data_ack(401, 0);
        assert_eq!(sender.next_reinjection(), None);
    }
}
