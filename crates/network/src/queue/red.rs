//! RED, random early detection: the nearer the average queue comes to a threshold, the more of what arrives is
//! dropped or marked (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1,
//! 1993; RFC 2309, section 4).
//!
//! The variants: gentle (Floyd, "Recommendation on using the gentle_ variant of RED", 2000), and adaptive with thresholds
//! that follow from the link's rate (Floyd, Gummadi and Shenker, "Adaptive RED", 2001).

use foundation::{Generator, Instant, Probability, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::{Bounds, Fifo};
use crate::impairment::Chance;
use crate::link::Count;
use crate::queue::{Discipline, DisciplineConfig, Line, Place, QueueLimit, Verdicts, Waiting};

/// Random early detection: what arrives is dropped with a probability that rises with the average queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Red {
    /// How much it holds, the packet that is being sent included; default "1000pkt".
    pub limit: QueueLimit,
    /// Average queue from which on packets are dropped; default: what the link sends in 2.5 ms, at least "5pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub min_threshold: Option<QueueLimit>,
    /// Average queue at which the probability reaches max_probability, in the unit of min_threshold; default: three times min_threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub max_threshold: Option<QueueLimit>,
    /// Probability of a drop as the average queue reaches max_threshold; above 0%; default "10%".
    pub max_probability: Probability,
    /// Weight of the present queue in the average, a packet; above 0, at most 1; default 0.002.
    pub weight: f64,
    /// From max_threshold to twice as much the probability rises to 1, instead of at once; default true.
    pub gentle: bool,
    /// Adapts max_probability (1% to 50%) so that the average stays half-way between the thresholds; default false.
    pub adaptive: bool,
    /// Mean packet size, by which it reckons how fast the average falls while the link is idle; default "1500B".
    pub mean_packet: Size,
    /// Marks packets of ECN-capable transports up to max_threshold instead of dropping them; default false.
    pub ecn: bool,
}

impl Default for Red {
    /// Weight: Floyd and Jacobson, section 4; probability: Floyd, "RED: Discussions of Setting Parameters", 1997.
    fn default() -> Self {
        Self {
            limit: QueueLimit::default(),
            min_threshold: None,
            max_threshold: None,
            max_probability: Probability::new(0.1).unwrap_or_default(),
            weight: 0.002,
            gentle: true,
            adaptive: false,
            mean_packet: Size::from_bytes(1500),
            ecn: false,
        }
    }
}

/// Floyd and Jacobson, section 8: the upper threshold is at least twice the lower; later advice: three times.
const THRESHOLD_RATIO: f64 = 3.0;
/// Floyd, Gummadi and Shenker, section 5: the lower threshold is half of what the link sends in a delay of 5 ms.
const TARGET_SECONDS: f64 = 0.005;
/// The same: and at least 5 packets.
const LEAST_THRESHOLD: f64 = 5.0;

/// A threshold as a number, and whether it counts bytes.
fn measure(threshold: QueueLimit) -> (f64, bool) {
    match threshold {
        QueueLimit::Packets(packets) => (packets as f64, false),
        QueueLimit::Bytes(size) => (size.bytes() as f64, true),
    }
}

impl Red {
    /// Both thresholds, and whether they count bytes.
    fn thresholds(&self, place: &Place) -> (f64, f64, bool) {
        match (self.min_threshold.map(measure), self.max_threshold.map(measure)) {
            (Some((min, bytes)), Some((max, _))) => (min, max, bytes),
            (Some((min, bytes)), None) => (min, THRESHOLD_RATIO * min, bytes),
            (None, Some((max, bytes))) => (max / THRESHOLD_RATIO, max, bytes),
            (None, None) => {
                let packets_a_second = self.packets_a_second(place).unwrap_or(0.0);
                let min = (packets_a_second * TARGET_SECONDS / 2.0).max(LEAST_THRESHOLD);
                (min, THRESHOLD_RATIO * min, false)
            }
        }
    }

    fn packets_a_second(&self, place: &Place) -> Option<f64> {
        let rate = place.rate?.bits_per_second() as f64;
        Some(rate / 8.0 / self.mean_packet.bytes() as f64)
    }
}

impl DisciplineConfig for Red {
    fn validate(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self
            .limit
            .validate()
            .into_iter()
            .map(|problem| problem.within("limit"))
            .collect();
        let mut add = |key: &str, message: String| problems.push(Problem::new(key, message));
        for (key, threshold) in [
            ("min_threshold", self.min_threshold),
            ("max_threshold", self.max_threshold),
        ] {
            if let Some(threshold) = threshold
                && measure(threshold).0 < 1.0
            {
                add(
                    key,
                    format!("\"{threshold}\" is out of range: at least \"1pkt\" or \"1B\""),
                );
            }
        }
        if let (Some(min), Some(max)) = (self.min_threshold, self.max_threshold) {
            let ((low, low_bytes), (high, high_bytes)) = (measure(min), measure(max));
            if low_bytes != high_bytes {
                add(
                    "max_threshold",
                    format!(
                        "\"{max}\" is in another unit than min_threshold \"{min}\": both in packets or both in bytes"
                    ),
                );
            } else if low >= high {
                add(
                    "max_threshold",
                    format!("\"{max}\" is out of range: above min_threshold \"{min}\""),
                );
            }
        }
        if self.max_probability.value() <= 0.0 {
            add("max_probability", "\"0%\" is out of range: above 0%".into());
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            add(
                "weight",
                format!("{} is out of range: above 0, at most 1", self.weight),
            );
        }
        if self.mean_packet.bytes() == 0 {
            add(
                "mean_packet",
                format!("\"{}\" is out of range: at least \"1B\"", self.mean_packet),
            );
        }
        problems
    }

