//! The library's instants. It only compares and subtracts them, so any base gives the same results.

use std::sync::LazyLock;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use foundation::Instant;

/// The library's instant at virtual time 0. Instants have no other constructor; the time of its creation has no effect.
static BASE: LazyLock<StdInstant> = LazyLock::new(StdInstant::now);

/// Converts a virtual time to the library's instant.
#[inline]
pub(super) fn to_library(at: Instant) -> StdInstant {
    *BASE + StdDuration::from_nanos(at.as_nanos())
}

/// Converts an instant of the library to virtual time.
#[inline]
pub(super) fn from_library(at: StdInstant) -> Instant {
    let since = at.saturating_duration_since(*BASE).as_nanos();
    Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
}
