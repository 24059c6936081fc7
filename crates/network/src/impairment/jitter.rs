//! Jitter: delay variation from packet to packet.

use std::borrow::Cow;

use foundation::kinds::{self, Written};
use foundation::reading;
use foundation::{Duration, Generator, Problem, Streams};
use rand::Rng;
use rand_distr::{Distribution as _, StandardNormal};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Variation of the one-way delay from packet to packet.
///
/// The string form `"5ms"` is uniform within 5 ms around the delay and keeps packets in order; the table form sets all keys.
/// If packets follow each other more closely than the jitter, keeping their order makes them wait for slower
/// ones in front, so the mean delay exceeds the configured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JitterConfig {
    /// Half-width of the uniform distribution (at most the delay), or standard deviation of the normal one.
    pub spread: Duration,
    /// Distribution; default uniform.
    pub distribution: Distribution,
    /// Whether packets stay in order; default true.
    pub keep_order: bool,
}

/// The distribution of the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Uniform between delay - spread and delay + spread.
    #[default]
    Uniform,
    /// Normal around the delay with standard deviation spread; negative delays become 0.
    Normal,
}

impl JitterConfig {
    /// Returns uniform jitter within `spread` around the delay, without reordering.
    #[must_use]
    pub const fn uniform(spread: Duration) -> Self {
        Self {
            spread,
            distribution: Distribution::Uniform,
            keep_order: true,
        }
    }

    /// Returns all values out of range on a link with this delay.
    #[must_use]
    pub fn validate(&self, delay: Duration) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.distribution == Distribution::Uniform && self.spread > delay {
            problems.push(Problem::new(
                "",
                format!(
                    "\"{}\" is out of range: at most delay = \"{delay}\" (a packet cannot arrive before it is sent)",
                    self.spread
                ),
            ));
        }
        problems
    }
}

/// The table form.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Half-width (uniform; at most the delay) or standard deviation (normal), e.g. "5ms"
    spread: Duration,
    /// Distribution of the delay; default "uniform"
    #[serde(default)]
    distribution: Distribution,
    /// Order preservation: a packet waits for the one in front instead of overtaking it; default true
    #[serde(default = "kept")]
    keep_order: bool,
}

const fn kept() -> bool {
    true
}

impl Written for JitterConfig {
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

    fn from_table(table: Map<String, Value>) -> Result<Self, Problem> {
        let table: Table = reading::read_value(Value::Object(table))?;
        Ok(Self {
            spread: table.spread,
            distribution: table.distribution,
            keep_order: table.keep_order,
        })
    }
}

impl<'de> Deserialize<'de> for JitterConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kinds::deserialize(deserializer)
    }
}

impl JsonSchema for JitterConfig {
    fn schema_name() -> Cow<'static, str> {
        "Jitter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut table = Table::json_schema(generator);
        table.remove("description");
        json_schema!({
            "description": "Delay variation: a spread, or a table",
            "oneOf": [generator.subschema_for::<Duration>(), table],
        })
    }
}

/// The jitter process of a link.
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

    /// Returns the deviation of the next packet from the delay, in nanoseconds.
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
