//! The drop-tail queue: first in, first out, and what finds no room is dropped.
//!
//! No packet stands in it. When a packet joins, the time at which it will have been sent follows from
//! those before it, so it goes straight to the wire with that time; the queue's length is the number of
//! such times not yet past. This saves an event and a move a packet.

use std::collections::VecDeque;

use foundation::Duration;

use crate::link::meter::{Meter, Occupancy};
use crate::link::pace::Pace;
use crate::link::{Count, LinkCounters};
use crate::queue::QueueLimit;

/// A drop-tail queue in front of a link.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    max_packets: u64,
    max_bytes: u64,
    /// When each packet that is waiting or being sent will have been sent, and its size.
    departures: VecDeque<(u64, u32)>,
    bytes: u64,
    /// When the last packet that joined will have been sent.
    last: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        let (max_packets, max_bytes) = limit.packets_and_bytes();
        Self {
            max_packets,
            max_bytes,
            departures: VecDeque::new(),
            bytes: 0,
            last: 0,
        }
    }

    /// Holds no more than this from now on; what is there stays.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit) {
        (self.max_packets, self.max_bytes) = limit.packets_and_bytes();
    }

    /// When the last packet that joined will have been sent, or has been.
    pub(crate) const fn busy_until(&self) -> u64 {
        self.last
    }

    /// When a packet that joins at `now` will have been sent; `None` where there is no room for it.
    #[inline]
    pub(crate) fn join(
        &mut self,
        now: u64,
        size: u32,
        pace: &mut Pace,
        meter: &mut Meter,
        counters: &mut LinkCounters,
    ) -> Option<u64> {
        if let Pace::Unlimited = pace {
            meter.waited(0);
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
        meter.passes(now, self.last.max(now), departure, size);
        self.last = departure;
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

    /// The departures after `now`, and the sizes of those packets.
    fn waiting(&self, now: u64) -> impl Iterator<Item = (u64, u32)> {
        let sent = self
            .departures
            .partition_point(|&(departure, _)| departure <= now);
        self.departures.range(sent..).copied()
    }

    /// What waits or is being sent.
    pub(crate) fn length(&self, now: u64) -> Count {
        self.waiting(now).fold(Count::default(), |mut count, (_, size)| {
            count.add(size);
            count
        })
    }

    /// The sums of the meter up to `now`.
    pub(crate) fn occupancy(&self, now: u64, meter: &Meter) -> Occupancy {
        let mut yet_to_come = Occupancy {
            busy: Duration::from_nanos(self.last.saturating_sub(now)),
            ..Occupancy::default()
        };
        for (departure, size) in self.waiting(now) {
            yet_to_come.packet_nanos += u128::from(departure - now);
            yet_to_come.byte_nanos += u128::from(departure - now) * u128::from(size);
        }
        meter.without(&yet_to_come)
    }
}
