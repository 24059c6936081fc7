//! What Linux's own path manager does, with an endpoint of the kind "subflow" for each address
//! (`Documentation/networking/mptcp.rst`): a subflow on every path for every connection, the first one where routing leads
//! what has no address yet.

use foundation::Generator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionPlan, HostPaths, PathIndex, PathPolicy, PolicySettings};

/// All paths for every connection, beginning with the first: Linux's own path manager, which in world netns decides itself.
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

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::{Duration, Streams};

    #[test]
    fn it_joins_every_path_whatever_the_size() {
        let host = HostPaths::new([40, 20, 30].map(Duration::from_millis));
        let mut random = Streams::new(1, 0).stream("paths");
        for size in [Some(1), Some(1_000_000), None] {
            let opening = InKernel {}.open(size, &host, &mut random);
            assert_eq!(opening, ConnectionPlan::over([0, 1, 2].map(PathIndex)));
        }
    }
}
