//! The parking lot: bottlenecks in a row. One pair crosses all of them; each has another pair that crosses it alone.
//!
//! ```text
//! s0, s1 ─ node/1 ─bottleneck/1─ node/2 ─bottleneck/2─ node/3 ─ r0, r2
//!                                  └─ r1, s2
//! ```

use super::TopologyConfig;
use super::draft::Draft;

pub(super) const KEYS: &[&str] = &["hops", "bottleneck", "access", "exit"];

/// With an access and an exit link a route stays within 255 links.
const MAX_BOTTLENECKS: usize = 250;

pub(super) fn draw(config: &TopologyConfig, draft: &mut Draft<'_>) {
    let hops = draft.count_or_list("hops", config.hops, config.bottleneck.as_ref());
    let hops = draft.count("hops", hops as u64, MAX_BOTTLENECKS);
    let access = draft.optional_links("access", config.access.as_ref(), hops + 1);
    let exit = draft.optional_links("exit", config.exit.as_ref(), hops + 1);
    let Some(bottleneck) = draft.required("bottleneck", config.bottleneck.as_ref()) else {
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
