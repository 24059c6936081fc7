//! MMPTCP (M. Kheirkhah, I. Wakeman and G. Parisis, "MMPTCP: a multipath transport protocol for data centers",
//! INFOCOM 2016): packet scatter under one window for short flows, multipath TCP for the rest.
//!
//! The paper scatters packets by source ports, which routers distribute over paths of equal length; here each segment
//! takes a random path. ACKs return on the path of the first subflow.

use foundation::{Generator, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConnectionPlan, HostPaths, Join, JoinTime, PathChoice, PathIndex, PathPolicy, PolicySettings, RttSource,
    Scatter,
};

/// Each segment over a random path under one window, later one subflow on each path (MMPTCP, INFOCOM 2016).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mmptcp {
    /// Bytes after which subflows on all paths take over. Default: "100kB".
    pub switch_after: Size,
    /// Duplicate ACKs that count as reordering while packets are scattered, 3 to 1000. Default: 3 for each path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3, max = 1000))]
    pub duplicates: Option<u32>,
    /// Path of the handshake and of ACKs: random, first, round-robin or least-rtt. Default: "random".
    pub first: PathChoice,
}

impl Default for Mmptcp {
    fn default() -> Self {
        Self {
            switch_after: Size::from_bytes(100_000),
            duplicates: None,
            first: PathChoice::default(),
        }
    }
}

impl PolicySettings for Mmptcp {
    fn validate(&self) -> Vec<Problem> {
        let duplicates = self.duplicates.unwrap_or(3);
        let problems = [
            Problem::range(
                "duplicates",
                duplicates,
                (3..=1000).contains(&duplicates),
                "3 to 1000",
            ),
            Problem::range(
                "switch_after",
                0,
                self.switch_after.bytes() > 0,
                "at least 1 byte",
            ),
        ];
        problems.into_iter().flatten().collect()
    }

    fn beyond_linux(&self) -> Vec<Problem> {
        let message = "Linux does not scatter packets over paths: use a policy with whole subflows, such as \"fsfs\" or \"all\"";
        vec![Problem::new("kind", message)]
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

impl PathPolicy for Mmptcp {
    fn open(&mut self, _: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan {
        let all: Vec<PathIndex> = (0..host.len() as u8).map(PathIndex).collect();
        let mut opening = ConnectionPlan::over([self.first.path(host, RttSource::Latest, random)]);
        let bytes = self.switch_after.bytes();
        opening.joins = all
            .iter()
            .map(|&path| Join {
                when: JoinTime::AfterBytes(bytes),
                ..Join::immediately(path)
            })
            .collect();
        opening.scatter = Some(Scatter {
            bytes,
            duplicates: self.duplicates.unwrap_or(3 * all.len().max(1) as u32),
            paths: all,
        });
        opening
    }
}
