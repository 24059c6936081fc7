//! What stood in front of a link, summed over time, and how long packets waited.

use foundation::Duration;
use hdrhistogram::Histogram;

use crate::link::Count;

/// The queue of a link and its use, summed over time. The difference of two gives the means between them.
///
/// The packet that is being sent counts as standing in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets in the queue times nanoseconds.
    pub packet_nanos: u128,
    /// Bytes in the queue times nanoseconds.
    pub byte_nanos: u128,
    /// How long the link was sending; with a recorded rate, or waiting for its next chance to.
    pub busy: Duration,
}

impl Occupancy {
    /// What has come since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            packet_nanos: self.packet_nanos.saturating_sub(earlier.packet_nanos),
            byte_nanos: self.byte_nanos.saturating_sub(earlier.byte_nanos),
            busy: self.busy.saturating_sub(earlier.busy),
        }
    }

    /// Packets in the queue on average over `span`, which is this sum's; 0 for an empty one.
    #[must_use]
    pub fn mean_packets(&self, span: Duration) -> f64 {
        mean(self.packet_nanos as f64, span)
    }

    /// Bytes in the queue on average over `span`, which is this sum's; 0 for an empty one.
    #[must_use]
    pub fn mean_bytes(&self, span: Duration) -> f64 {
        mean(self.byte_nanos as f64, span)
    }

    /// The share of `span`, which is this sum's, in which the link was busy: 0 to 1.
    #[must_use]
    pub fn utilisation(&self, span: Duration) -> f64 {
        mean(self.busy.as_nanos() as f64, span)
    }
}

fn mean(sum: f64, span: Duration) -> f64 {
    if span.is_zero() {
        return 0.0;
    }
    sum / span.as_nanos() as f64
}

/// Sums up as packets come and go.
///
/// What a packet that is being sent, or whose departure is known, will add until it has left is added at once: who
/// asks in between takes it off again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    packet_nanos: u128,
    byte_nanos: u128,
    busy: u64,
    /// How long packets waited before they were sent, in nanoseconds.
    waits: Option<Box<Histogram<u64>>>,
}

impl Meter {
    /// Keeps a histogram of waits from now on: 1 µs to 1000 s, to three digits.
    pub(crate) fn record_waits(&mut self) {
        self.waits = Histogram::new_with_bounds(1_000, 1_000_000_000_000, 3)
            .ok()
            .map(Box::new);
    }

    pub(crate) fn waits(&self) -> Option<&Histogram<u64>> {
        self.waits.as_deref()
    }

    pub(crate) const fn take_waits(&mut self) -> Option<Box<Histogram<u64>>> {
        self.waits.take()
    }

    pub(crate) fn forget_waits(&mut self) {
        if let Some(waits) = &mut self.waits {
            waits.reset();
        }
    }

    /// A packet that waited `wait` nanoseconds is sent.
    #[inline]
    pub(crate) fn waited(&mut self, wait: u64) {
        if let Some(waits) = &mut self.waits {
            waits.saturating_record(wait);
        }
    }

    /// A packet of `size` bytes stands in the queue from `joined` to `departure`, and is being sent from `begin` on.
    #[inline]
    pub(crate) fn passes(&mut self, joined: u64, begin: u64, departure: u64, size: u32) {
        self.stand(
            Count {
                packets: 1,
                bytes: u64::from(size),
            },
            departure - joined,
        );
        self.busy += departure - begin;
        self.waited(begin - joined);
    }

    /// So much stands in the queue for so many nanoseconds.
    #[inline]
    pub(crate) fn stand(&mut self, count: Count, nanos: u64) {
        self.packet_nanos += u128::from(count.packets) * u128::from(nanos);
        self.byte_nanos += u128::from(count.bytes) * u128::from(nanos);
    }

    /// A packet is being sent from `begin` to `departure`.
    pub(crate) fn sends(&mut self, begin: u64, departure: u64, size: u32) {
        self.stand(
            Count {
                packets: 1,
                bytes: u64::from(size),
            },
            departure - begin,
        );
        self.busy += departure - begin;
    }

    /// The sums, of which what is yet to come is taken off.
    pub(crate) fn without(&self, yet_to_come: &Occupancy) -> Occupancy {
        let sums = Occupancy {
            packet_nanos: self.packet_nanos,
            byte_nanos: self.byte_nanos,
            busy: Duration::from_nanos(self.busy),
        };
        sums.since(yet_to_come)
    }
}
