//! The drop-tail queue: first in, first out; arrivals at a full queue are dropped.
//!
//! It stores no packets. The departure time of a packet follows from those before it, so the packet goes directly to the
//! wire with that time; the queue length is the number of departure times in the future. This saves an event and a move
//! per packet.

use foundation::{Duration, Ring};

use crate::link::link_rate::LinkRate;
use crate::link::meter::{Meter, Occupancy};
use crate::link::{Count, LinkCounters};
use crate::queue::QueueLimit;

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
    /// Packets that depart until then cannot be withdrawn.
    fixed_until: u64,
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
            fixed_until: 0,
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

    /// Continues after another queue, which finishes sending a packet of `size` bytes at `free`.
    pub(crate) fn after(mut self, free: u64, size: u32) -> Self {
        self.last = free;
        self.bytes = u64::from(size);
        self.departures.push((free, size));
        self
    }

    /// Keeps the departures of all packets so far: later packets may pass an unlimited rate without joining.
    pub(crate) const fn fix(&mut self) {
        self.fixed_until = self.last;
    }

    /// Removes the packets whose transmission has not started and is not fixed. Returns the start and end of transmission of
    /// each.
    pub(crate) fn withdraw(&mut self, now: u64) -> Vec<[u64; 2]> {
        self.forget_sent(now);
        let mut times = Vec::new();
        // The first packet is in transmission.
        while self.departures.len() > 1
            && let Some(&(departure, size)) = self.departures.back()
            && departure > self.fixed_until
        {
            self.departures.pop_back();
            self.bytes -= u64::from(size);
            self.last = self.departures.back().map_or(now, |&(before, _)| before);
            times.push([self.last, departure]);
        }
        times.reverse();
        times
    }

    /// Returns the bytes of the packet that is sent last.
    pub(crate) fn last_size(&self) -> u32 {
        self.departures.back().map_or(0, |&(_, size)| size)
    }

    /// Returns the departure time of a packet that joins at `now`; `None` if the queue is full. Its queueing delay counts from
    /// `since` on.
    #[inline(always)]
    pub(crate) fn join(
        &mut self,
        now: u64,
        since: u64,
        size: u32,
        rate: &mut LinkRate,
        meter: &mut Meter,
        counters: &mut LinkCounters,
    ) -> Option<u64> {
        if let LinkRate::Unlimited = rate {
            meter.waited(now - since);
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
        meter.add_packet(now, since, self.last.max(now), departure);
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
