//! The tree: a server at the root, clients at the leaves, and switches between them. All clients send to the server.
//!
//! Links are named by level and number: `level/1/1` is the first one below the root. Their forward direction
//! leads to the root. The links of level 1 are the bottlenecks, since most clients share them.

use foundation::omit_unset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;
use crate::queue::SharedBuffer;

const MAX_DEPTH: usize = 100;
const MAX_LEAVES: usize = 10_000;

omit_unset! {
    /// Hosts h1, h2, … at the leaves, which all send to the host server at the root.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Tree {
        /// Number of levels of links, from 1 to 100; default: the length of the list level, or else 2.
        pub depth: Option<u64>,
        /// Branches below each node; at most 10000 leaves in total; default 2.
        pub fan_out: Option<u64>,
        /// Links towards the root, a table of path keys for all or a list with one table per level, from the root down.
        pub level: Option<Links>,
        /// Buffer of each switch for the queues of all its outgoing links: a size such as "4MB", or a table such as { size = "4MB", alpha = 0.5 }; default: none. A queue accepts a packet while it is shorter than alpha (default 1) times the free part of the buffer, and within its limit.
        pub shared_buffer: Option<SharedBuffer>,
    }
}

impl TopologyKind for Tree {
    fn draw(&self, draft: &mut Draft<'_>) {
        let listed = self.level.as_ref().and_then(super::Links::count);
        let depth = self.depth.or(listed.map(|count| count as u64)).unwrap_or(2);
        let depth = draft.count("depth", depth, MAX_DEPTH);
        let fan_out = draft.count("fan_out", self.fan_out.unwrap_or(2), MAX_LEAVES);
        let leaves = (0..depth).try_fold(1_usize, |nodes, _| {
            nodes.checked_mul(fan_out).filter(|&nodes| nodes <= MAX_LEAVES)
        });
        if leaves.is_none() {
            draft.problem(
                "depth",
                format!("{fan_out} branches on each of {depth} levels exceed {MAX_LEAVES} leaves"),
            );
            return;
        }
        let Some(level) = draft.required("level", self.level.as_ref()) else {
            return;
        };
        let specs = draft.links("level", level, depth);

        let root = draft.router("server");
        let server = draft.topology.add_host("server", root);
        let mut parents = vec![root];
        for (level, spec) in (1..).zip(&specs) {
            let mut children = Vec::with_capacity(parents.len() * fan_out);
            for number in 1..=parents.len() * fan_out {
                let name = match level {
                    _ if level == depth => format!("h{number}"),
                    _ => format!("node/{level}/{number}"),
                };
                let child = draft.router(name);
                let parent = parents[(number - 1) / fan_out];
                let link = draft.cable(&format!("level/{level}/{number}"), spec, child, parent);
                if level == 1 {
                    draft.bottleneck(link);
                }
                children.push(child);
            }
            parents = children;
        }
        for (i, &leaf) in (1..).zip(&parents) {
            let i: usize = i;
            let client = draft.topology.add_host(format!("h{i}"), leaf);
            draft.pair(client, server);
        }
        draft.share_buffers(self.shared_buffer);
    }
}
