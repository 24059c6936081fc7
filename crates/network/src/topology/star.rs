//! The star: leaves around a hub, each with a link of its own. The hub is a host, to which all leaves send, and
//! passes packets on from leaf to leaf.

use super::TopologyConfig;
use super::draft::Draft;

pub(super) const KEYS: &[&str] = &["leaves", "leaf"];

pub(super) fn draw(config: &TopologyConfig, draft: &mut Draft<'_>) {
    let leaves = draft.count_or_list("leaves", config.leaves, config.leaf.as_ref());
    let Some(leaf) = draft.needed("leaf", config.leaf.as_ref()) else {
        return;
    };
    let specs = draft.links("leaf", leaf, leaves);
    let node = draft.router("hub");
    let hub = draft.topology.add_host("hub", node);
    for (i, spec) in specs.iter().enumerate() {
        let i = i + 1;
        let leaf = draft.router(format!("h{i}"));
        let link = draft.cable(&format!("leaf/{i}"), spec, leaf, node);
        draft.bottleneck(link);
        let host = draft.topology.add_host(format!("h{i}"), leaf);
        draft.pair(host, hub);
    }
}
