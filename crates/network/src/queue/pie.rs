//! PIE, proportional integral controller enhanced: arriving packets are dropped with a probability that keeps the queueing
//! delay at a target (RFC 8033).
//!
//! The queueing delay is that of the last departed packet (RFC 8033, section 5.2: timestamps instead of an estimated rate).
//! The probability changes at fixed times. Its state does not otherwise change between packets, so missed updates are applied
//! at the next arrival or departure, without an event.

use foundation::{Duration, Generator, Instant, Probability, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::impairment::Chance;
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedPacket, Transmitter,
};

/// PIE: drops arriving packets with a probability that keeps the queueing delay at the target (RFC 8033).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pie {
    /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
    /// Target queueing delay; above "0s"; default "15ms".
    pub target: Duration,
    /// Period of probability updates; above "0s"; default "15ms".
    pub update: Duration,
    /// Burst allowance: time without drops after an idle phase; default "150ms" (RFC 8033, section 4.4).
    pub max_burst: Duration,
    /// Weight of the deviation from the target, in Hz; above 0, at most 100; default 0.125 (RFC 8033, section 4.2).
    pub alpha: f64,
    /// Weight of the change of the delay since the last update, in Hz; above 0, at most 100; default 1.25 (RFC 8033, section 4.2).
    pub beta: f64,
    /// Marking of ECN-capable packets instead of dropping, up to mark_threshold; default false.
    pub ecn: bool,
    /// Drop probability above which ECN-capable packets are dropped as well; default "10%" (RFC 8033, section 5.1).
    pub mark_threshold: Probability,
}

impl Default for Pie {
    /// RFC 8033, sections 4.2, 4.4 and 5.1.
    fn default() -> Self {
        Self {
            limit: None,
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            max_burst: Duration::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            ecn: false,
            mark_threshold: Probability::new(0.1).unwrap_or_default(),
        }
    }
}

impl DisciplineConfig for Pie {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        for (key, span) in [("target", self.target), ("update", self.update)] {
            if span.is_zero() {
                problems.push(Problem::new(key, format!("\"{span}\" is out of range: above 0")));
            }
        }
        for (key, weight) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(weight > 0.0 && weight <= 100.0) {
                problems.push(Problem::new(
                    key,
                    format!("{weight} is out of range: above 0, at most 100"),
                ));
            }
        }
        problems
    }

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            fifo: Fifo::default(),
            controller: Controller::new(*self),
            largest: 0,
            stream: context.streams.stream("pie"),
        }))
    }
}

/// The controller of the probability.
#[derive(Clone, Debug, PartialEq)]
struct Controller {
    settings: Pie,
    probability: f64,
    /// The sum of probabilities since the last drop.
    accumulated: f64,
    /// Remaining time without drops.
    burst_allowance: Duration,
    /// Queueing delay of the last departed packet, now and at the last update.
    delay: Duration,
    delay_before: Duration,
    /// When the next update is due, in nanoseconds.
    next: u64,
}

impl Controller {
    fn new(settings: Pie) -> Self {
        Self {
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: settings.max_burst,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            next: settings.update.as_nanos(),
            settings,
        }
    }

    /// Applies all updates due since the last call.
    fn catch_up(&mut self, now: u64) {
        let period = self.settings.update.as_nanos();
        while self.next <= now {
            let before = self.clone();
            self.update();
            let settled = *self == before;
            self.next += period;
            if settled && self.next <= now {
                // The state is constant until the next packet.
                self.next += ((now - self.next) / period + 1) * period;
            }
        }
    }

    /// RFC 8033, section 4.2, with the limit on steps of section 5.5, and section 4.4.
    fn update(&mut self) {
        let settings = &self.settings;
        let seconds = |span: Duration| span.as_nanos() as f64 / 1e9;
        let (delay, before, target) = (
            seconds(self.delay),
            seconds(self.delay_before),
            seconds(settings.target),
        );
        let mut step = settings.alpha * (delay - target) + settings.beta * (delay - before);
        step *= self.scale();
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if self.delay.is_zero() && self.delay_before.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(settings.update);
        let calm = |span: Duration| span < settings.target / 2;
        if self.probability == 0.0 && calm(self.delay) && calm(self.delay_before) {
            self.burst_allowance = settings.max_burst;
        }
        self.delay_before = self.delay;
    }

    /// Returns the step factor: small probabilities change in small steps (RFC 8033, section 4.2: auto-tuning).
    fn scale(&self) -> f64 {
        let steps = [
            (0.000_001, 2048.0),
            (0.000_01, 512.0),
            (0.000_1, 128.0),
            (0.001, 32.0),
            (0.01, 8.0),
            (0.1, 2.0),
        ];
        let step = steps.iter().find(|(below, _)| self.probability < *below);
        step.map_or(1.0, |(_, divisor)| 1.0 / divisor)
    }

    /// Returns whether to drop or mark a packet that arrives at a queue of this length (RFC 8033, sections 4.1, 4.4 and 5.4).
    fn hits(&mut self, length: Count, largest: u32, stream: &mut Generator) -> bool {
        if !self.burst_allowance.is_zero() {
            return false;
        }
        let light = self.delay_before < self.settings.target / 2 && self.probability < 0.2;
        if light || length.bytes <= 2 * u64::from(largest) {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        // Avoids both consecutive drops and long gaps, which independent draws would produce.
        self.accumulated += self.probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let chance = Chance::new(Probability::new(self.probability).unwrap_or_default());
        let hit = self.accumulated >= 8.5 || chance.draw(stream);
        if hit {
            self.accumulated = 0.0;
        }
        hit
    }
}

struct Queue {
    bounds: Bounds,
    fifo: Fifo,
    controller: Controller,
    largest: u32,
    stream: Generator,
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        self.controller.catch_up(now.as_nanos());
        self.largest = self.largest.max(arriving.size());
        let length = self.fifo.count();
        if !self.bounds.admit(length + transmitter.sending, arriving.size()) {
            return actions.drop(arriving);
        }
        if self.controller.hits(length, self.largest, &mut self.stream) {
            let settings = &self.controller.settings;
            let may_mark = settings.ecn && self.controller.probability <= settings.mark_threshold.value();
            if !(may_mark && actions.mark(&arriving)) {
                return actions.drop(arriving);
            }
        }
        self.fifo.push(arriving);
    }

