//! The star: hosts around a switch, each behind one access link. The leaves all send to the host `hub`, whose access
//! link they share.
//!
//! ```text
//! h1 ─leaf/1─┐
//! h2 ─leaf/2─┼─ switch ─hub─ hub
//! h3 ─leaf/3─┘
//! ```

use super::draft::Draft;
use super::{Links, TopologyConfig};

pub(super) const KEYS: &[&str] = &["leaves", "leaf", "hub"];

pub(super) fn draw(config: &TopologyConfig, draft: &mut Draft<'_>) {
    let leaves = draft.count_or_list("leaves", config.leaves, config.leaf.as_ref());
    let Some(leaf) = draft.required("leaf", config.leaf.as_ref()) else {
        return;
    };
    let specs = draft.links("leaf", leaf, leaves);
    let own = match (&config.hub, leaf) {
        (Some(hub), _) => draft.links("hub", hub, 1),
        (None, Links::Alike(_)) => specs[..1].to_vec(),
        (None, Links::Each(_)) => {
            draft.problem(
                "hub",
                "the key is missing: the hub's link cannot be like a list of links",
            );
            return;
        }
    };
    let switch = draft.router("switch");
    // Declared first: its links are found first.
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
}
