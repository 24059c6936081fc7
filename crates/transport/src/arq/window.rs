//! The send window: unacknowledged packets, indexed by sequence number and by time of transmission.

use std::collections::VecDeque;

use foundation::Instant;

use super::frame::StreamRange;
use crate::congestion::delivery_rate::Snapshot;
use crate::ranges::RangeSet;

/// State of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In flight.
    InFlight,
    /// Declared lost; it waits for retransmission.
    Lost,
    /// Acknowledged selectively, before earlier packets.
    Acknowledged,
}

/// One packet of the window.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its range of the stream; empty for the end of the stream.
    pub range: StreamRange,
    /// Whether it ends the stream.
    pub fin: bool,
    /// Its state.
    pub state: State,
    /// Number of transmissions.
    pub transmissions: u32,
    /// Time of the last transmission.
    pub sent_at: Instant,
    /// Number of the frame of its last transmission, counted over the whole connection.
    pub order: u64,
    /// Whether that frame had other packets, too.
    pub shared: bool,
    /// Whether that transmission was a probe: an ACK of an earlier one is no sign of reordering.
    pub probed: bool,
    /// State of the delivery-rate estimator at that transmission.
    pub snapshot: Snapshot,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sequence: u64,
    order: u64,
}

/// The packets from the oldest unacknowledged one to the newest.
#[derive(Clone, Debug)]
pub struct SendWindow {
    base: u64,
    slots: VecDeque<Slot>,
    /// Transmissions, oldest first; stale entries are dropped when they reach the front.
    flight: VecDeque<Transmission>,
    /// Lost packets in the order of detection; stale entries are dropped likewise.
    lost: VecDeque<u64>,
    selective: RangeSet,
    next_order: u64,
    packets_in_flight: usize,
    bytes_in_flight: u64,
}

