//! Packets between the moment they leave the queue and the far end of the link.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::calendar::Due;
use crate::packet::Packet;

/// A packet and when it lands at the far end.
#[derive(Clone, Debug)]
struct Flying<B> {
    due: Due,
    packet: Packet<B>,
}

/// Reversed, so that a binary heap, which gives the greatest first, gives the one that lands first.
impl<B> Ord for Flying<B> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}
impl<B> PartialOrd for Flying<B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<B> PartialEq for Flying<B> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}
impl<B> Eq for Flying<B> {}

/// Packets on the wire. They stand in a queue, since on most links they land in the order in which
/// they took off; a link that reorders puts the ones that do not into a heap on the side.
#[derive(Clone, Debug)]
pub(crate) struct Flight<B> {
    in_order: VecDeque<Flying<B>>,
    stragglers: BinaryHeap<Flying<B>>,
    /// When the last of `in_order` lands, in nanoseconds.
    last: u64,
    /// The highest sequence number that has landed.
    highest: u64,
}

impl<B> Flight<B> {
    pub(crate) fn new() -> Self {
        Self {
            in_order: VecDeque::new(),
            stragglers: BinaryHeap::new(),
            last: 0,
            highest: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.stragglers.len()
    }

    /// When the next packet lands.
    #[inline]
    pub(crate) fn first_due(&self) -> Due {
        let due = self.in_order.front().map_or(Due::NEVER, |flying| flying.due);
        match self.stragglers.peek() {
            None => due,
            Some(straggler) => due.min(straggler.due),
        }
    }

    /// Lets a packet take off that lands at `nanos`, or with the packet before it where that is later.
    ///
    /// Sequence numbers rise from one packet to the next.
    #[inline]
    pub(crate) fn push_in_order(&mut self, nanos: u64, sequence: u64, packet: Packet<B>) {
        self.last = nanos.max(self.last);
        let due = Due::new(self.last, sequence);
        self.in_order.push_back(Flying { due, packet });
    }

    /// Lets a packet take off that lands at `nanos`, whether or not others took off before it.
    pub(crate) fn push_free(&mut self, nanos: u64, sequence: u64, packet: Packet<B>) {
        if nanos >= self.last {
            self.push_in_order(nanos, sequence, packet);
        } else {
            self.push_aside(nanos, sequence, packet);
        }
    }

    /// Lets a packet take off that lands at `nanos` and lets those behind it overtake.
    pub(crate) fn push_aside(&mut self, nanos: u64, sequence: u64, packet: Packet<B>) {
        let due = Due::new(nanos, sequence);
        self.stragglers.push(Flying { due, packet });
    }

    /// The packet that lands next, and whether one that took off after it has landed before it.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Packet<B>, bool)> {
        let flying = if self.stragglers.is_empty() {
            self.in_order.pop_front()?
        } else {
            self.pop_either()?
        };
        let overtaken = flying.due.sequence() < self.highest;
        self.highest = self.highest.max(flying.due.sequence());
        Some((flying.packet, overtaken))
    }

    #[cold]
    fn pop_either(&mut self) -> Option<Flying<B>> {
        let straggler = self.stragglers.peek()?.due;
        if self.in_order.front().is_some_and(|flying| flying.due < straggler) {
            self.in_order.pop_front()
        } else {
            self.stragglers.pop()
        }
    }
}
