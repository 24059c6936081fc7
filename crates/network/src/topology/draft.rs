//! A topology under construction, with the problems of its configuration.

use std::collections::BTreeSet;

use foundation::Problem;

use super::equal_cost::{Ties, WEIGHTS};
use super::links::{FileLoader, Links};
use super::{NodeId, Topology};
use crate::config::PathSpec;
use crate::packet::{HostId, LinkId};

/// A topology under construction.
pub(super) struct Draft<'a> {
    pub(super) topology: Topology,
    pub(super) problems: Vec<Problem>,
    pub(super) load: &'a mut FileLoader<'a>,
}

/// Limit of hosts per role, against trials that exhaust memory.
const MAX_COUNT: usize = 10_000;
/// Limit of links in a route (packets count hops in one byte).
const MAX_HOPS: usize = 255;

impl<'a> Draft<'a> {
    pub(super) fn new(load: &'a mut FileLoader<'a>) -> Self {
        Self {
            topology: Topology::default(),
            problems: Vec::new(),
            load,
        }
    }

    pub(super) fn problem(&mut self, key: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(key, message));
    }

    /// Returns the value of a required key, or adds a problem.
    pub(super) fn required<T>(&mut self, key: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.problem(key, "the key is missing");
        }
        value
    }

    /// Returns a number from 1 to `max`; adds a problem and returns 1 otherwise.
    pub(super) fn count(&mut self, key: &str, count: u64, max: usize) -> usize {
        match usize::try_from(count) {
            Ok(count) if (1..=max).contains(&count) => count,
            _ => {
                self.problem(key, format!("{count} is out of range: 1 to {max}"));
                1
            }
        }
    }

    /// Returns a count given by a key or by the length of a list of links.
    pub(super) fn count_or_list(&mut self, key: &str, count: Option<u64>, links: Option<&Links>) -> usize {
        let listed = links.and_then(Links::count).map(|count| count as u64);
        match count.or(listed) {
            Some(count) => self.count(key, count, MAX_COUNT),
            None => {
                self.problem(key, "the key is missing");
                1
            }
        }
    }

    /// Returns the specifications of `count` links of one role.
    pub(super) fn links(&mut self, key: &str, links: &Links, count: usize) -> Vec<PathSpec> {
        links.resolve(key, count, self.load, &mut self.problems)
    }

    /// Like [`Draft::links`]; `None` for each link if the key is absent.
    pub(super) fn optional_links(
        &mut self,
        key: &str,
        links: Option<&Links>,
        count: usize,
    ) -> Vec<Option<PathSpec>> {
        match links {
            Some(links) => self.links(key, links, count).into_iter().map(Some).collect(),
            None => vec![None; count],
        }
    }

    /// Returns the specifications of `count` links of a role, by default those of another role (its key, links and
    /// specifications) that has one table for all; or adds a problem.
    pub(super) fn links_or_alike(
        &mut self,
        key: &str,
        links: Option<&Links>,
        count: usize,
        (other_key, other, specs): (&str, &Links, &[PathSpec]),
    ) -> Option<Vec<PathSpec>> {
        match (links, other) {
            (Some(links), _) => Some(self.links(key, links, count)),
            (None, Links::Alike(_)) => Some(vec![specs[0].clone(); count]),
            (None, Links::Each(_)) => {
                self.problem(
                    key,
                    format!("the key is missing: required if {other_key} is a list"),
                );
                None
            }
        }
    }

    pub(super) fn router(&mut self, name: impl Into<String>) -> NodeId {
        self.topology.add_node(name, true)
    }

    /// Adds a link in each direction, `name` and `name/reverse`. Returns the first.
    pub(super) fn cable(&mut self, name: &str, spec: &PathSpec, from: NodeId, to: NodeId) -> LinkId {
        let forward = self.topology.add_link(name, &spec.forward, from, to);
        self.topology
            .add_link(format!("{name}/reverse"), &spec.reverse, to, from);
        forward
    }

    /// Adds a host that sends towards `router`: behind an access link whose forward direction leads to the router, or
    /// attached to the router.
    pub(super) fn sender(
        &mut self,
        name: &str,
        router: NodeId,
        link: &str,
        spec: Option<&PathSpec>,
    ) -> HostId {
        let Some(spec) = spec else {
            return self.topology.add_host(name, router);
        };
        let node = self.topology.add_node(name, true);
        self.cable(link, spec, node, router);
        self.topology.add_host(name, node)
    }

    /// Adds a host that receives from `router`: behind an exit link whose forward direction leads to the host, or
    /// attached to the router.
    pub(super) fn receiver(
        &mut self,
        name: &str,
        router: NodeId,
        link: &str,
        spec: Option<&PathSpec>,
    ) -> HostId {
        let Some(spec) = spec else {
            return self.topology.add_host(name, router);
        };
        let node = self.topology.add_node(name, true);
        self.cable(link, spec, router, node);
        self.topology.add_host(name, node)
    }

    pub(super) fn pair(&mut self, from: HostId, to: HostId) {
        self.topology.pairs.push((from, to));
    }

    /// Spreads pairs of hosts over their shortest routes of equal length.
    pub(super) fn spread_over_equal_routes(&mut self) {
        self.topology.ties = Ties::Spread;
    }

    /// Sets the weights of links among those of equally short routes. Adds a problem for a weight out of range.
    pub(super) fn weigh(&mut self, key: &str, weights: impl IntoIterator<Item = (LinkId, u64)>) {
        for (link, weight) in weights {
            if !WEIGHTS.contains(&weight) {
                let (least, most) = WEIGHTS.into_inner();
                return self.problem(key, format!("{weight} is out of range: {least} to {most}"));
            }
            self.topology.weights.insert(link, weight);
        }
    }

    /// Pairs each host with the one half the hosts away (the stride pattern of Al-Fares, Loukissas and Vahdat, SIGCOMM 2008),
    /// so that each sends one stream and receives one.
    pub(super) fn pair_by_stride(&mut self, hosts: &[HostId]) {
        for (number, &from) in hosts.iter().enumerate() {
            self.pair(from, hosts[(number + hosts.len() / 2) % hosts.len()]);
        }
    }

    pub(super) fn bottleneck(&mut self, link: LinkId) {
        self.topology.bottlenecks.push(link);
    }

    /// Adds problems of `key` for pairs of hosts without a route or with too long a route.
    pub(super) fn check_ways(&mut self, key: &str, pairs: &[(HostId, HostId)]) {
        let mut search = self.topology.search();
        let name = |host: HostId| &self.topology.hosts()[host.0 as usize];
        for &(from, to) in pairs {
            let message = match search.links_between(from, to) {
                None => format!(
                    "no path from {:?} to {:?}: only routers forward packets",
                    name(from),
                    name(to)
                ),
                Some(way) if way.len() > MAX_HOPS => format!(
                    "the path from {:?} to {:?} has {} links: at most {MAX_HOPS}",
                    name(from),
                    name(to),
                    way.len()
                ),
                Some(_) => continue,
            };
            self.problems.push(Problem::new(key, message));
        }
    }

    /// Returns the topology, or all problems.
    pub(super) fn finish(self) -> Result<Topology, Vec<Problem>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        debug_assert_eq!(
            self.topology
                .links
                .iter()
                .map(|link| &link.name)
                .collect::<BTreeSet<_>>()
                .len(),
            self.topology.links.len(),
            "link names are unique"
        );
        Ok(self.topology)
    }
}
