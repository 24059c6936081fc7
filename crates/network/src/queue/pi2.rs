//! PI2, PI improved with a square: one queue whose packets are dropped or marked with the square of a linearly controlled
//! probability (De Schepper et al., "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT 2016).
//!
//! The square replaces PIE's table of step factors: the rate of a classic flow is inversely proportional to the root of its
//! loss probability, so the loop gain does not depend on the load. The queueing delay is the age of the first waiting packet.

use foundation::{Duration, Generator, Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coupled::{Controller, Parameters};
use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedLink, QueuedPacket,
    Transmitter,
};

/// PI2: drops or marks arriving packets with the square of a probability that keeps the queueing delay at the target, and marks ECT(1) packets with its multiple (CoNEXT 2016).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pi2 {
    /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
    /// Target queueing delay; above "0s"; default "20ms" (CoNEXT 2016).
    pub target: Duration,
    /// Period of probability updates; at least "1us"; default "32ms" (CoNEXT 2016).
    pub update: Duration,
    /// Weight of the deviation from the target, in Hz; above 0, at most 100; default 0.3125 (CoNEXT 2016).
    pub alpha: f64,
    /// Weight of the change of the delay since the last update, in Hz; above 0, at most 100; default 3.125 (CoNEXT 2016).
    pub beta: f64,
    /// Ratio of the mark probability of ECT(1) and CE packets to the root of the probability of other packets, from 1 to 100; default 2 (CoNEXT 2016).
    pub coupling: f64,
}

impl Default for Pi2 {
    /// CoNEXT 2016, section 5; in sixteenths of a Hertz, alpha and beta are 5 and 50.
    fn default() -> Self {
        Self {
            limit: None,
            target: Duration::from_millis(20),
            update: Duration::from_millis(32),
            alpha: 5.0 / 16.0,
            beta: 50.0 / 16.0,
            coupling: 2.0,
        }
    }
}

impl Pi2 {
    const fn parameters(&self) -> Parameters {
        Parameters {
            target: self.target,
            update: self.update,
            alpha: self.alpha,
            beta: self.beta,
            coupling: self.coupling,
            drop_on_overload: true,
        }
    }
}

impl DisciplineConfig for Pi2 {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        problems.extend(self.parameters().validate());
        problems
    }

    fn validate_on(&self, link: &QueuedLink) -> Vec<Problem> {
        link.requires_rate("pi2")
    }

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            fifo: Fifo::default(),
            controller: Controller::new(self.parameters()),
            largest: 0,
            stream: context.streams.stream("pi2"),
        }))
    }
}

struct Queue {
    bounds: Bounds,
    fifo: Fifo,
    controller: Controller,
    largest: u32,
    stream: Generator,
}

impl Queue {
    fn catch_up(&mut self, now: Instant) {
        self.controller.catch_up(now.as_nanos(), self.fifo.head_since());
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
        let length = self.fifo.count();
        if !self.bounds.admit(length + transmitter.sending, arriving.size()) {
            return actions.drop(arriving);
        }
        // A queue of less than two packets is never too long (as in PIE: RFC 8033, section 4.1).
        if length.bytes < 2 * u64::from(self.largest) {
            return self.fifo.push(arriving);
        }
        let is_scalable = actions.ecn(&arriving).is_scalable();
        let signal = self.controller.signal(is_scalable, &mut self.stream);
        if let Some(kept) = signal.apply(arriving, actions) {
            self.fifo.push(kept);
        }
    }

    fn dequeue(&mut self, now: Instant, _: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.catch_up(now);
        self.fifo.pop()
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}
