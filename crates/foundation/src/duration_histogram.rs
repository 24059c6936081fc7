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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
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
