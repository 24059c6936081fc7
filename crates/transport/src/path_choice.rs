//! The `path` setting of TCP and of path policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one path is chosen among several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathChoice {
    /// The path with number 0.
    First,
    /// A path drawn with equal probabilities.
    #[default]
    Random,
    /// Each path in turn, over all connections of the host.
    RoundRobin,
    /// The path with the smallest round-trip time.
    LeastRtt,
}