    fn build(&self, place: &Place) -> Box<dyn Discipline + Send> {
        let (min, max, in_bytes) = self.thresholds(place);
        let packets_a_second = self.packets_a_second(place);
        Box::new(Queue {
            bounds: Bounds::new(self.limit),
            fifo: Fifo::default(),
            in_bytes,
            average: Average {
                value: 0.0,
                weight: self.weight,
                packet_nanos: packets_a_second.map_or(0, |packets| (1e9 / packets) as u64),
            },
            curve: Curve {
                min,
                max,
                max_probability: self.max_probability.value(),
                gentle: self.gentle,
            },
            spread: Spread::default(),
            adaption: self.adaptive.then_some(Adaption { next: INTERVAL }),
            ecn: self.ecn,
            stream: place.streams.stream("red"),
        })
    }
}

/// The queue's length, smoothed over packets (Floyd and Jacobson, sections 4 and 11).
#[derive(Debug)]
struct Average {
    value: f64,
    weight: f64,
    /// How long the link takes for a packet of mean size.
    packet_nanos: u64,
}

impl Average {
    /// A packet has found the queue this long.
    fn saw(&mut self, queue: f64) {
        self.value += self.weight * (queue - self.value);
    }

    /// The queue has been empty for so long: as if the link had sent small packets through it all the time.
    fn idled(&mut self, nanos: u64) {
        let packets = nanos.checked_div(self.packet_nanos).unwrap_or(u64::MAX);
        self.value *= power(1.0 - self.weight, packets);
    }
}

/// By squaring: the same bits on every machine, which `powi` does not promise.
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

