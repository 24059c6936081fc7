//! From queue lengths to drops: the average, the drop probability, the spacing of drops, and the adaptation of the
//! probability. Sources as in the parent module.

use foundation::{Generator, Probability};

use crate::impairment::Chance;

/// The queue's length, smoothed over packets (Floyd and Jacobson, sections 4 and 11).
#[derive(Debug)]
pub(super) struct Average {
    pub(super) value: f64,
    pub(super) weight: f64,
    /// Transmission time of a packet of mean size.
    pub(super) packet_nanos: u64,
}

impl Average {
    /// Adds the queue length at an arrival.
    pub(super) fn update(&mut self, queue: f64) {
        self.value += self.weight * (queue - self.value);
    }

    /// Lowers the average after an idle time, as if packets had arrived at an empty queue.
    pub(super) fn decay(&mut self, nanos: u64) {
        let packets = nanos.checked_div(self.packet_nanos).unwrap_or(u64::MAX);
        self.value *= power(1.0 - self.weight, packets);
    }
}

/// Power by squaring, with identical results on every machine, unlike `powi`.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 && product > 0.0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// Drop probability as a function of the average queue length.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) max_probability: f64,
    pub(super) gentle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Zone {
    /// Below the lower threshold.
    Below,
    /// Between the thresholds: drop or mark with this probability.
    Early(f64),
    /// Above the upper threshold: drop with this probability, without marks, which had no effect.
    Heavy(f64),
}

impl Curve {
    pub(super) fn zone(&self, average: f64) -> Zone {
        let reach = |from: f64, to: f64| (average - from) / (to - from);
        if average < self.min {
            Zone::Below
        } else if average < self.max {
            Zone::Early(self.max_probability * reach(self.min, self.max))
        } else if self.gentle && average < 2.0 * self.max {
            let rest = 1.0 - self.max_probability;
            Zone::Heavy(self.max_probability + rest * reach(self.max, 2.0 * self.max))
        } else {
            Zone::Heavy(1.0)
        }
    }
}

/// Even spacing of drops: at a constant probability p the gap between drops is uniform on 1..1/p packets; independent
/// draws would cluster (Floyd and Jacobson, section 7, method 2).
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// Packets since the last drop.
    pub(super) count: u64,
}

impl Spread {
    /// Returns whether to drop a packet with this probability.
    pub(super) fn hits(&mut self, probability: f64, stream: &mut Generator) -> bool {
        let left = 1.0 - self.count as f64 * probability;
        let sharpened = if left > probability {
            probability / left
        } else {
            1.0
        };
        let hit = Chance::new(Probability::new(sharpened).unwrap_or_default()).draw(stream);
        self.count = if hit { 0 } else { self.count + 1 };
        hit
    }
}

/// Slow control of the probability by the average (Floyd, Gummadi and Shenker, figure 1).
#[derive(Debug)]
pub(super) struct Adaption {
    /// Time of the next step in nanoseconds. The average is constant between arrivals, so a late step is equivalent.
    pub(super) next: u64,
}

/// Half a second.
pub(super) const INTERVAL: u64 = 500_000_000;

impl Adaption {
    pub(super) fn catch_up(&mut self, now: u64, average: f64, curve: &mut Curve) {
        if now < self.next {
            return;
        }
        let missed = (now - self.next) / INTERVAL + 1;
        self.next += missed * INTERVAL;
        // 38 steps cross the whole range.
        for _ in 0..missed.min(100) {
            adapt(average, curve);
        }
    }
}

