//! Routes around failed links.
//!
//! Routers detect the failure or recovery of a link after a detection time, all at once. Then each route over a failed link
//! takes the shortest one around all failed links, chosen between equal ones like any route. It keeps its first and its last
//! link, since routers choose neither a host's interface nor an address of its peer. A route without an alternative stays as it
//! is, and a route returns to its original links when all of them are back. So routes that cross no failed link never change
//! (resilient hashing).

use std::collections::BTreeMap;

use foundation::{Duration, Problem};

use super::draft::Draft;
use super::{NodeId, Topology};
use crate::builder::NetworkBuilder;
use crate::config::Outage;
use crate::packet::{LinkId, RouteId};

/// Limit of the detection time.
const MAX_DETECTION: Duration = Duration::from_secs(3600);
/// Limit of links in a route (packets count hops in one byte).
const MAX_LINKS: usize = 255;

/// Outages by the name of a link; both directions of a link without an entry for its reverse direction.
pub(super) type Failures = BTreeMap<String, Vec<Outage>>;

impl Draft<'_> {
    /// Lets routers avoid failed links after a detection time, 0 by default.
    pub(super) fn detect_failures(&mut self, detection: Option<Duration>) {
        let detection = detection.unwrap_or_default();
        if detection > MAX_DETECTION {
            self.problem(
                "detection",
                format!("\"{detection}\" is out of range: 0 to \"{MAX_DETECTION}\""),
            );
        }
        self.topology.detection = Some(detection);
    }

    /// Sets the outages of single links.
    pub(super) fn fail(&mut self, failures: Option<&Failures>) {
        for (name, outages) in failures.into_iter().flatten() {
            let key = format!("down.{name}");
            self.problems.extend(
                Outage::validate(outages)
                    .into_iter()
                    .map(|problem| problem.within(&key)),
            );
            let link = match self.topology.known_link(name) {
                Ok(link) => link,
                Err(Problem { message, .. }) => {
                    self.problem("down", message);
                    continue;
                }
            };
            let reverse = format!("{name}/reverse");
            let back = self.topology.link(&reverse);
            let back = back.filter(|_| !failures.is_some_and(|all| all.contains_key(&reverse)));
            for link in std::iter::once(link).chain(back) {
                self.topology.links[link.0 as usize].spec.down = outages.clone();
            }
        }
    }
}

impl Topology {
    /// Adds the changes of routes by which routers avoid failed links to a network with the routes of this topology.
    pub fn avoid_outages(&self, builder: &mut NetworkBuilder) {
        let Some(detection) = self.detection else {
            return;
        };
        let events = self.detected(detection);
        if events.is_empty() {
            return;
        }
        let fails: Vec<bool> = self.links.iter().map(|link| !link.spec.down.is_empty()).collect();
        let crosses = |way: &[LinkId], links: &[bool]| way.iter().any(|link| links[link.0 as usize]);
        let routes: Vec<(RouteId, Vec<LinkId>)> =
            builder.routes().filter(|(_, way)| crosses(way, &fails)).collect();
        let mut current: Vec<Vec<LinkId>> = routes.iter().map(|(_, way)| way.clone()).collect();
        let arriving = self.arriving();
        let mut failed = vec![false; self.links.len()];
        for (at, changes) in events {
            for (link, is_down) in changes {
                failed[link.0 as usize] = is_down;
            }
            let mut distances = BTreeMap::new();
            for ((route, original), current) in routes.iter().zip(&mut current) {
                let other = match crosses(original, &failed) {
                    true => self.detour(original, &failed, &arriving, &mut distances),
                    false => None,
                };
                let wanted = other.unwrap_or_else(|| original.clone());
                if wanted != *current {
                    builder.reroute(at, *route, &wanted);
                    *current = wanted;
                }
            }
        }
    }

    /// Returns the links that fail (true) and recover by the time at which routers detect it. They do not detect an outage that
    /// is over by then.
    fn detected(&self, detection: Duration) -> BTreeMap<Duration, Vec<(LinkId, bool)>> {
        let mut events: BTreeMap<Duration, Vec<(LinkId, bool)>> = BTreeMap::new();
        for (number, link) in (0..).map(LinkId).zip(&self.links) {
            let outages = link.spec.down.iter();
            for outage in outages.filter(|outage| outage.to > outage.from + detection) {
                events
                    .entry(outage.from + detection)
                    .or_default()
                    .push((number, true));
                events
                    .entry(outage.to + detection)
                    .or_default()
                    .push((number, false));
            }
        }
        events
    }

    /// Returns the shortest route around the failed links between the first and the last link of a route. `distances` caches
    /// the searches for these failed links.
    fn detour(
        &self,
        way: &[LinkId],
        failed: &[bool],
        arriving: &[Vec<LinkId>],
        distances: &mut BTreeMap<NodeId, Vec<u32>>,
    ) -> Option<Vec<LinkId>> {
        let (&first, &last) = (way.first()?, way.last()?);
        if failed[first.0 as usize] || failed[last.0 as usize] || way.len() < 2 {
            return None;
        }
        let link = |link: LinkId| &self.links[link.0 as usize];
        let (start, goal) = (link(first).to, link(last).from);
        let distances = distances
            .entry(goal)
            .or_insert_with(|| self.distances(arriving, goal, failed).0);
        let mut other = vec![first];
        let ends = (link(first).from, link(last).to);
        self.descend(distances, failed, start, goal, ends, &mut other)?;
        other.push(last);
        (other.len() <= MAX_LINKS).then_some(other)
    }
}
