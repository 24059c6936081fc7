//! One path, as a plain TCP connection.

use foundation::Generator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionPlan, HostPaths, PathChoice, PathPolicy, PolicySettings, RttSource};

/// One path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Single {
    /// The path: random, first, round-robin or least-rtt. Default: "random".
    pub choose: PathChoice,
    /// With choose = "least-rtt": the round-trip time without queues ("base") or the latest sample ("latest"). Default: "latest".
    pub rtt: RttSource,
}

impl PolicySettings for Single {
    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

impl PathPolicy for Single {
    fn open(&mut self, _: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan {
        ConnectionPlan::over([self.choose.path(host, self.rtt, random)])
    }
}
