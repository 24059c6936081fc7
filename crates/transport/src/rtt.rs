//! Round-trip time and the retransmission timeout (RFC 6298).

use foundation::{Duration, Instant};

/// Timeout before the first sample (RFC 6298, section 2.1).
pub const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum timeout (RFC 6298, section 2.5: at least 60 s).
pub const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// Clock granularity G (RFC 6298, section 2.3). On a busy machine, user-space processes wake up to a few milliseconds late,
/// so that finer timers expire spuriously.
pub const GRANULARITY: Duration = Duration::from_millis(4);

/// Calculation of the timeout from the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// RFC 6298: SRTT + max(G, 4 RTTVAR), and at least the floor.
    Rfc6298 {
        /// The clock granularity G.
        granularity: Duration,
    },
    /// Linux (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002, section 4.4): the floor applies to the
    /// variance term, which follows the largest deviation of a round trip and decays once per round trip; a sample below the
    /// mean raises it less.
    VarianceFloor,
}

/// Estimator of the round-trip time and the retransmission timeout.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Duration,
    variation: Duration,
    /// Four times the mean deviation, and its maximum in this round trip ([`Rule::VarianceFloor`] only).
    deviation: Duration,
    largest_deviation: Duration,
    minimum: Duration,
    latest: Duration,
    sampled_at: Option<Instant>,
    /// The timeout after the last sample.
    timeout: Duration,
    /// That of [`Rule::Rfc6298`]; [`Duration::MAX`] with [`Rule::VarianceFloor`].
    granularity: Duration,
    floor: Duration,
    initial: Duration,
    ceiling: Duration,
}

impl RttEstimator {
    /// Returns an estimator without samples whose timeout is at least `floor`.
    #[must_use]
    pub const fn new(floor: Duration) -> Self {
        let rule = Rule::Rfc6298 {
            granularity: GRANULARITY,
        };
        Self::with(rule, floor, INITIAL_TIMEOUT, MAX_TIMEOUT)
    }

    /// Returns an estimator without samples. Its timeout is `initial` before the first sample, and then follows `rule`
    /// between `floor` and `ceiling`.
    #[must_use]
    pub const fn with(rule: Rule, floor: Duration, initial: Duration, ceiling: Duration) -> Self {
        let granularity = match rule {
            Rule::Rfc6298 { granularity } => granularity,
            Rule::VarianceFloor => Duration::MAX,
        };
        Self {
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            deviation: Duration::ZERO,
            largest_deviation: Duration::ZERO,
            minimum: Duration::MAX,
            latest: Duration::ZERO,
            sampled_at: None,
            timeout: Duration::ZERO,
            granularity,
            floor,
            initial,
            ceiling,
        }
    }

