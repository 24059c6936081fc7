//! Whether this machine holds a path: what its links do when they are built beside what was asked of them.

mod capacity;
mod load;
mod measure;
mod verdict;

use experiment::TrialSpec;
use experiment::plan::Plan;
use foundation::Streams;
use network::{HostId, LinkId, LinkSpec, Topology};
use serde::Serialize;

use super::trial::TrialError;
use crate::error::Error;
pub use capacity::{Capacity, capacity};
pub use verdict::{Figure, PathReport};

/// A way that packets of a trial take: links behind one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedPath {
    /// The host at its beginning.
    pub from: String,
    /// The host at its end.
    pub to: String,
    /// The names of its links.
    pub links: Vec<String>,
    /// What is asked of them: equal where two paths are alike.
    #[serde(rename = "asked")]
    pub specification: String,
    #[serde(skip)]
    specs: Vec<LinkSpec>,
}

/// The paths of a trial's flows, there and back, each kind once.
///
/// # Errors
/// What is wrong with the specification.
pub fn paths(spec: &TrialSpec) -> Result<Vec<CheckedPath>, TrialError> {
    let plan = Plan::of(spec)?;
    let mut found: Vec<CheckedPath> = Vec::new();
    for pair in plan.groups.iter().flat_map(|group| group.pairs.iter()) {
        let way = &pair.ways[0];
        for (from, to, links) in [
            (pair.from, pair.to, &way.links),
            (pair.to, pair.from, &way.reverse_links),
        ] {
            let path = path(&plan.topology, from, to, links);
            if found.iter().all(|known| known.specs != path.specs) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn path(topology: &Topology, from: HostId, to: HostId, links: &[LinkId]) -> CheckedPath {
    let name = |host: HostId| topology.hosts()[host.0 as usize].clone();
    let links = || {
        links
            .iter()
            .map(|link: &LinkId| &topology.links()[link.0 as usize])
    };
    let specs: Vec<LinkSpec> = links().map(|link| link.spec.clone()).collect();
    CheckedPath {
        from: name(from),
        to: name(to),
        links: links().map(|link| link.name.clone()).collect(),
        specification: format!("{specs:?}"),
        specs,
    }
}

/// Measures a path, built by itself between two hosts: 3 to 8 s.
///
/// # Errors
/// What stands in the way of emulation, and the system's. `stopped` is asked several times a second and gives it up.
pub fn check(
    path: &CheckedPath,
    streams: Streams,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<PathReport, Error> {
    let measured = measure::PathMeasurement::of(&path.specs, streams, stopped)?;
    Ok(verdict::judge(&path.specs, &measured))
}
