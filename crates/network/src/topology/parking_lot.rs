//! The parking lot: bottlenecks in series. One pair crosses all of them, and one further pair crosses each alone.
//!
//! ```text
//! s0, s1 ─ node/1 ─bottleneck/1─ node/2 ─bottleneck/2─ node/3 ─ r0, r2
//!                                  └─ r1, s2
//! ```

use foundation::omit_unset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;

/// Keeps routes with access and exit links within 255 links.
const MAX_BOTTLENECKS: usize = 250;

omit_unset! {
    /// Bottlenecks in series: s0 sends to r0 across all of them, s1 to r1 across the first alone, s2 to r2 across the second, …
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct ParkingLot {
        /// Number of bottlenecks, from 1 to 250; default: the length of the list bottleneck.
        pub hops: Option<u64>,
        /// Bottleneck links, a table of path keys for all or a list with one table each.
        pub bottleneck: Option<Links>,
        /// Links from senders to their router, a table of path keys for all or a list with one table each; default: senders attached to the router.
        pub access: Option<Links>,
        /// Links from the router to receivers, a table of path keys for all or a list with one table each; default: receivers attached to the router.
        pub exit: Option<Links>,
    }
}

impl TopologyKind for ParkingLot {
    fn draw(&self, draft: &mut Draft<'_>) {
        let hops = draft.count_or_list("hops", self.hops, self.bottleneck.as_ref());
        let hops = draft.count("hops", hops as u64, MAX_BOTTLENECKS);
        let access = draft.optional_links("access", self.access.as_ref(), hops + 1);
        let exit = draft.optional_links("exit", self.exit.as_ref(), hops + 1);
        let Some(bottleneck) = draft.required("bottleneck", self.bottleneck.as_ref()) else {
            return;
        };
        let bottlenecks = draft.links("bottleneck", bottleneck, hops);

        let nodes: Vec<_> = (1..=hops + 1)
            .map(|i| draft.router(format!("node/{i}")))
            .collect();
        for (hop, spec) in bottlenecks.iter().enumerate() {
            let name = format!("bottleneck/{}", hop + 1);
            let link = draft.cable(&name, spec, nodes[hop], nodes[hop + 1]);
            draft.bottleneck(link);
        }
        for (i, (access, exit)) in access.iter().zip(&exit).enumerate() {
            let (from, to) = match i {
                0 => (nodes[0], nodes[hops]),
                hop => (nodes[hop - 1], nodes[hop]),
            };
            let from = draft.sender(&format!("s{i}"), from, &format!("access/{i}"), access.as_ref());
            let to = draft.receiver(&format!("r{i}"), to, &format!("exit/{i}"), exit.as_ref());
            draft.pair(from, to);
        }
    }
}
