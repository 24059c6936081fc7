//! The star: hosts around a switch, each behind one access link. All leaves send to the host `hub` and share its access
//! link.
//!
//! ```text
//! h1 ─leaf/1─┐
//! h2 ─leaf/2─┼─ switch ─hub─ hub
//! h3 ─leaf/3─┘
//! ```

use foundation::omit_unset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;
use crate::queue::SharedBuffer;

omit_unset! {
    /// Hosts h1, h2, … around a switch, each behind one access link; all send to the host hub (incast).
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Star {
        /// Number of hosts that send to the hub, from 1 to 10000; default: the length of the list leaf.
        pub leaves: Option<u64>,
        /// Access links from the hosts to the switch, a table of path keys for all or a list with one table each.
        pub leaf: Option<Links>,
        /// Access link from the switch to the host hub, shared by all senders; default: like leaf, if that is one table.
        pub hub: Option<Links>,
        /// Buffer of each switch for the queues of all its outgoing links: a size such as "4MB", or a table such as { size = "4MB", alpha = 0.5 }; default: none. A queue accepts a packet while it is shorter than alpha (default 1) times the free part of the buffer, and within its limit.
        pub shared_buffer: Option<SharedBuffer>,
    }
}

impl TopologyKind for Star {
    fn draw(&self, draft: &mut Draft<'_>) {
        let leaves = draft.count_or_list("leaves", self.leaves, self.leaf.as_ref());
        let Some(leaf) = draft.required("leaf", self.leaf.as_ref()) else {
            return;
        };
        let specs = draft.links("leaf", leaf, leaves);
        let Some(own) = draft.links_or_alike("hub", self.hub.as_ref(), 1, ("leaf", leaf, &specs)) else {
            return;
        };
        let switch = draft.router("switch");
        // Declared first, so that searches find its links first.
        let node = draft.router("hub");
        let shared = draft.cable("hub", &own[0], switch, node);
        draft.bottleneck(shared);
        let hub = draft.topology.add_host("hub", node);
        for (i, spec) in specs.iter().enumerate() {
            let i = i + 1;
            let leaf = draft.router(format!("h{i}"));
            draft.cable(&format!("leaf/{i}"), spec, leaf, switch);
            let host = draft.topology.add_host(format!("h{i}"), leaf);
            draft.pair(host, hub);
        }
        draft.share_buffers(self.shared_buffer);
    }
}