fn adapt(average: f64, curve: &mut Curve) {
    let span = curve.max - curve.min;
    if average > curve.min + 0.6 * span && curve.max_probability <= 0.5 {
        curve.max_probability += (curve.max_probability / 4.0).min(0.01);
    } else if average < curve.min + 0.4 * span && curve.max_probability >= 0.01 {
        curve.max_probability *= 0.9;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::Streams;

    fn curve(gentle: bool) -> Curve {
        Curve {
            min: 5.0,
            max: 15.0,
            max_probability: 0.1,
            gentle,
        }
    }

    /// Floyd and Jacobson, section 5: a burst of 50 packets stays below a threshold of 5 with a weight of at most 0.0042.
    #[test]
    fn the_weight_bounds_the_size_of_accepted_bursts() {
        let after_burst = |weight| {
            let mut average = Average {
                value: 0.0,
                weight,
                packet_nanos: 1,
            };
            (1..=50).for_each(|queue| average.update(f64::from(queue)));
            average.value
        };
        // The paper gives two digits.
        assert!(after_burst(0.0041) < 5.0, "{}", after_burst(0.0041));
        assert!(after_burst(0.0043) > 5.0, "{}", after_burst(0.0043));
    }

    /// Floyd and Jacobson, section 4: an idle time counts as the packets that fit into it.
    #[test]
    fn the_average_falls_while_the_link_is_idle() {
        let mut average = Average {
            value: 10.0,
            weight: 0.25,
            packet_nanos: 1000,
        };
        average.decay(2999);
        assert_eq!(average.value, 10.0 * 0.75 * 0.75);
        average.decay(u64::MAX);
        assert!(average.value < 1e-6);
    }

    /// RFC 2309, section 4 and the note on the gentle variant: linear up to the upper threshold, then linear and steeper.
    #[test]
    fn the_probability_rises_between_the_thresholds() {
        assert_eq!(curve(true).zone(4.9), Zone::Below);
        assert_eq!(curve(true).zone(5.0), Zone::Early(0.0));
        assert_eq!(curve(true).zone(10.0), Zone::Early(0.05));
        assert_eq!(curve(true).zone(15.0), Zone::Heavy(0.1));
        assert_eq!(curve(true).zone(22.5), Zone::Heavy(0.55));
        assert_eq!(curve(true).zone(30.0), Zone::Heavy(1.0));
        assert_eq!(curve(false).zone(15.0), Zone::Heavy(1.0));
    }

    /// Floyd and Jacobson, section 7: gaps between drops are uniform on 1..1/p, so their mean is 1/(2p) + 1/2
    /// (25.5 for p = 0.02); independent draws would give a mean of 50 and occasional gaps of hundreds.
    #[test]
    fn drops_are_spread_evenly() {
        let mut stream = Streams::new(1, 0).stream("red");
        let mut spread = Spread::default();
        let mut seen = [0_u32; 51];
        let drops = 50_000;
        for _ in 0..drops {
            let gap = (1..).find(|_| spread.hits(0.02, &mut stream)).unwrap();
            seen[gap] += 1;
        }
        let total: u32 = seen.iter().zip(0..).map(|(&times, gap)| times * gap).sum();
        let mean = f64::from(total) / f64::from(drops);
        assert!((mean - 25.5).abs() < 0.3, "{mean}");
        // 1000 of each, with a standard deviation of 31.
        assert!(
            seen[1..].iter().all(|&times| (850..1150).contains(&times)),
            "{seen:?}"
        );
    }

    /// Floyd, Gummadi and Shenker, figure 1: plus at most 0.01 above the target range, minus a tenth below it, between 1 %
    /// and 50 %.
    #[test]
    fn the_probability_adapts_to_the_average() {
        let mut curve = curve(true);
        adapt(12.0, &mut curve);
        assert_eq!(curve.max_probability, 0.11);
        adapt(10.0, &mut curve);
        assert_eq!(curve.max_probability, 0.11);
        adapt(8.0, &mut curve);
        assert_eq!(curve.max_probability, 0.11 * 0.9);
        let mut adaption = Adaption { next: INTERVAL };
        adaption.catch_up(INTERVAL - 1, 20.0, &mut curve);
        assert_eq!(curve.max_probability, 0.11 * 0.9);
        adaption.catch_up(1000 * INTERVAL, 20.0, &mut curve);
        assert!(
            (0.5..0.52).contains(&curve.max_probability),
            "{}",
            curve.max_probability
        );
        assert_eq!(adaption.next, 1001 * INTERVAL);
        adaption.catch_up(2000 * INTERVAL, 0.0, &mut curve);
        assert!(
            (0.008..0.01).contains(&curve.max_probability),
            "{}",
            curve.max_probability
        );
    }
}
