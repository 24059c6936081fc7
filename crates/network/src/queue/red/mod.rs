//! RED, random early detection: arriving packets are dropped or marked with a probability that increases with the average
//! queue length (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1, 1993;
//! RFC 2309, section 4).
//!
//! Variants: gentle (Floyd, "Recommendation on using the gentle_ variant of RED", 2000), and adaptive with thresholds
//! derived from the link rate (Floyd, Gummadi and Shenker, "Adaptive RED", 2001).

mod early;

use foundation::{Generator, Instant, Probability, Problem, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedPacket, Transmitter,
};

use early::{Adaption, Average, Curve, INTERVAL, Spread, Zone};

omit_unset! {
    /// RED: drops arriving packets with a probability that increases with the average queue length (Floyd and Jacobson 1993).
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Red {
        /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
        pub limit: Option<QueueLimit>,
        /// Average queue length from which packets are dropped, at least "1pkt" or "1B"; default: the packets sent in 2.5 ms, at least 5.
        pub min_threshold: Option<QueueLimit>,
        /// Average queue length at which the probability reaches max_probability, above min_threshold and in its unit; default: three times min_threshold.
        pub max_threshold: Option<QueueLimit>,
        /// Drop probability at max_threshold; above "0%"; default "10%".
        pub max_probability: Probability,
        /// Weight of the current queue length in the average, per packet; above 0, at most 1; default 0.002 (Floyd and Jacobson 1993, section 4).
        pub weight: f64,
        /// Linear increase of the probability to 1 between max_threshold and twice max_threshold, instead of a step; default true.
        pub gentle: bool,
        /// Adaptation of max_probability between 1% and 50%, which keeps the average half-way between the thresholds; default false (Adaptive RED, 2001).
        pub adaptive: bool,
        /// Mean packet size, for the decay of the average while the link is idle; at least "1B"; default "1500B".
        pub mean_packet: Size,
        /// Marking of ECN-capable packets up to max_threshold instead of dropping; default false.
        pub ecn: bool,
    }
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
/// Floyd, Gummadi and Shenker, section 5: the lower threshold is half of the packets sent in 5 ms.
const TARGET_SECONDS: f64 = 0.005;
/// Likewise: at least 5 packets.
const MIN_THRESHOLD: f64 = 5.0;

/// Returns a threshold as a number, and whether it counts bytes.
fn measure(threshold: QueueLimit) -> (f64, bool) {
    match threshold {
        QueueLimit::Packets(packets) => (packets as f64, false),
        QueueLimit::Bytes(size) => (size.bytes() as f64, true),
    }
}

impl Red {
    /// Returns both thresholds, and whether they count bytes.
    fn thresholds(&self, context: &QueueContext) -> (f64, f64, bool) {
        match (self.min_threshold.map(measure), self.max_threshold.map(measure)) {
            (Some((min, bytes)), Some((max, _))) => (min, max, bytes),
            (Some((min, bytes)), None) => (min, THRESHOLD_RATIO * min, bytes),
            (None, Some((max, bytes))) => (max / THRESHOLD_RATIO, max, bytes),
            (None, None) => {
                let packets_per_second = self.packets_per_second(context).unwrap_or(0.0);
                let min = (packets_per_second * TARGET_SECONDS / 2.0).max(MIN_THRESHOLD);
                (min, THRESHOLD_RATIO * min, false)
            }
        }
    }

    fn packets_per_second(&self, context: &QueueContext) -> Option<f64> {
        let rate = context.rate?.bits_per_second() as f64;
        Some(rate / 8.0 / self.mean_packet.bytes() as f64)
    }
}

impl DisciplineConfig for Red {
    limit_key!();

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
                        "\"{max}\" differs in unit from min_threshold = \"{min}\": write both in packets or both in bytes"
                    ),
                );
            } else if low >= high {
                add(
                    "max_threshold",
                    format!("\"{max}\" is out of range: above min_threshold = \"{min}\""),
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

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        let (min, max, in_bytes) = self.thresholds(context);
        let packets_per_second = self.packets_per_second(context);
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            fifo: Fifo::default(),
            in_bytes,
            average: Average {
                value: 0.0,
                weight: self.weight,
                packet_nanos: packets_per_second.map_or(0, |packets| (1e9 / packets) as u64),
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
            stream: context.streams.stream("red"),
        }))
    }
}

struct Queue {
    bounds: Bounds,
    fifo: Fifo,
    /// Whether thresholds count bytes. The probability does not depend on the packet size (RFC 7141).
    in_bytes: bool,
    average: Average,
    curve: Curve,
    spread: Spread,
    adaption: Option<Adaption>,
    ecn: bool,
    stream: Generator,
}

impl Queue {
    /// Returns whether an arriving packet is accepted.
    fn accepts(&mut self, arriving: &QueuedPacket, actions: &mut dyn QueueActions) -> bool {
        match self.curve.zone(self.average.value) {
            Zone::Below => {
                self.spread.count = 0;
                true
            }
            Zone::Early(probability) => {
                !self.spread.hits(probability, &mut self.stream) || self.ecn && actions.mark(arriving)
            }
            Zone::Heavy(probability) => !self.spread.hits(probability, &mut self.stream),
        }
    }
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        if let Some(adaption) = &mut self.adaption {
            adaption.catch_up(now.as_nanos(), self.average.value, &mut self.curve);
        }
        let length = self.fifo.count() + transmitter.sending;
        if length.packets == 0 {
            self.average
                .decay(now.saturating_since(transmitter.free).as_nanos());
        } else {
            let queue = if self.in_bytes {
                length.bytes
            } else {
                length.packets
            };
            self.average.update(queue as f64);
        }
        if !self.bounds.admit(length, arriving.size()) {
            self.spread.count = 0;
            actions.drop(arriving);
        } else if self.accepts(&arriving, actions) {
            self.fifo.push(arriving);
        } else {
            actions.drop(arriving);
        }
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::RouteHosts;
    use foundation::{Rate, Streams};

    /// Floyd, Gummadi and Shenker, section 5: at 10 Mbit/s and packets of 1000 bytes the minimum thresholds apply; at
    /// 100 Mbit/s, 5 ms are 62.5 packets, half of which is 31.25.
    #[test]
    fn thresholds_follow_from_the_rate() {
        let red = Red {
            mean_packet: Size::from_bytes(1000),
            ..Red::default()
        };
        let thresholds = |bits| {
            let context = QueueContext {
                rate: Rate::from_bits_per_second(bits),
                streams: Streams::new(1, 0),
                hosts: RouteHosts::default(),
            };
            red.thresholds(&context)
        };
        assert_eq!(thresholds(10_000_000), (5.0, 15.0, false));
        assert_eq!(thresholds(100_000_000), (31.25, 93.75, false));
        let limit = |text: &str| Some(text.parse().unwrap());
        let context = QueueContext {
            rate: None,
            streams: Streams::new(1, 0),
            hosts: RouteHosts::default(),
        };
        let written = Red {
            max_threshold: limit("30kB"),
            ..Red::default()
        };
        assert_eq!(written.thresholds(&context), (10_000.0, 30_000.0, true));
        let written = Red {
            min_threshold: limit("4pkt"),
            ..Red::default()
        };
        assert_eq!(written.thresholds(&context), (4.0, 12.0, false));
    }
}
