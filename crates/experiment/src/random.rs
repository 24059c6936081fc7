//! Random durations.

use foundation::{Duration, Generator};
use rand::RngExt;
use rand_distr::{Distribution, Exp};

/// Draws an exponentially distributed time.
///
/// # Panics
/// Never: the mean is above 0 where a distribution is made.
pub fn exponential(random: &mut Generator, mean: Duration) -> Duration {
    if mean.is_zero() {
        return Duration::ZERO;
    }
    let distribution = Exp::new(1.0 / mean.as_secs_f64()).expect("the mean is above 0");
    Duration::from_secs_f64(distribution.sample(random))
}

/// Draws a uniform time from 0 to `most`, exclusive.
pub fn uniform(random: &mut Generator, most: Duration) -> Duration {
    if most.is_zero() {
        return Duration::ZERO;
    }
    Duration::from_nanos(random.random_range(0..most.as_nanos()))
}
