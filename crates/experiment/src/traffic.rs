//! The keys of `[[traffic]]`: background flows.

use foundation::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::ProtocolConfig;
use crate::workload::WorkloadConfig;

/// Flows in addition to the measured ones: background traffic, cross traffic, a competing protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficConfig {
    /// Name, unique in the study: letters, digits, - and _.
    pub name: String,
    /// Protocol, a table with the keys of [[protocols]], e.g. { kind = "tcp", congestion = "reno" }.
    pub protocol: ProtocolConfig,
    /// Workload, a table with the keys of [workload]; without duration it lasts as long as the trial.
    pub workload: WorkloadConfig,
}

impl TrafficConfig {
    /// Returns all problems.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(is_allowed) {
            let message = format!("{:?} is not a name: use letters, digits, - and _", self.name);
            problems.push(Problem::new("name", message));
        }
        problems.extend(Problem::all_within(self.protocol.validate(), "protocol"));
        let workload = self.workload.validate_traffic().into_iter();
        let workload = workload.chain(crate::fit::fit(&self.protocol, &self.workload));
        problems.extend(Problem::all_within(workload, "workload"));
        problems
    }
}
