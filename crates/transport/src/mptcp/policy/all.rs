//! All paths, the default policy of multipath TCP.

use foundation::Generator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionPlan, HostPaths, PathChoice, PathIndex, PathPolicy, PolicySettings, RttSource};

/// All paths, starting with a random one by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct All {
    /// Path of the first subflow: random, first, round-robin or least-rtt. Default: "random".
    pub first: PathChoice,
    /// With first = "least-rtt": the round-trip time without queues ("base") or the latest sample ("latest"). Default: "latest".
    pub rtt: RttSource,
}

impl PolicySettings for All {
    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

impl PathPolicy for All {
    fn open(&mut self, _: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan {
        let first = self.first.path(host, self.rtt, random);
        let count = host.len().max(1);
        // In cyclic order, so that a limit on subflows loads all paths evenly.
        let in_turn = (0..count).map(|step| (usize::from(first.0) + step) % count);
        ConnectionPlan::over(in_turn.map(|path| PathIndex(path as u8)))
    }
}