    /// Adds an unambiguous sample.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.sample_in_round(now, rtt, false);
    }

    /// Adds an unambiguous sample (RFC 6298, sections 2.2 and 2.3; alpha 1/8, beta 1/4).
    /// `round_ended`: all data in flight at the end of the previous round trip is acknowledged.
    pub fn sample_in_round(&mut self, now: Instant, rtt: Duration, round_ended: bool) {
        self.latest = rtt;
        self.minimum = self.minimum.min(rtt);
        if self.has_variance_floor() {
            self.sample_deviation(rtt, round_ended);
        } else {
            self.sample_variation(rtt);
        }
        self.update_timeout();
        self.sampled_at = Some(now);
    }

    fn has_variance_floor(&self) -> bool {
        self.granularity == Duration::MAX
    }

    fn update_timeout(&mut self) {
        let timeout = if self.has_variance_floor() {
            self.smoothed + self.variation
        } else {
            let margin = (self.variation * 4).max(self.granularity);
            (self.smoothed + margin).max(self.floor)
        };
        self.timeout = timeout.min(self.ceiling);
    }

    fn sample_variation(&mut self, rtt: Duration) {
        if self.sampled_at.is_none() {
            self.smoothed = rtt;
            self.variation = rtt / 2;
            return;
        }
        let deviation = rtt.saturating_sub(self.smoothed) + self.smoothed.saturating_sub(rtt);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
    }

    fn sample_deviation(&mut self, rtt: Duration, round_ended: bool) {
        if self.sampled_at.is_none() {
            self.smoothed = rtt;
            self.deviation = rtt * 2;
            self.variation = self.deviation.max(self.floor);
            self.largest_deviation = self.variation;
            return;
        }
        let mean = self.deviation / 4;
        let error = rtt.saturating_sub(self.smoothed) + self.smoothed.saturating_sub(rtt);
        if error < mean {
            self.deviation -= mean - error;
        } else if rtt < self.smoothed {
            self.deviation += (error - mean) / 8;
        } else {
            self.deviation += error - mean;
        }
        self.largest_deviation = self.largest_deviation.max(self.deviation);
        self.variation = self.variation.max(self.largest_deviation);
        if round_ended {
            self.variation -= self.variation.saturating_sub(self.largest_deviation) / 4;
            self.largest_deviation = self.floor;
        }
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
    }

    /// Returns the mean deviation of the samples (RTTVAR of RFC 6298).
    #[must_use]
    pub fn variation(&self) -> Duration {
        if self.has_variance_floor() {
            self.deviation / 4
        } else {
            self.variation
        }
    }

    /// Returns the time of the last sample.
    #[inline]
    #[must_use]
    pub const fn sampled_at(&self) -> Option<Instant> {
        self.sampled_at
    }

    /// Returns the last sample; zero before the first.
    #[must_use]
    pub const fn latest(&self) -> Duration {
        self.latest
    }

    /// Returns the maximum timeout.
    #[must_use]
    pub const fn ceiling(&self) -> Duration {
        self.ceiling
    }

    /// Sets the minimum of the timeout ([`Rule::VarianceFloor`]: of its variance term), also for the samples so far.
    pub fn set_floor(&mut self, floor: Duration) {
        if floor == std::mem::replace(&mut self.floor, floor) {
            return;
        }
        if self.sampled_at.is_some() {
            self.largest_deviation = self.deviation.max(floor);
            if self.has_variance_floor() {
                self.variation = self.largest_deviation;
            }
            self.update_timeout();
        }
    }

    /// Sets the timeout before the first sample (RFC 6298, section 5.7).
    pub fn set_initial(&mut self, initial: Duration) {
        self.initial = initial;
    }

    /// Whether there is a sample.
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        self.sampled_at.is_some()
    }

    /// Returns the smoothed round-trip time; zero before the first sample.
    #[must_use]
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Returns the minimum round-trip time; `None` before the first sample.
    #[must_use]
    pub fn minimum(&self) -> Option<Duration> {
        self.sampled_at.map(|_| self.minimum)
    }

    /// Returns the retransmission timeout without back-off (RFC 6298, sections 2.1 to 2.5).
    #[must_use]
    #[inline]
    pub fn timeout(&self) -> Duration {
        if self.sampled_at.is_none() {
            return self.initial.max(self.floor);
        }
        self.timeout
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
    fn linux_rule_bounds_the_variance_and_follows_its_peaks() {
        let mut rtt = RttEstimator::with(Rule::VarianceFloor, MS(200), MS(1000), MS(120_000));
        assert_eq!(rtt.timeout(), MS(1000));
        rtt.sample(Instant::ZERO, MS(100));
        assert_eq!(rtt.timeout(), MS(300), "three times the first sample");
        for _ in 0..100 {
            rtt.sample_in_round(Instant::ZERO, MS(100), true);
        }
        assert_eq!(rtt.timeout(), MS(300), "200 ms above the mean on a steady path");
        // One sample of 500 ms: the mean deviation is 100 ms (a quarter of 400), and the margin four times that.
        rtt.sample_in_round(Instant::ZERO, MS(500), false);
        assert_eq!(rtt.timeout().as_micros(), 550_000, "150 + 400 ms");
        // A falling round trip raises it by only an eighth of the excess over the mean deviation.
        let before = rtt.variation();
        rtt.sample_in_round(Instant::ZERO, MS(30), false);
        let expected = before + (MS(120) - before) / 32;
        assert_eq!(rtt.variation().as_micros(), expected.as_micros());
    }

    /// `tcp_rtt_estimator` of Linux: the mean deviation falls by the whole difference, and the margin only at the end of a round trip.
    #[test]
    fn linux_rule_follows_small_deviations_at_once() {
        let mut rtt = RttEstimator::with(Rule::VarianceFloor, MS(20), MS(1000), MS(120_000));
        rtt.sample(Instant::ZERO, MS(100));
        assert_eq!(rtt.variation(), MS(50));
        // 10 ms from the mean of 100 ms: four times the deviation falls by 50 - 10 ms to 160 ms.
        rtt.sample(Instant::ZERO, MS(110));
        assert_eq!(rtt.variation(), MS(40));
        for _ in 0..100 {
            rtt.sample(Instant::ZERO, MS(110));
        }
        assert!(rtt.variation() < MS(1), "{}", rtt.variation());
        assert_eq!(rtt.timeout() - rtt.smoothed(), MS(200), "no round trip ended");
        rtt.sample_in_round(Instant::ZERO, MS(110), true);
        rtt.sample_in_round(Instant::ZERO, MS(110), true);
        assert_eq!(
            rtt.timeout() - rtt.smoothed(),
            MS(155),
            "a quarter of the difference from 20 ms"
        );
    }

    #[test]
    fn another_floor_applies_to_the_samples_so_far() {
        let rfc = RttEstimator::new(MS(200));
        let linux = RttEstimator::with(Rule::VarianceFloor, MS(200), MS(1000), MS(120_000));
        for mut rtt in [rfc, linux] {
            rtt.set_floor(MS(2000));
            assert_eq!(rtt.timeout(), MS(2000), "before the first sample");
            for _ in 0..200 {
                rtt.sample_in_round(Instant::ZERO, MS(50), true);
            }
            rtt.set_floor(MS(10));
            assert!(rtt.timeout() <= MS(60), "{:?}", rtt.timeout());
            rtt.set_floor(MS(500));
            assert!(rtt.timeout() >= MS(500), "{:?}", rtt.timeout());
            rtt.sample(Instant::ZERO, MS(50));
            assert!(rtt.timeout() >= MS(500), "{:?}", rtt.timeout());
        }
    }

    #[test]
    fn margin_is_at_least_the_granularity() {
        let mut rtt = RttEstimator::new(MS(1));
        for _ in 0..200 {
            rtt.sample(Instant::ZERO, MS(50));
        }
        assert_eq!(rtt.timeout(), MS(50) + GRANULARITY);
    }
}
