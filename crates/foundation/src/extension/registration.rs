//! Registration of one kind: its name, its help and how its settings are read.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

use super::{Accepts, Configured, Role};
use crate::quantity::nearest;
use crate::{Problem, wrong_value};

/// Parsed settings, and the table to write them back, with every key.
pub type ParsedSettings<R> = (Arc<R>, Map<String, Value>);

type Reader<R> =
    Arc<dyn Fn(Map<String, Value>) -> Result<ParsedSettings<R>, serde_json::Error> + Send + Sync>;
type Describe = Arc<dyn Fn(&mut SchemaGenerator) -> Schema + Send + Sync>;

/// One kind of role `R`.
pub struct Registration<R: ?Sized> {
    name: Cow<'static, str>,
    help: Cow<'static, str>,
    read: Reader<R>,
    schema: Describe,
}

impl<R: Role + ?Sized> Registration<R> {
    /// Registers the kind `name` with settings of type `S`; `help` is one line for users.
    #[must_use]
    pub fn of<S>(name: impl Into<Cow<'static, str>>, help: impl Into<Cow<'static, str>>) -> Self
    where
        R: Accepts<S>,
        S: Serialize + DeserializeOwned + JsonSchema + 'static,
    {
        Self {
            name: name.into(),
            help: help.into(),
            read: Arc::new(|keys| {
                let settings: S = serde_json::from_value(Value::Object(keys))?;
                let Value::Object(written) = serde_json::to_value(&settings)? else {
                    return Err(serde_json::Error::custom("settings must be a table of keys"));
                };
                Ok((R::shared(settings), written))
            }),
            schema: Arc::new(S::json_schema),
        }
    }

    /// Registers a kind whose settings no Rust type describes, such as one in another language.
    ///
    /// `schema` is the JSON Schema of its keys, an object whose `properties` are complete unless
    /// `additionalProperties` is true; every key must have a default. `read` parses the keys of a study.
    pub fn dynamic<F>(
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        schema: Schema,
        read: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>) -> Result<ParsedSettings<R>, serde_json::Error> + Send + Sync + 'static,
    {
        Self {
            name: name.into(),
            help: help.into(),
            read: Arc::new(read),
            schema: Arc::new(move |_| schema.clone()),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the help, one line.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Returns the JSON Schema of its keys with their help, without `kind`.
    #[must_use]
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    /// Returns the known keys, and whether other keys are allowed.
    fn keys(&self) -> (Vec<String>, bool) {
        let schema = self.schema(&mut SchemaGenerator::default());
        let properties = schema.get("properties").and_then(Value::as_object);
        let known = properties.map_or_else(Vec::new, |keys| keys.keys().cloned().collect());
        (
            known,
            schema.get("additionalProperties") == Some(&Value::Bool(true)),
        )
    }

    /// Reads the table of keys. Messages may refer to the kinds in `others`.
    ///
    /// # Errors
    /// All problems at once.
    pub fn configure(
        &self,
        keys: &Map<String, Value>,
        others: &[Self],
    ) -> Result<Configured<R>, Vec<Problem>> {
        let (settings, written) = self.read(keys, others)?;
        let given = written
            .into_iter()
            .filter(|(key, _)| keys.contains_key(key))
            .collect();
        Ok(Configured::new(self.name.clone(), settings, given))
    }

    fn read(&self, keys: &Map<String, Value>, others: &[Self]) -> Result<ParsedSettings<R>, Vec<Problem>> {
        let (known, open) = self.keys();
        let mut problems = Vec::new();
        for (key, value) in keys {
            if !open && !known.contains(key) {
                let owner = || {
                    let owner = others
                        .iter()
                        .find(|other| other.keys().0.iter().any(|known| known == key))?;
                    Some(format!("{:?} has it;", owner.name))
                };
                let choice = choice(key, known.iter().map(String::as_str), owner);
                problems.push(Problem::new(
                    key,
                    format!("unknown key of {} {:?}{choice}", R::WHAT, self.name),
                ));
                continue;
            }
            // Every key has a default, so that each can be parsed alone, which attributes the error to its key.
            if let Err(error) = (self.read)(Map::from_iter([(key.clone(), value.clone())])) {
                problems.push(Problem::new(key, wrong_value::plain(&error)));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        (self.read)(keys.clone()).map_err(|error| vec![Problem::new("", wrong_value::plain(&error))])
    }
}

impl<R: ?Sized> Clone for Registration<R> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            help: self.help.clone(),
            read: Arc::clone(&self.read),
            schema: Arc::clone(&self.schema),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Registration<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name)
            .field("help", &self.help)
            .finish_non_exhaustive()
    }
}

/// Returns the end of a message about an unknown name: "; did you mean "bbr"? known: bbr, cubic". `other` provides
/// the hint if no known name is similar.
pub fn choice<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    other: impl FnOnce() -> Option<String>,
) -> String {
    let hint = nearest(name, known.clone())
        .map(|near| format!("did you mean {near:?}?"))
        .or_else(other)
        .map_or(String::new(), |hint| format!(" {hint}"));
    format!(";{hint} known: {}", known.collect::<Vec<_>>().join(", "))
}
