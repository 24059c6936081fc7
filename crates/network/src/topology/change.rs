//! Changes of single keys of a link while a network runs.

use foundation::Problem;
use foundation::confinement::permit;
use foundation::quantity::nearest;
use serde_json::Value;

use super::Topology;
use crate::{LinkConfig, LinkId, LinkSpec};

/// Returns a link by name, and its configuration after a change of one key.
///
/// Relative file names of traces refer to the working directory.
///
/// # Errors
/// An unknown link or key, and an invalid value.
pub fn changed_link(
    topology: &Topology,
    name: &str,
    key: &str,
    value: &Value,
) -> Result<(LinkId, LinkSpec), Problem> {
    let link = topology.link(name).ok_or_else(|| {
        let names: Vec<&str> = topology.links().iter().map(|link| link.name.as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
        Problem::new(
            "link",
            format!("there is no link {name:?}: {hint}allowed: {}", names.join(", ")),
        )
    })?;
    if matches!(key, "down" | "cell" | "wifi" | "nat") {
        let message = "cannot change while the network runs";
        return Err(Problem::new(key, message));
    }
    let before = &topology.links()[link.0 as usize].spec;
    let written = serde_json::to_value(LinkConfig::of(before));
    let mut keys = written.map_err(|error| Problem::new(key, error.to_string()))?;
    // Rate and trace exclude each other.
    match key {
        "rate" => keys["trace"] = Value::Null,
        "trace" => keys["rate"] = Value::Null,
        _ => {}
    }
    keys[key] = value.clone();
    let config: LinkConfig = foundation::reading::read_value(keys)?;
    let mut load = |file: &str| {
        permit(file)?;
        std::fs::read_to_string(file).map_err(|error| error.to_string())
    };
    let resolved = config.resolve(&mut load);
    let mut spec = resolved.map_err(|mut problems| problems.swap_remove(0))?;
    if !matches!(key, "rate" | "trace") {
        spec.capacity = before.capacity.clone();
    }
    spec.nat.clone_from(&before.nat);
    Ok((link, spec))
}
