//! Packets between the moment they leave the queue and the far end of the link.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::calendar::Due;
use crate::cargo::Ticket;

/// A packet and when it lands at the far end.
#[derive(Clone, Copy, Debug)]
struct Flying {
    due: Due,
    ticket: Ticket,
}

/// Reversed, so that a binary heap, which gives the greatest first, gives the one that lands first.
impl Ord for Flying {
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}
impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}
impl Eq for Flying {}

/// Packets on the wire. They stand in a queue, since on most links they land in the order in which
/// they took off; a link that reorders puts the ones that do not into a heap on the side.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    in_order: VecDeque<Flying>,
    stragglers: BinaryHeap<Flying>,
    /// When the next packet of both lands.
    first: Due,
    /// When the last of `in_order` lands, in nanoseconds.
    last: u64,
    /// The highest sequence number that has landed.
    highest: u64,
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            in_order: VecDeque::new(),
            stragglers: BinaryHeap::new(),
            first: Due::NEVER,
            last: 0,
            highest: 0,
        }
    }

    /// When the next packet lands.
    #[inline]
    pub(crate) const fn first_due(&self) -> Due {
        self.first
    }

    /// Lets a packet take off that lands at `nanos`, or with the packet before it where that is later.
    ///
    /// Sequence numbers rise from one packet to the next.
    #[inline]
    pub(crate) fn push_in_order(&mut self, nanos: u64, sequence: u64, ticket: Ticket) {
        self.last = nanos.max(self.last);
        let due = Due::new(self.last, sequence);
        self.first = self.first.min(due);
        self.in_order.push_back(Flying { due, ticket });
    }

    /// Lets a packet take off that lands at `nanos`, whether or not others took off before it.
    pub(crate) fn push_free(&mut self, nanos: u64, sequence: u64, ticket: Ticket) {
        if nanos >= self.last {
            self.push_in_order(nanos, sequence, ticket);
        } else {
            self.push_aside(nanos, sequence, ticket);
        }
    }

    /// Lets a packet take off that lands at `nanos` and lets those behind it overtake.
    pub(crate) fn push_aside(&mut self, nanos: u64, sequence: u64, ticket: Ticket) {
        let due = Due::new(nanos, sequence);
        self.first = self.first.min(due);
        self.stragglers.push(Flying { due, ticket });
    }

    /// The packet that lands next, and whether one that took off after it has landed before it.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Ticket, bool)> {
        let flying = if self.stragglers.is_empty() {
            let flying = self.in_order.pop_front()?;
            self.first = self.first_in_order();
            flying
        } else {
            self.pop_either()?
        };
        let overtaken = flying.due.sequence() < self.highest;
        self.highest = self.highest.max(flying.due.sequence());
        Some((flying.ticket, overtaken))
    }

    #[inline]
    fn first_in_order(&self) -> Due {
        self.in_order.front().map_or(Due::NEVER, |flying| flying.due)
    }

    #[cold]
    fn pop_either(&mut self) -> Option<Flying> {
        let flying = match self.stragglers.peek() {
            Some(straggler) if straggler.due < self.first_in_order() => self.stragglers.pop(),
            _ => self.in_order.pop_front(),
        };
        let straggler = self
            .stragglers
            .peek()
            .map_or(Due::NEVER, |straggler| straggler.due);
        self.first = straggler.min(self.first_in_order());
        flying
    }
}
