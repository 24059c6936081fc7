//! Round-trip time and the retransmission timeout (RFC 6298).

use foundation::{Duration, Instant};

/// RFC 6298, section 2.1: the timeout before the first sample.
pub const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// RFC 6298, section 2.5: an upper bound, if any, is at least 60 s.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// The clock granularity G of RFC 6298, section 2.3. A user-space process on wall time is woken up to
/// a few milliseconds late on a busy machine; a timer that is finer than that fires in vain.
pub const GRANULARITY: Duration = Duration::from_millis(4);

/// Smoothed round-trip time, its variation, and the timeout that follows from them.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Duration,
    variation: Duration,
    minimum: Duration,
    latest: Duration,
    sampled_at: Option<Instant>,
    floor: Duration,
}

impl RttEstimator {
    /// An estimator without samples, whose timeout never falls below `floor`.
    #[must_use]
    pub const fn new(floor: Duration) -> Self {
        Self {
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            minimum: Duration::MAX,
            latest: Duration::ZERO,
            sampled_at: None,
            floor,
        }
    }

    /// Takes in one unambiguous sample (RFC 6298, sections 2.2 and 2.3; alpha 1/8, beta 1/4).
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.latest = rtt;
        self.minimum = self.minimum.min(rtt);
        if self.sampled_at.is_none() {
            self.smoothed = rtt;
            self.variation = rtt / 2;
        } else {
            let deviation = rtt.saturating_sub(self.smoothed) + self.smoothed.saturating_sub(rtt);
            self.variation = (self.variation * 3 + deviation) / 4;
            self.smoothed = (self.smoothed * 7 + rtt) / 8;
        }
        self.sampled_at = Some(now);
    }

    /// Whether any sample was taken.
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        self.sampled_at.is_some()
    }

    /// The smoothed round-trip time, zero before the first sample.
    #[must_use]
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The least round-trip time seen, `None` before the first sample.
    #[must_use]
    pub fn minimum(&self) -> Option<Duration> {
        self.sampled_at.map(|_| self.minimum)
    }

    /// The retransmission timeout without back-off (RFC 6298, sections 2.1 to 2.5).
    #[must_use]
    pub fn timeout(&self) -> Duration {
        if self.sampled_at.is_none() {
            return INITIAL_TIMEOUT.max(self.floor);
        }
        let margin = (self.variation * 4).max(GRANULARITY);
        (self.smoothed + margin).max(self.floor).min(MAX_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn worked_example() {
        let mut rtt = RttEstimator::new(Duration::ZERO);
        assert_eq!(rtt.timeout(), MS(1000));
        rtt.sample(Instant::ZERO, MS(100));
        // SRTT = 100, RTTVAR = 50, RTO = 100 + 4 * 50.
        assert_eq!(rtt.timeout(), MS(300));
        rtt.sample(Instant::ZERO, MS(180));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5, SRTT = 7/8 * 100 + 1/8 * 180 = 110.
        assert_eq!(rtt.smoothed(), MS(110));
        assert_eq!(rtt.timeout(), MS(110 + 230));
        assert_eq!(rtt.minimum(), Some(MS(100)));
    }

    #[test]
    fn a_steady_path_keeps_the_granularity_as_margin() {
        let mut rtt = RttEstimator::new(MS(1));
        for _ in 0..200 {
            rtt.sample(Instant::ZERO, MS(50));
        }
        assert_eq!(rtt.timeout(), MS(50) + GRANULARITY);
    }
}
