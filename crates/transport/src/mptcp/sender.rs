//! The sending direction of the data: what was written, what subflows were given, and what has arrived.

use std::collections::VecDeque;

use crate::ranges::RangeSet;

/// Data that is given to a subflow again: positions from the first up to but not including the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reinjection {
    pub start: u64,
    pub end: u64,
    /// The subflow that had it, which does not get it back while there is another.
    pub previous: u8,
}

/// The sending direction. Positions as in [`Mapping`](super::segment::Mapping): 1 is the first byte.
#[derive(Debug)]
pub(super) struct DataSender {
    /// Lowest position of which no DATA_ACK has been seen, next one to be given to a subflow, end of what was written.
    pub una: u64,
    pub next: u64,
    pub written: u64,
    /// The position after the highest that the peer's window allows (RFC 8684, section 3.3.1).
    pub edge: u64,
    pub finishing: bool,
    /// The oldest position that was sent on another subflow because the window was full.
    pub unblocked: u64,
    buffer: u64,
    reinjections: VecDeque<Reinjection>,
    /// What has left on any subflow, as far as it is not acknowledged. Schedulers that send ahead leave gaps.
    left: RangeSet,
}

impl DataSender {
    pub fn new(buffer: u64) -> Self {
        Self {
            una: 1,
            next: 1,
            written: 1,
            edge: 1,
            finishing: false,
            unblocked: 0,
            buffer,
            reinjections: VecDeque::new(),
            left: RangeSet::default(),
        }
    }

    /// Bytes that the send buffer has room for.
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

    /// Appends what there is room for, and gives how much that was.
    pub fn write(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.room());
        self.written += taken;
        taken
    }

    /// Bytes acknowledged.
    pub const fn acknowledged(&self) -> u64 {
        self.una_of_bytes() - 1
    }

    /// Whether all was written and given to subflows: what is left is a DATA_FIN.
    pub const fn has_sent_all(&self) -> bool {
        self.finishing && self.next >= self.written
    }

    /// Whether the DATA_FIN was acknowledged.
    pub const fn fin_acknowledged(&self) -> bool {
        self.finishing && self.una > self.written
    }

    /// A DATA_ACK arrived. Gives how many bytes it newly acknowledges, and whether it says anything new.
    pub fn on_data_ack(&mut self, position: u64, window: u64) -> (u64, bool) {
        // Beyond what was ever sent it is no acknowledgement.
        if position > self.next + u64::from(self.has_sent_all()) {
            return (0, false);
        }
        self.edge = self.edge.max(position + window);
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

    /// Bytes that were written and never given to a subflow.
    #[inline]
    pub const fn unsent(&self) -> u64 {
        self.written - self.next
    }

    /// Bytes given to subflows and not acknowledged.
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.next - self.una_of_bytes()
    }

    /// `start..end` leaves on a subflow. Gives whether any of it had left before, on any.
    #[inline]
    pub fn leaves(&mut self, start: u64, end: u64) -> bool {
        self.left.remove_below(self.una);
        let mut new = 0;
        self.left
            .insert(start.max(self.una), end, |from, to| new += to - from);
        new < end - start
    }

    /// `start..end`, which subflow `had` was given, is to be sent by another one too.
    pub fn reinject(&mut self, start: u64, end: u64, previous: u8) {
        let start = start.max(self.una);
        if start < end {
            self.reinjections.push_back(Reinjection { start, end, previous });
        }
    }

    /// What is to be sent again first.
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

    /// `bytes` of what [`next_reinjection`](Self::next_reinjection) gave are with a subflow.
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
    fn acknowledgements_move_window_and_una() {
        let mut sender = DataSender::new(1000);
        assert_eq!(sender.write(1500), 1000);
        sender.next = 501;
        assert_eq!(sender.on_data_ack(502, 1000), (0, false), "never sent");
        assert_eq!(sender.on_data_ack(301, 1000), (300, true));
        assert_eq!((sender.una, sender.edge, sender.room()), (301, 1301, 300));
        assert_eq!(sender.on_data_ack(201, 1200), (0, false), "an old one");
        assert_eq!(sender.edge, 1401, "but its window reaches further");
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
    fn what_leaves_ahead_is_no_retransmission() {
        let mut sender = DataSender::new(1000);
        sender.write(1000);
        sender.next = 1001;
        assert!(!sender.leaves(201, 301));
        assert!(!sender.leaves(1, 101), "behind what left, and for the first time");
        assert!(!sender.leaves(101, 201));
        assert!(sender.leaves(250, 350), "a part of it left before");
        sender.on_data_ack(301, 0);
        assert!(sender.leaves(201, 301), "what was acknowledged has left");
        assert!(!sender.leaves(350, 450));
    }

    #[test]
    fn what_arrived_is_not_sent_again() {
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
