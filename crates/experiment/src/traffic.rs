//! What else is on the network: the vocabulary of `[[traffic]]`.

use foundation::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::protocol::ProtocolConfig;
use crate::vocabulary::read_value;
use crate::workload::WorkloadConfig;

/// Flows beside the measured ones: background, cross traffic, a competitor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrafficConfig {
    /// Its name in this study: letters, digits, - and _.
    pub name: String,
    /// The protocol that it runs, with the keys of [[protocols]]: { kind = "tcp", congestion = "reno" }.
    pub protocol: ProtocolConfig,
    /// What it sends, with the keys of [workload]; without a duration it lasts as long as the trial.
    pub workload: WorkloadConfig,
}

impl TrafficConfig {
    /// Reads the table of one kind of traffic.
    ///
    /// # Errors
    /// The first thing that is wrong: its key, and what is allowed there.
    pub fn read(table: Value) -> Result<Self, Problem> {
        let Value::Object(mut keys) = table else {
            return Err(Problem::new(
                "",
                format!("{table} is no table with name, protocol and workload"),
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

    /// Everything that is wrong with it.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(is_word) {
            let message = format!("{:?} is no name: letters, digits, - and _", self.name);
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
