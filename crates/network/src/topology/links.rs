//! The links of one role: one table for all of them, or one table each.

use std::borrow::Cow;
use std::fmt;

use foundation::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::{PathConfig, PathSpec};

/// The links of one role in a topology: a table with the keys of a path for all of them, or a list with one table each.
#[derive(Clone, Debug, PartialEq)]
pub enum Links {
    /// The same keys for all.
    Alike(Box<PathConfig>),
    /// Separate keys for each, in order.
    Each(Vec<PathConfig>),
}

/// A function that returns the content of a file or an error.
pub(super) type FileLoader<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

impl Links {
    /// Returns the number of links in a list.
    pub(super) fn count(&self) -> Option<usize> {
        match self {
            Self::Alike(_) => None,
            Self::Each(each) => Some(each.len()),
        }
    }

    /// Returns the specifications of `count` links. Adds problems to `problems`, under `key`.
    pub(super) fn resolve(
        &self,
        key: &str,
        count: usize,
        load: &mut FileLoader<'_>,
        problems: &mut Vec<Problem>,
    ) -> Vec<PathSpec> {
        let mut one = |key: &str, config: &PathConfig| match config.resolve(load) {
            Ok(spec) => spec,
            Err(found) => {
                problems.extend(found.into_iter().map(|problem| problem.within(key)));
                PathSpec::default()
            }
        };
        match self {
            Self::Alike(config) => vec![one(key, config); count],
            Self::Each(each) => {
                let mut specs: Vec<PathSpec> = (0..)
                    .zip(each)
                    .map(|(number, config): (usize, _)| one(&format!("{key}[{number}]"), config))
                    .collect();
                if specs.len() != count {
                    problems.push(Problem::new(
                        key,
                        format!("the list has {} links, but {count} are required", specs.len()),
                    ));
                    specs.resize_with(count, PathSpec::default);
                }
                specs
            }
        }
    }
}

impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Links;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a table of link keys such as { rate = \"1Mbit/s\", delay = \"5ms\" }, or a list with one table per link",
                )
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Links, A::Error> {
                PathConfig::deserialize(MapAccessDeserializer::new(map))
                    .map(|config| Links::Alike(Box::new(config)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Links, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Links::Each)
            }
        }

        deserializer.deserialize_any(OneOrMany)
    }
}

impl Serialize for Links {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Alike(config) => config.serialize(serializer),
            Self::Each(each) => each.serialize(serializer),
        }
    }
}

impl JsonSchema for Links {
    fn schema_name() -> Cow<'static, str> {
        "Links".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let path = generator.subschema_for::<PathConfig>();
        json_schema!({
            "description": "A table of path keys for all links of this role, or a list with one table per link",
            "anyOf": [path.clone(), { "type": "array", "items": path }],
        })
    }
}
