//! Packets between the end of transmission and the far end of the link.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use foundation::Ring;

use crate::calendar::DueTime;
use crate::packet_store::Ticket;

/// A packet and its arrival time at the far end.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    due: DueTime,
    ticket: Ticket,
    /// Number of the packet on this link; it wraps.
    number: u32,
}

/// Reversed, so that a binary heap, a max-heap, returns the earliest arrival first.
impl Ord for InFlight {
    fn cmp(&self, other: &Self) -> Ordering {
        let age = || self.number.wrapping_sub(other.number) as i32;
        other.due.cmp(&self.due).then_with(|| 0.cmp(&age()))
    }
}
impl PartialOrd for InFlight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for InFlight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for InFlight {}

/// A packet that is no longer in flight.
pub(crate) struct Withdrawn {
    pub(crate) ticket: Ticket,
    /// The time at which its arrival was determined.
    pub(crate) since: u64,
    pub(crate) arrival: u64,
    /// Whether it was to arrive out of order.
    pub(crate) is_straggler: bool,
}

/// Packets in flight. On most links they arrive in the order of departure, so they are kept in a queue; packets that a
/// link reorders go into a separate heap.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    in_order: Ring<InFlight>,
    stragglers: BinaryHeap<InFlight>,
    /// Next arrival of both.
    first: DueTime,
    /// Arrival time of the last packet of `in_order`, in nanoseconds.
    last: u64,
    /// Number of the next packet, and the highest that has arrived.
    next: u32,
    highest: u32,
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            in_order: Ring::default(),
            stragglers: BinaryHeap::new(),
            first: DueTime::NEVER,
            last: 0,
            next: 1,
            highest: 0,
        }
    }

    /// Returns the time of the next arrival.
    #[inline]
    pub(crate) const fn first_due(&self) -> DueTime {
        self.first
    }

    /// Returns the earliest packet of those that arrive in order.
    #[inline]
    pub(crate) fn front(&self) -> Option<Ticket> {
        self.in_order.front().map(|flying| flying.ticket)
    }

    /// Adds a packet that arrives at `nanos`, or together with the packet before it if that arrives later. `cause` is the
    /// time at which its arrival was determined. Returns the time of arrival.
    #[inline]
    pub(crate) fn push_in_order(&mut self, nanos: u64, cause: u64, ticket: Ticket) -> u64 {
        self.last = nanos.max(self.last);
        let due = DueTime::new(self.last, cause);
        self.first = self.first.min(due);
        let number = self.take_number();
        self.in_order.push(InFlight { due, ticket, number });
        self.last
    }

    /// Removes the last `count` packets, which have not arrived. Returns them in the order in which they were added.
    pub(crate) fn withdraw(&mut self, now: u64, count: u32) -> Vec<Withdrawn> {
        let first = self.next.wrapping_sub(count);
        let is_withdrawn = |flying: &InFlight| flying.number.wrapping_sub(first) as i32 >= 0;
        let mut found = Vec::new();
        while let Some(&flying) = self.in_order.back().filter(|&flying| is_withdrawn(flying)) {
            self.in_order.pop_back();
            found.push((flying, false));
        }
        let stragglers = std::mem::take(&mut self.stragglers);
        for flying in stragglers {
            match is_withdrawn(&flying) {
                true => found.push((flying, true)),
                false => self.stragglers.push(flying),
            }
        }
        found.sort_unstable_by_key(|(flying, _)| flying.number.wrapping_sub(first));
        self.next = first;
        self.last = self.in_order.back().map_or(0, |flying| flying.due.nanos());
        self.first = self.first_of_both();
        let withdrawn = |(flying, is_straggler): (InFlight, bool)| Withdrawn {
            ticket: flying.ticket,
            since: flying.due.cause(now),
            arrival: flying.due.nanos(),
            is_straggler,
        };
        found.into_iter().map(withdrawn).collect()
    }

    #[inline]
    const fn take_number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// Adds a packet that arrives at `nanos` and may overtake earlier ones. Returns the time of arrival.
    pub(crate) fn push_free(&mut self, nanos: u64, cause: u64, ticket: Ticket) -> u64 {
        if nanos >= self.last {
            self.push_in_order(nanos, cause, ticket)
        } else {
            self.push_aside(nanos, cause, ticket)
        }
    }

    /// Adds a packet that arrives at `nanos` and that later packets may overtake. Returns the time of arrival.
    pub(crate) fn push_aside(&mut self, nanos: u64, cause: u64, ticket: Ticket) -> u64 {
        let due = DueTime::new(nanos, cause);
        self.first = self.first.min(due);
        let number = self.take_number();
        self.stragglers.push(InFlight { due, ticket, number });
        nanos
    }

    /// Returns the next packet to arrive, and whether a later packet has overtaken it.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Ticket, bool)> {
        let flying = if self.stragglers.is_empty() {
            let flying = self.in_order.pop()?;
            self.first = self.first_in_order();
            flying
        } else {
            self.pop_either()?
        };
        let overtaken = (flying.number.wrapping_sub(self.highest) as i32) < 0;
        if !overtaken {
            self.highest = flying.number;
        }
        Some((flying.ticket, overtaken))
    }

    #[inline]
    fn first_in_order(&self) -> DueTime {
        self.in_order.front().map_or(DueTime::NEVER, |flying| flying.due)
    }

    #[cold]
    fn pop_either(&mut self) -> Option<InFlight> {
        let flying = match self.stragglers.peek() {
            Some(straggler) if straggler.due < self.first_in_order() => self.stragglers.pop(),
            _ => self.in_order.pop(),
        };
        self.first = self.first_of_both();
        flying
    }

    fn first_of_both(&self) -> DueTime {
        let straggler = self
            .stragglers
            .peek()
            .map_or(DueTime::NEVER, |straggler| straggler.due);
        straggler.min(self.first_in_order())
    }
}
