//! Settings written as a table, and as text in the simple case. Those with several kinds, such as queues and loss models,
//! have a table with the key `kind` and the keys of that kind.
//!
//! The macro [`kinds!`](crate::kinds!) declares an enum of kinds; [`deserialize`] reads all such settings, with errors that
//! name the key. Serde's untagged enums report only that no variant matched.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::quantity::nearest;
use crate::{Problem, wrong_value};

/// The key of a table that selects its kind.
pub const KIND: &str = "kind";

/// Settings with several kinds.
pub trait Kinds: Sized {
    /// Names of all kinds.
    const KINDS: &'static [&'static str];

    /// Reads the keys of a kind; `None` if the kind is unknown.
    fn from_keys(kind: &str, keys: Value) -> Option<Result<Self, Problem>>;
}

/// Settings written as text or as a table in study files.
pub trait Written: Sized {
    /// Returns the allowed forms, as a phrase after "expected".
    fn expected() -> Cow<'static, str>;

    /// Parses the text form.
    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("{text:?} is not a table: expected {}", Self::expected()))
    }

    /// Reads the table form; [`from_table`] does for kinds.
    fn from_table(table: Map<String, Value>) -> Result<Self, Problem>;
}

/// Declares an enum of kinds, each with a settings type of the same name that implements the trait `$settings`:
/// `"name" => Type in file`. Declares the file as a module and exports the type, whose doc comment is the help for users.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident: $settings:ident {
            $($key:literal => $kind:ident $(in $file:ident)?,)+
        }
    ) => {
        $($(mod $file; pub use $file::$kind;)?)+

        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::schemars::JsonSchema)]
        #[allow(missing_docs, reason = "the settings type of each kind has the documentation")]
        $(#[$attribute])*
        pub enum $name {
            $(#[serde(rename = $key)] $kind($kind),)+
        }

        impl $name {
            /// Names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($key,)+];

            /// Returns the name of the kind.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $key,)+
                }
            }

            fn settings(&self) -> &dyn $settings {
                match self {
                    $(Self::$kind(settings) => settings,)+
                }
            }

            #[allow(dead_code, reason = "not every enum of kinds changes its settings")]
            fn settings_mut(&mut self) -> &mut dyn $settings {
                match self {
                    $(Self::$kind(settings) => settings,)+
                }
            }
        }

        impl $crate::kinds::Kinds for $name {
            const KINDS: &'static [&'static str] = Self::KINDS;

            fn from_keys(kind: &str, keys: ::serde_json::Value) -> Option<Result<Self, $crate::Problem>> {
                Some(match kind {
                    $($key => $crate::kinds::read_value(keys).map(Self::$kind),)+
                    _ => return None,
                })
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::kinds::deserialize(from)
            }
        }
    };
}

/// Reads the text form or a table.
///
/// # Errors
/// A message that starts with the key inside the table.
pub fn deserialize<'de, T: Written, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct TextOrTable<T>(PhantomData<T>);

    impl<'de, T: Written> Visitor<'de> for TextOrTable<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&T::expected())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::from_text(text).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::from_table(Map::deserialize(MapAccessDeserializer::new(map))?).map_err(A::Error::custom)
        }
    }

    deserializer.deserialize_any(TextOrTable(PhantomData))
}

/// Returns a kind with the defaults of all keys; `None` if it is unknown or has required keys.
pub fn from_kind<T: Kinds>(kind: &str) -> Option<T> {
    T::from_keys(kind, Value::Object(Map::new()))?.ok()
}

/// Reads a table with the key [`KIND`].
///
/// # Errors
/// The first problem, with its key and the allowed values.
pub fn from_table<T: Kinds>(mut table: Map<String, Value>) -> Result<T, Problem> {
    let allowed = T::KINDS.join(", ");
    let problem = |message: String| Problem::new(KIND, format!("{message}allowed: {allowed}"));
    let kind = match table.remove(KIND) {
        Some(Value::String(kind)) => kind,
        Some(other) => return Err(problem(format!("{other} is not a kind: "))),
        None => return Err(problem("the key is missing: ".into())),
    };
    T::from_keys(&kind, Value::Object(table)).unwrap_or_else(|| {
        let near = nearest(&kind, T::KINDS.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
        Err(problem(format!("{kind:?} is not known: {hint}")))
    })
}

/// Reads a configuration from a JSON value.
///
/// # Errors
/// The first problem, with its key and the allowed values.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    let mut track = serde_path_to_error::Track::new();
    let result = T::deserialize(serde_path_to_error::Deserializer::new(value.clone(), &mut track));
    result.map_err(|error| {
        let path = track.path().to_string();
        explain(&value, if path == "." { "" } else { &path }, &error.to_string())
    })
}

/// Reads a configuration from JSON.
///
/// # Errors
/// The first problem.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, Problem> {
    let value = serde_json::from_str(json).map_err(|error| Problem::new("", error.to_string()))?;
    read_value(value)
}

/// Converts a message of serde to a problem with the allowed names and a hint.
fn explain(value: &Value, path: &str, message: &str) -> Problem {
    // Serde quotes the wrong name first, then the allowed ones.
    let mut quoted = message.split('`').skip(1).step_by(2);
    let name = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    if message.starts_with("unknown field") {
        let (hint, allowed) = (wrong_value::hint(name, &known), known.join(", "));
        let parent = path.strip_suffix(name).unwrap_or(path).trim_end_matches('.');
        return Problem::new(name, format!("unknown key: {hint}allowed: {allowed}")).within(parent);
    }
    if message.starts_with("missing field") {
        return Problem::new(name, "the key is missing").within(path);
    }
    // A table with a kind reports the key inside it in front of the message.
    if let Some((key, rest)) = message.split_once(": ")
        && is_key_of(value, path, key)
    {
        return Problem::new(key, wrong_value::plain(&rest)).within(path);
    }
    Problem::new(path, wrong_value::plain(&message))
}

/// Returns whether the table at `path` of a value has or lacks a key, as opposed to a message that is no key at all.
fn is_key_of(value: &Value, path: &str, key: &str) -> bool {
    let pointer = path.replace(['.', '['], "/").replace(']', "");
    let pointer = if path.is_empty() {
        pointer
    } else {
        format!("/{pointer}")
    };
    let first = key.split(['.', '[']).next().unwrap_or_default();
    let is_name = !first.is_empty() && first.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    is_name && value.pointer(&pointer).is_some_and(Value::is_object)
}
