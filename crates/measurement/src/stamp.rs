//! Kernel time stamps of packets.

use foundation::Duration;
use serde::Serialize;

/// A point in time on the system's wall clock (`CLOCK_REALTIME`), in nanoseconds since 1970, as in kernel time stamps.
///
/// Differences of two stamps are correct unless the clock was set between them; they are never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Stamp(u64);

impl Stamp {
    /// Returns the stamp of this many nanoseconds since 1970.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Converts seconds and nanoseconds as written by the kernel; `None` for zero, the kernel's "no stamp".
    #[must_use]
    pub fn from_parts(seconds: i64, nanos: i64) -> Option<Self> {
        let (seconds, nanos) = (u64::try_from(seconds).ok()?, u64::try_from(nanos).ok()?);
        let all = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
        (all > 0).then_some(Self(all))
    }

    /// Returns nanoseconds since 1970.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since an earlier stamp; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the current time of the stamping clock.
    #[must_use]
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self::from_parts(time.tv_sec, time.tv_nsec).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_invalid_values_are_no_timestamps() {
        assert_eq!(Stamp::from_parts(0, 0), None);
        assert_eq!(Stamp::from_parts(-1, 5), None);
        assert_eq!(Stamp::from_parts(i64::MAX, 0), None);
        assert_eq!(Stamp::from_parts(2, 5), Some(Stamp::from_nanos(2_000_000_005)));
    }

    #[test]
    fn no_span_is_negative() {
        let (early, late) = (Stamp::from_nanos(5), Stamp::from_nanos(12));
        assert_eq!(late.since(early), Duration::from_nanos(7));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
