//! The one list of all controllers, and how each is read from a study or a command.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use foundation::Problem;
use foundation::quantity::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

use super::balia::BaliaSettings;
use super::bbr::{BbrSettings, BbrTolerantSettings};
use super::bbr1::Bbr1Settings;
use super::config::CongestionConfig;
use super::cubic::CubicSettings;
use super::fixed::FixedSettings;
use super::lia::LiaSettings;
use super::olia::OliaSettings;
use super::reno::RenoSettings;
use super::settings::ControllerSettings;
use super::vegas::VegasSettings;
use super::westwood::WestwoodSettings;
use super::wvegas::WvegasSettings;

/// Settings read, and how they are written back: every key, defaults included.
pub type ParsedSettings = (Arc<dyn ControllerSettings>, Map<String, Value>);

type Reader = Arc<dyn Fn(Map<String, Value>) -> Result<ParsedSettings, serde_json::Error> + Send + Sync>;
type Describe = Arc<dyn Fn(&mut SchemaGenerator) -> Schema + Send + Sync>;

/// One kind of controller: its name, its help and how its settings are read.
#[derive(Clone)]
pub struct Registration {
    name: Cow<'static, str>,
    help: Cow<'static, str>,
    read: Reader,
    schema: Describe,
}

impl Registration {
    /// The controller `name`, whose settings are of type `S`; `help` is one line for users.
    #[must_use]
    pub fn of<S>(name: impl Into<Cow<'static, str>>, help: impl Into<Cow<'static, str>>) -> Self
    where
        S: ControllerSettings + Serialize + DeserializeOwned + JsonSchema + 'static,
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
            schema: Arc::new(S::json_schema),
        }
    }

    /// A controller whose settings no Rust type describes, such as one written in another language.
    ///
    /// `schema` is the JSON Schema of its keys, an object whose `properties` are all that it knows (unless
    /// `additionalProperties` is true); every key must have a default. `read` is given the keys of a study and
    /// gives the settings and how they are written back.
    pub fn dynamic<F>(
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        schema: Schema,
        read: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>) -> Result<ParsedSettings, serde_json::Error> + Send + Sync + 'static,
    {
        Self {
            name: name.into(),
            help: help.into(),
            read: Arc::new(read),
            schema: Arc::new(move |_| schema.clone()),
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

    /// The keys known, and whether others may be given.
    fn keys(&self) -> (Vec<String>, bool) {
        let schema = self.schema(&mut SchemaGenerator::default());
        let properties = schema.get("properties").and_then(Value::as_object);
        let known = properties.map_or_else(Vec::new, |keys| keys.keys().cloned().collect());
        (
            known,
            schema.get("additionalProperties") == Some(&Value::Bool(true)),
        )
    }

    /// Reads the table of keys; all problems at once. `others`: the controllers that errors may refer to.
    fn configure(
        &self,
        keys: &Map<String, Value>,
        others: &[Self],
    ) -> Result<CongestionConfig, Vec<Problem>> {
        let (settings, written) = self.read(keys, others)?;
        let given = written
            .into_iter()
            .filter(|(key, _)| keys.contains_key(key))
            .collect();
        Ok(CongestionConfig::new(self.clone(), settings, given))
    }

    fn read(&self, keys: &Map<String, Value>, others: &[Self]) -> Result<ParsedSettings, Vec<Problem>> {
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

/// What names of controllers outside of this crate have, and no built-in one has: "FILE:CLASS".
pub const SEPARATOR: char = ':';

/// Finds the controller of a name with a [`SEPARATOR`], or says in one line why there is none.
pub type Resolver = Box<dyn Fn(&str) -> Result<Registration, String> + Send + Sync>;

static RESOLVER: OnceLock<Resolver> = OnceLock::new();

/// Lets configurations name controllers that are loaded when they are asked for, by names that have a
/// [`SEPARATOR`]: a process has one way of finding them, set once.
///
/// The names of the built-in controllers are never asked of it. A Rust program that knows its controllers
/// when it is built needs none of this: it has [`Registry::with`].
///
/// # Errors
/// Gives the resolver back where there is one already.
pub fn install_resolver(resolver: Resolver) -> Result<(), Resolver> {
    RESOLVER.set(resolver)
}

fn resolve(name: &str) -> Result<Registration, String> {
    match RESOLVER.get() {
        Some(resolver) => resolver(name),
        None => Err(format!(
            "{name:?} names a controller outside of this program, which can load none"
        )),
    }
}

/// All controllers that can be asked for by name.
///
/// A program adds its own to the built-in ones and reads configurations with
/// [`Registry::read`]; nothing is global but [`install_resolver`].
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<Registration>,
}

impl Registry {
    /// The controller of windows for which none is named.
    pub(super) fn bbr_tolerant() -> Registration {
        Registration::of::<BbrTolerantSettings>(
            "bbr-tolerant",
            "bbr with an estimate of the path's random loss",
        )
    }

    /// The controllers of this crate: one line each.
    #[must_use]
    pub fn builtin() -> Self {
        Self {
            entries: vec![
                Registration::of::<BbrSettings>(
                    "bbr",
                    "model of the path: bandwidth and least delay (BBRv3)",
                ),
                Self::bbr_tolerant(),
                Registration::of::<Bbr1Settings>("bbr1", "model of the path that ignores loss (BBRv1, 2016)"),
                Registration::of::<CubicSettings>("cubic", "loss-based, cubic growth (RFC 9438)"),
                Registration::of::<RenoSettings>("reno", "loss-based, additive increase (RFC 5681)"),
                Registration::of::<VegasSettings>(
                    "vegas",
                    "delay-based, alpha to beta packets queued (1995)",
                ),
                Registration::of::<WestwoodSettings>(
                    "westwood",
                    "Reno that resumes at the measured bandwidth (Westwood+)",
                ),
                Registration::of::<LiaSettings>(
                    "lia",
                    "subflows of one connection that grow as one (RFC 6356)",
                ),
                Registration::of::<OliaSettings>(
                    "olia",
                    "coupled subflows that leave congested paths (OLIA)",
                ),
                Registration::of::<BaliaSettings>(
                    "balia",
                    "coupled subflows, friendly and responsive (BALIA)",
                ),
                Registration::of::<WvegasSettings>(
                    "wvegas",
                    "delay-based, subflows share the packets queued (2012)",
                ),
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
        if let Some(entry) = self.find(name) {
            return entry.configure(&keys, &self.entries);
        }
        let key = if value.is_object() { "kind" } else { "" };
        if name.contains(SEPARATOR) {
            let found = resolve(name).map_err(|message| vec![Problem::new(key, message)])?;
            return found.configure(&keys, &[]);
        }
        let choice = choice(name, self.iter().map(Registration::name), || {
            let keys = self.tcp_keys(name)?;
            Some(format!("in TCP write {keys};"))
        });
        let message = format!("unknown congestion controller {name:?}{choice}");
        Err(vec![Problem::new(key, message)])
    }

    /// The keys of TCP that select the controller `name`, which may also be the common name of a combination.
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
        let outside = serde_json::json!({
            "type": "string",
            "pattern": format!(".+{SEPARATOR}.+"),
            "examples": ["aimd.py:Aimd"],
            "description": "a controller from outside: FILE.py:CLASS or package.module:CLASS",
        });
        let configured = serde_json::json!({
            "type": "object",
            "properties": { "kind": outside },
            "required": ["kind"],
            "description": "a controller from outside, with what its class may be told",
        });
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

/// The end of an error about an unknown word: "; did you mean \"bbr\"? known: bbr, cubic". `other`: the hint where no
/// known word is near.
fn choice<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    other: impl FnOnce() -> Option<String>,
) -> String {
    let hint = nearest(word, known.clone())
        .map(|near| format!("did you mean {near:?}?"))
        .or_else(other)
        .map_or(String::new(), |hint| format!(" {hint}"));
    format!(";{hint} known: {}", known.collect::<Vec<_>>().join(", "))
}
