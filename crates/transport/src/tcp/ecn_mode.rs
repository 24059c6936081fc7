//! The key `ecn`: how a connection uses explicit congestion notification.

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
}

impl Serialize for EcnMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Classic => serializer.serialize_bool(true),
            Self::Dctcp => serializer.serialize_str("dctcp"),
        }
    }
}

impl<'de> Deserialize<'de> for EcnMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::Off),
            Value::Bool(true) => Ok(Self::Classic),
            Value::String(name) if name == "dctcp" => Ok(Self::Dctcp),
            value => Err(D::Error::custom(format!(
                "{value} is not one of true, false, \"dctcp\""
            ))),
        }
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
        json_schema!({ "anyOf": [{ "enum": ["dctcp"] }, { "type": "boolean" }] })
    }
}
