//! The send window: what was sent and is not yet acknowledged, in both of its orders: by sequence
//! number, and by time of transmission.

use std::collections::VecDeque;

use foundation::Instant;

use super::frame::StreamRange;
use crate::congestion::delivery_rate::Snapshot;
use crate::ranges::RangeSet;

/// What the sender believes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On its way.
    InFlight,
    /// Declared lost; it waits to be sent again.
    Lost,
    /// Acknowledged selectively; it waits for the packets before it.
    Acknowledged,
}

/// One packet of the window.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its bytes in the stream; none for the end of the stream.
    pub range: StreamRange,
    /// Whether it is the end of the stream.
    pub fin: bool,
    /// What the sender believes of it.
    pub state: State,
    /// How often it was sent.
    pub transmissions: u32,
    /// When it was last sent.
    pub sent_at: Instant,
    /// The number of its last transmission, counted over the whole connection.
    pub order: u64,
    /// What the delivery-rate estimator wants to know again when the packet is acknowledged.
    pub snapshot: Snapshot,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sequence: u64,
    order: u64,
}

/// The packets between the oldest one not acknowledged and the newest one sent.
#[derive(Clone, Debug)]
pub struct SendWindow {
    base: u64,
    slots: VecDeque<Slot>,
    /// Transmissions, oldest first; entries that no longer hold are dropped when they reach the front.
    flight: VecDeque<Transmission>,
    /// Packets declared lost, in the order of that; entries that no longer hold are dropped likewise.
    lost: VecDeque<u64>,
    selective: RangeSet,
    next_order: u64,
    packets_in_flight: usize,
    bytes_in_flight: u64,
}

impl SendWindow {
    /// An empty window whose first packet will have number `first`.
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

    /// The oldest number not acknowledged.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// The number of the next new packet.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Whether everything sent was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Packets on their way.
    #[must_use]
    pub const fn packets_in_flight(&self) -> usize {
        self.packets_in_flight
    }

    /// Payload bytes on their way.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// The packet with this number, if it is in the window.
    #[must_use]
    pub fn get(&self, sequence: u64) -> Option<&Slot> {
        self.slots
            .get(usize::try_from(sequence.checked_sub(self.base)?).ok()?)
    }

    fn slot_mut(&mut self, sequence: u64) -> Option<&mut Slot> {
        self.slots
            .get_mut(usize::try_from(sequence.checked_sub(self.base)?).ok()?)
    }

    /// Adds a new packet, sent now, and gives its number.
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
            snapshot,
        });
        self.packets_in_flight += 1;
        self.bytes_in_flight += u64::from(range.length);
        sequence
    }

    /// The first packet that waits to be sent again.
    pub fn next_lost(&mut self) -> Option<u64> {
        while let Some(&sequence) = self.lost.front() {
            if self.get(sequence).is_some_and(|slot| slot.state == State::Lost) {
                return Some(sequence);
            }
            self.lost.pop_front();
        }
        None
    }

    /// Notes that the packet given by [`next_lost`](Self::next_lost) is sent again, now.
    pub fn retransmit(&mut self, now: Instant, sequence: u64, snapshot: Snapshot) -> Option<Slot> {
        self.lost.pop_front();
        let order = self.take_order(sequence);
        let slot = self.slot_mut(sequence)?;
        slot.state = State::InFlight;
        slot.transmissions += 1;
        slot.sent_at = now;
        slot.order = order;
        slot.snapshot = snapshot;
        let slot = *slot;
        self.packets_in_flight += 1;
        self.bytes_in_flight += u64::from(slot.range.length);
        Some(slot)
    }

    fn take_order(&mut self, sequence: u64) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.flight.push_back(Transmission { sequence, order });
        order
    }

    /// The oldest transmission still in flight. Its timer is the one that expires next: each packet
    /// has one, all are equally long, so the oldest stands for all.
    #[must_use]
    pub fn oldest_in_flight(&self) -> Option<&Slot> {
        // The front always holds: see `drop_stale`.
        self.flight.front().and_then(|t| self.get(t.sequence))
    }

    /// The number that the next transmission will have.
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

    /// Everything below `cumulative` has arrived. Calls `newly` for each packet that was not known to.
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

    /// `start..end` has arrived. Calls `newly` for each packet that was not known to.
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

    /// Declares lost what is in flight, oldest transmission first, for as long as `is_lost` says so.
    /// Calls `lost` for each.
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
}
