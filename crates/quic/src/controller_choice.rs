//! The choice of a congestion controller: one of this project's, or one of the QUIC library's own.

use std::borrow::Cow;

use foundation::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use transport::congestion::{Bursts, CongestionConfig, MarkUse, Registry};

/// Prefix of the library's controllers.
const PREFIX: &str = "quic-";

/// Payload bytes of a packet of a controller that is asked for its properties, on which they do not depend.
const PROBE_SEGMENT: u64 = 1200;

/// A controller of the QUIC library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LibraryController {
    /// CUBIC, as in noq-proto.
    #[serde(rename = "quic-cubic")]
    Cubic,
    /// NewReno (RFC 9002, section 7), as in noq-proto.
    #[serde(rename = "quic-reno")]
    Reno,
}

/// The controller of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ControllerChoice {
    /// A controller of the library, by name.
    Library(LibraryController),
    /// A controller of this project, by name or with settings.
    Own(CongestionConfig),
}

impl Default for ControllerChoice {
    fn default() -> Self {
        Self::Own(CongestionConfig::named("cubic").unwrap_or_default())
    }
}

impl ControllerChoice {
    /// Returns the keys that are out of range or have no effect, and controllers that need the marks of each ACK, which QUIC's controller
    /// interface does not carry.
    #[must_use]
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let Self::Own(own) = self else {
            return Vec::new();
        };
        if own.mark_use() != MarkUse::Signal {
            let message = format!(
                "{:?} counts marked bytes, which QUIC's controller interface does not report: allowed over tcp",
                own.name()
            );
            return vec![Problem::new("", message)];
        }
        let problems = own.validate();
        if problems.is_empty() && own.build(PROBE_SEGMENT).bursts() == Bursts::Whole {
            let message = "has no effect over QUIC, whose library has a pacer of its own: remove it";
            return vec![Problem::new("whole_bursts", message)];
        }
        problems
    }
}

impl<'de> Deserialize<'de> for ControllerChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let name = value.as_str().or_else(|| value.get("kind")?.as_str());
        let is_library = name.is_some_and(|name| name.starts_with(PREFIX));
        if !is_library {
            let own = Registry::builtin().read(&value);
            let first =
                |problems: Vec<Problem>| problems.into_iter().next().map(|problem| problem.to_string());
            return own
                .map(Self::Own)
                .map_err(|problems| D::Error::custom(first(problems).unwrap_or_default()));
        }
        if let Some(name) = name.filter(|_| value.is_object()) {
            return Err(D::Error::custom(format!(
                "{name:?} has no settings: write congestion = {name:?}"
            )));
        }
        let unknown = || format!("unknown controller {value}: allowed of QUIC's own: quic-cubic, quic-reno");
        LibraryController::deserialize(&value)
            .map(Self::Library)
            .map_err(|_| D::Error::custom(unknown()))
    }
}

impl JsonSchema for ControllerChoice {
    fn schema_name() -> Cow<'static, str> {
        "QuicCongestion".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<CongestionConfig>();
        let library = generator.subschema_for::<LibraryController>();
        json_schema!({ "description": "a congestion controller of this project or of the QUIC library", "anyOf": [library, own] })
    }
}
