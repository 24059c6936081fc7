//! The drop-tail queue: first in, first out; arrivals at a full queue are dropped.
//!
//! It stores no packets. The departure time of a packet follows from those before it, so the packet goes directly to the
//! wire with that time; the queue length is the number of departure times in the future. This saves an event and a move
//! per packet.

use foundation::Duration;

use crate::link::link_rate::LinkRate;
use crate::link::meter::{Meter, Occupancy};
use crate::link::{Count, LinkCounters};
use crate::queue::QueueLimit;
use crate::ring::Ring;

/// A drop-tail queue in front of a link.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    max_packets: u64,
    max_bytes: u64,
    /// Departure time and size of each packet that waits or is in transmission.
    departures: Ring<(u64, u32)>,
    bytes: u64,
    /// Departure time of the last packet that joined.
    last: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        let (max_packets, max_bytes) = limit.packets_and_bytes();
        Self {
            max_packets,
            max_bytes,
            departures: Ring::default(),
            bytes: 0,
            last: 0,
        }
    }

    /// Changes the limit for later arrivals; queued packets stay.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit) {
        (self.max_packets, self.max_bytes) = limit.packets_and_bytes();
    }

    /// Returns the departure time of the last packet that joined.
    pub(crate) const fn busy_until(&self) -> u64 {
        self.last
    }

    /// Returns the departure time of a packet that joins at `now`; `None` if the queue is full.
    #[inline(always)]
    pub(crate) fn join(
        &mut self,
        now: u64,
        size: u32,
        rate: &mut LinkRate,
        meter: &mut Meter,
        counters: &mut LinkCounters,
    ) -> Option<u64> {
        if let LinkRate::Unlimited = rate {
            meter.waited(0);
            return Some(now);
        }
        self.forget_sent(now);
        let packets = self.departures.len() as u64 + 1;
        let bytes = self.bytes + u64::from(size);
        if packets > self.max_packets || bytes > self.max_bytes {
            return None;
        }
        let departure = rate.departure(now, size);
        self.departures.push((departure, size));
        self.bytes = bytes;
        counters.record_queue(packets, bytes);
        meter.add_packet(now, self.last.max(now), departure);
        self.last = departure;
        Some(departure)
    }

    #[inline]
    fn forget_sent(&mut self, now: u64) {
        while let Some(&(departure, size)) = self.departures.front() {
            if departure > now {
                return;
            }
            self.departures.pop();
            self.bytes -= u64::from(size);
        }
    }

    /// Returns the departures after `now` and the sizes of those packets.
    fn waiting(&self, now: u64) -> impl Iterator<Item = (u64, u32)> {
        let sent = self
            .departures
            .partition_point(|&(departure, _)| departure <= now);
        self.departures.iter_from(sent)
    }

    /// Returns the queue length, the packet in transmission included.
    pub(crate) fn length(&self, now: u64) -> Count {
        self.waiting(now).fold(Count::default(), |mut count, (_, size)| {
            count.add(size);
            count
        })
    }

    /// Returns the integrals of the meter up to `now`.
    pub(crate) fn occupancy(&self, now: u64, meter: &Meter) -> Occupancy {
        let left = self
            .waiting(now)
            .map(|(departure, _)| u128::from(departure - now));
        meter.without(&Occupancy {
            packet_nanos: left.sum(),
            busy: Duration::from_nanos(self.last.saturating_sub(now)),
        })
    }
}
