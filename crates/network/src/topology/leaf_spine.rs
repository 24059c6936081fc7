//! The leaf-spine network of data centres: each leaf switch has a link to each spine switch, and hosts.
//!
//! Links are named by switch: `uplink/2/1` leads from leaf 2 to spine 1, `access/3` from host h3 to its leaf. The uplinks are
//! the bottlenecks.

use foundation::{Duration, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;
use super::reroute::Failures;
use crate::queue::SharedBuffer;

const MAX_SWITCHES: usize = 1_000;
const MAX_HOSTS: usize = 10_000;
const MAX_UPLINKS: usize = 100_000;

omit_unset! {
    /// Hosts h1, h2, … below leaf switches, each of which has a link to each spine; h1 sends to the host half of all hosts
    /// away, and so on. Each pair of hosts takes one of the shortest paths, by a hash.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct LeafSpine {
        /// Number of leaf switches, from 1 to 1000; default 2.
        pub leaves: Option<u64>,
        /// Number of spine switches, from 1 to 1000; default 2. At most 100000 uplinks in total.
        pub spines: Option<u64>,
        /// Hosts below each leaf; at most 10000 in total; default 2.
        pub hosts: Option<u64>,
        /// Links from hosts to their leaf, a table of path keys for all or a list with one table each.
        pub access: Option<Links>,
        /// Links from each leaf to each spine, a table of path keys for all or a list with one table each, in order of
        /// leaves; default: like access, if that is one table.
        pub uplink: Option<Links>,
        /// Weights of the uplinks in the hash, a list with one number from 1 to 65535 per spine, e.g. [3, 1], or one per uplink,
        /// in order of leaves; default: equal weights. The shares of the pairs of hosts follow them.
        pub weights: Option<Vec<u64>>,
        /// Outages of single links by name, such as { "uplink/1/1" = ["5s..7s"] }, in both directions unless name/reverse has its
        /// own; default: none.
        pub down: Option<Failures>,
        /// Time after which the switches avoid a failed link, or use a recovered one, e.g. "50ms"; default "0s".
        pub detection: Option<Duration>,
        /// Buffer of each switch for the queues of all its outgoing links: a size such as "4MB", or a table such as { size = "4MB", alpha = 0.5 }; default: none. A queue accepts a packet while it is shorter than alpha (default 1) times the free part of the buffer, and within its limit.
        pub shared_buffer: Option<SharedBuffer>,
    }
}

impl TopologyKind for LeafSpine {
    fn draw(&self, draft: &mut Draft<'_>) {
        let leaves = draft.count("leaves", self.leaves.unwrap_or(2), MAX_SWITCHES);
        let spines = draft.count("spines", self.spines.unwrap_or(2), MAX_SWITCHES);
        let hosts = draft.count("hosts", self.hosts.unwrap_or(2), MAX_HOSTS);
        if leaves * spines > MAX_UPLINKS {
            draft.problem(
                "spines",
                format!("{leaves} leaves with {spines} spines exceed {MAX_UPLINKS} uplinks"),
            );
        }
        if leaves * hosts > MAX_HOSTS {
            draft.problem(
                "hosts",
                format!("{hosts} hosts below each of {leaves} leaves exceed {MAX_HOSTS}"),
            );
        }
        if leaves * hosts < 2 {
            draft.problem("hosts", "one host has nobody to send to: at least 2 in total");
        }
        let Some(access) = draft.required("access", self.access.as_ref()) else {
            return;
        };
        if !draft.problems.is_empty() {
            return;
        }
        let accesses = draft.links("access", access, leaves * hosts);
        let alike = ("access", access, accesses.as_slice());
        let Some(uplinks) = draft.links_or_alike("uplink", self.uplink.as_ref(), leaves * spines, alike)
        else {
            return;
        };

        let tops: Vec<_> = (1..=spines)
            .map(|spine| draft.router(format!("spine{spine}")))
            .collect();
        let mut ends = Vec::with_capacity(leaves * hosts);
        let mut upward = Vec::with_capacity(leaves * spines);
        for (leaf, specs) in (1..).zip(uplinks.chunks(spines)) {
            let leaf: usize = leaf;
            let switch = draft.router(format!("leaf{leaf}"));
            for ((spine, &top), spec) in (1..).zip(&tops).zip(specs) {
                let link = draft.cable(&format!("uplink/{leaf}/{spine}"), spec, switch, top);
                draft.bottleneck(link);
                upward.push(link);
            }
            for spec in &accesses[(leaf - 1) * hosts..leaf * hosts] {
                let host = ends.len() + 1;
                ends.push(draft.sender(&format!("h{host}"), switch, &format!("access/{host}"), Some(spec)));
            }
        }
        draft.spread_over_equal_routes();
        if let Some(weights) = &self.weights {
            if weights.len() == spines || weights.len() == upward.len() {
                draft.weigh("weights", upward.into_iter().zip(weights.iter().copied().cycle()));
            } else {
                draft.problem(
                    "weights",
                    format!(
                        "the list has {} numbers, but {spines} (one per spine) or {} (one per uplink) are required",
                        weights.len(),
                        leaves * spines
                    ),
                );
            }
        }
        draft.fail(self.down.as_ref());
        draft.detect_failures(self.detection);
        draft.pair_by_stride(&ends);
        draft.share_buffers(self.shared_buffer);
    }
}