/// From the average queue to the probability of a drop.
#[derive(Debug)]
struct Curve {
    min: f64,
    max: f64,
    max_probability: f64,
    gentle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Zone {
    /// Below the lower threshold.
    Calm,
    /// Between the thresholds: dropped or marked with this probability.
    Early(f64),
    /// Above the upper threshold: dropped with this probability, never marked, since marks have not helped.
    Heavy(f64),
}

impl Curve {
    fn zone(&self, average: f64) -> Zone {
        let reach = |from: f64, to: f64| (average - from) / (to - from);
        if average < self.min {
            Zone::Calm
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

/// Spreads drops evenly: at a steady probability p the gap from one to the next is uniform on 1..1/p packets, where
/// independent draws would cluster (Floyd and Jacobson, section 7, method 2).
#[derive(Debug, Default)]
struct Spread {
    /// Packets since the last drop.
    count: u64,
}

impl Spread {
    /// Whether a packet that is to be dropped with this probability is.
    fn hits(&mut self, probability: f64, stream: &mut Generator) -> bool {
        let left = 1.0 - self.count as f64 * probability;
        let sharpened = if left > probability {
            probability / left
        } else {
            1.0
        };
        let hit = Chance::new(Probability::new(sharpened).unwrap_or_default()).throw(stream);
        self.count = if hit { 0 } else { self.count + 1 };
        hit
    }
}

/// Slow control of the probability by the average (Floyd, Gummadi and Shenker, figure 1).
#[derive(Debug)]
struct Adaption {
    /// When it next acts, in nanoseconds. Between arrivals the average does not change, so that acting late does no harm.
    next: u64,
}

/// Half a second.
const INTERVAL: u64 = 500_000_000;

impl Adaption {
    fn catch_up(&mut self, now: u64, average: f64, curve: &mut Curve) {
        if now < self.next {
            return;
        }
        let missed = (now - self.next) / INTERVAL + 1;
        self.next += missed * INTERVAL;
        // It takes 38 steps from one end of the range to the other.
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

struct Queue {
    bounds: Bounds,
    fifo: Fifo,
    /// Whether the queue is measured in bytes. The probability does not depend on the packet's size (RFC 7141).
    in_bytes: bool,
    average: Average,
    curve: Curve,
    spread: Spread,
    adaption: Option<Adaption>,
    ecn: bool,
    stream: Generator,
}

impl Queue {
    /// Whether an arriving packet stays.
    fn keeps(&mut self, arriving: &Waiting, verdicts: &mut dyn Verdicts) -> bool {
        match self.curve.zone(self.average.value) {
            Zone::Calm => {
                self.spread.count = 0;
                true
            }
            Zone::Early(probability) => {
                !self.spread.hits(probability, &mut self.stream) || self.ecn && verdicts.mark(arriving)
            }
            Zone::Heavy(probability) => !self.spread.hits(probability, &mut self.stream),
        }
    }
}

impl Discipline for Queue {
    fn enqueue(&mut self, now: Instant, arriving: Waiting, line: &Line, verdicts: &mut dyn Verdicts) {
        if let Some(adaption) = &mut self.adaption {
            adaption.catch_up(now.as_nanos(), self.average.value, &mut self.curve);
        }
        let held = self.fifo.count() + line.sending;
        if held.packets == 0 {
            self.average.idled(now.saturating_since(line.free).as_nanos());
        } else {
            let queue = if self.in_bytes { held.bytes } else { held.packets };
            self.average.saw(queue as f64);
        }
        if !self.bounds.admit(held, arriving.size()) {
            self.spread.count = 0;
            verdicts.drop(arriving);
        } else if self.keeps(&arriving, verdicts) {
            self.fifo.push(arriving);
        } else {
            verdicts.drop(arriving);
        }
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn Verdicts) -> Option<Waiting> {
        self.fifo.pop()
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::{Rate, Streams};

    fn curve(gentle: bool) -> Curve {
        Curve {
            min: 5.0,
            max: 15.0,
            max_probability: 0.1,
            gentle,
        }
    }

    /// Floyd and Jacobson, section 5: for a burst of 50 packets to pass under a threshold of 5, the weight must not be
    /// above 0.0042.
    #[test]
    fn a_weight_lets_bursts_of_a_size_pass() {
        let after_burst = |weight| {
            let mut average = Average {
                value: 0.0,
                weight,
                packet_nanos: 1,
            };
            (1..=50).for_each(|queue| average.saw(f64::from(queue)));
            average.value
        };
        // The paper gives two digits.
        assert!(after_burst(0.0041) < 5.0, "{}", after_burst(0.0041));
        assert!(after_burst(0.0043) > 5.0, "{}", after_burst(0.0043));
    }

    /// Floyd and Jacobson, section 4: an idle time counts as the packets that could have been sent in it.
    #[test]
    fn the_average_falls_while_the_link_is_idle() {
        let mut average = Average {
            value: 10.0,
            weight: 0.25,
            packet_nanos: 1000,
        };
        average.idled(2999);
        assert_eq!(average.value, 10.0 * 0.75 * 0.75);
        average.idled(u64::MAX);
        assert!(average.value < 1e-6);
    }

    /// RFC 2309, section 4 and the note on the gentle variant: a straight line up to the upper threshold, then a steeper one.
    #[test]
    fn the_probability_rises_between_the_thresholds() {
        assert_eq!(curve(true).zone(4.9), Zone::Calm);
        assert_eq!(curve(true).zone(5.0), Zone::Early(0.0));
        assert_eq!(curve(true).zone(10.0), Zone::Early(0.05));
        assert_eq!(curve(true).zone(15.0), Zone::Heavy(0.1));
        assert_eq!(curve(true).zone(22.5), Zone::Heavy(0.55));
        assert_eq!(curve(true).zone(30.0), Zone::Heavy(1.0));
        assert_eq!(curve(false).zone(15.0), Zone::Heavy(1.0));
    }

    /// Floyd and Jacobson, section 7: gaps between drops are uniform on 1..1/p, so their mean is 1/(2p) + 1/2
    /// (25.5 for p = 0.02), where independent draws would give 50 and now and then hundreds.
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

    /// Floyd, Gummadi and Shenker, section 5: at 10 Mbit/s and packets of 1000 bytes the least thresholds hold; at 100 Mbit/s,
    /// a delay of 5 ms is 62.5 packets, half of which is 31.25.
    #[test]
    fn thresholds_follow_from_the_rate() {
        let red = Red {
            mean_packet: Size::from_bytes(1000),
            ..Red::default()
        };
        let thresholds = |bits| {
            let place = Place {
                rate: Rate::from_bits_per_second(bits),
                streams: Streams::new(1, 0),
            };
            red.thresholds(&place)
        };
        assert_eq!(thresholds(10_000_000), (5.0, 15.0, false));
        assert_eq!(thresholds(100_000_000), (31.25, 93.75, false));
        let limit = |text: &str| Some(text.parse().unwrap());
        let place = Place {
            rate: None,
            streams: Streams::new(1, 0),
        };
        let written = Red {
            max_threshold: limit("30kB"),
            ..Red::default()
        };
        assert_eq!(written.thresholds(&place), (10_000.0, 30_000.0, true));
        let written = Red {
            min_threshold: limit("4pkt"),
            ..Red::default()
        };
        assert_eq!(written.thresholds(&place), (4.0, 12.0, false));
    }

    /// Floyd, Gummadi and Shenker, figure 1: up by at most 0.01 while above the target's range, down by a tenth while below,
    /// between 1 % and 50 %.
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
