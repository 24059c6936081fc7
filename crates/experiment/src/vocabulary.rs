//! JSON Schemas of the sections of a study file that Rust defines, and their validation.

use foundation::Problem;
use foundation::dimension::DIMENSIONS;
use foundation::reading::read;
use network::topology::TopologyConfig;
use network::{PathConfig, Preset};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::flow_table::FlowRecord;
use crate::metrics;
use crate::protocol::ProtocolConfig;
use crate::traffic::TrafficConfig;
use crate::workload::{HOST_KEYS, WorkloadConfig};

/// The sections of a study file that [`check`] accepts.
pub const SECTIONS: [&str; 5] = ["path", "topology", "protocol", "workload", "traffic"];

/// Returns the JSON Schemas of all sections and of a row of the flow table, the presets with their keys, the metrics,
/// the keys of a workload that choose hosts, and the units of quantities.
#[must_use]
pub fn vocabulary() -> Value {
    let presets: serde_json::Map<String, Value> = Preset::ALL
        .iter()
        .map(|preset| (preset.name().to_owned(), json!(preset.path())))
        .collect();
    let metrics: serde_json::Map<String, Value> = metrics::descriptions()
        .map(|d| (d.name.to_owned(), json!(d)))
        .collect();
    json!({
        "path": schema::<PathConfig>(),
        "topology": schema::<TopologyConfig>(),
        "protocol": schema::<ProtocolConfig>(),
        "workload": schema::<WorkloadConfig>(),
        "traffic": schema::<TrafficConfig>(),
        "presets": presets,
        "metrics": metrics,
        "flows": schemars::schema_for!(FlowRecord),
        "host_keys": HOST_KEYS,
        "units": units(),
    })
}

/// Returns the units of each dimension: name, size in s, bit/s, B, 1, 1/s or packets, and whether it is another
/// spelling that messages do not list.
fn units() -> Value {
    let entry = |(unit, scale), alias| json!({"unit": unit, "scale": scale, "alias": alias});
    let dimensions = DIMENSIONS.iter().map(|dimension| {
        let units = dimension.units().map(|unit| entry(unit, false));
        let aliases = dimension.aliases().map(|unit| entry(unit, true));
        (dimension.name.to_owned(), units.chain(aliases).collect())
    });
    Value::Object(dimensions.collect())
}

/// Returns the schema of a table of TOML, which has no null: a key without a value is omitted.
fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::default().with_transform(RecursiveTransform(remove_null));
    settings.into_generator().into_root_schema_for::<T>()
}

fn remove_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(forms)) = schema.get_mut("anyOf") else {
        return;
    };
    forms.retain(|form| form["type"] != "null");
    if let [Value::Object(only)] = &forms[..] {
        let only = only.clone();
        schema.remove("anyOf");
        for (key, value) in only {
            schema.ensure_object().entry(key).or_insert(value);
        }
    }
}

/// Returns all problems of one section of a study file, given as JSON. Keys are relative to the section.
///
/// # Errors
/// If the section does not exist.
pub fn check(section: &str, json: &str) -> Result<Vec<Problem>, Problem> {
    fn problems<T>(config: Result<T, Problem>, validate: impl FnOnce(&T) -> Vec<Problem>) -> Vec<Problem> {
        match config {
            Ok(config) => validate(&config),
            Err(problem) => vec![problem],
        }
    }
    Ok(match section {
        "path" => problems(read(json), PathConfig::validate),
        "topology" => problems(read(json), TopologyConfig::validate),
        "protocol" => problems(read(json), ProtocolConfig::validate),
        "workload" => problems(read(json), WorkloadConfig::validate),
        "traffic" => problems(read(json), TrafficConfig::validate),
        _ => {
            let known = SECTIONS.join(", ");
            return Err(Problem::new(
                section,
                format!("unknown section: allowed: {known}"),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(section: &str, json: &str) -> String {
        let problems = check(section, json).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string()
    }

    #[test]
    fn errors_name_the_key_and_the_allowed_values() {
        let text = one("path", r#"{"dealy": "5ms"}"#);
        assert!(
            text.starts_with("dealy: unknown key: did you mean \"delay\"?") && text.contains("rate"),
            "{text}"
        );
        let text = one("path", r#"{"rate": "100"}"#);
        assert!(text.starts_with("rate: ") && text.contains("no unit"), "{text}");
        let text = one("path", r#"{"rate": 100}"#);
        assert!(text.starts_with("rate: ") && text.contains("Mbit/s"), "{text}");
        let text = one("path", r#"{"reverse": {"losss": "1%"}}"#);
        assert!(
            text.starts_with("reverse.losss: unknown key: did you mean \"loss\"?"),
            "{text}"
        );
        let text = one("protocol", r#"{"kind": "go-back-m"}"#);
        assert!(
            text.starts_with("kind: \"go-back-m\" is not known: did you mean \"go-back-n\"?"),
            "{text}"
        );
        let text = one("protocol", r#"{"kind": "cubic"}"#);
        assert!(
            text.starts_with(
                r#"kind: "cubic" is not known: write kind = "tcp", congestion = "cubic"; allowed: "#
            ),
            "{text}"
        );
        let text = one("protocol", r#"{"kind": "newreno"}"#);
        assert!(
            text.starts_with(
                r#"kind: "newreno" is not known: write kind = "tcp", congestion = "reno", recovery = "newreno"; allowed: "#
            ),
            "{text}"
        );
        let text = one("protocol", r#"{"window": 4}"#);
        assert!(text.starts_with("kind: the key is missing"), "{text}");
        let text = one("protocol", r#"{"kind": "go-back-n", "window": 0}"#);
        assert!(text.starts_with("window: ") && text.contains("1 to"), "{text}");
        let text = one("protocol", r#"{"kind": "stop-and-wait", "window": 4}"#);
        assert!(text.starts_with("window: "), "{text}");
        let text = one("protocol", r#"{"kind": "go-back-n", "gap_retransmit": true}"#);
        assert!(
            text.starts_with("gap_retransmit: only selective-repeat"),
            "{text}"
        );
        let text = one("workload", r#"{"kind": "file", "size": "0B"}"#);
        assert!(text.starts_with("size: "), "{text}");
        let text = one("workload", r#"{"kind": "file", "size": "12"}"#);
        assert!(text.starts_with("size: ") && text.contains("no unit"), "{text}");
        let text = one("workload", r#"{"kind": "fil", "size": "1B"}"#);
        assert!(text.contains("did you mean \"file\"?"), "{text}");
        assert!(check("roads", "{}").is_err());
    }

    #[test]
    fn every_key_has_a_description() {
        fn walk(at: &str, schema: &Value, bare: &mut Vec<String>) {
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                for (key, property) in properties {
                    let is_tag = property.get("const").is_some();
                    if property.get("description").is_none() && !is_tag {
                        bare.push(format!("{at}.{key}"));
                    }
                }
            }
            for group in ["oneOf", "anyOf"] {
                for (i, inner) in schema
                    .get(group)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .enumerate()
                {
                    walk(&format!("{at}[{i}]"), inner, bare);
                }
            }
        }
        let vocabulary = vocabulary();
        let mut bare = Vec::new();
        for section in SECTIONS {
            assert!(!vocabulary[section].to_string().contains("null"), "{section}");
            walk(section, &vocabulary[section], &mut bare);
            for (name, definition) in vocabulary[section]["$defs"].as_object().into_iter().flatten() {
                walk(&format!("{section}:{name}"), definition, &mut bare);
            }
        }
        assert!(bare.is_empty(), "{bare:?}");
    }
}
