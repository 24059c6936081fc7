//! How loss is written in a study: `"2%"`, or a table for each of the models, told apart by `model` or by a key that only
//! one of them has.

use std::borrow::Cow;
use std::fmt;

use foundation::Probability;
use foundation::quantity::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{FORMS, LossConfig, LossModel};
use crate::config::text_or_table::{self, TextOrTable};

/// A key of a model's table.
pub(crate) struct Key {
    name: &'static str,
    /// A value, where the model cannot do without the key.
    needed: Option<&'static str>,
    /// What is wrong with a value, as far as the key alone can tell.
    check: fn(&Value) -> Result<(), serde_json::Error>,
}

impl Key {
    /// A key that the model cannot do without, and an example of its value.
    pub(super) const fn needed<T: DeserializeOwned>(name: &'static str, example: &'static str) -> Self {
        Self {
            needed: Some(example),
            ..Self::optional::<T>(name)
        }
    }

    /// A key with a default.
    pub(super) const fn optional<T: DeserializeOwned>(name: &'static str) -> Self {
        Self {
            name,
            needed: None,
            check: |value| T::deserialize(value).map(drop),
        }
    }
}

/// How a model's table is written.
pub(super) struct Form {
    name: &'static str,
    told_by_key: bool,
    keys: &'static [Key],
    example: &'static str,
    read: fn(Value) -> Result<LossConfig, serde_json::Error>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Form {
    pub(super) const fn of<M: LossModel>(read: fn(Value) -> Result<LossConfig, serde_json::Error>) -> Self {
        Self {
            name: M::NAME,
            told_by_key: M::TOLD_BY_KEY,
            keys: M::KEYS,
            example: M::EXAMPLE,
            read,
            schema: M::json_schema,
        }
    }
}

impl Form {
    /// The model with the example values of the keys that it needs; `None` where one of them is not JSON.
    pub(super) fn smallest(&self) -> Option<LossConfig> {
        let needed = |key: &Key| Some((key.name.to_owned(), serde_json::from_str(key.needed?).ok()?));
        (self.read)(Value::Object(self.keys.iter().filter_map(needed).collect())).ok()
    }
}

/// The names of all models.
fn names() -> Vec<&'static str> {
    FORMS.iter().map(|form| form.name).collect()
}

/// A table as it was written: the model's name, if any, and values of known keys.
pub(crate) struct Table {
    model: Option<String>,
    given: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Table;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&LossConfig::expected())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table, A::Error> {
                let mut table = Table {
                    model: None,
                    given: Map::new(),
                };
                while let Some(name) = map.next_key::<String>()? {
                    if name == "model" {
                        table.model = Some(map.next_value()?);
                        continue;
                    }
                    // Checked here, where whoever reads still knows the key's place. No two models differ in what a key means.
                    let mut keys = FORMS.iter().flat_map(|form| form.keys);
                    let Some(key) = keys.find(|key| key.name == name) else {
                        return Err(A::Error::custom(unknown_key(&name)));
                    };
                    let value = map.next_value_seed(Checked(key))?;
                    table.given.insert(name, value);
                }
                Ok(table)
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// In the words of serde, which others read.
fn unknown_key(name: &str) -> String {
    let keys = FORMS.iter().flat_map(|form| form.keys).map(|key| key.name);
    let known: Vec<String> = ["model"]
        .into_iter()
        .chain(keys)
        .map(|key| format!("`{key}`"))
        .collect();
    format!("unknown field `{name}`, expected one of {}", known.join(", "))
}

/// Reads the value of a key.
struct Checked<'a>(&'a Key);

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let value = Value::deserialize(deserializer)?;
        (self.0.check)(&value).map_err(D::Error::custom)?;
        Ok(value)
    }
}

impl Table {
    /// The model that is meant.
    fn form(&self) -> Result<&'static Form, String> {
        let Some(name) = &self.model else {
            let told = |form: &&Form| {
                form.told_by_key && form.keys.iter().any(|key| self.given.contains_key(key.name))
            };
            return FORMS
                .iter()
                .find(told)
                .ok_or_else(|| format!("a loss table names its model: {}", names().join(", ")));
        };
        FORMS.iter().find(|form| form.name == name).ok_or_else(|| {
            let hint =
                nearest(name, names()).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            format!("unknown loss model {name:?}: one of {}{hint}", names().join(", "))
        })
    }
}

impl TextOrTable for LossConfig {
    type Table = Table;

    fn expected() -> Cow<'static, str> {
        // The first model is the one that is written as a text.
        let tables: Vec<&str> = FORMS[1..].iter().map(|form| form.example).collect();
        let (last, others) = tables.split_last().unwrap_or((&"", &[]));
        format!(
            "a probability with its unit such as \"2%\", or one of the tables {} and {last}",
            others.join(", ")
        )
        .into()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(probability) => Ok(Self::bernoulli(probability)),
            // A word is more likely a model's name than a mistyped percentage.
            Err(_) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Err(format!("{text:?} is not a loss: expected {}", Self::expected()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn from_table(table: Table) -> Result<Self, String> {
        let form = table.form()?;
        let model = form.name;
        if let Some(foreign) = table
            .given
            .keys()
            .find(|given| form.keys.iter().all(|key| key.name != *given))
        {
            let keys: Vec<&str> = form.keys.iter().map(|key| key.name).collect();
            return Err(format!(
                "{foreign:?} does not belong to the loss model {model:?}, which has the keys {}",
                keys.join(", ")
            ));
        }
        for Key { name, needed, .. } in form.keys {
            if let Some(example) = needed
                && !table.given.contains_key(*name)
            {
                return Err(format!(
                    "the loss model {model:?} needs {name}, e.g. {name} = {example}"
                ));
            }
        }
        (form.read)(Value::Object(table.given)).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for LossConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_table::deserialize(deserializer)
    }
}

impl Serialize for LossConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Bernoulli(model) = self {
            return model.probability.serialize(serializer);
        }
        let (name, values) = self.written();
        let values = values.map_err(serde::ser::Error::custom)?;
        let mut map = serializer.serialize_map(None)?;
        for form in FORMS.iter().filter(|form| form.name == name) {
            if !form.told_by_key {
                map.serialize_entry("model", name)?;
            }
            for key in form.keys {
                map.serialize_entry(key.name, &values[key.name])?;
            }
        }
        map.end()
    }
}

impl JsonSchema for LossConfig {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut forms = vec![generator.subschema_for::<Probability>().to_value()];
        for form in FORMS {
            let mut schema = (form.schema)(generator).to_value();
            schema["title"] = form.name.into();
            schema["additionalProperties"] = false.into();
            schema["properties"]["model"] = serde_json::json!({ "const": form.name });
            if !form.told_by_key
                && let Some(required) = schema["required"].as_array_mut()
            {
                required.insert(0, "model".into());
            }
            forms.push(schema);
        }
        json_schema!({
            "description": "Which packets are lost: a probability, or a table that names a model",
            "oneOf": forms,
        })
    }
}
