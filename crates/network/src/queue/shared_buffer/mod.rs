//! Buffers that all queues of a switch share, with dynamic thresholds: a queue accepts a packet while it is shorter than
//! alpha times the free part of the buffer (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
//! Switches", IEEE/ACM ToN 6, 1998).
//!
//! With n congested queues, each settles at alpha / (1 + n alpha) of the buffer, and 1 / (1 + n alpha) stays free for others.

mod member;
mod pool;

use std::borrow::Cow;

use foundation::kinds::{self, Written};
use foundation::{Problem, Size, reading};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::config::LinkSpec;
use crate::queue::discipline::COMMON_MTU;
use crate::queue::{QueueConfig, QueueLimit, QueuedLink};

pub(crate) use pool::BufferPool;

/// Largest factor. Above it, one queue takes 99 % of the buffer.
const MAX_ALPHA: f64 = 100.0;
/// A packet of the largest MTU.
const MIN_SIZE: u64 = 65_536;

/// A buffer for all outgoing links of a switch, the packets in transmission included.
///
/// The string form `"4MB"` has the factor 1; the table form sets all keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SharedBuffer {
    /// Size in bytes; at least 64 KiB.
    pub size: Size,
    /// Limit of each queue as a multiple of the free part of the buffer; above 0, at most 100; default 1.
    pub alpha: f64,
}

/// The table form.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Size of the buffer of each switch, e.g. "4MB"; at least "64KiB"
    size: Size,
    /// Limit of each queue as a multiple of the free part of the buffer; above 0, at most 100; default 1
    #[serde(default = "one")]
    alpha: f64,
}

const fn one() -> f64 {
    1.0
}

impl SharedBuffer {
    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let size = format_args!("\"{}\"", self.size).to_string();
        let is_large = self.size.bytes() >= MIN_SIZE;
        let is_factor = self.alpha > 0.0 && self.alpha <= MAX_ALPHA;
        let problems = [
            Problem::range("size", size, is_large, "at least \"64KiB\""),
            Problem::range("alpha", self.alpha, is_factor, "above 0, at most 100"),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the length in bytes below which a queue accepts packets while all others are empty.
    fn largest_queue(&self) -> u64 {
        (self.alpha / (1.0 + self.alpha) * self.size.bytes() as f64).ceil() as u64
    }

    /// Returns the queue of a link, with the largest share of the buffer as its limit if its own is larger.
    pub(crate) fn longest(&self, spec: &LinkSpec) -> QueueConfig {
        let share = self.largest_queue();
        let own = match spec.queue.limit() {
            QueueLimit::Packets(packets) => packets.saturating_mul(spec.mtu.unwrap_or(COMMON_MTU).into()),
            QueueLimit::Bytes(size) => size.bytes(),
        };
        let mut queue = spec.queue.clone();
        if own > share {
            queue.set_limit(QueueLimit::Bytes(Size::from_bytes(share)));
        }
        queue
    }

    /// Returns a problem if a link cannot use the buffer, or if its queue has a threshold that it cannot reach in it.
    pub(crate) fn problem_of(&self, spec: &LinkSpec) -> Option<String> {
        let rate = spec.capacity.mean_rate();
        if rate.is_none() {
            return Some("has no rate: the outgoing links of a switch require rate or trace".into());
        }
        let longest = self.longest(spec);
        let link = QueuedLink { rate, mtu: spec.mtu };
        let problem = longest
            .validate()
            .into_iter()
            .chain(longest.validate_on(&link))
            .next()?;
        Some(format!(
            "has a queue that is shorter in the shared buffer: queue.{}: {}",
            problem.key, problem.message
        ))
    }
}

impl Written for SharedBuffer {
    fn expected() -> Cow<'static, str> {
        "a size with its unit such as \"4MB\", or a table such as { size = \"4MB\", alpha = 0.5 }".into()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let size = text.parse();
        size.map(|size| Self { size, alpha: one() })
            .map_err(|error: foundation::QuantityError| error.to_string())
    }

    fn from_table(table: Map<String, Value>) -> Result<Self, Problem> {
        let Table { size, alpha } = reading::read_value(Value::Object(table))?;
        Ok(Self { size, alpha })
    }
}

impl<'de> Deserialize<'de> for SharedBuffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kinds::deserialize(deserializer)
    }
}

impl JsonSchema for SharedBuffer {
    fn schema_name() -> Cow<'static, str> {
        "SharedBuffer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut table = Table::json_schema(generator);
        table.remove("description");
        json_schema!({
            "description": "A buffer for all outgoing links of a switch: a size, or a table",
            "oneOf": [generator.subschema_for::<Size>(), table],
        })
    }
}
