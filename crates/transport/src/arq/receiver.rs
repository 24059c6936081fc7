//! The receiving direction: what has arrived, in order and out of order, and what to acknowledge.

use std::collections::VecDeque;

use foundation::{Duration, Instant};

use super::frame::{Frame, SackRanges};
use super::sequence::{expand, truncate};
use crate::ranges::RangeSet;

/// The frame that an ACK answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Its sequence number on the wire.
    pub sequence: u32,
    /// Its timestamp.
    pub timestamp: u32,
}

/// The first packets of a stream are acknowledged one by one: a sender that starts slowly learns from
/// ACKs how fast it may go, and few are to come.
const QUICK_PACKETS: u64 = 128;

#[derive(Clone, Debug)]
enum Held<P> {
    Data(P),
    End,
}

/// A receive buffer. Memory is bounded by its capacity in packets.
#[derive(Clone, Debug)]
pub struct Receiver<P> {
    next: u64,
    capacity: u32,
    buffers_out_of_order: bool,
    /// `held[i]` is packet `next + i`; empty as long as nothing is out of order.
    held: VecDeque<Option<Held<P>>>,
    ranges: RangeSet,
    ready: VecDeque<P>,
    finished: bool,
    every: u32,
    delay: Duration,
    /// Packets from this number on may share an ACK.
    sharing_from: u64,
    unacknowledged: u32,
    owed: bool,
    deadline: Option<Instant>,
    trigger: Trigger,
    sack_cursor: usize,
    advertised: u32,
}

impl<P> Receiver<P> {
    /// A buffer for `capacity` packets that waits for packet number `first` and sends one ACK for
    /// `every` packets in order, at the latest after `delay`.
    #[must_use]
    pub fn new(first: u64, capacity: u32, buffers_out_of_order: bool, every: u32, delay: Duration) -> Self {
        Self {
            next: first,
            capacity,
            buffers_out_of_order,
            held: VecDeque::new(),
            ranges: RangeSet::default(),
            ready: VecDeque::new(),
            finished: false,
            every,
            delay,
            sharing_from: first + QUICK_PACKETS,
            unacknowledged: 0,
            owed: false,
            deadline: None,
            trigger: Trigger::default(),
            sack_cursor: 0,
            advertised: capacity,
        }
    }

    /// Packet `sequence` (on the wire) arrived: data, or without payload the end of the stream.
    /// Gives whether it was new.
    pub fn accept(&mut self, now: Instant, wire: u32, timestamp: u32, payload: Option<P>) -> bool {
        let sequence = expand(self.next, wire);
        self.trigger = Trigger {
            sequence: wire,
            timestamp,
        };
        let held = payload.map_or(Held::End, Held::Data);
        if sequence == self.next && !self.finished && self.window() > 0 {
            let in_order = self.ranges.is_empty();
            self.take(held);
            if self.held.pop_front().is_some() {
                while let Some(Some(held)) = self.held.front_mut().map(Option::take) {
                    self.held.pop_front();
                    self.take(held);
                }
                self.ranges.remove_below(self.next);
            }
            self.note_in_order(now, in_order);
            return true;
        }
        // RFC 5681, section 4.2: what is out of order is acknowledged at once.
        self.owed = true;
        let offset = sequence.wrapping_sub(self.next);
        let in_window = sequence > self.next && offset < u64::from(self.window()) && !self.finished;
        if !in_window || !self.buffers_out_of_order || self.ranges.contains(sequence) {
            return false;
        }
        let at = offset as usize;
        if self.held.len() <= at {
            self.held.resize_with(at + 1, || None);
        }
        self.held[at] = Some(held);
        self.ranges.insert(sequence, sequence + 1, |_, _| {});
        true
    }

    fn take(&mut self, held: Held<P>) {
        self.next += 1;
        match held {
            Held::Data(payload) => self.ready.push_back(payload),
            Held::End => {
                // Nothing comes after the end; what claims to is not kept.
                self.finished = true;
                self.held.clear();
                self.ranges = RangeSet::default();
            }
        }
    }

    fn note_in_order(&mut self, now: Instant, in_order: bool) {
        self.unacknowledged += 1;
        let alone = self.next <= self.sharing_from;
        if alone || !in_order || self.finished || self.unacknowledged >= self.every {
            self.owed = true;
        } else if self.deadline.is_none() {
            self.deadline = Some(now + self.delay);
        }
    }

    /// The next payload in order.
    pub fn read(&mut self) -> Option<P> {
        let payload = self.ready.pop_front()?;
        // A window that was nearly shut and is half open again is worth a frame of its own
        // (RFC 9293, section 3.8.6.2.2: avoid silly windows).
        if self.advertised < self.capacity / 4 && self.window() >= self.capacity / 2 {
            self.advertised = self.window();
            self.owed = true;
        }
        Some(payload)
    }

    /// Whether payload waits to be read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether the whole stream has arrived.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Packets that there is room for.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.capacity
            .saturating_sub(u32::try_from(self.ready.len()).unwrap_or(u32::MAX))
    }

    /// The number of the packet waited for.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether an ACK should leave now.
    #[must_use]
    pub const fn owes_acknowledgement(&self) -> bool {
        self.owed
    }

    /// When an ACK that was put off is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// An ACK that was put off until now is owed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|d| d <= now) {
            self.owed = true;
        }
    }

    /// Writes the state of this direction into a frame that leaves; every frame tells it.
    pub fn describe<Q>(&mut self, frame: &mut Frame<Q>) {
        frame.acknowledgement = truncate(self.next);
        self.advertised = self.window();
        frame.window = self.advertised;
    }

    /// Completes an ACK, which is then no longer owed.
    pub fn acknowledge<Q>(&mut self, frame: &mut Frame<Q>) {
        self.describe(frame);
        frame.sequence = self.trigger.sequence;
        frame.echo = self.trigger.timestamp;
        frame.sack = self.sack_ranges();
        self.owed = false;
        self.unacknowledged = 0;
        self.deadline = None;
    }

    /// The range of the newest arrival first (RFC 2018, section 4), then the others in turn.
    fn sack_ranges(&mut self) -> SackRanges {
        let mut sack = SackRanges::default();
        if self.ranges.is_empty() {
            return sack;
        }
        let newest = self.ranges.position(expand(self.next, self.trigger.sequence));
        let mut push = |position: usize| {
            if let Some((start, end)) = self.ranges.get(position) {
                sack.push(truncate(start), truncate(end));
            }
        };
        let others = self.ranges.len() - usize::from(newest.is_some());
        if let Some(newest) = newest {
            push(newest);
        }
        for i in 0..others.min(super::frame::MAX_SACK_RANGES - usize::from(newest.is_some())) {
            let turn = (self.sack_cursor + i) % others;
            push(turn + usize::from(newest.is_some_and(|n| turn >= n)));
        }
        self.sack_cursor = self.sack_cursor.wrapping_add(super::frame::MAX_SACK_RANGES - 1);
        sack
    }
}
