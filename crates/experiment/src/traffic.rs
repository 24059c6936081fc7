//! The keys of `[[traffic]]`: background flows.

use foundation::Problem;
use foundation::kinds::read_value;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::protocol::ProtocolConfig;
use crate::workload::WorkloadConfig;

/// Flows in addition to the measured ones: background traffic, cross traffic, a competing protocol.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrafficConfig {
    /// Name, unique in the study: letters, digits, - and _.
    pub name: String,
    /// Protocol, a table with the keys of [[protocols]], e.g. { kind = "tcp", congestion = "reno" }.
    pub protocol: ProtocolConfig,
    /// Workload, a table with the keys of [workload]; without duration it lasts as long as the trial.
    pub workload: WorkloadConfig,
}

impl TrafficConfig {
    /// Reads one table of `[[traffic]]`.
    ///
    /// # Errors
    /// The first problem.
    pub fn read(table: Value) -> Result<Self, Problem> {
        let Value::Object(mut keys) = table else {
            return Err(Problem::new(
                "",
                format!("{table} is not a table with name, protocol and workload"),
            ));
        };
        let mut take = |key: &str| {
            keys.remove(key)
                .ok_or_else(|| Problem::new(key, "the key is missing"))
        };
        let (name, protocol, workload) = (take("name")?, take("protocol")?, take("workload")?);
        if let Some(key) = keys.keys().next() {
            let message = "unknown key: allowed: name, protocol, workload";
            return Err(Problem::new(key, message));
        }
        Ok(Self {
            name: read_value(name).map_err(|problem| problem.within("name"))?,
            protocol: ProtocolConfig::read(protocol).map_err(|problem| problem.within("protocol"))?,
            workload: read_value(workload).map_err(|problem| problem.within("workload"))?,
        })
    }

    /// Returns all problems.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(is_allowed) {
            let message = format!("{:?} is not a name: use letters, digits, - and _", self.name);
            problems.push(Problem::new("name", message));
        }
        problems.extend(self.protocol.validate().into_iter().map(|p| p.within("protocol")));
        problems.extend(
            self.workload
                .validate_traffic()
                .into_iter()
                .map(|p| p.within("workload")),
        );
        problems.extend(crate::spec::fit(&self.protocol, &self.workload).map(|p| p.within("workload")));
        problems
    }
}
