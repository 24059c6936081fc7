//! The one list of all controllers, and how each is read from a study or a command.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use foundation::Problem;
use foundation::quantity::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

use super::bbr::BbrSettings;
use super::config::CongestionConfig;
use super::cubic::CubicSettings;
use super::fixed::FixedSettings;
use super::reno::RenoSettings;
use super::settings::Settings;

/// Settings read, and how they are written back: every key, defaults included.
type Read = (Arc<dyn Settings>, Map<String, Value>);

type Reader = Arc<dyn Fn(Map<String, Value>) -> Result<Read, serde_json::Error> + Send + Sync>;

/// One kind of controller: its name, its help and how its settings are read.
#[derive(Clone)]
pub struct Registration {
    name: Cow<'static, str>,
    help: Cow<'static, str>,
    read: Reader,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Registration {
    /// The controller `name`, whose settings are of type `S`; `help` is one line for users.
    #[must_use]
    pub fn of<S>(name: impl Into<Cow<'static, str>>, help: impl Into<Cow<'static, str>>) -> Self
    where
        S: Settings + Serialize + DeserializeOwned + JsonSchema + 'static,
    {
        Self {
            name: name.into(),
            help: help.into(),
            read: Arc::new(|keys| {
                let settings: S = serde_json::from_value(Value::Object(keys))?;
                let Value::Object(written) = serde_json::to_value(&settings)? else {
                    return Err(serde_json::Error::custom("settings must be a table of keys"));
                };
                Ok((Arc::new(settings), written))
            }),
            schema: S::json_schema,
        }
    }

    /// The name by which users ask for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in one line.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }

    /// The JSON Schema of its keys, with their help, `kind` not included.
    #[must_use]
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    fn keys(&self) -> Vec<String> {
        let schema = self.schema(&mut SchemaGenerator::default());
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.map_or_else(Vec::new, |keys| keys.keys().cloned().collect())
    }

    /// Reads the table of keys; all problems at once.
    fn read(&self, keys: &Map<String, Value>) -> Result<Read, Vec<Problem>> {
        let known = self.keys();
        let mut problems = Vec::new();
        for (key, value) in keys {
            if !known.contains(key) {
                let choice = choice(key, known.iter().map(String::as_str));
                problems.push(Problem::new(
                    key,
                    format!("unknown key of congestion controller {:?}{choice}", self.name),
                ));
                continue;
            }
            // Every key has a default, so each can be tried alone: the error then has its key.
            if let Err(error) = (self.read)(Map::from_iter([(key.clone(), value.clone())])) {
                problems.push(Problem::new(key, error.to_string()));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        (self.read)(keys.clone()).map_err(|error| vec![Problem::new("", error.to_string())])
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name)
            .field("help", &self.help)
            .finish_non_exhaustive()
    }
}

/// All controllers that can be asked for by name.
///
/// A program adds its own to the built-in ones and reads configurations with
/// [`Registry::read`]; nothing is global.
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<Registration>,
}

impl Registry {
    /// The controllers of this crate: one line each.
    #[must_use]
    pub fn builtin() -> Self {
        Self {
            entries: vec![
                Registration::of::<BbrSettings>(
                    "bbr",
                    "model of the path: bandwidth and least delay (BBRv3)",
                ),
                Registration::of::<CubicSettings>("cubic", "loss-based, cubic growth (RFC 9438)"),
                Registration::of::<RenoSettings>("reno", "loss-based, additive increase (RFC 5681)"),
                Registration::of::<FixedSettings>("fixed", "a constant window: no congestion control"),
            ],
        }
    }

    /// The registry with one more controller.
    ///
    /// # Errors
    /// Where the name is taken already.
    pub fn with(mut self, registration: Registration) -> Result<Self, Problem> {
        if self.find(registration.name()).is_some() {
            return Err(Problem::new(
                "",
                format!(
                    "congestion controller {:?} is registered already",
                    registration.name
                ),
            ));
        }
        self.entries.push(registration);
        Ok(self)
    }

    /// All controllers, in the order of their registration.
    pub fn iter(&self) -> std::slice::Iter<'_, Registration> {
        self.entries.iter()
    }

    /// The controller of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Registration> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Reads a name (`"cubic"`) or a table (`{kind = "cubic", beta = 0.8}`).
    ///
    /// # Errors
    /// All that is wrong: an unknown name or key (with the nearest known one), a value of a wrong type.
    /// Ranges are left to [`CongestionConfig::validate`].
    pub fn read(&self, value: &Value) -> Result<CongestionConfig, Vec<Problem>> {
        let (name, keys) = match value {
            Value::String(name) => (name.as_str(), Map::new()),
            Value::Object(table) => {
                let mut keys = table.clone();
                match keys.remove("kind") {
                    Some(Value::String(_)) => {}
                    Some(other) => return Err(vec![Problem::new("kind", self.expected(&other))]),
                    None => {
                        let message = format!("missing key \"kind\": one of {}", self.names());
                        return Err(vec![Problem::new("", message)]);
                    }
                }
                (table["kind"].as_str().unwrap_or_default(), keys)
            }
            other => return Err(vec![Problem::new("", self.expected(other))]),
        };
        let Some(entry) = self.find(name) else {
            let choice = choice(name, self.iter().map(Registration::name));
            let message = format!("unknown congestion controller {name:?}{choice}");
            let key = if value.is_object() { "kind" } else { "" };
            return Err(vec![Problem::new(key, message)]);
        };
        let (settings, written) = entry.read(&keys)?;
        let given = written
            .into_iter()
            .filter(|(key, _)| keys.contains_key(key))
            .collect();
        Ok(CongestionConfig::new(entry.name.clone(), settings, given))
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(Registration::name).collect();
        names.join(", ")
    }

    fn expected(&self, found: &Value) -> String {
        format!(
            "{found} is no congestion controller: write a name ({}) or a table {{kind = \"...\", ...}}",
            self.names()
        )
    }

    /// The JSON Schema of a choice among these controllers.
    #[must_use]
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let tables: Vec<Value> = self
            .iter()
            .map(|entry| {
                let mut table = entry.schema(generator);
                let kind = serde_json::json!({ "const": entry.name, "description": entry.help });
                if let Some(Value::Object(properties)) = table.get_mut("properties") {
                    properties.insert("kind".to_owned(), kind);
                }
                table.insert("required".to_owned(), serde_json::json!(["kind"]));
                table.to_value()
            })
            .collect();
        let names: Vec<Value> = self
            .iter()
            .map(|entry| serde_json::json!({ "const": entry.name, "description": entry.help }))
            .collect();
        json_schema!({
            "description": "a congestion controller: its name, or a table with its kind and settings",
            "anyOf": [{ "oneOf": names }, { "oneOf": tables }],
        })
    }
}

/// What to write instead of an unknown word: "; did you mean \"bbr\"? known: bbr, cubic".
fn choice<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let hint = match nearest(word, known.clone()) {
        Some(near) => format!(" did you mean {near:?}?"),
        None => String::new(),
    };
    format!(";{hint} known: {}", known.collect::<Vec<_>>().join(", "))
}
