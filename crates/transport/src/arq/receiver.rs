//! The receiving direction: reassembly and acknowledgements.

use std::collections::VecDeque;

use foundation::{Duration, Instant};

use super::frame::{Frame, Payload, SackRanges, packets};
use super::sequence::{expand, truncate};
use crate::ranges::RangeSet;

/// The frame that triggers an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Its sequence number on the wire.
    pub sequence: u32,
    /// Its timestamp.
    pub timestamp: u32,
}

/// Number of packets at the start of a stream that are acknowledged individually: a sender in slow start depends on
/// ACKs, and only few arrive.
const QUICK_PACKETS: u64 = 128;

#[derive(Clone, Debug)]
enum BufferedPacket<P> {
    Data(P),
    End,
}

/// A receive buffer, bounded by its capacity in packets.
#[derive(Clone, Debug)]
pub struct Receiver<P> {
    next: u64,
    capacity: u32,
    buffers_out_of_order: bool,
    /// `buffered[i]` is packet `next + i`; empty while all packets are in order.
    buffered: VecDeque<Option<BufferedPacket<P>>>,
    ranges: RangeSet,
    ready: VecDeque<P>,
    /// Packets in `ready`.
    ready_packets: u32,
    /// Payload of every packet of a longer frame but the last.
    segment: u32,
    finished: bool,
    every: u32,
    delay: Duration,
    /// From this packet number on, packets may share an ACK.
    sharing_from: u64,
    unacknowledged: u32,
    owed: bool,
    deadline: Option<Instant>,
    trigger: Trigger,
    sack_cursor: usize,
    advertised: u32,
}

