//! AIMD: additive increase, multiplicative decrease.

use foundation::{Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transport::congestion::{
    Acknowledgement, ConnectionContext, Controller, ControllerSettings, Loss, Outputs,
};

/// Additive increase, multiplicative decrease.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AimdSettings {
    /// Growth of the window in packets per round trip (default 1).
    increase: f64,
    /// Multiplicative decrease factor, 0.1 to 0.9 (default 0.5).
    keep: f64,
}

impl Default for AimdSettings {
    fn default() -> Self {
        Self {
            increase: 1.0,
            keep: 0.5,
        }
    }
}

impl ControllerSettings for AimdSettings {
    fn validate(&self) -> Vec<Problem> {
        if (0.1..=0.9).contains(&self.keep) {
            return Vec::new();
        }
        let message = format!("{} is out of range: 0.1 to 0.9", self.keep);
        vec![Problem::new("keep", message)]
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Aimd {
            increase: self.increase,
            keep: self.keep,
            segment: context.segment as f64,
            window: (context.initial_window.unwrap_or(10) * context.segment) as f64,
            reduced_at: None,
        })
    }
}

/// Controller of one connection.
#[derive(Debug)]
struct Aimd {
    increase: f64,
    keep: f64,
    segment: f64,
    window: f64,
    reduced_at: Option<Instant>,
}

impl Aimd {
    /// Reduces the window once for all packets sent before (RFC 6582).
    fn reduce(&mut self, now: Instant, sent_at: Instant) {
        if self.reduced_at.is_none_or(|at| sent_at > at) {
            self.window = (self.keep * self.window).max(2.0 * self.segment);
            self.reduced_at = Some(now);
        }
    }
}

impl Controller for Aimd {
    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        if ack.window_limited && !ack.in_recovery {
            self.window += self.increase * self.segment * ack.bytes as f64 / self.window;
        }
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.reduce(loss.now, loss.newest_sent_at);
    }

    fn on_timeout(&mut self, now: Instant, _bytes_in_flight: u64) {
        self.window = self.segment;
        self.reduced_at = Some(now);
    }

    fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant) {
        self.reduce(now, sent_at);
    }

    fn outputs(&self) -> Outputs {
        Outputs::unpaced(self.window as u64)
    }
}
