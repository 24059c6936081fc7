//! What the hosts do: the vocabulary of `[workload]`.

use foundation::{Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One file from host 0 to host 1.
    File,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadConfig {
    /// The kind: file (one file from host 0 to host 1).
    pub kind: Kind,
    /// The file's size, e.g. "2MB".
    pub size: Size,
}

/// A petabyte: more would overflow nothing, but no trial of it would end.
const MAX_SIZE: u64 = 1_000_000_000_000_000;

impl WorkloadConfig {
    /// Everything that is out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let size = self.size;
        if (1..=MAX_SIZE).contains(&size.bytes()) {
            return Vec::new();
        }
        vec![Problem::new(
            "size",
            format!("\"{size}\" is out of range: 1B to {MAX_SIZE}B"),
        )]
    }

    /// Bytes that host 0 sends.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.size.bytes()
    }
}
