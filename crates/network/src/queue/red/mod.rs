//! RED, random early detection: the nearer the average queue comes to a threshold, the more of what arrives is
//! dropped or marked (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1,
//! 1993; RFC 2309, section 4).
//!
//! The variants: gentle (Floyd, "Recommendation on using the gentle_ variant of RED", 2000), and adaptive with thresholds
//! that follow from the link's rate (Floyd, Gummadi and Shenker, "Adaptive RED", 2001).

mod early;

use foundation::{Generator, Instant, Probability, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{Discipline, DisciplineConfig, Line, Place, QueueLimit, Verdicts, Waiting};

use early::{Adaption, Average, Curve, INTERVAL, Spread, Zone};

/// Random early detection: what arrives is dropped with a probability that rises with the average queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Red {
    /// How much it holds, the packet that is being sent included; default "1000pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub limit: Option<QueueLimit>,
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
            limit: None,
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
        let mut problems = QueueLimit::problems(self.limit);
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
            bounds: Bounds::new(self.limit.unwrap_or(Self::LIMIT)),
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
}
