//! The list of all controllers, and lookup by name.

use std::borrow::Cow;

use foundation::extension::{self, choice};
use foundation::{Problem, wrong_value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::config::CongestionConfig;
use super::settings::ControllerSettings;

/// One kind of controller.
pub type Registration = extension::Registration<dyn ControllerSettings>;

/// Declares the modules of controllers, exports their settings, and registers them with names and help for users.
macro_rules! controllers {
    ($($file:ident { $($name:literal => $settings:ident: $help:literal),+ })+) => {
        $(mod $file; $(pub use $file::$settings;)+)+

        fn builtin() -> Vec<Registration> {
            vec![$($(Registration::of::<$settings>($name, $help),)+)+]
        }
    };
}

pub(super) use controllers;

/// Registered controllers.
///
/// A program adds its own to the built-in ones and reads configurations with [`Registry::read`].
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<Registration>,
}

impl Registry {
    /// Returns the controllers of this crate.
    #[must_use]
    pub fn builtin() -> Self {
        Self {
            entries: super::builtin(),
        }
    }

    /// Adds a controller.
    ///
    /// # Errors
    /// If the name is registered already.
    pub fn with(mut self, registration: Registration) -> Result<Self, Problem> {
        if self.find(registration.name()).is_some() {
            return Err(Problem::new(
                "",
                format!(
                    "congestion controller {:?} is registered already",
                    registration.name()
                ),
            ));
        }
        self.entries.push(registration);
        Ok(self)
    }

    /// Returns all controllers in the order of their registration.
    pub fn iter(&self) -> std::slice::Iter<'_, Registration> {
        self.entries.iter()
    }

    /// Returns the controller with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Registration> {
        self.entries.iter().find(|entry| entry.name() == name)
    }

    /// Reads a name (`"cubic"`) or a table (`{kind = "cubic", beta = 0.8}`).
    ///
    /// # Errors
    /// All problems: an unknown name or key (with the most similar known one), a value of a wrong type.
    /// [`CongestionConfig::validate`] checks ranges.
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
        if let Some(entry) = self.find(name) {
            return Ok(entry.configure(&keys, &self.entries)?.into());
        }
        if extension::is_external(name) {
            let found = extension::read_external::<dyn ControllerSettings>(name, &keys);
            return Ok(found.map_err(|problems| shown_in(value, problems))?.into());
        }
        let key = if value.is_object() { "kind" } else { "" };
        let choice = choice(name, self.iter().map(Registration::name), || {
            let keys = self.tcp_keys(name)?;
            Some(format!("in TCP write {keys};"))
        });
        let name = wrong_value::shortened(&format!("{name:?}"));
        let message = format!("unknown congestion controller {name}{choice}");
        Err(vec![Problem::new(key, message)])
    }

    /// Returns the TCP keys that select the controller `name`, which may also be the usual name of a combination.
    ///
    /// ```
    /// let keys = transport::congestion::Registry::builtin().tcp_keys("NewReno");
    /// assert_eq!(keys.unwrap(), r#"congestion = "reno", recovery = "newreno""#);
    /// ```
    #[must_use]
    pub fn tcp_keys(&self, name: &str) -> Option<String> {
        if self.find(name).is_some() {
            return Some(format!("congestion = {name:?}"));
        }
        let plain = name.to_lowercase().replace(['-', '_', ' '], "");
        (plain == "newreno").then(|| r#"congestion = "reno", recovery = "newreno""#.to_owned())
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(Registration::name).collect();
        names.join(", ")
    }

    fn expected(&self, found: &Value) -> String {
        format!(
            "{} is not a congestion controller: use a name ({}) or a table {{kind = \"...\", ...}}",
            wrong_value::shortened(&found.to_string()),
            self.names()
        )
    }

    /// Returns the JSON Schema of a choice among these controllers.
    #[must_use]
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let tables: Vec<Value> = self
            .iter()
            .map(|entry| {
                let mut table = entry.schema(generator);
                let kind = serde_json::json!({ "const": entry.name(), "description": entry.help() });
                if let Some(Value::Object(properties)) = table.get_mut("properties") {
                    properties.insert("kind".to_owned(), kind);
                }
                table.insert("required".to_owned(), serde_json::json!(["kind"]));
                table.to_value()
            })
            .collect();
        let names: Vec<Value> = self
            .iter()
            .map(|entry| serde_json::json!({ "const": entry.name(), "description": entry.help() }))
            .collect();
        let [outside, configured] = extension::schemas::<dyn ControllerSettings>();
        json_schema!({
            "description": "a congestion controller: its name, or a table with its kind and settings",
            "anyOf": [
                { "oneOf": names },
                { "oneOf": tables },
                outside,
                configured,
            ],
        })
    }
}

/// Returns problems of a value; a name alone has no key "kind".
fn shown_in(value: &Value, mut problems: Vec<Problem>) -> Vec<Problem> {
    if value.is_string() {
        problems.iter_mut().for_each(|problem| problem.key.clear());
    }
    problems
}

impl CongestionConfig {
    /// Returns the built-in controller `name` with its default settings.
    ///
    /// # Errors
    /// If there is no controller of that name.
    pub fn named(name: &str) -> Result<Self, Problem> {
        Registry::builtin()
            .read(&Value::from(name))
            .map_err(|mut problems| problems.swap_remove(0))
    }
}

impl<'de> Deserialize<'de> for CongestionConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Registry::builtin().read(&value).map_err(|problems| {
            let all: Vec<_> = problems.iter().map(Problem::to_string).collect();
            D::Error::custom(all.join("; "))
        })
    }
}

impl JsonSchema for CongestionConfig {
    fn schema_name() -> Cow<'static, str> {
        "CongestionControl".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Registry::builtin().schema(generator)
    }
}
