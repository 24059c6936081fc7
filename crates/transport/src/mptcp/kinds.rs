//! Settings that are a word where their defaults will do, and a table with a kind and its keys where not.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// Reads a table that is tagged by its kind, or the kind alone.
pub(super) fn name_or_table<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let table = match Value::deserialize(from)? {
        Value::String(kind) => json!({ "kind": kind }),
        Value::Object(table) if !table.contains_key("kind") => {
            return Err(D::Error::missing_field("kind"));
        }
        other => other,
    };
    T::deserialize(table).map_err(D::Error::custom)
}

/// Declares a setting whose kinds are files: each with its word, its help and its type of settings.
macro_rules! kinds {
    (
        $(#[$doc:meta])* $config:ident, $table:ident, $settings:ident, $built:ty, $what:literal;
        $($(#[$help:meta])* $key:literal => $file:ident::$name:ident,)+
    ) => {
        $(pub use $file::$name;)+

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $config {
            $($(#[$help])* $name($name),)+
        }

        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        enum $table {
            $($(#[$help])* #[serde(rename = $key)] $name($name),)+
        }

        impl $config {
            /// The words for all kinds.
            pub const KINDS: &'static [&'static str] = &[$($key,)+];

            /// What is out of range, by key.
            #[must_use]
            pub fn validate(&self) -> Vec<foundation::Problem> {
                self.settings().validate()
            }

            /// The word for it.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $key,)+
                }
            }

            /// What one connection uses.
            #[must_use]
            pub fn build(&self) -> $built {
                self.settings().build()
            }

            fn settings(&self) -> &dyn $settings {
                match self {
                    $(Self::$name(settings) => settings,)+
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $config {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok(match crate::mptcp::kinds::name_or_table(from)? {
                    $($table::$name(settings) => Self::$name(settings),)+
                })
            }
        }

        impl serde::Serialize for $config {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$name(settings) if *settings == $name::default() => to.serialize_str($key),)+
                    $(Self::$name(settings) => $table::$name(settings.clone()).serialize(to),)+
                }
            }
        }

        impl schemars::JsonSchema for $config {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $what.into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let table = $table::json_schema(generator);
                schemars::json_schema!({
                    "description": concat!($what, ": by its kind, or a table with its kind and keys"),
                    "anyOf": [{ "type": "string", "enum": Self::KINDS }, table],
                })
            }
        }
    };
}

pub(super) use kinds;
