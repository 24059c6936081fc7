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
    if matches!(key, "down" | "cell" | "wifi" | "nat" | "trace_start") {
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
    let resolved = match key {
        "rate" | "trace" => config.resolve(&mut load),
        // The keys do not contain a trace or a medium.
        _ => config.resolve_with(before.capacity.clone()),
    };
    let mut spec = resolved.map_err(|mut problems| problems.swap_remove(0))?;
    spec.nat.clone_from(&before.nat);
    Ok((link, spec))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use foundation::Duration;
    use serde_json::json;

    use super::*;
    use crate::medium::{Cell, CellScheduler, WifiConfig};
    use crate::trace::DeliveryTrace;
    use crate::{Capacity, PathSpec, Subscriber};

    /// A link whose capacity is a trace or a medium has a mean rate, which queues like PI2 and CAKE require.
    #[test]
    fn links_without_rate_keep_their_capacity_behind_queues_that_require_one() {
        let trace = Arc::new(DeliveryTrace::parse("1\n2\n3\n4\n").unwrap());
        let wifi: WifiConfig = serde_json::from_value(json!({ "rate": "144.4Mbit/s" })).unwrap();
        let cell = Cell {
            traces: vec![Arc::clone(&trace)],
            scheduler: CellScheduler::default(),
            window: Duration::from_millis(100),
            shift: Duration::ZERO,
            users: Subscriber::Far,
        };
        for capacity in [
            Capacity::Trace(trace),
            Capacity::Cell(Arc::new(cell)),
            Capacity::Wifi(wifi.resolve()),
        ] {
            let mut path = PathSpec::default();
            path.forward.capacity = capacity.clone();
            for queue in ["pi2", "dualpi2", "cake"] {
                let topology = Topology::chain(&[path.clone()]);
                let (_, spec) = changed_link(&topology, "forward", "queue", &json!(queue)).unwrap();
                assert_eq!(spec.capacity, capacity);
                path.forward = spec;
                let topology = Topology::chain(&[path.clone()]);
                let (_, spec) = changed_link(&topology, "forward", "delay", &json!("7ms")).unwrap();
                assert_eq!(
                    (spec.delay, &spec.capacity),
                    (Duration::from_millis(7), &capacity)
                );
            }
        }
        // Without a rate, the queue is refused.
        let topology = Topology::chain(&[PathSpec::default()]);
        let refused = changed_link(&topology, "forward", "queue", &json!("pi2"));
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("requires a link with a rate")
        );
    }
}
