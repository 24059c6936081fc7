//! Histograms of durations. They cover 1 µs to 1000 s with three significant digits and grow with their largest value, so
//! that an empty histogram has 16 kB, and one of delays up to 67 ms 66 kB, instead of 180 kB for the whole range.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::Duration;

const LEAST_NANOS: u64 = 1_000;
const MOST_NANOS: u64 = 1_000_000_000_000;
const DIGITS: u8 = 3;

/// Returns an empty histogram of durations in nanoseconds, for [`record`].
///
/// # Panics
/// Never: the bounds are constants that the histogram accepts.
#[must_use]
pub fn new() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(LEAST_NANOS, 2 * LEAST_NANOS, DIGITS).expect("constant bounds");
    histogram.auto(true);
    histogram
}

/// Adds a duration; more than 1000 s count as 1000 s.
#[inline]
pub fn record(histogram: &mut Histogram<u64>, duration: Duration) {
    // Never an error: the histogram grows up to this value.
    let _ = histogram.record(duration.as_nanos().min(MOST_NANOS));
}

/// Removes durations that were recorded. Those that are not counted have no effect.
pub fn remove(histogram: &mut Histogram<u64>, durations: &[Duration]) {
    let mut removed: BTreeMap<u64, u64> = BTreeMap::new();
    for duration in durations {
        let nanos = duration.as_nanos().min(MOST_NANOS);
        *removed.entry(histogram.highest_equivalent(nanos)).or_default() += 1;
    }
    let mut rest = new();
    for bucket in histogram.iter_recorded() {
        let value = bucket.value_iterated_to();
        let count = removed.get(&value).copied().unwrap_or(0);
        let left = bucket.count_at_value().saturating_sub(count);
        if left > 0 {
            // Never an error: the histogram grows up to this value.
            let _ = rest.record_n(value, left);
        }
    }
    *histogram = rest;
}

/// Buckets of equal width per doubling, and the bits below their resolution: the layout of [`new`].
const HALF_BITS: u32 = 10;
const UNIT_BITS: u32 = 9;
/// Durations that are counted together.
const MOST_PENDING: usize = 256;

/// Counts of durations in the buckets of a [histogram](Self::histogram). Only buckets with durations use memory, so a network
/// can have a tally per flow.
#[derive(Clone, Debug, Default)]
pub struct DurationTally {
    /// Buckets of durations that are not counted yet.
    pending: Vec<u16>,
    /// Buckets with durations, in order, and their counts.
    counts: Vec<(u16, u32)>,
    /// Nanoseconds of the smallest and the largest value.
    least: Option<u64>,
    most: u64,
}

