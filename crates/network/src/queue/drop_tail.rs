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

/// A packet that waits or is in transmission.
#[derive(Clone, Copy, Debug, Default)]
struct Departure {
    at: u64,
    size: u32,
    /// Its number in flight.
    number: u32,
}

/// A drop-tail queue in front of a link.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    max_packets: u64,
    max_bytes: u64,
    departures: Ring<Departure>,
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

    /// Continues after another queue, which finishes sending a packet of `size` bytes at `free`.
    pub(crate) fn after(mut self, free: u64, size: u32) -> Self {
        self.last = free;
        self.bytes = u64::from(size);
        self.departures.push(Departure {
            at: free,
            size,
            number: 0,
        });
        self
    }

    /// Removes the packets at the end of the queue whose transmission has not started and whose numbers in flight are the
    /// last ones before `next`. Returns the number of the first, and the start and end of transmission of each.
    pub(crate) fn withdraw(&mut self, now: u64, next: u32) -> (u32, Vec<[u64; 2]>) {
        self.forget_sent(now);
        let mut first = next;
        let mut times = Vec::new();
        // The first packet is in transmission.
        while self.departures.len() > 1
            && let Some(&Departure { at, size, number }) = self.departures.back()
            && number == first.wrapping_sub(1)
        {
            self.departures.pop_back();
            self.bytes -= u64::from(size);
            self.last = self.departures.back().map_or(now, |before| before.at);
            first = number;
            times.push([self.last, at]);
        }
        times.reverse();
        (first, times)
    }

    /// Returns the bytes of the packet that is sent last.
    pub(crate) fn last_size(&self) -> u32 {
        self.departures.back().map_or(0, |last| last.size)
    }

    /// Returns the departure time of a packet that joins at `now`, with the next number in flight; `None` if the queue is full.
    /// Its queueing delay counts from `since` on.
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a link, which are borrowed separately"
    )]
    pub(crate) fn join(
        &mut self,
        now: u64,
        since: u64,
        number: u32,
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
        self.departures.push(Departure {
            at: departure,
            size,
            number,
        });
        self.bytes = bytes;
        counters.record_queue(packets, bytes);
        meter.add_packet(now, since, self.last.max(now), departure);
        self.last = departure;
        Some(departure)
    }

    #[inline]
    fn forget_sent(&mut self, now: u64) {
        while let Some(&Departure { at, size, .. }) = self.departures.front() {
            if at > now {
                return;
            }
            self.departures.pop();
            self.bytes -= u64::from(size);
        }
    }

    /// Returns the departures after `now` and the sizes of those packets.
    fn waiting(&self, now: u64) -> impl Iterator<Item = (u64, u32)> {
        let sent = self.departures.partition_point(|departure| departure.at <= now);
        let waiting = self.departures.iter_from(sent);
        waiting.map(|departure| (departure.at, departure.size))
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
