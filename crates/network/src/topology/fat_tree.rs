//! The fat tree of switches with `k` ports (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008): `k` pods of `k/2` edge and `k/2`
//! aggregation switches, `k²/4` core switches and `k³/4` hosts.
//!
//! Links are named by pod and switch: `access/5` leads from host h5 to its edge switch, `edge/2/1/3` in pod 2 from edge switch
//! 1 to aggregation switch 3, `core/2/3/1` in pod 2 from aggregation switch 3 to the first of its core switches. All links
//! above the edge switches are bottlenecks.

use foundation::{Duration, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;
use super::reroute::Failures;
use crate::queue::SharedBuffer;

const MAX_PORTS: u64 = 32;

omit_unset! {
    /// Hosts h1, h2, … below a fat tree of equal switches; h1 sends to the host half of all hosts away, and so on. Each pair of
    /// hosts takes one of the shortest paths, by a hash.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct FatTree {
        /// Ports of each switch, k: an even number from 2 to 32, for k³/4 hosts; default 4.
        pub ports: Option<u64>,
        /// All links, a table of path keys.
        pub link: Option<Links>,
        /// Weights of the upward links of each switch in the hash, a list with ports/2 numbers from 1 to 65535, e.g. [3, 1];
        /// default: equal weights. The shares of the pairs of hosts follow them.
        pub weights: Option<Vec<u64>>,
        /// Outages of single links by name, such as { "edge/1/1/1" = ["5s..7s"] }, in both directions unless name/reverse has its
        /// own; default: none.
        pub down: Option<Failures>,
        /// Time after which the switches avoid a failed link, or use a recovered one, e.g. "50ms"; default "0s".
        pub detection: Option<Duration>,
        /// Buffer of each switch for the queues of all its outgoing links: a size such as "4MB", or a table such as { size = "4MB", alpha = 0.5 }; default: none. A queue accepts a packet while it is shorter than alpha (default 1) times the free part of the buffer, and within its limit.
        pub shared_buffer: Option<SharedBuffer>,
    }
}

impl TopologyKind for FatTree {
    fn draw(&self, draft: &mut Draft<'_>) {
        let ports = self.ports.unwrap_or(4);
        if !(2..=MAX_PORTS).contains(&ports) || ports % 2 == 1 {
            draft.problem(
                "ports",
                format!("{ports} is out of range: an even number from 2 to {MAX_PORTS}"),
            );
            return;
        }
        let Some(link) = draft.required("link", self.link.as_ref()) else {
            return;
        };
        let spec = draft.links("link", link, 1).swap_remove(0);

        let half = ports as usize / 2;
        // Core switch `up` of aggregation switch `above` in every pod, at `(above - 1) * half + up - 1`.
        let cores: Vec<_> = (1..=half * half)
            .map(|core| draft.router(format!("core{core}")))
            .collect();
        let mut upward = Vec::new();
        let mut hosts = Vec::with_capacity(2 * half * half * half);
        for pod in 1..=2 * half {
            let above: Vec<_> = (1..=half)
                .map(|number| draft.router(format!("aggregation/{pod}/{number}")))
                .collect();
            for (number, &switch) in above.iter().enumerate() {
                for up in 0..half {
                    let name = format!("core/{pod}/{}/{}", number + 1, up + 1);
                    let link = draft.cable(&name, &spec, switch, cores[number * half + up]);
                    draft.bottleneck(link);
                    upward.push((link, up));
                }
            }
            for edge in 1..=half {
                let switch = draft.router(format!("edge/{pod}/{edge}"));
                for (number, &aggregation) in above.iter().enumerate() {
                    let link = draft.cable(
                        &format!("edge/{pod}/{edge}/{}", number + 1),
                        &spec,
                        switch,
                        aggregation,
                    );
                    draft.bottleneck(link);
                    upward.push((link, number));
                }
                for _ in 0..half {
                    let host = hosts.len() + 1;
                    hosts.push(draft.sender(
                        &format!("h{host}"),
                        switch,
                        &format!("access/{host}"),
                        Some(&spec),
                    ));
                }
            }
        }
        draft.spread_over_equal_routes();
        match &self.weights {
            Some(weights) if weights.len() == half => {
                draft.weigh(
                    "weights",
                    upward.into_iter().map(|(link, up)| (link, weights[up])),
                );
            }
            Some(weights) => draft.problem(
                "weights",
                format!("the list has {} numbers, but {half} are required", weights.len()),
            ),
            None => {}
        }
        draft.fail(self.down.as_ref());
        draft.detect_failures(self.detection);
        draft.pair_by_stride(&hosts);
        draft.share_buffers(self.shared_buffer);
    }
}
