//! Statistics of times of which some are only known to exceed a bound: those of flows that did not complete, and of requests
//! without a response.
//!
//! The end of a trial cuts flows off at an age that does not depend on how long they would take. The product-limit estimator
//! (Kaplan and Meier 1958) then weights the measured times so that neither quantiles nor means favour short flows: the share of a
//! flow that is still open passes to the times above its age. What passes to none is beyond all of them, and a quantile
//! there or a mean is unknown.

/// A time in seconds, or what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// It was measured.
    Measured(f64),
    /// It exceeds this age, which the end of the trial set.
    Above(f64),
    /// It is longer than all others: a failure, or no response within the limit.
    Never,
}

/// A sample of times, measured or beyond.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Censored {
    sorted: Vec<f64>,
    weights: Vec<f64>,
    count: usize,
}

impl Censored {
    /// Returns a sample of measured times and `beyond` that exceed them.
    #[must_use]
    pub fn new(measured: Vec<f64>, beyond: u64) -> Self {
        let mut times: Vec<Time> = measured.into_iter().map(Time::Measured).collect();
        times.resize(times.len() + beyond as usize, Time::Never);
        Self::of(&times)
    }

    /// Returns a sample of times.
    #[must_use]
    pub fn of(times: &[Time]) -> Self {
        let weights = weights(times);
        let mut known: Vec<(f64, f64)> = times
            .iter()
            .zip(weights)
            .filter_map(|(time, weight)| match time {
                Time::Measured(seconds) => Some((*seconds, weight)),
                _ => None,
            })
            .collect();
        known.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (sorted, weights) = known.into_iter().unzip();
        Self {
            sorted,
            weights,
            count: times.len(),
        }
    }

    /// Returns the measured times in ascending order.
    #[must_use]
    pub fn measured(&self) -> &[f64] {
        &self.sorted
    }

    /// Returns the smallest time; `None` if none was measured.
    #[must_use]
    pub fn minimum(&self) -> Option<f64> {
        self.sorted.first().copied()
    }

    /// Returns the mean; `None` if nothing was measured or a part is beyond.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        mean(&self.sorted, &self.weights, self.count)
    }

    /// Returns quantile `q`: the smallest time with at least that share at or below it; `None` if it is beyond.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q - ROUNDING) * self.count as f64;
        let mut below = 0.0;
        let found = self.weights.iter().position(|weight| {
            below += weight;
            below >= rank
        })?;
        Some(self.sorted[found])
    }
}

/// Relative error of sums of weights.
const ROUNDING: f64 = 1e-9;

/// Returns the weight of each time in the product-limit estimator: 1 without open ones, and 0 if it was not measured.
///
/// The weights add up to less than the number of times if some share is beyond all measured ones.
#[must_use]
pub fn weights(times: &[Time]) -> Vec<f64> {
    // Of equal times, an open one is the longer.
    let key = |index: usize| match times[index] {
        Time::Measured(seconds) => (seconds, 0),
        Time::Above(seconds) => (seconds, 1),
        Time::Never => (f64::INFINITY, 2),
    };
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|&one, &other| {
        let ((one, kind), (other, other_kind)) = (key(one), key(other));
        one.total_cmp(&other).then(kind.cmp(&other_kind))
    });
    let mut weights = vec![0.0; times.len()];
    let mut weight = 1.0;
    for (position, index) in order.into_iter().enumerate() {
        let longer = times.len() - position - 1;
        match times[index] {
            Time::Measured(_) => weights[index] = weight,
            Time::Above(_) if longer > 0 => weight *= 1.0 + 1.0 / longer as f64,
            _ => {}
        }
    }
    weights
}

/// Returns the mean of a value that every measured time has, by the position of the time; `None` if one has none, nothing was
/// measured or a part of the times is beyond.
pub fn mean_of(times: &[Time], value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let measured = times
        .iter()
        .zip(weights(times))
        .enumerate()
        .filter(|(_, (time, _))| matches!(time, Time::Measured(_)));
    let known: Option<Vec<(f64, f64)>> = measured
        .map(|(position, (_, weight))| Some((value(position)?, weight)))
        .collect();
    let (values, weights): (Vec<f64>, Vec<f64>) = known?.into_iter().unzip();
    mean(&values, &weights, times.len())
}

fn mean(values: &[f64], weights: &[f64], count: usize) -> Option<f64> {
    let whole = count as f64;
    let beyond = whole - weights.iter().sum::<f64>();
    let known = !values.is_empty() && beyond <= ROUNDING * whole;
    known.then(|| {
        let weighted = values.iter().zip(weights).map(|(value, weight)| value * weight);
        weighted.sum::<f64>() / whole
    })
}

