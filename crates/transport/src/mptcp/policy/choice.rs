//! Selection of one path, shared by policies.

use foundation::{Duration, Generator};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mptcp::host::{HostPaths, PathState};
use crate::mptcp::segment::PathIndex;
pub use crate::path_choice::PathChoice;

impl PathChoice {
    /// Returns the chosen path.
    #[must_use]
    pub fn path(self, host: &HostPaths, rtt: RttSource, random: &mut Generator) -> PathIndex {
        let count = host.len().max(1) as u64;
        match self {
            Self::First => PathIndex(0),
            Self::Random => PathIndex((random.next_u64() % count) as u8),
            Self::RoundRobin => PathIndex((host.opened() % count) as u8),
            Self::LeastRtt => host
                .sorted_by(|path| rtt.of(path))
                .first()
                .copied()
                .unwrap_or_default(),
        }
    }
}

/// Source of a path's round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttSource {
    /// The round-trip time without queues.
    Base,
    /// The latest sample of the host on the path, queues included.
    #[default]
    Latest,
}

impl RttSource {
    /// Returns the round-trip time of a path.
    #[must_use]
    pub const fn of(self, path: &PathState) -> Duration {
        match self {
            Self::Base => path.base_rtt,
            Self::Latest => path.rtt,
        }
    }
}
