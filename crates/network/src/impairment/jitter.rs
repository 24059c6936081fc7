//! Jitter: a delay that differs from packet to packet.

use std::borrow::Cow;

use foundation::{Duration, Generator, Problem, Streams};
use rand::Rng;
use rand_distr::{Distribution as _, StandardNormal};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::config::text_or_table::{self, TextOrTable};

/// How the one-way delay varies from packet to packet.
///
/// Written `"5ms"`, which is uniform within 5 ms around the delay and keeps the order of packets, or as a table.
/// Where packets follow one another more closely than the jitter, keeping their order makes them wait for slower
/// ones in front, so they take longer than the delay on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JitterConfig {
    /// How far the delay goes to either side: the half-width of the uniform distribution (at most the
    /// delay), the standard deviation of the normal one.
    pub spread: Duration,
    /// The shape of the variation; default uniform.
    pub distribution: Distribution,
    /// Whether a packet that would land before the one in front of it waits for it; default true.
    pub keep_order: bool,
}

/// The shape of a jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All delays between delay - spread and delay + spread alike.
    #[default]
    Uniform,
    /// Around the delay with the standard deviation spread; what falls below zero is zero.
    Normal,
}

impl JitterConfig {
    /// Uniform within `spread` around the delay, in order.
    #[must_use]
    pub const fn uniform(spread: Duration) -> Self {
        Self {
            spread,
            distribution: Distribution::Uniform,
            keep_order: true,
        }
    }

    /// What is out of range on a link with this delay.
    #[must_use]
    pub fn validate(&self, delay: Duration) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.distribution == Distribution::Uniform && self.spread > delay {
            problems.push(Problem::new(
                "",
                format!(
                    "\"{}\" is out of range: at most the delay, which is \"{delay}\" (a packet cannot arrive before it was sent)",
                    self.spread
                ),
            ));
        }
        problems
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    spread: Duration,
    distribution: Option<Distribution>,
    keep_order: Option<bool>,
}

impl TextOrTable for JitterConfig {
    type Table = Table;

    fn expected() -> Cow<'static, str> {
        "a duration with its unit such as \"5ms\", or a table such as \
        { spread = \"5ms\", distribution = \"normal\", keep_order = false }"
            .into()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self::uniform)
            .map_err(|error: foundation::QuantityError| error.to_string())
    }

    fn from_table(table: Table) -> Result<Self, String> {
        Ok(Self {
            spread: table.spread,
            distribution: table.distribution.unwrap_or_default(),
            keep_order: table.keep_order.unwrap_or(true),
        })
    }
}

impl<'de> Deserialize<'de> for JitterConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_table::deserialize(deserializer)
    }
}

impl JsonSchema for JitterConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Jitter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let duration = generator.subschema_for::<Duration>();
        let mut spread = duration.clone();
        spread.insert(
            "description".into(),
            "How far the delay goes to either side (uniform: at most the delay; normal: the standard deviation)"
                .into(),
        );
        let mut distribution = generator.subschema_for::<Distribution>();
        distribution.insert(
            "description".into(),
            "How the delays are spread; default: uniform".into(),
        );
        json_schema!({
            "description": "How the delay varies from packet to packet: a spread, or a table",
            "oneOf": [
                duration,
                {
                    "type": "object",
                    "properties": {
                        "spread": spread,
                        "distribution": distribution,
                        "keep_order": {
                            "type": "boolean",
                            "default": true,
                            "description": "Whether a packet that would overtake the one in front waits for it",
                        },
                    },
                    "required": ["spread"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// Jitter at work.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    spread: u64,
    distribution: Distribution,
    pub(crate) keep_order: bool,
    stream: Generator,
}

impl Jitter {
    pub(crate) fn new(config: &JitterConfig, streams: Streams) -> Self {
        Self {
            spread: config.spread.as_nanos(),
            distribution: config.distribution,
            keep_order: config.keep_order,
            stream: streams.stream("jitter"),
        }
    }

    /// What the next packet's delay differs by, in nanoseconds.
    #[inline]
    pub(crate) fn next(&mut self) -> i64 {
        match self.distribution {
            Distribution::Uniform => {
                let width = u128::from(self.spread) * 2 + 1;
                let offset = (u128::from(self.stream.next_u64()) * width) >> 64;
                (offset as i128 - i128::from(self.spread)) as i64
            }
            Distribution::Normal => {
                let deviation: f64 = StandardNormal.sample(&mut self.stream);
                (deviation * self.spread as f64).round() as i64
            }
        }
    }
}
