//! Detection of a classic queue that marks (B. Briscoe and A. S. Ahmed, "TCP Prague fall-back on detection of a classic ECN
//! AQM", 2021; `prague_classic_ecn_detection` of L4STeam/linux): a queue of L4S keeps round-trip times nearly constant, a
//! classic one lets them vary and grow.

use foundation::Duration;

/// Deviation and depth that speak for neither kind of queue: 750 µs and 2 ms.
const REFERENCE_DEVIATION_NS: u64 = 750_000;
const REFERENCE_DEPTH_NS: u64 = 2_000_000;
/// Weight of a doubling of deviation or depth in the score.
const WEIGHT: f64 = 0.5;
/// Score from which on a queue counts as partly classic, as classic, and the highest one, which makes the verdict last.
const PARTLY: f64 = 8.0;
const CLASSIC: f64 = 9.0;
const MOST: f64 = 17.0;
/// Share of marks that a classic queue stands for: it reduces the window as CUBIC does, by about 0.3.
const CLASSIC_ALPHA: f64 = 0.625;
/// Fractional bits of the logarithm.
const LOG_BITS: u32 = 8;
/// Largest weight of old values, 2^18 ACKs.
const MOST_SHIFT: u32 = 18;

/// State of the detection.
#[derive(Clone, Debug)]
pub(super) struct ClassicQueue {
    /// Average and mean deviation of the round-trip time in ns, over many round trips.
    rtt: f64,
    deviation: f64,
    minimum: u64,
    /// The averages have a weight of 2^-shift.
    shift: u32,
    score: f64,
}

impl Default for ClassicQueue {
    fn default() -> Self {
        Self {
            rtt: 0.0,
            deviation: 0.0,
            minimum: u64::MAX,
            shift: MOST_SHIFT,
            score: 0.0,
        }
    }
}

impl ClassicQueue {
    /// Adds the round-trip time of an ACK.
    pub fn sample(&mut self, rtt: Duration) {
        let nanos = rtt.as_nanos();
        self.minimum = self.minimum.min(nanos);
        if self.rtt == 0.0 {
            self.rtt = nanos as f64;
            return;
        }
        let weight = 1.0 / f64::from(1_u32 << self.shift);
        let error = nanos as f64 - self.rtt;
        self.rtt += error * weight;
        self.deviation += (error.abs() - self.deviation) * weight / 2.0;
    }

    /// Updates the score, once per round of `window` packets.
    pub fn end_round(&mut self, window: u64) {
        let bits = window.max(1).ilog2();
        self.shift = (bits + bits / 2 + 1).min(MOST_SHIFT);
        if self.rtt == 0.0 {
            return;
        }
        let depth = (self.rtt as u64).saturating_sub(self.minimum);
        let deeper = log2(depth, REFERENCE_DEPTH_NS).max(0.0);
        self.score += WEIGHT * (log2(self.deviation as u64, REFERENCE_DEVIATION_NS) + deeper);
        self.score = self.score.clamp(0.0, MOST);
    }

    /// Returns the least share of marks to respond to.
    pub fn alpha(&self) -> f64 {
        (self.score.min(CLASSIC) - PARTLY).max(0.0) * CLASSIC_ALPHA
    }

    /// Returns the score: up to 8 for a queue of L4S, from 9 on for a classic one.
    pub const fn score(&self) -> f64 {
        self.score
    }
}

/// Returns the binary logarithm of a ratio, at least that of a 1 ns, by repeated squaring: the same bits on every machine.
fn log2(value: u64, reference: u64) -> f64 {
    let log = |value: u64| {
        let whole = value.max(1).ilog2();
        let mut mantissa = value.max(1) as f64 / (1_u64 << whole) as f64;
        let (mut log, mut part) = (f64::from(whole), 0.5);
        for _ in 0..LOG_BITS {
            mantissa *= mantissa;
            if mantissa >= 2.0 {
                mantissa /= 2.0;
                log += part;
            }
            part /= 2.0;
        }
        log
    };
    log(value) - log(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rounds: u64, rtt_us: impl Fn(u64) -> u64) -> ClassicQueue {
        let mut queue = ClassicQueue::default();
        for number in 0..rounds * 50 {
            queue.sample(Duration::from_micros(rtt_us(number)));
            if number % 50 == 49 {
                queue.end_round(50);
            }
        }
        queue
    }

    #[test]
    fn a_logarithm_is_that_of_the_ratio() {
        for (value, reference) in [(1_500_000, 750_000), (187_500, 750_000), (3, 1), (0, 1)] {
            let exact = (value.max(1) as f64 / reference as f64).log2();
            assert!(
                (log2(value, reference) - exact).abs() < 0.01,
                "{value} / {reference}"
            );
        }
    }

    #[test]
    fn a_short_queue_is_none_and_a_sawtooth_of_15_ms_is_classic() {
        let short = after(200, |number| 10_000 + number % 300);
        assert_eq!(short.alpha(), 0.0);
        assert_eq!(short.score(), 0.0);
        let classic = after(200, |number| 10_000 + number % 1500 * 10);
        assert_eq!(classic.alpha(), CLASSIC_ALPHA);
        assert_eq!(classic.score(), MOST);
    }
}
