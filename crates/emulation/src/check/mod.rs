//! Checks whether this machine can emulate a path: compares the behavior of its links with their configuration.

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

/// A path of a trial: the links in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedPath {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// The names of its links.
    pub links: Vec<String>,
    /// The links' configuration as text: equal for equal paths.
    #[serde(rename = "asked")]
    pub specification: String,
    #[serde(skip)]
    specs: Vec<LinkSpec>,
}

/// Returns the different paths of a trial's flows, in both directions.
///
/// # Errors
/// The errors in the specification.
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

/// Measures a separate copy of a path between two hosts: 3 to 8 s. `stopped` is called several times a second; once it
/// returns true, the check ends with an error.
///
/// # Errors
/// Those of [`Emulation::start`], and the system's.
pub fn check(
    path: &CheckedPath,
    streams: Streams,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<PathReport, Error> {
    let measured = measure::PathMeasurement::of(&path.specs, streams, stopped)?;
    Ok(verdict::judge(&path.specs, &measured))
}
