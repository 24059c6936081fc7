//! What policies share: how one path is chosen, and which round-trip time counts.

use foundation::{Duration, Generator};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mptcp::host::{HostPaths, PathAccount};
use crate::mptcp::segment::PathIndex;

/// How one path is chosen among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// The path with number 0.
    First,
    /// Any, each as likely as the others.
    #[default]
    Random,
    /// Each in turn, over all connections of the host.
    RoundRobin,
    /// The one of the least round-trip time.
    LeastRtt,
}

impl Choose {
    /// A path.
    #[must_use]
    pub fn path(self, host: &HostPaths, rtt: CurrentRtt, random: &mut Generator) -> PathIndex {
        let count = host.len().max(1) as u64;
        match self {
            Self::First => PathIndex(0),
            Self::Random => PathIndex((random.next_u64() % count) as u8),
            Self::RoundRobin => PathIndex((host.opened() % count) as u8),
            Self::LeastRtt => host.by(|path| rtt.of(path)).first().copied().unwrap_or_default(),
        }
    }
}

/// Which round-trip time of a path counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurrentRtt {
    /// That of the path without queues.
    Base,
    /// As the last handshake or acknowledgement of the host on the path saw it, queues included.
    #[default]
    Latest,
}

impl CurrentRtt {
    /// The round-trip time of a path.
    #[must_use]
    pub const fn of(self, path: &PathAccount) -> Duration {
        match self {
            Self::Base => path.base_rtt,
            Self::Latest => path.rtt,
        }
    }
}
