//! Reordering: some packets are held back, so that those behind them overtake.

use std::num::NonZeroU64;

use foundation::{Duration, Generator, Probability, Problem, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chance::Chance;

/// Holds some packets back, so that those behind them overtake: `{ probability = "1%", delay = "5ms" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { probability = \"1%\", delay = \"5ms\" }"
)]
#[schemars(rename = "Reorder")]
pub struct ReorderConfig {
    /// Probability that a packet is held back.
    pub probability: Probability,
    /// How much longer such a packet takes than the others; above 0.
    pub delay: Duration,
}

impl ReorderConfig {
    /// What is out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.delay.is_zero() {
            problems.push(Problem::new(
                "delay",
                "\"0s\" is out of range: above 0 (nothing would be overtaken)",
            ));
        }
        problems
    }
}

/// Reordering at work.
#[derive(Clone, Debug)]
pub(crate) struct Reorder {
    chance: Chance,
    /// In nanoseconds; `None` for a delay of nothing, which holds no packet back.
    delay: Option<NonZeroU64>,
    stream: Generator,
}

impl Reorder {
    pub(crate) fn new(config: &ReorderConfig, streams: Streams) -> Self {
        Self {
            chance: Chance::new(config.probability),
            delay: NonZeroU64::new(config.delay.as_nanos()),
            stream: streams.stream("reorder"),
        }
    }

    /// How long the next packet is held back, in nanoseconds; `None` for one that is not.
    pub(crate) fn next(&mut self) -> Option<NonZeroU64> {
        let held_back = self.chance.throw(&mut self.stream);
        self.delay.filter(|_| held_back)
    }
}