impl DurationTally {
    /// Adds a duration; more than 1000 s count as 1000 s.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        let nanos = duration.as_nanos().min(MOST_NANOS);
        self.least = Some(self.least.map_or(nanos, |least| least.min(nanos)));
        self.most = self.most.max(nanos);
        self.pending.push(Self::bucket(nanos));
        if self.pending.len() == MOST_PENDING {
            self.count_pending();
        }
    }

    /// Returns the bucket of a value.
    #[inline]
    const fn bucket(nanos: u64) -> u16 {
        let doublings = (nanos | ((2 << (HALF_BITS + UNIT_BITS)) - 1)).ilog2() - HALF_BITS - UNIT_BITS;
        let within = (nanos >> (UNIT_BITS + doublings)) as u16;
        ((doublings as u16) << HALF_BITS) + within
    }

    /// Returns the smallest value of a bucket.
    const fn value(bucket: u16) -> u64 {
        let doublings = (bucket >> HALF_BITS).saturating_sub(1);
        ((bucket - (doublings << HALF_BITS)) as u64) << (UNIT_BITS as u16 + doublings)
    }

    /// Counts the pending durations.
    #[cold]
    fn count_pending(&mut self) {
        self.pending.sort_unstable();
        // Later buckets have later places.
        let mut place = 0;
        for run in self.pending.chunk_by(|a, b| a == b) {
            let (bucket, count) = (run[0], run.len() as u32);
            place += self.counts[place..].partition_point(|&(known, _)| known < bucket);
            match self.counts.get_mut(place) {
                Some((known, total)) if *known == bucket => *total = total.saturating_add(count),
                _ => self.counts.insert(place, (bucket, count)),
            }
        }
        self.pending.clear();
    }

    /// Returns the histogram of the durations.
    #[must_use]
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = new();
        let Some(least) = self.least else {
            return histogram;
        };
        let mut tally = self.clone();
        tally.count_pending();
        // Never an error, as in `record`.
        let mut add = |value, count| {
            let _ = histogram.record_n(value, count);
        };
        // The extremes keep their values; the largest one comes first, so that the histogram grows once.
        add(self.most, 1);
        let last = Self::bucket(self.most);
        for (bucket, count) in tally.counts {
            let count = u64::from(count) - u64::from(bucket == last);
            if count > 0 {
                add(Self::value(bucket).max(least), count);
            }
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn removed_durations_leave_no_trace(
            kept in prop::collection::vec(0_u64..1 << 34, 0..30), removed in prop::collection::vec(0_u64..1 << 34, 0..30),
        ) {
            let of = |all: &[u64]| {
                let mut histogram = new();
                all.iter().for_each(|&nanos| record(&mut histogram, Duration::from_nanos(nanos)));
                histogram
            };
            let mut found = of(&[kept.as_slice(), &removed].concat());
            let removed: Vec<Duration> = removed.into_iter().map(Duration::from_nanos).collect();
            remove(&mut found, &removed);
            let buckets = |histogram: &Histogram<u64>| {
                let recorded = histogram.iter_recorded();
                recorded.map(|one| (one.value_iterated_to(), one.count_at_value())).collect::<Vec<_>>()
            };
            let expected = of(&kept);
            prop_assert_eq!(buckets(&found), buckets(&expected));
            prop_assert_eq!((found.min(), found.max(), found.len()), (expected.min(), expected.max(), expected.len()));
        }

        /// Up to 1000 s, the values are those of a histogram that covers the whole range from the start.
        #[test]
        fn growth_does_not_change_values(nanos in prop::collection::vec(0_u64..40, 1..50), shift in 0_u32..30) {
            let mut grown = new();
            let mut whole = Histogram::<u64>::new_with_bounds(LEAST_NANOS, MOST_NANOS, DIGITS).unwrap();
            for (place, nanos) in nanos.iter().enumerate() {
                let nanos = (nanos * 7 + 1) << (shift + place as u32 % 3);
                record(&mut grown, Duration::from_nanos(nanos));
                whole.saturating_record(nanos);
            }
            prop_assert_eq!(grown.len(), nanos.len() as u64);
            prop_assert_eq!(grown.mean(), whole.mean());
            for q in [0.0, 0.25, 0.5, 0.99, 1.0] {
                prop_assert_eq!(grown.value_at_quantile(q), whole.value_at_quantile(q));
            }
            let mut sum = new();
            sum.add(&grown).unwrap();
            sum.add(&grown).unwrap();
            sum.subtract(&grown).unwrap();
            prop_assert_eq!(sum.value_at_quantile(0.5), whole.value_at_quantile(0.5));
        }
    }

    proptest! {
        #[test]
        fn a_tally_is_the_same_histogram(nanos in prop::collection::vec((0_u64..1 << 20, 0_u32..24), 0..1000)) {
            let mut histogram = new();
            let mut tally = DurationTally::default();
            for (nanos, shift) in nanos {
                let duration = Duration::from_nanos(nanos << shift);
                record(&mut histogram, duration);
                tally.record(duration);
            }
            let converted = tally.histogram();
            prop_assert_eq!(&converted, &histogram);
            prop_assert_eq!((converted.min(), converted.max()), (histogram.min(), histogram.max()));
            prop_assert_eq!(converted.min_nz(), histogram.min_nz());
        }
    }

    #[test]
    fn extremes_count_as_the_limits() {
        let mut histogram = new();
        record(&mut histogram, Duration::MAX);
        record(&mut histogram, Duration::ZERO);
        let mut whole = Histogram::<u64>::new_with_bounds(LEAST_NANOS, MOST_NANOS, DIGITS).unwrap();
        whole.saturating_record(MOST_NANOS);
        assert_eq!(histogram.max(), whole.max());
        assert_eq!(histogram.min(), 0);
        assert!(new().is_empty());
    }
}