impl SendWindow {
    /// Creates an empty window whose first packet will have number `first`.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self {
            base: first,
            slots: VecDeque::new(),
            flight: VecDeque::new(),
            lost: VecDeque::new(),
            selective: RangeSet::default(),
            next_order: 0,
            packets_in_flight: 0,
            bytes_in_flight: 0,
        }
    }

    /// Returns the oldest unacknowledged number.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the number of the next new packet.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Whether everything sent was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of packets in flight.
    #[must_use]
    pub const fn packets_in_flight(&self) -> usize {
        self.packets_in_flight
    }

    /// Returns the payload bytes in flight.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Returns the packet with this number, if it is in the window.
    #[must_use]
    pub fn get(&self, sequence: u64) -> Option<&Slot> {
        self.slots
            .get(usize::try_from(sequence.checked_sub(self.base)?).ok()?)
    }

    fn slot_mut(&mut self, sequence: u64) -> Option<&mut Slot> {
        self.slots
            .get_mut(usize::try_from(sequence.checked_sub(self.base)?).ok()?)
    }

    /// Adds a new packet that is sent now; returns its number.
    pub fn push(&mut self, now: Instant, range: StreamRange, fin: bool, snapshot: Snapshot) -> u64 {
        let sequence = self.next();
        let order = self.take_order(sequence);
        self.slots.push_back(Slot {
            range,
            fin,
            state: State::InFlight,
            transmissions: 1,
            sent_at: now,
            order,
            shared: false,
            probed: false,
            snapshot,
        });
        self.packets_in_flight += 1;
        self.bytes_in_flight += u64::from(range.length);
        sequence
    }

    /// Adds a packet to the frame of the packet before, which was added at the same time.
    pub fn extend(&mut self, now: Instant, range: StreamRange, snapshot: Snapshot) {
        if let Some(last) = self.slots.back_mut() {
            last.shared = true;
            self.next_order = last.order;
        }
        let sequence = self.push(now, range, false, snapshot);
        if let Some(slot) = self.slot_mut(sequence) {
            slot.shared = true;
        }
    }

    /// Returns the first packet that waits for retransmission.
    pub fn next_lost(&mut self) -> Option<u64> {
        while let Some(&sequence) = self.lost.front() {
            if self.get(sequence).is_some_and(|slot| slot.state == State::Lost) {
                return Some(sequence);
            }
            self.lost.pop_front();
        }
        None
    }

    /// Records that the packet returned by [`next_lost`](Self::next_lost) is retransmitted now.
    pub fn retransmit(&mut self, now: Instant, sequence: u64, snapshot: Snapshot) -> Option<Slot> {
        self.lost.pop_front();
        let order = self.take_order(sequence);
        let slot = self.slot_mut(sequence)?;
        slot.state = State::InFlight;
        slot.transmissions += 1;
        slot.sent_at = now;
        slot.order = order;
        slot.shared = false;
        slot.probed = false;
        slot.snapshot = snapshot;
        let slot = *slot;
        self.packets_in_flight += 1;
        self.bytes_in_flight += u64::from(slot.range.length);
        Some(slot)
    }

    /// Records that the oldest packet in flight is retransmitted now as a probe. It counts as `gap` transmissions, because it
    /// leaves so late that all packets in flight before it are lost if it arrives. Returns its number.
    pub fn probe(&mut self, now: Instant, gap: u64, snapshot: Snapshot) -> Option<(u64, Slot)> {
        let sequence = self.flight.front()?.sequence;
        self.next_order += gap;
        let order = self.take_order(sequence);
        let slot = self.slot_mut(sequence)?;
        slot.transmissions += 1;
        slot.sent_at = now;
        slot.order = order;
        slot.shared = false;
        slot.probed = true;
        slot.snapshot = snapshot;
        let slot = *slot;
        self.drop_stale();
        Some((sequence, slot))
    }

    fn take_order(&mut self, sequence: u64) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.flight.push_back(Transmission { sequence, order });
        order
    }

    /// Returns the oldest transmission in flight. All timers have the same duration, so its timer is the next to
    /// expire.
    #[must_use]
    pub fn oldest_in_flight(&self) -> Option<&Slot> {
        // The front is never stale: see `drop_stale`.
        self.flight.front().and_then(|t| self.get(t.sequence))
    }

    /// Returns the number of the next transmission.
    #[must_use]
    pub const fn next_order(&self) -> u64 {
        self.next_order
    }

    fn drop_stale(&mut self) {
        while let Some(front) = self.flight.front() {
            let holds = self
                .get(front.sequence)
                .is_some_and(|slot| slot.order == front.order && slot.state == State::InFlight);
            if holds {
                break;
            }
            self.flight.pop_front();
        }
    }

    /// Handles a cumulative ACK: everything below `cumulative` has arrived. Calls `newly` for each newly acknowledged
    /// packet.
    pub fn acknowledge(&mut self, cumulative: u64, mut newly: impl FnMut(&Slot)) {
        while self.base < cumulative {
            let Some(slot) = self.slots.pop_front() else { break };
            self.base += 1;
            if slot.state == State::InFlight {
                self.packets_in_flight -= 1;
                self.bytes_in_flight -= u64::from(slot.range.length);
            }
            if slot.state != State::Acknowledged {
                newly(&slot);
            }
        }
        if !self.selective.is_empty() {
            self.selective.remove_below(self.base);
        }
        self.drop_stale();
    }

    /// Handles a selective ACK: `start..end` has arrived. Calls `newly` for each newly acknowledged packet.
    pub fn acknowledge_range(&mut self, start: u64, end: u64, mut newly: impl FnMut(&Slot)) {
        let (start, end) = (start.max(self.base), end.min(self.next()));
        let (base, slots) = (self.base, &mut self.slots);
        let (packets, bytes) = (&mut self.packets_in_flight, &mut self.bytes_in_flight);
        self.selective.insert(start, end, |from, to| {
            for slot in slots.range_mut((from - base) as usize..(to - base) as usize) {
                if slot.state == State::InFlight {
                    *packets -= 1;
                    *bytes -= u64::from(slot.range.length);
                }
                slot.state = State::Acknowledged;
                newly(slot);
            }
        });
        self.drop_stale();
    }

    /// Declares packets in flight lost, oldest transmission first, while `is_lost` returns true. Calls `lost` for
    /// each.
    pub fn declare_lost(&mut self, is_lost: impl Fn(&Slot) -> bool, mut lost: impl FnMut(&Slot)) {
        while let Some(&front) = self.flight.front() {
            let Some(slot) = self.slot_mut(front.sequence) else {
                break;
            };
            if !is_lost(slot) {
                break;
            }
            slot.state = State::Lost;
            let slot = *slot;
            self.packets_in_flight -= 1;
            self.bytes_in_flight -= u64::from(slot.range.length);
            self.lost.push_back(front.sequence);
            self.flight.pop_front();
            lost(&slot);
            self.drop_stale();
        }
    }

    /// Orders lost packets by number, instead of by the time of their loss, for retransmission.
    pub fn sort_lost(&mut self) {
        self.lost.make_contiguous().sort_unstable();
    }
}
