//! Time integrals of a link's queue length and busy time, and queueing delays.

use foundation::Duration;
use foundation::duration_histogram::DurationCounts;
use hdrhistogram::Histogram;

/// Time integrals of a link's queue length and busy time. The difference of two yields the means between them.
///
/// The packet in transmission counts as queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets in the queue times nanoseconds.
    pub packet_nanos: u128,
    /// Time in transmission; with a recorded rate, also the time spent waiting for the next opportunity.
    pub busy: Duration,
}

impl Occupancy {
    /// Returns the increase since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            packet_nanos: self.packet_nanos.saturating_sub(earlier.packet_nanos),
            busy: self.busy.saturating_sub(earlier.busy),
        }
    }
}

/// Accumulates the integrals.
///
/// Once the departure time of a packet is known, its whole contribution is added at once; a reader subtracts the part
/// that lies in the future.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    packet_nanos: u128,
    busy: u64,
    /// Queueing delays in nanoseconds.
    waits: Option<Box<DurationCounts>>,
}

impl Meter {
    /// Starts recording a histogram of queueing delays.
    pub(crate) fn record_waits(&mut self) {
        self.waits = Some(Box::default());
    }

    pub(crate) fn waits(&self) -> Option<Histogram<u64>> {
        self.waits.as_ref().map(|waits| waits.histogram())
    }

    pub(crate) fn take_waits(&mut self) -> Option<Box<Histogram<u64>>> {
        self.waits.take().map(|waits| Box::new(waits.histogram()))
    }

    pub(crate) fn reset_waits(&mut self) {
        if let Some(waits) = &mut self.waits {
            waits.clear();
        }
    }

    /// Records the queueing delay of a packet, in nanoseconds.
    #[inline]
    pub(crate) fn waited(&mut self, wait: u64) {
        if let Some(waits) = &mut self.waits {
            waits.record(Duration::from_nanos(wait));
        }
    }

    /// Adds a packet that joined at `since` and is in transmission from `start` to `departure`. Its time in the queue counts
    /// from `now` on.
    #[inline]
    pub(crate) fn add_packet(&mut self, now: u64, since: u64, start: u64, departure: u64) {
        self.add_occupancy(1, departure - now);
        self.busy += departure - start;
        self.waited(start - since);
    }

    /// Removes what [`add_packet`](Self::add_packet) added for packets whose transmission has not started at `now`, except
    /// their time in the queue before. Each has joined and would have been in transmission from `start` to `departure`.
    pub(crate) fn withdraw_packets(&mut self, now: u64, packets: impl Iterator<Item = [u64; 3]>) {
        let mut waits = Vec::new();
        for [joined, start, departure] in packets {
            self.packet_nanos -= u128::from(departure - now);
            self.busy -= departure - start;
            waits.push(Duration::from_nanos(start - joined));
        }
        if let Some(all) = &mut self.waits {
            all.remove(&waits);
        }
    }

    /// Adds packets × nanoseconds to the occupancy integral.
    #[inline]
    pub(crate) fn add_occupancy(&mut self, packets: u64, nanos: u64) {
        self.packet_nanos += u128::from(packets) * u128::from(nanos);
    }

    /// Adds a transmission from `start` to `departure`.
    #[inline]
    pub(crate) fn add_transmission(&mut self, start: u64, departure: u64) {
        self.add_occupancy(1, departure - start);
        self.busy += departure - start;
    }

    /// Returns the integrals without the part that lies in the future.
    pub(crate) fn without(&self, future: &Occupancy) -> Occupancy {
        let all = Occupancy {
            packet_nanos: self.packet_nanos,
            busy: Duration::from_nanos(self.busy),
        };
        all.since(future)
    }
}
