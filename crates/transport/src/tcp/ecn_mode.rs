//! The keys `ecn` and `ecn_option`: how a connection uses explicit congestion notification.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Use of explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// None: packets are not ECN-capable.
    Off,
    /// ACKs echo a mark until the sender has reduced its window (RFC 3168).
    Classic,
    /// ACKs echo the mark of each segment, so that the sender counts marked bytes (RFC 8257, section 3.2).
    Dctcp,
    /// ACKs count marked segments and bytes (AccECN, RFC 9768). A peer that lacks it gets classic feedback.
    Accurate,
}

/// The modes that have a name in studies.
const NAMES: [(&str, EcnMode); 2] = [("dctcp", EcnMode::Dctcp), ("accecn", EcnMode::Accurate)];

impl Serialize for EcnMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match NAMES.iter().find(|(_, mode)| mode == self) {
            Some((name, _)) => serializer.serialize_str(name),
            None => serializer.serialize_bool(*self != Self::Off),
        }
    }
}

impl<'de> Deserialize<'de> for EcnMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let named = |name: &str| NAMES.iter().find(|(known, _)| *known == name);
        let mode = match &value {
            Value::Bool(false) => Some(Self::Off),
            Value::Bool(true) => Some(Self::Classic),
            Value::String(name) => named(name).map(|(_, mode)| *mode),
            _ => None,
        };
        mode.ok_or_else(|| {
            D::Error::custom(format!(
                "{value} is not one of true, false, \"dctcp\", \"accecn\""
            ))
        })
    }
}

impl JsonSchema for EcnMode {
    fn schema_name() -> Cow<'static, str> {
        "EcnMode".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": NAMES.map(|(name, _)| name) }, { "type": "boolean" }] })
    }
}

/// When segments carry the AccECN option (RFC 9768, section 3.2.3), which costs 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnOption {
    /// Never: the peer learns the number of marked segments only.
    Off,
    /// When it reports a change, and three times per round trip.
    Minimum,
    /// In every segment, as in Linux.
    Full,
}
