//! Histograms of durations. They cover 1 µs to 1000 s with three significant digits and grow with their largest value, so
//! that an empty histogram has 16 kB, and one of delays up to 67 ms 66 kB, instead of 180 kB for the whole range.

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

/// Buckets of equal width per doubling, and the bits below their resolution: the layout of [`new`].
const HALF_BITS: u32 = 10;
const UNIT_BITS: u32 = 9;
/// Returns the bucket of a value.
#[inline]
const fn bucket_of(nanos: u64) -> u16 {
    let doublings = (nanos | ((2 << (HALF_BITS + UNIT_BITS)) - 1)).ilog2() - HALF_BITS - UNIT_BITS;
    let within = (nanos >> (UNIT_BITS + doublings)) as u16;
    ((doublings as u16) << HALF_BITS) + within
}

/// Returns the smallest value of a bucket.
const fn least_of(bucket: u16) -> u64 {
    let doublings = (bucket >> HALF_BITS).saturating_sub(1);
    ((bucket - (doublings << HALF_BITS)) as u64) << (UNIT_BITS as u16 + doublings)
}

/// Returns the histogram of counts by bucket. `least` and `most` are the smallest and the largest value.
fn of_buckets(least: u64, most: u64, counts: impl Iterator<Item = (u16, u64)>) -> Histogram<u64> {
    let mut histogram = new();
    // Never an error, as in `record`.
    let mut add = |value, count| {
        let _ = histogram.record_n(value, count);
    };
    // The extremes keep their values; the largest one comes first, so that the histogram grows once.
    add(most, 1);
    let last = bucket_of(most);
    for (bucket, count) in counts {
        let count = count - u64::from(bucket == last);
        if count > 0 {
            add(least_of(bucket).max(least), count);
        }
    }
    histogram
}

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
        self.pending.push(bucket_of(nanos));
        if self.pending.len() == MOST_PENDING {
            self.count_pending();
        }
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
        let Some(least) = self.least else {
            return new();
        };
        let mut tally = self.clone();
        tally.count_pending();
        let counts = tally.counts.into_iter();
        of_buckets(
            least,
            self.most,
            counts.map(|(bucket, count)| (bucket, u64::from(count))),
        )
    }
}

/// Counts of durations in all buckets up to the largest one: faster than a [tally](DurationTally), for a link that records
/// one duration per packet.
#[derive(Clone, Debug, Default)]
pub struct DurationCounts {
    counts: Vec<u64>,
    /// Nanoseconds of the smallest and the largest value.
    extremes: Option<[u64; 2]>,
}

impl DurationCounts {
    /// Adds a duration; more than 1000 s count as 1000 s.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        let nanos = duration.as_nanos().min(MOST_NANOS);
        let [least, most] = self.extremes.unwrap_or([nanos; 2]);
        self.extremes = Some([least.min(nanos), most.max(nanos)]);
        let place = usize::from(bucket_of(nanos));
        if place >= self.counts.len() {
            self.grow(place);
        }
        self.counts[place] += 1;
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        // By a doubling of the values.
        self.counts
            .resize((place + 1).next_multiple_of(1 << HALF_BITS), 0);
    }

    /// Removes durations that were recorded. Those that are not counted have no effect.
    pub fn remove(&mut self, durations: &[Duration]) {
        for duration in durations {
            let bucket = bucket_of(duration.as_nanos().min(MOST_NANOS));
            if let Some(count) = self.counts.get_mut(usize::from(bucket)) {
                *count = count.saturating_sub(1);
            }
        }
        let ends = self.buckets().next().zip(self.buckets().next_back());
        self.extremes = ends.map(|((first, _), (last, _))| [least_of(first), least_of(last)]);
    }

    /// Removes all durations.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.extremes = None;
    }

    /// Returns the buckets with durations and their counts.
    fn buckets(&self) -> impl DoubleEndedIterator<Item = (u16, u64)> {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, count)| **count > 0)
            .map(|(place, &count)| (place as u16, count))
    }

    /// Returns the histogram of the durations.
    #[must_use]
    pub fn histogram(&self) -> Histogram<u64> {
        self.extremes
            .map_or_else(new, |[least, most]| of_buckets(least, most, self.buckets()))
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
                let mut counts = DurationCounts::default();
                all.iter().for_each(|&nanos| counts.record(Duration::from_nanos(nanos)));
                counts
            };
            let mut found = of(&[kept.as_slice(), &removed].concat());
            let removed: Vec<Duration> = removed.into_iter().map(Duration::from_nanos).collect();
            found.remove(&removed);
            let (found, expected) = (found.histogram(), of(&kept).histogram());
            let buckets = |histogram: &Histogram<u64>| {
                let recorded = histogram.iter_recorded();
                recorded.map(|one| (one.value_iterated_to(), one.count_at_value())).collect::<Vec<_>>()
            };
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
        fn tallies_and_counts_are_the_same_histogram(nanos in prop::collection::vec((0_u64..1 << 20, 0_u32..24), 0..1000)) {
            let mut histogram = new();
            let (mut tally, mut counts) = (DurationTally::default(), DurationCounts::default());
            for (nanos, shift) in nanos {
                let duration = Duration::from_nanos(nanos << shift);
                record(&mut histogram, duration);
                tally.record(duration);
                counts.record(duration);
            }
            for converted in [tally.histogram(), counts.histogram()] {
                prop_assert_eq!(&converted, &histogram);
                prop_assert_eq!((converted.min(), converted.max()), (histogram.min(), histogram.max()));
                prop_assert_eq!(converted.min_nz(), histogram.min_nz());
            }
            counts.clear();
            prop_assert!(counts.histogram().is_empty());
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
