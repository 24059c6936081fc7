//! Queues in front of links.
//!
//! Drop-tail is built into the link, because the departure time of a packet is known when it joins. Every other discipline
//! is one file with a settings struct that implements [`DisciplineConfig`] and a struct that implements [`Discipline`]; it
//! has a line in `kinds!` below.

mod coupled;
pub(crate) mod discipline;
pub(crate) mod drop_tail;
mod external;
mod fifo;
mod flow_hash;
mod limit;
pub(crate) mod shared_buffer;
mod tail;

use std::borrow::Cow;

use foundation::kinds::{Kinds, Written};
use foundation::quantity::nearest;
use foundation::{Problem, Rate, extension, kinds};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

pub use cake::{Framing, Isolation};
pub use discipline::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueuedLink, QueuedPacket, RouteHosts,
    Transmitter,
};
pub use external::{DisciplineSettings, ExternalQueue};
pub use fq_codel::Overflow;
pub use limit::QueueLimit;
pub use shared_buffer::SharedBuffer;

/// Drop-tail: a full queue drops arriving packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTail {
    /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
}

impl DisciplineConfig for DropTail {
    discipline::limit_key!();

    fn validate(&self) -> Vec<Problem> {
        self.limit.map_or_else(Vec::new, |limit| limit.validate())
    }

    fn build(&self, _: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        None
    }
}

kinds! {
    /// The queue in front of a link: a limit such as `"100pkt"` or `"64KiB"` for drop-tail, a kind, or a table with its kind
    /// and keys.
    #[serde(remote = "Self", tag = "kind")]
    #[schemars(rename = "Queue", transform = add_text_forms)]
    pub enum QueueConfig: DisciplineConfig + External(ExternalQueue) {
        "drop-tail" => DropTail,
        "drop-head" => DropHead in drop_head,
        "red" => Red in red,
        "codel" => CoDel in codel,
        "fq-codel" => FqCoDel in fq_codel,
        "pie" => Pie in pie,
        "pi2" => Pi2 in pi2,
        "dualpi2" => DualPi2 in dualpi2,
        "step" => Step in step,
        "prio" => Prio in prio,
        "cake" => Cake in cake,
    }
}

impl QueueConfig {
    /// Returns a drop-tail queue.
    #[must_use]
    pub const fn drop_tail(limit: QueueLimit) -> Self {
        Self::DropTail(DropTail { limit: Some(limit) })
    }

    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        self.settings().validate()
    }

    /// Returns all problems of these settings on a link.
    #[must_use]
    pub fn validate_on(&self, link: &QueuedLink) -> Vec<Problem> {
        self.settings().validate_on(link)
    }

    /// Returns the limit, or the default of the discipline.
    #[must_use]
    pub fn limit(&self) -> QueueLimit {
        self.settings().limit()
    }

    /// Returns the rate at which the queue itself holds packets back, if it does.
    #[must_use]
    pub fn shaper(&self) -> Option<Rate> {
        self.settings().shaper()
    }

    /// Returns this queue, with the limit of `other` if it has none.
    #[must_use]
    pub fn or_limit_of(mut self, other: &Self) -> Self {
        let inherited = other.settings().limit_key();
        let limit = self.settings_mut().limit_key_mut();
        *limit = limit.or(inherited);
        self
    }

    /// Returns this queue with an explicit limit.
    #[must_use]
    pub fn with_limit(mut self) -> Self {
        *self.settings_mut().limit_key_mut() = Some(self.limit());
        self
    }

    /// Sets the limit.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit) {
        *self.settings_mut().limit_key_mut() = Some(limit);
    }

    /// Builds the discipline for a link; `None` for drop-tail, which the link implements itself.
    pub(crate) fn discipline(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        self.settings().build(context)
    }

    /// Builds the discipline for a link that does not implement drop-tail.
    pub(crate) fn discipline_or_tail(&self, context: &QueueContext) -> Box<dyn Discipline + Send> {
        let discipline = self.discipline(context);
        discipline.unwrap_or_else(|| Box::new(tail::Tail::new(self.limit())))
    }
}

impl Written for QueueConfig {
    fn expected() -> Cow<'static, str> {
        format!(
            "a queue limit with its unit such as \"100pkt\" or \"64KiB\", or a kind such as \"codel\", or a table such as \
             {{ kind = \"codel\", limit = \"100pkt\" }}; the kinds are {}",
            Self::KINDS.join(", ")
        )
        .into()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if extension::is_external(text) {
            return ExternalQueue::external(text, &Map::new())
                .map(Self::External)
                .map_err(|problem| problem.message);
        }
        if let Some(kind) = kinds::from_kind(text) {
            return Ok(kind);
        }
        // A name is more likely a mistyped kind than a mistyped number.
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let hint = nearest(text, Self::KINDS.iter().copied())
                .map_or(String::new(), |near| format!("did you mean {near:?}? "));
            return Err(format!(
                "{text:?} is not a queue: {hint}expected {}",
                Self::expected()
            ));
        }
        text.parse()
            .map(Self::drop_tail)
            .map_err(|error: foundation::QuantityError| error.to_string())
    }

    fn from_table(table: Map<String, Value>) -> Result<Self, Problem> {
        kinds::from_table(table)
    }
}

impl Serialize for QueueConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::DropTail(DropTail { limit: Some(limit) }) => limit.serialize(serializer),
            Self::External(external) => external.serialize(serializer),
            Self::DropTail(DropTail { limit: None }) => self.kind().serialize(serializer),
            _ => Self::serialize(self, serializer),
        }
    }
}

/// Adds a limit and the names of kinds to the schema of the tables.
fn add_text_forms(tables: &mut Schema) {
    let mut forms = vec![
        json!({ "$ref": "#/$defs/QueueLimit" }),
        json!({ "type": "string", "enum": QueueConfig::KINDS }),
        tables.clone().to_value(),
    ];
    forms.extend(QueueConfig::external_schemas());
    *tables = json_schema!({
        "description": "Queue in front of the link: a limit (drop-tail), a kind, or a table with its kind and keys",
        "anyOf": forms,
    });
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::drop_tail(QueueLimit::default())
    }
}
