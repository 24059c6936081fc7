//! Time in integer nanoseconds, so that the order of events never depends on floats.

use std::fmt;
use std::num::NonZero;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::quantity::{QuantityError, Unit, impl_text_quantity, parse_scaled, write_scaled};

/// A point in time, in nanoseconds since the start of the caller's clock.
///
/// State machines never read a clock; the caller passes the time. Simulations start at zero, wall clocks at the start of
/// the process. An optional instant takes no more memory than an instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(
    /// One more than the nanoseconds.
    NonZero<u64>,
);

/// A span of time in nanoseconds, never negative.
///
/// As text it carries a unit: `ns`, `us`, `ms`, `s` or `min` ("20ms").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(NonZero::<u64>::MIN);
    /// Later than every event: "never".
    pub const MAX: Self = Self(NonZero::<u64>::MAX);

    /// Returns the point `nanos` nanoseconds after the start of the clock.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZero::<u64>::MIN.saturating_add(nanos))
    }

    /// Returns the nanoseconds since the start of the clock.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the seconds since the start of the clock, for reports (not for ordering).
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Returns the span from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns a span of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// Returns a span of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Returns a span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Returns a span of `secs` seconds, rounded to the nanosecond; negative and NaN give zero.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// Returns the nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the seconds, for reports and ratios.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns whether the span is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns `self - other`; zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the span times `factor`, rounded to the nanosecond.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// Returns the span doubled `exponent` times, at most [`Duration::MAX`].
    #[must_use]
    pub const fn doubled(self, exponent: u32) -> Self {
        if exponent >= 64 || self.0 > (u64::MAX >> exponent) {
            return Self::MAX;
        }
        Self(self.0 << exponent)
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.as_nanos()).finish()
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(NonZero::new(self.0.get().saturating_sub(span.0)).unwrap_or(NonZero::<u64>::MIN))
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Returns the span between two points; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl From<std::time::Duration> for Duration {
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for std::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

pub(crate) const UNITS: &[Unit] = &[
    Unit::new("ns", 1.0),
    Unit::new("us", 1e3),
    Unit::new("ms", 1e6),
    Unit::new("s", 1e9),
    Unit::new("min", 60e9),
];
pub(crate) const ALIASES: &[Unit] = &[Unit::new("µs", 1e3), Unit::new("μs", 1e3)];

impl FromStr for Duration {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_scaled("a duration", text, UNITS, ALIASES).map(Self)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Minutes are accepted but never printed: "90s" reads better than "1.5min".
        write_scaled(f, self.0, &UNITS[..4])
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

impl_text_quantity!(
    Duration,
    "Duration",
    "a span of time with its unit: ns, us, ms, s or min",
    r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|μs|ms|s|min)$",
    ["20ms", "1.5s", "200us"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_instants_are_small() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
        assert!(None < Some(Instant::ZERO) && Instant::ZERO < Instant::MAX);
    }

    #[test]
    fn instants_saturate() {
        let (second, long) = (Duration::from_secs(1), Duration::MAX);
        assert_eq!(Instant::ZERO - second, Instant::ZERO);
        assert_eq!(Instant::from_nanos(7) - Duration::from_nanos(7), Instant::ZERO);
        assert_eq!(Instant::from_nanos(7).as_nanos(), 7);
        assert_eq!(Instant::from_nanos(u64::MAX), Instant::MAX);
        assert_eq!(Instant::ZERO + long, Instant::MAX);
        assert_eq!(format!("{:?}", Instant::from_nanos(7)), "Instant(7)");
    }

    #[test]
    fn text_and_value_agree() {
        assert_eq!("20ms".parse(), Ok(Duration::from_millis(20)));
        assert_eq!("1.5 s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("0s".parse(), Ok(Duration::ZERO));
        assert_eq!(Duration::from_micros(1500).to_string(), "1.5ms");
        assert_eq!(Duration::from_nanos(7).to_string(), "7ns");
        assert_eq!(Duration::from_secs(90).to_string(), "90s");
        assert_eq!(Duration::ZERO.to_string(), "0ns");
    }

    #[test]
    fn a_duration_without_unit_is_an_error() {
        let message = "20".parse::<Duration>().unwrap_err().to_string();
        assert!(message.contains("unit") && message.contains("ms"), "{message}");
        assert!("-1ms".parse::<Duration>().is_err());
        assert!("20Mbit/s".parse::<Duration>().is_err());
        assert!("99999999999999min".parse::<Duration>().is_err());
    }

    #[test]
    fn doubling_saturates() {
        assert_eq!(Duration::from_secs(1).doubled(3), Duration::from_secs(8));
        assert_eq!(Duration::from_secs(1).doubled(63), Duration::MAX);
    }
}
