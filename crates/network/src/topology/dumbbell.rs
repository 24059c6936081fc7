//! The dumbbell: senders left, receivers right, and one link between that all share.
//!
//! ```text
//! s1 ─access/1─┐                        ┌─exit/1─ r1
//! s2 ─access/2─┤ left ─bottleneck─ right ├─exit/2─ r2
//! s3 ─access/3─┘                        └─exit/3─ r3
//! ```

use super::TopologyConfig;
use super::draft::Draft;

pub(super) const KEYS: &[&str] = &["pairs", "receivers", "bottleneck", "access", "exit"];

pub(super) fn draw(config: &TopologyConfig, draft: &mut Draft<'_>) {
    let pairs = config.pairs.as_ref().and_then(|pairs| pairs.count(draft));
    let senders = draft.count_or_list("pairs", pairs, config.access.as_ref());
    let receivers = match config.receivers {
        Some(receivers) => draft.count("receivers", receivers, senders),
        None => senders,
    };
    let access = draft.optional_links("access", config.access.as_ref(), senders);
    let exit = draft.optional_links("exit", config.exit.as_ref(), receivers);
    let Some(bottleneck) = draft.required("bottleneck", config.bottleneck.as_ref()) else {
        return;
    };
    let bottleneck = draft.links("bottleneck", bottleneck, 1);

    let (left, right) = (draft.router("left"), draft.router("right"));
    // Declared first, so that a search for a way comes across it first.
    let shared = draft.cable("bottleneck", &bottleneck[0], left, right);
    draft.bottleneck(shared);
    let senders: Vec<_> = (1..)
        .zip(&access)
        .map(|(i, spec): (usize, _)| {
            draft.sender(&format!("s{i}"), left, &format!("access/{i}"), spec.as_ref())
        })
        .collect();
    let receivers: Vec<_> = (1..)
        .zip(&exit)
        .map(|(i, spec): (usize, _)| {
            draft.receiver(&format!("r{i}"), right, &format!("exit/{i}"), spec.as_ref())
        })
        .collect();
    for (&from, &to) in senders.iter().zip(receivers.iter().cycle()) {
        draft.pair(from, to);
    }
}