impl<P: Payload> Receiver<P> {
    /// Creates a buffer for `capacity` packets of `segment` bytes that expects packet `first` and sends one ACK per `every`
    /// packets in order, at the latest after `delay`.
    #[must_use]
    pub fn new(
        first: u64,
        capacity: u32,
        segment: u32,
        buffers_out_of_order: bool,
        (every, delay): (u32, Duration),
    ) -> Self {
        Self {
            next: first,
            capacity,
            buffers_out_of_order,
            buffered: VecDeque::new(),
            ranges: RangeSet::default(),
            ready: VecDeque::new(),
            ready_packets: 0,
            segment,
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

    /// Sends one ACK per `every` packets in order from now on, at the latest after `delay`. A delayed ACK remains due at its
    /// time.
    pub const fn set_acknowledgements(&mut self, every: u32, delay: Duration) {
        self.every = every;
        self.delay = delay;
    }

    /// Handles a frame whose first packet has number `wire`: data, or the end of the stream if there is no payload. Returns
    /// the number of its packets, and how many of them are new.
    pub fn accept(&mut self, now: Instant, wire: u32, timestamp: u32, payload: Option<P>) -> (u32, u32) {
        let sequence = expand(self.next, wire);
        self.trigger = Trigger {
            sequence: wire,
            timestamp,
        };
        let Some(payload) = payload else {
            return (
                1,
                u32::from(self.accept_packet(now, sequence, BufferedPacket::End)),
            );
        };
        let count = packets(payload.length(), self.segment);
        if count == 1 {
            let is_new = self.accept_packet(now, sequence, BufferedPacket::Data(payload));
            return (1, u32::from(is_new));
        }
        if self.accepts_whole(wire, payload.length()) {
            self.next += u64::from(count);
            self.ready_packets += count;
            self.ready.push_back(payload);
            self.note_in_order(now, count, true);
            return (count, count);
        }
        let mut new = 0;
        for (packet, number) in payload.split(self.segment).into_iter().zip(sequence..) {
            new += u32::from(self.accept_packet(now, number, BufferedPacket::Data(packet)));
        }
        (count, new)
    }

    /// Whether a frame with `length` bytes from number `wire` on would become readable at once and as a whole.
    #[must_use]
    pub fn accepts_whole(&self, wire: u32, length: u32) -> bool {
        let count = packets(length, self.segment);
        expand(self.next, wire) == self.next
            && !self.finished
            && self.window() >= count
            && (count == 1 || self.ranges.is_empty())
    }

    fn accept_packet(&mut self, now: Instant, sequence: u64, packet: BufferedPacket<P>) -> bool {
        if sequence == self.next && !self.finished && self.window() > 0 {
            let in_order = self.ranges.is_empty();
            self.take(packet);
            if self.buffered.pop_front().is_some() {
                while let Some(Some(packet)) = self.buffered.front_mut().map(Option::take) {
                    self.buffered.pop_front();
                    self.take(packet);
                }
                self.ranges.remove_below(self.next);
            }
            self.note_in_order(now, 1, in_order);
            return true;
        }
        // RFC 5681, section 4.2: out-of-order packets are acknowledged at once.
        self.owed = true;
        let offset = sequence.wrapping_sub(self.next);
        let in_window = sequence > self.next && offset < u64::from(self.window()) && !self.finished;
        if !in_window || !self.buffers_out_of_order || self.ranges.contains(sequence) {
            return false;
        }
        let at = offset as usize;
        if self.buffered.len() <= at {
            self.buffered.resize_with(at + 1, || None);
        }
        self.buffered[at] = Some(packet);
        self.ranges.insert(sequence, sequence + 1, |_, _| {});
        true
    }

    fn take(&mut self, packet: BufferedPacket<P>) {
        self.next += 1;
        match packet {
            BufferedPacket::Data(payload) => {
                self.ready_packets += 1;
                self.ready.push_back(payload);
            }
            BufferedPacket::End => {
                // Nothing follows the end; packets that claim to are dropped.
                self.finished = true;
                self.buffered.clear();
                self.ranges = RangeSet::default();
            }
        }
    }

    fn note_in_order(&mut self, now: Instant, count: u32, in_order: bool) {
        self.unacknowledged += count;
        let alone = self.next <= self.sharing_from;
        if alone || !in_order || self.finished || self.unacknowledged >= self.every {
            self.owed = true;
        } else if self.deadline.is_none() {
            self.deadline = Some(now + self.delay);
        }
    }

    /// Returns the next payload in order.
    pub fn read(&mut self) -> Option<P> {
        let payload = self.ready.pop_front()?;
        self.ready_packets -= packets(payload.length(), self.segment);
        // When an almost closed window is half open again, it is announced in a separate frame (RFC 9293, section
        // 3.8.6.2.2: avoid silly windows).
        if self.advertised < self.capacity / 4 && self.window() >= self.capacity / 2 {
            self.advertised = self.window();
            self.owed = true;
        }
        Some(payload)
    }

    /// Returns the payloads that arrived above a gap.
    pub fn early(&self) -> impl Iterator<Item = &P> {
        self.buffered.iter().filter_map(|packet| match packet {
            Some(BufferedPacket::Data(payload)) => Some(payload),
            _ => None,
        })
    }

    /// Whether payload is readable.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether the whole stream has arrived.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns how many packets there is room for.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.capacity.saturating_sub(self.ready_packets)
    }

    /// Returns the number of the next expected packet.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether an ACK should be sent now.
    #[must_use]
    pub const fn owes_acknowledgement(&self) -> bool {
        self.owed
    }

    /// Returns when a delayed ACK is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Makes a delayed ACK due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|d| d <= now) {
            self.owed = true;
        }
    }

    /// Writes the state of this direction into an outgoing frame; every frame carries it.
    pub fn describe<Q>(&mut self, frame: &mut Frame<Q>) {
        frame.acknowledgement = truncate(self.next);
        self.advertised = self.window();
        frame.window = self.advertised;
    }

    /// Completes an ACK and marks it as sent.
    pub fn acknowledge<Q>(&mut self, frame: &mut Frame<Q>) {
        self.describe(frame);
        frame.sequence = self.trigger.sequence;
        frame.echo = self.trigger.timestamp;
        frame.sack = self.sack_ranges();
        self.owed = false;
        self.unacknowledged = 0;
        self.deadline = None;
    }

    /// Returns the range of the newest arrival first (RFC 2018, section 4), then the others in rotation.
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
