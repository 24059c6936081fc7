//! Settings that are a text in the simple case and a table in the others.
//!
//! Serde's untagged enums would do, but their only message is that nothing matched.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A setting that is read from a text or from a table.
pub(crate) trait TextOrTable: Sized {
    /// The table, as it is written.
    type Table: for<'de> Deserialize<'de>;

    /// What is allowed, to follow "expected".
    fn expected() -> Cow<'static, str>;

    /// Reads the text.
    fn from_text(text: &str) -> Result<Self, String>;
    /// Makes sense of the table.
    fn from_table(table: Self::Table) -> Result<Self, String>;
}

/// Reads a setting of either form.
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
