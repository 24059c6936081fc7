//! The rate of arrivals that loads a network to a given share.

use std::collections::BTreeMap;

use foundation::Problem;
use network::LinkId;
use network::topology::Topology;

use super::Group;

/// Returns the flow starts per second at which the mean payload offered to the most loaded link is `load` times its rate. Pairs
/// of hosts have equal parts of the flows, and the paths that a pair may use have equal parts of its bytes.
pub(super) fn arrivals(group: &Group, load: f64, topology: &Topology) -> Result<f64, Problem> {
    let most = if group.chooses_ways() { usize::MAX } else { 1 };
    let mut parts: BTreeMap<LinkId, f64> = BTreeMap::new();
    for pair in group.pairs.iter() {
        let ways = &pair.ways[..pair.ways.len().min(most)];
        for link in ways.iter().flat_map(|way| group.data_links(way)) {
            *parts.entry(*link).or_default() += 1.0 / (ways.len() * group.pairs.len()) as f64;
        }
    }
    let bits = parts.into_iter().filter_map(|(link, part)| {
        let rate = topology.links()[link.0 as usize].spec.mean_rate()?;
        Some(rate.bits_per_second() as f64 / part)
    });
    let bits = bits.min_by(f64::total_cmp).ok_or_else(|| {
        Problem::new(
            "load",
            "no link on the paths of the flows has a rate: set one, or write arrivals",
        )
    })?;
    let mean = group.sizes.as_ref().map_or(1.0, |sizes| sizes.mean());
    Ok(load * bits / (8.0 * mean))
}
