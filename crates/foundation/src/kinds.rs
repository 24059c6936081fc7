//! Settings written as a table, and as text in the simple case. Those with several kinds, such as queues and loss models,
//! have a table with the key `kind` and the keys of that kind.
//!
//! The macro [`kinds!`](crate::kinds!) declares an enum of kinds; [`deserialize`] reads all such settings, with errors that
//! name the key. Serde's untagged enums report only that no variant matched.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::Problem;
use crate::quantity::nearest;

/// The key of a table that selects its kind.
pub const KIND: &str = "kind";

/// Settings with several kinds.
pub trait Kinds: Sized {
    /// Names of all kinds.
    const KINDS: &'static [&'static str];

    /// Reads the keys of a kind; `None` if the kind is unknown.
    fn from_keys(kind: &str, keys: Map<String, Value>) -> Option<Result<Self, Problem>>;

    /// Returns the JSON Schemas of kinds from outside of the crate, if any are allowed.
    fn external_schemas() -> Vec<Value> {
        Vec::new()
    }
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
///
/// With `+ External(Type)` names with a [`SEPARATOR`](crate::extension::SEPARATOR) are kinds of that type, which has the
/// interface of [`Configured`](crate::extension::Configured) and implements `$settings` too.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident: $settings:ident $(+ External($external:ty))? {
            $($key:literal => $kind:ident $(in $file:ident)?,)+
        }
    ) => {
        $($(mod $file; pub use $file::$kind;)?)+

        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::schemars::JsonSchema)]
        #[allow(missing_docs, reason = "the settings type of each kind has the documentation")]
        $(#[$attribute])*
        pub enum $name {
            $(#[serde(rename = $key)] $kind($kind),)+
            $(#[serde(skip)] #[schemars(skip)] External($external),)?
        }

        impl $name {
            /// Names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($key,)+];

            /// Returns the name of the kind.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$kind(_) => $key,)+
                    $(Self::External(external) => <$external>::name(external),)?
                }
            }

            fn settings(&self) -> &dyn $settings {
                match self {
                    $(Self::$kind(settings) => settings,)+
                    $(Self::External(external) => ::std::borrow::Borrow::<$external>::borrow(external),)?
                }
            }

            #[allow(dead_code, reason = "not every enum of kinds changes its settings")]
            fn settings_mut(&mut self) -> &mut dyn $settings {
                match self {
                    $(Self::$kind(settings) => settings,)+
                    $(Self::External(external) => ::std::borrow::BorrowMut::<$external>::borrow_mut(external),)?
                }
            }
        }

        impl $crate::kinds::Kinds for $name {
            const KINDS: &'static [&'static str] = Self::KINDS;

            fn from_keys(
                kind: &str,
                keys: ::serde_json::Map<String, ::serde_json::Value>,
            ) -> Option<Result<Self, $crate::Problem>> {
                Some(match kind {
                    $($key => $crate::reading::read_value(::serde_json::Value::Object(keys)).map(Self::$kind),)+
                    $(_ if $crate::extension::is_external(kind) => {
                        <$external>::external(kind, &keys).map(Self::External)
                    })?
                    _ => return None,
                })
            }

            $(fn external_schemas() -> Vec<::serde_json::Value> {
                <$external>::schemas().into()
            })?
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
    T::from_keys(kind, Map::new())?.ok()
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
    T::from_keys(&kind, table).unwrap_or_else(|| {
        let near = nearest(&kind, T::KINDS.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
        Err(problem(format!("{kind:?} is not known: {hint}")))
    })
}
