//! What the hosts do: the vocabulary of `[workload]`.

use foundation::{Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadConfig {
    /// One file from host 0 to host 1.
    File {
        /// The file's size, e.g. "2MB".
        size: Size,
    },
}

/// A petabyte: more would overflow nothing, but no trial of it would end.
const MAX_SIZE: u64 = 1_000_000_000_000_000;

impl WorkloadConfig {
    /// Everything that is out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let Self::File { size } = self;
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
        let Self::File { size } = self;
        size.bytes()
    }
}
