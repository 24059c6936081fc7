//! Packets that are counted as delivered while they are still on the link.

use foundation::Ring;

use super::Count;

/// Arrival times and sizes of such packets, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Crossing {
    arrivals: Ring<(u64, u32)>,
}

impl Crossing {
    /// Adds a packet at `now` and forgets those that have arrived.
    #[inline]
    pub(super) fn add(&mut self, now: u64, arrival: u64, size: u32) {
        while self.arrivals.front().is_some_and(|&(first, _)| first <= now) {
            self.arrivals.pop();
        }
        self.arrivals.push((arrival, size));
    }

    /// Returns the packets that arrive after `now`.
    pub(super) fn after(&self, now: u64) -> Count {
        let arrived = self.arrivals.partition_point(|&(arrival, _)| arrival <= now);
        self.arrivals
            .iter_from(arrived)
            .fold(Count::default(), |mut count, (_, size)| {
                count.add(size);
                count
            })
    }
}
