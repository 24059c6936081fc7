//! Queues in front of links.
//!
//! Drop-tail is built into the link, because there a packet's departure is known when it
//! joins. Every other discipline is one file with a settings struct that implements [`DisciplineConfig`] and a
//! struct that implements [`Discipline`], and a line in `disciplines!` below (beside its `mod`, as for any file).

mod codel;
mod discipline;
mod drop_head;
pub(crate) mod drop_tail;
mod fifo;
mod fq_codel;
mod limit;
mod pie;
mod red;

use std::borrow::Cow;

use foundation::Problem;
use foundation::quantity::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::text_or_table::{self, TextOrTable};

pub use discipline::{Discipline, DisciplineConfig, QueueActions, QueueContext, QueuedPacket, Transmitter};
pub use limit::QueueLimit;

/// First in, first out; what finds no room is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTail {
    /// How much it holds, the packet that is being sent included; default "1000pkt".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub limit: Option<QueueLimit>,
}

impl DropTail {
    /// How much it holds.
    #[must_use]
    pub fn limit(&self) -> QueueLimit {
        self.limit.unwrap_or_default()
    }
}

/// Declares the table forms of a queue and how its disciplines are made.
macro_rules! disciplines {
    ($($(#[$help:meta])* $word:literal => $file:ident::$name:ident,)+) => {
        $(pub use $file::$name;)+

        /// The queue in front of a link: a limit such as `"100pkt"` or `"64KiB"` for drop-tail,
        /// or a table that names a discipline.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum QueueConfig {
            /// First in, first out; what finds no room is dropped.
            DropTail(DropTail),
            $($(#[$help])* $name($name),)+
        }

        /// A queue written as a table: the discipline's kind and its keys.
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub(crate) enum Table {
            /// First in, first out; what finds no room is dropped.
            #[serde(rename = "drop-tail")]
            DropTail(DropTail),
            $($(#[$help])* #[serde(rename = $word)] $name($name),)+
        }


        /// What is allowed, to follow "expected".
        const EXPECTED: &str = concat!(
            "a queue limit with its unit such as \"100pkt\" or \"64KiB\", or a kind such as \"codel\", or a table such as ",
            "{ kind = \"codel\", limit = \"100pkt\" }; the kinds are drop-tail", $(", ", $word,)+
        );

        impl From<Table> for QueueConfig {
            fn from(table: Table) -> Self {
                match table {
                    Table::DropTail(config) => Self::DropTail(config),
                    $(Table::$name(config) => Self::$name(config),)+
                }
            }
        }

        impl From<QueueConfig> for Table {
            fn from(config: QueueConfig) -> Self {
                match config {
                    QueueConfig::DropTail(config) => Self::DropTail(config),
                    $(QueueConfig::$name(config) => Self::$name(config),)+
                }
            }
        }

        impl QueueConfig {
            /// The names of all disciplines.
            pub const KINDS: &'static [&'static str] = &["drop-tail", $($word,)+];

            /// The name of the discipline.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    Self::DropTail(_) => "drop-tail",
                    $(Self::$name(_) => $word,)+
                }
            }

            /// The discipline of this name with its default settings.
            fn named(word: &str) -> Option<Self> {
                match word {
                    "drop-tail" => Some(Self::DropTail(DropTail::default())),
                    $($word => Some(Self::$name($name::default())),)+
                    _ => None,
                }
            }

            /// What is out of range.
            #[must_use]
            pub fn validate(&self) -> Vec<Problem> {
                match self {
                    Self::DropTail(config) => config.limit.map_or_else(Vec::new, |limit| limit.validate()),
                    $(Self::$name(config) => config.validate(),)+
                }
            }

            /// How much it holds, the packet that is being sent included.
            #[must_use]
            pub fn limit(&self) -> QueueLimit {
                match self {
                    Self::DropTail(config) => config.limit(),
                    $(Self::$name(config) => config.limit.unwrap_or($name::LIMIT),)+
                }
            }

            fn given_limit(&mut self) -> &mut Option<QueueLimit> {
                match self {
                    Self::DropTail(config) => &mut config.limit,
                    $(Self::$name(config) => &mut config.limit,)+
                }
            }

            /// The discipline that holds packets; for drop-tail, which the link does itself, its settings.
            pub(crate) fn discipline(&self, context: &QueueContext) -> Result<Box<dyn Discipline + Send>, DropTail> {
                match self {
                    Self::DropTail(config) => Err(*config),
                    $(Self::$name(config) => Ok(config.build(context)),)+
                }
            }
        }
    };
}

disciplines! {
    /// First in, first out; the oldest waiting packets make room for what arrives.
    "drop-head" => drop_head::DropHead,
    /// Random early detection: what arrives is dropped with a probability that rises with the average queue.
    "red" => red::Red,
    /// Controlled delay: packets are dropped as they leave, ever faster while they have waited too long.
    "codel" => codel::CoDel,
    /// Flows in turn, each with a queue under CoDel; flows that send little do not wait for those that send much.
    "fq-codel" => fq_codel::FqCoDel,
    /// Proportional integral controller: what arrives is dropped with a probability steered so that packets wait for the target.
    "pie" => pie::Pie,
}

impl QueueConfig {
    /// A drop-tail queue.
    #[must_use]
    pub const fn drop_tail(limit: QueueLimit) -> Self {
        Self::DropTail(DropTail { limit: Some(limit) })
    }

    /// This queue, with the limit given for `other` where none is given for this one.
    #[must_use]
    pub fn or_limit_of(mut self, mut other: Self) -> Self {
        let limit = self.given_limit();
        *limit = limit.or(*other.given_limit());
        self
    }

    /// This queue with its limit spelled out.
    #[must_use]
    pub fn with_limit(mut self) -> Self {
        *self.given_limit() = Some(self.limit());
        self
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::drop_tail(QueueLimit::default())
    }
}

impl TextOrTable for QueueConfig {
    type Table = Table;

    fn expected() -> Cow<'static, str> {
        EXPECTED.into()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if let Some(named) = Self::named(text) {
            return Ok(named);
        }
        // A word is more likely a kind's name than a mistyped number.
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let hint = nearest(text, Self::KINDS.iter().copied())
                .map_or(String::new(), |near| format!("did you mean {near:?}? "));
            return Err(format!("{text:?} is not a queue: {hint}expected {EXPECTED}"));
        }
        text.parse()
            .map(Self::drop_tail)
            .map_err(|error: foundation::QuantityError| error.to_string())
    }

    fn from_table(table: Table) -> Result<Self, String> {
        Ok(table.into())
    }
}

impl<'de> Deserialize<'de> for QueueConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_table::deserialize(deserializer)
    }
}

impl Serialize for QueueConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::DropTail(DropTail { limit: Some(limit) }) => limit.serialize(serializer),
            Self::DropTail(DropTail { limit: None }) => Self::KINDS[0].serialize(serializer),
            other => Table::from(*other).serialize(serializer),
        }
    }
}

impl JsonSchema for QueueConfig {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let limit = generator.subschema_for::<QueueLimit>();
        let table = Table::json_schema(generator);
        json_schema!({
            "description": "The queue in front of the link: a limit (drop-tail), a discipline by its kind, or a table with its kind and keys",
            "anyOf": [limit, { "type": "string", "enum": Self::KINDS }, table],
        })
    }
}
