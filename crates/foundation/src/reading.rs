//! Reading of configurations from JSON, with problems that name the key and what is allowed.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Problem, wrong_value};

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