    fn dequeue(&mut self, now: Instant, _: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.controller.catch_up(now.as_nanos());
        let packet = self.fifo.pop();
        self.controller.delay = match &packet {
            Some(packet) if self.fifo.count().packets > 0 => now - packet.since,
            // The next packet does not wait.
            _ => Duration::ZERO,
        };
        packet
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(probability: f64, delay: u64, before: u64) -> Controller {
        Controller {
            probability,
            delay: Duration::from_millis(delay),
            delay_before: Duration::from_millis(before),
            ..Controller::new(Pie::default())
        }
    }

    /// RFC 8033, section 4.2, by hand: p += alpha (delay - target) + beta (delay - previous delay), scaled down for small p.
    #[test]
    fn a_step_is_proportional_and_integral() {
        for (probability, delay, before, step) in [
            // 0.125 * 0.005 + 1.25 * 0.01
            (0.2, 20, 10, 0.013_125),
            (0.05, 20, 10, 0.013_125 / 2.0),
            (0.005, 20, 10, 0.013_125 / 8.0),
            (0.000_5, 20, 10, 0.013_125 / 32.0),
            (0.000_05, 20, 10, 0.013_125 / 128.0),
            (0.000_005, 20, 10, 0.013_125 / 512.0),
            (0.0, 20, 10, 0.013_125 / 2048.0),
            // 0.125 * -0.01 + 1.25 * -0.005
            (0.2, 5, 10, -0.007_5),
            // 0.125 * 0.085 + 1.25 * 0.09 is more than the 2 % that section 5.5 allows.
            (0.2, 100, 10, 0.02),
            (0.0, 5, 10, 0.0),
            (0.999, 40, 10, 0.001),
        ] {
            let mut pie = controller(probability, delay, before);
            pie.update();
            let moved = pie.probability - probability;
            assert!(
                (moved - step).abs() < 1e-12,
                "{probability} {delay} {before}: {moved}"
            );
            assert_eq!(pie.delay_before, pie.delay);
        }
        let mut idle = controller(0.5, 0, 0);
        idle.update();
        // 0.125 * -0.015, then a fiftieth less.
        assert!((idle.probability - (0.5 - 0.001_875) * 0.98).abs() < 1e-12);
    }

    /// RFC 8033, section 4.4: 150 ms pass before the first drop, and again after an idle phase.
    #[test]
    fn a_burst_passes() {
        let mut pie = controller(0.0, 40, 40);
        pie.catch_up(149_999_999);
        assert!(!pie.burst_allowance.is_zero());
        pie.catch_up(150_000_000);
        assert!(pie.burst_allowance.is_zero() && pie.probability > 0.0);
        pie.delay = Duration::ZERO;
        pie.catch_up(60_000_000_000);
        assert_eq!(pie.probability, 0.0);
        assert_eq!(pie.burst_allowance, Duration::from_millis(150));
    }

    /// Late updates give the same result as timely ones.
    #[test]
    fn updates_may_come_late() {
        let mut late = controller(0.3, 0, 30);
        let mut timely = late.clone();
        late.catch_up(3_600_000_000_001);
        for millis in 0..=3_600_000 {
            timely.catch_up(millis * 1_000_000 + 1);
        }
        assert_eq!(late, timely);
    }

    /// RFC 8033, section 4.1: no drop while the delay is below half the target and the probability below 20 %, or for a
    /// queue of two packets.
    #[test]
    fn short_queues_have_no_drops() {
        let mut stream = foundation::Streams::new(1, 0).stream("pie");
        let length = |packets| Count {
            packets,
            bytes: packets * 1500,
        };
        let mut hits = |delay: u64, probability: f64, packets: u64| {
            let mut pie = controller(probability, delay, delay);
            pie.burst_allowance = Duration::ZERO;
            (0..200).any(|_| pie.hits(length(packets), 1500, &mut stream))
        };
        assert!(hits(20, 0.15, 10));
        assert!(!hits(7, 0.15, 10));
        assert!(hits(7, 0.25, 10));
        assert!(!hits(20, 0.25, 2));
    }

    /// RFC 8033, section 5.4: between two drops the probabilities of packets sum up to between 0.85 and 8.5.
    #[test]
    fn drops_are_neither_in_a_row_nor_far_apart() {
        let mut stream = foundation::Streams::new(1, 0).stream("pie");
        let mut pie = controller(0.1, 20, 20);
        pie.burst_allowance = Duration::ZERO;
        let length = Count {
            packets: 10,
            bytes: 15_000,
        };
        let gaps: Vec<u32> = (0..20_000)
            .map(|_| (1..).find(|_| pie.hits(length, 1500, &mut stream)).unwrap())
            .collect();
        assert!(gaps.iter().all(|gap| (9..=86).contains(gap)));
        // Eight packets pass, then a geometric gap with mean ten follows.
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 18.0).abs() < 0.3, "{mean}");
    }
}