/// Returns the rank of quantile `q` among `count` values, from 1.
#[must_use]
pub fn rank(q: f64, count: u64) -> u64 {
    ((q * count as f64).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::Time::{Above, Measured, Never};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_among_times_beyond_are_unknown() {
        let half = Censored::new(vec![3.0, 1.0, 2.0], 3);
        assert_eq!(half.quantile(0.5), Some(3.0));
        assert_eq!(half.quantile(0.51), None);
        assert_eq!(half.minimum(), Some(1.0));
    }

    #[test]
    fn mean_needs_every_time() {
        assert_eq!(Censored::new(vec![1.0, 3.0], 0).mean(), Some(2.0));
        assert_eq!(Censored::new(vec![1.0, 3.0], 1).mean(), None);
        assert_eq!(Censored::new(Vec::new(), 0).mean(), None);
        assert_eq!(Censored::new(Vec::new(), 0).quantile(0.5), None);
    }

    /// The example of Kaplan and Meier (1958), whose survival falls to 0.875, 0.7, 0.525 and 0.2625.
    #[test]
    fn weights_are_those_of_the_product_limit() {
        let times = [
            Measured(9.2),
            Measured(0.8),
            Above(1.0),
            Above(2.7),
            Measured(3.1),
            Measured(5.4),
            Above(7.0),
            Above(12.1),
        ];
        let sample = Censored::of(&times);
        let mut survival = 1.0;
        let survivals: Vec<f64> = sample
            .weights
            .iter()
            .map(|weight| {
                survival -= weight / 8.0;
                (survival * 1e4_f64).round() / 1e4
            })
            .collect();
        assert_eq!(sample.sorted, [0.8, 3.1, 5.4, 9.2]);
        assert_eq!(survivals, [0.875, 0.7, 0.525, 0.2625]);
        assert_eq!(sample.mean(), None, "the longest is open");
        assert_eq!(sample.quantile(0.5), Some(9.2));
        assert_eq!(sample.quantile(0.75), None);
    }

    #[test]
    fn open_times_pass_their_share_to_longer_ones() {
        let sample = Censored::of(&[Measured(1.0), Above(2.0), Measured(3.0), Measured(4.0)]);
        assert_eq!(sample.mean(), Some((1.0 + 1.5 * 3.0 + 1.5 * 4.0) / 4.0));
        assert_eq!(sample.quantile(0.25), Some(1.0));
        assert_eq!(sample.quantile(1.0), Some(4.0));
        let tie = Censored::of(&[Measured(2.0), Above(2.0)]);
        assert_eq!(tie.mean(), None, "the open time is longer");
        let failed = Censored::of(&[Measured(1.0), Above(0.5), Never]);
        assert_eq!((failed.quantile(0.5), failed.quantile(0.51)), (Some(1.0), None));
    }

    /// Flows that arrive all the time and last 1 or 9 s: at the end of 20 s a mean of the completed ones is too low.
    #[test]
    fn means_do_not_favour_short_times() {
        let times: Vec<Time> = (0..20_000)
            .map(|number| {
                let age = 20.0 - f64::from(number) / 1e3;
                let lasts = if number % 2 == 0 { 1.0 } else { 9.0 };
                if lasts <= age { Measured(lasts) } else { Above(age) }
            })
            .collect();
        let sample = Censored::of(&times);
        let completed = sample.measured();
        let naive = completed.iter().sum::<f64>() / completed.len() as f64;
        assert!(naive < 4.0, "{naive}");
        let mean = sample.mean().unwrap();
        assert!((mean - 5.0).abs() < 0.05, "{mean}");
    }

    proptest! {
        #[test]
        fn weights_equal_the_product_of_survivals(
            times in prop::collection::vec((1_u32..30, 0_u32..4), 1..60),
        ) {
            let times: Vec<Time> = times
                .into_iter()
                .map(|(time, kind)| match kind {
                    0 => Above(time.into()),
                    _ => Measured(time.into()),
                })
                .collect();
            let sample = Censored::of(&times);
            let mut survival = 1.0;
            let mut sum = 0.0;
            for second in 1..30 {
                let at = f64::from(second);
                let at_risk = times.iter().filter(|time| matches!(time, Measured(t) | Above(t) if *t >= at)).count();
                let ended = times.iter().filter(|time| **time == Measured(at)).count();
                if ended > 0 {
                    survival *= 1.0 - ended as f64 / at_risk as f64;
                }
                sum += sample
                    .sorted
                    .iter()
                    .zip(&sample.weights)
                    .filter(|(time, _)| **time == at)
                    .map(|(_, weight)| weight)
                    .sum::<f64>();
                let expected = (1.0 - survival) * times.len() as f64;
                prop_assert!((sum - expected).abs() < 1e-6, "{} instead of {} at {}", sum, expected, second);
            }
            prop_assert_eq!(sample.mean().is_some(), survival < 1e-9);
        }
    }
}
