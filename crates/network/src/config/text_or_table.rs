//! Settings written as a string in the simple case and as a table otherwise.
//!
//! Serde's untagged enums accept both but report only that no variant matched.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A setting read from a string or from a table.
pub(crate) trait TextOrTable: Sized {
    /// The table form.
    type Table: for<'de> Deserialize<'de>;

    /// Returns the allowed forms, as a phrase after "expected".
    fn expected() -> Cow<'static, str>;

    /// Parses the string form.
    fn from_text(text: &str) -> Result<Self, String>;
    /// Converts the table form.
    fn from_table(table: Self::Table) -> Result<Self, String>;
}

/// Deserializes either form.
pub(crate) fn deserialize<'de, T: TextOrTable, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Either<T>(PhantomData<T>);

    impl<'de, T: TextOrTable> Visitor<'de> for Either<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&T::expected())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::from_text(text).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let table = T::Table::deserialize(MapAccessDeserializer::new(map))?;
            T::from_table(table).map_err(A::Error::custom)
        }
    }

    deserializer.deserialize_any(Either(PhantomData))
}
