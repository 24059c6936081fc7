//! Reordering: an extra delay for some packets, so that later packets overtake them.

use std::num::NonZeroU64;

use foundation::{Duration, Generator, Probability, Problem, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chance::Chance;

/// Extra delay for some packets, which later packets overtake: `{ probability = "1%", delay = "5ms" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { probability = \"1%\", delay = \"5ms\" }"
)]
#[schemars(rename = "Reorder")]
pub struct ReorderConfig {
    /// Probability of the extra delay, e.g. "1%".
    pub probability: Probability,
    /// Extra delay of such a packet, e.g. "5ms"; above "0s".
    pub delay: Duration,
}

impl ReorderConfig {
    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.delay.is_zero() {
            problems.push(Problem::new(
                "delay",
                "\"0s\" is out of range: above 0 (otherwise no packet is overtaken)",
            ));
        }
        problems
    }
}

/// The reordering process of a link.
#[derive(Clone, Debug)]
pub(crate) struct Reorder {
    chance: Chance,
    /// Extra delay in nanoseconds; `None` for 0.
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

    /// Returns the extra delay of the next packet in nanoseconds; `None` for a packet in order.
    pub(crate) fn next(&mut self) -> Option<NonZeroU64> {
        let is_delayed = self.chance.draw(&mut self.stream);
        self.delay.filter(|_| is_delayed)
    }
}
