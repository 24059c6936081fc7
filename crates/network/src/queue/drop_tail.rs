//! The drop-tail queue: first in, first out, and what finds no room is dropped.
//!
//! No packet stands in it. When a packet joins, the time at which it will have been sent follows from
//! those before it, so it goes straight to the wire with that time; the queue's length is the number of
//! such times not yet past. This saves an event and a move a packet.

use std::collections::VecDeque;

use crate::link::LinkCounters;
use crate::link::pace::Pace;
use crate::queue::QueueLimit;

/// A drop-tail queue in front of a link.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    max_packets: u64,
    max_bytes: u64,
    /// When each packet that is waiting or being sent will have been sent, and its size.
    departures: VecDeque<(u64, u32)>,
    bytes: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        let (max_packets, max_bytes) = limit.packets_and_bytes();
        Self {
            max_packets,
            max_bytes,
            departures: VecDeque::new(),
            bytes: 0,
        }
    }

    /// When a packet that joins at `now` will have been sent; `None` where there is no room for it.
    #[inline]
    pub(crate) fn join(
        &mut self,
        now: u64,
        size: u32,
        pace: &mut Pace,
        counters: &mut LinkCounters,
    ) -> Option<u64> {
        if let Pace::Unlimited = pace {
            return Some(now);
        }
        self.forget_sent(now);
        let packets = self.departures.len() as u64 + 1;
        let bytes = self.bytes + u64::from(size);
        if packets > self.max_packets || bytes > self.max_bytes {
            return None;
        }
        let departure = pace.departure(now, size);
        self.departures.push_back((departure, size));
        self.bytes = bytes;
        counters.saw_queue(packets, bytes);
        Some(departure)
    }

    #[inline]
    fn forget_sent(&mut self, now: u64) {
        while let Some(&(departure, size)) = self.departures.front() {
            if departure > now {
                return;
            }
            self.departures.pop_front();
            self.bytes -= u64::from(size);
        }
    }
}
