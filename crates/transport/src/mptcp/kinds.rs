//! Settings with several kinds, such as schedulers: a kind's name, or a table with its kind and keys.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// Reads a kind's name, or a table tagged by its kind. `removed` lists the names of removed kinds, each with a hint.
pub(super) fn name_or_table<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
    removed: &[(&str, &str)],
) -> Result<T, D::Error> {
    let table = match Value::deserialize(from)? {
        Value::String(kind) => json!({ "kind": kind }),
        Value::Object(table) if !table.contains_key("kind") => {
            return Err(D::Error::missing_field("kind"));
        }
        other => other,
    };
    if let Some((kind, hint)) = removed.iter().find(|(kind, _)| table["kind"] == *kind) {
        return Err(D::Error::custom(format!("{kind:?} was removed: {hint}")));
    }
    T::deserialize(table).map_err(D::Error::custom)
}

/// Declares an enum of kinds with one settings type each: `"name" => file::Type`. The doc comment of the type is the
/// help for users.
macro_rules! kinds {
    (
        $(#[$doc:meta])* $config:ident, $table:ident, $settings:ident, $built:ty, $what:literal, $removed:expr;
        $($key:literal => $file:ident::$name:ident,)+
    ) => {
        $(pub use $file::$name;)+

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $config {
            $(#[doc = concat!("Settings of `", $key, "`.")] $name($name),)+
        }

        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        enum $table {
            $(#[serde(rename = $key)] $name($name),)+
        }

        impl $config {
            /// Names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($key,)+];

            /// Returns the keys that are out of range.
            #[must_use]
            pub fn validate(&self) -> Vec<foundation::Problem> {
                self.settings().validate()
            }

            /// Returns the name of the kind.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $key,)+
                }
            }

            /// Builds the instance of one connection.
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
                Ok(match crate::mptcp::kinds::name_or_table(from, $removed)? {
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
