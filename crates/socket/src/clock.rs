//! Wall-clock time for state machines.

use foundation::{Duration, Instant};

/// A monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// Returns a clock that shows zero now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }

    /// Returns the time since the clock started.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::ZERO + Duration::from(self.start.elapsed())
    }

    /// Returns a conversion from stamps of the system's wall clock to this clock, valid around now.
    #[must_use]
    pub fn stamps(&self) -> Stamps {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Stamps {
            now: self.now(),
            wall: Duration::from(wall),
        }
    }
}

/// One moment on two clocks: the monotonic clock, and the wall clock that the kernel stamps arrivals with.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    now: Instant,
    wall: Duration,
}

impl Stamps {
    /// A stamp older than this comes from before the wall clock was adjusted.
    const OLDEST: Duration = Duration::from_millis(250);

    /// Returns the moment itself.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Converts a stamp; returns this moment for a missing or implausible stamp.
    #[must_use]
    pub fn instant(&self, stamp: Option<std::time::Duration>) -> Instant {
        let Some(stamp) = stamp else { return self.now };
        let age = self.wall - Duration::from(stamp);
        if age > Self::OLDEST {
            return self.now;
        }
        self.now - age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_stamps_to_this_clock() {
        let clock = Clock::new();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let stamps = Stamps {
            now: clock.now(),
            wall: Duration::from_secs(1000),
        };
        let stamp = |nanos| Some(std::time::Duration::from_nanos(nanos));
        assert_eq!(stamps.instant(None), stamps.now);
        assert_eq!(
            stamps.instant(stamp(999_999_000_000)),
            stamps.now - Duration::from_millis(1)
        );
        // The wall clock was set back by an hour, and into the future.
        assert_eq!(stamps.instant(stamp(1)), stamps.now);
        assert_eq!(stamps.instant(stamp(2_000_000_000_000)), stamps.now);
    }
}
