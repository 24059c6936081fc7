//! DualPI2, the dual-queue coupled AQM: scalable flows (ECT(1)) have a low-latency queue with a step threshold, classic flows
//! a queue with PI2, and the mark probability of the former is coupled to that of the latter, so that flows of both share the
//! link by flow and not by queue (RFC 9332, appendix A).
//!
//! Defaults and scheduler are those of Linux's `sch_dualpi2`: signals at dequeue, a step threshold instead of a ramp, and a
//! weighted round robin with byte credits that gives the classic queue a minimum share.

use foundation::{Duration, Generator, Instant, Probability, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coupled::{Controller, Parameters, Signal};
use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedLink, QueuedPacket,
    Transmitter,
};

/// DualPI2: a low-latency queue for scalable flows (ECT(1)) next to a classic queue with PI2, coupled so that flows of both receive equal rates (RFC 9332).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DualPi2 {
    /// Limit of both queues together in packets or bytes, the packet in transmission included; default "10000pkt" (Linux).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
    /// Target delay of the classic queue; above "0s"; default "15ms" (RFC 9332, appendix A.1).
    pub target: Duration,
    /// Period of probability updates; at least "1us"; default "16ms" (Linux).
    pub update: Duration,
    /// Weight of the deviation from the target, in Hz; above 0, at most 100; default 41/256, about 0.16 (Linux).
    pub alpha: f64,
    /// Weight of the change of the delay since the last update, in Hz; above 0, at most 100; default 819/256, about 3.2 (Linux).
    pub beta: f64,
    /// Ratio of the coupled mark probability of the low-latency queue to the root of the probability of the classic queue, from 1 to 100; default 2 (RFC 9332, section 2.1).
    pub coupling: f64,
    /// Delay of the low-latency queue above which each of its packets is marked; at most the delay of a full queue; default "1ms" (Linux).
    pub step: Duration,
    /// Share of the link for the classic queue while both queues have packets; default "10%" (Linux).
    pub protection: Probability,
    /// Drops of packets of both queues while the coupled probability exceeds 100%; false limits it to 100% until the queue is full; default true (RFC 9332, section 4.2.3).
    pub drop_on_overload: bool,
}

impl Default for DualPi2 {
    /// `dualpi2_reset_default` of Linux 6.17.
    fn default() -> Self {
        Self {
            limit: None,
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            coupling: 2.0,
            step: Duration::from_millis(1),
            protection: Probability::new(0.1).unwrap_or_default(),
            drop_on_overload: true,
        }
    }
}

impl DualPi2 {
    const fn parameters(&self) -> Parameters {
        Parameters {
            target: self.target,
            update: self.update,
            alpha: self.alpha,
            beta: self.beta,
            coupling: self.coupling,
            drop_on_overload: self.drop_on_overload,
        }
    }
}

impl DisciplineConfig for DualPi2 {
    limit_key!();

    fn limit(&self) -> QueueLimit {
        self.limit.unwrap_or(QueueLimit::Packets(10_000))
    }

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        problems.extend(self.parameters().validate());
        problems
    }

    fn validate_on(&self, link: &QueuedLink) -> Vec<Problem> {
        let mut problems = link.requires_rate("dualpi2");
        problems.extend(link.threshold_problem("step", self.step, self.limit()));
        problems
    }

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            low_latency: Fifo::default(),
            classic: Fifo::default(),
            controller: Controller::new(self.parameters()),
            step: self.step,
            schedule: Schedule::new(self.protection),
            largest: 0,
            stream: context.streams.stream("dualpi2"),
        }))
    }
}

/// The weighted round robin between the queues.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// Weights of the queues; their sum is [`WHOLE`](Self::WHOLE).
    classic: i64,
    low_latency: i64,
    /// Bytes times weight. The classic queue is next while it is positive.
    credit: i64,
}

impl Schedule {
    const WHOLE: i64 = 1_000_000;

    fn new(protection: Probability) -> Self {
        let classic = (protection.value() * Self::WHOLE as f64).round() as i64;
        Self {
            classic,
            low_latency: Self::WHOLE - classic,
            credit: 0,
        }
    }

    /// Starts a busy phase. The queue with the larger weight is first, for a few packets of `largest` bytes.
    const fn reset(&mut self, largest: u32) {
        self.credit = largest as i64 * (self.classic - self.low_latency);
    }

    /// Returns whether the low-latency queue is next while both queues have packets.
    const fn prefers_low_latency(&self) -> bool {
        self.credit <= 0
    }

    /// Accounts for a packet that a queue sends while the other one waits.
    const fn charge(&mut self, is_low_latency: bool, size: u32) {
        let size = size as i64;
        self.credit += if is_low_latency {
            size * self.classic
        } else {
            -size * self.low_latency
        };
    }
}

struct Queue {
    bounds: Bounds,
    low_latency: Fifo,
    classic: Fifo,
    controller: Controller,
    step: Duration,
    schedule: Schedule,
    largest: u32,
    stream: Generator,
}

impl Queue {
    /// Updates the probability as of the larger delay of both queues (RFC 9332, appendix A.2).
    fn catch_up(&mut self, now: Instant) {
        let heads = [self.low_latency.head_since(), self.classic.head_since()];
        self.controller
            .catch_up(now.as_nanos(), heads.into_iter().flatten().min());
    }

    /// Returns the next packet, whether it is of the low-latency queue, and whether the other queue has packets.
    fn take(&mut self) -> Option<(QueuedPacket, bool, bool)> {
        let classic_waits = self.classic.count().packets > 0;
        let low_latency_waits = self.low_latency.count().packets > 0;
        let is_low_latency = low_latency_waits && (!classic_waits || self.schedule.prefers_low_latency());
        let packet = if is_low_latency {
            self.low_latency.pop()
        } else {
            self.classic.pop()
        };
        Some((packet?, is_low_latency, classic_waits && low_latency_waits))
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
        self.catch_up(now);
        self.largest = self.largest.max(arriving.size());
        let length = self.waiting() + transmitter.sending;
        if !self.bounds.admit(length, arriving.size()) {
            return actions.drop(arriving);
        }
        if length.packets == 0 {
            self.schedule.reset(self.largest);
        }
        if actions.ecn(&arriving).is_scalable() {
            self.low_latency.push(arriving);
        } else {
            self.classic.push(arriving);
        }
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.catch_up(now);
        loop {
            let (packet, is_low_latency, is_contended) = self.take()?;
            let mut signal = Signal::None;
            // With less than two packets behind it, a packet receives no signal of the controller (Linux).
            if self.waiting().bytes >= 2 * u64::from(self.largest) {
                signal = self.controller.signal(is_low_latency, &mut self.stream);
            }
            if is_low_latency && now - packet.since > self.step {
                signal = signal.max(Signal::Mark);
            }
            let Some(packet) = signal.apply(packet, actions) else {
                continue;
            };
            if is_contended {
                self.schedule.charge(is_low_latency, packet.size());
            }
            return Some(packet);
        }
    }

    fn waiting(&self) -> Count {
        self.low_latency.count() + self.classic.count()
    }
}
