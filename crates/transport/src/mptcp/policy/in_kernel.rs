//! Linux's in-kernel path manager with a "subflow" endpoint for each address (`Documentation/networking/mptcp.rst`): a
//! subflow on every path for every connection, the first one on the default route.

use foundation::Generator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionPlan, HostPaths, PathIndex, PathPolicy, PolicySettings};

/// All paths, starting with the first; in world netns Linux's in-kernel path manager itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InKernel {}

impl PolicySettings for InKernel {
    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

impl PathPolicy for InKernel {
    fn open(&mut self, _: Option<u64>, host: &HostPaths, _: &mut Generator) -> ConnectionPlan {
        ConnectionPlan::over((0..host.len() as u8).map(PathIndex))
    }
}
