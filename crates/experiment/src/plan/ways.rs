//! The hosts of flows, and the paths between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use foundation::{Duration, Generator, Problem};
use network::topology::{Topology, WaySearch};
use network::{HostId, LinkId, NetworkBuilder, RouteId};

use super::ETHERNET;
use crate::workload::WorkloadConfig;

/// A sender, its receiver, and the paths between them.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The host that opens flows.
    pub from: HostId,
    /// The host that accepts them.
    pub to: HostId,
    /// The paths that its flows may use, at least one; single-path flows use the first.
    pub ways: Vec<Way>,
    /// The routes of `ways`, forward and reverse.
    pub routes: [Arc<[RouteId]>; 2],
    /// Number of all paths between them, including those that its flows may not use.
    pub all_ways: u8,
}

impl Pair {
    fn new(from: HostId, to: HostId, ways: Vec<Way>, all_ways: u8) -> Self {
        Self {
            from,
            to,
            all_ways,
            routes: [
                ways.iter().map(|way| way.forward).collect(),
                ways.iter().map(|way| way.reverse).collect(),
            ],
            ways,
        }
    }
}

/// A path between two hosts: a route in each direction, link-disjoint from the other paths.
#[derive(Clone, Debug)]
pub struct Way {
    /// Number among all paths between the two hosts.
    pub number: u8,
    /// Route from the sender.
    pub forward: RouteId,
    /// Route back to the sender.
    pub reverse: RouteId,
    /// The links of `forward`.
    pub links: Vec<LinkId>,
    /// The links of `reverse`.
    pub reverse_links: Vec<LinkId>,
    /// Smallest MTU of all links in both directions, in bytes; 1500 if none is configured.
    pub mtu: u32,
    /// Round-trip propagation delay.
    pub base_rtt: Duration,
}

/// Limit of paths between two hosts (packets identify their path by one byte).
const MAX_WAYS: u8 = 64;

/// Routes between hosts, each built once.
pub(super) struct Routes<'a> {
    topology: &'a Topology,
    search: WaySearch<'a>,
    builder: &'a mut NetworkBuilder,
    known: BTreeMap<(HostId, HostId), Vec<Way>>,
}

impl<'a> Routes<'a> {
    pub(super) fn new(topology: &'a Topology, builder: &'a mut NetworkBuilder) -> Self {
        Self {
            topology,
            search: topology.search(),
            builder,
            known: BTreeMap::new(),
        }
    }

    pub(super) const fn topology(&self) -> &Topology {
        self.topology
    }

    fn ways(&mut self, from: HostId, to: HostId) -> Result<Vec<Way>, Problem> {
        if let Some(known) = self.known.get(&(from, to)) {
            return Ok(known.clone());
        }
        let (there, back) = (self.search.ways(from, to), self.search.ways(to, from));
        if there.is_empty() || back.is_empty() {
            let name = |host: HostId| &self.topology.hosts()[host.0 as usize];
            let (from, to) = if there.is_empty() { (from, to) } else { (to, from) };
            let message = format!("no path from {:?} to {:?}", name(from), name(to));
            return Err(Problem::new("to", message));
        }
        let links = self.topology.links();
        let ways: Vec<Way> = there
            .into_iter()
            .zip(back)
            .zip(0..MAX_WAYS)
            .map(|((there, back), number)| {
                let delays = there
                    .iter()
                    .chain(&back)
                    .map(|link| links[link.0 as usize].spec.delay);
                Way {
                    number,
                    base_rtt: Duration::from_nanos(delays.map(Duration::as_nanos).sum()),
                    forward: self.builder.route_from(from, &there, to),
                    reverse: self.builder.route_from(to, &back, from),
                    mtu: {
                        let given = there
                            .iter()
                            .chain(&back)
                            .map(|link| links[link.0 as usize].spec.mtu);
                        let loopback = self.topology.loopback().unwrap_or(ETHERNET);
                        given.flatten().min().unwrap_or(loopback)
                    },
                    links: there,
                    reverse_links: back,
                }
            })
            .collect();
        self.known.insert((from, to), ways.clone());
        Ok(ways)
    }

    /// Returns the pairs of hosts of a workload: those it names, or else the default pairs of the topology.
    pub(super) fn pairs(
        &mut self,
        workload: &WorkloadConfig,
        random: &mut Generator,
    ) -> Result<Vec<Pair>, Problem> {
        let ends = workload.pairs(self.topology.hosts(), self.topology.pairs(), random)?;
        if ends.is_empty() {
            let message = "the key is missing: this topology has no default pairs, so write from and to";
            return Err(Problem::new("from", message));
        }
        let mut pairs = Vec::with_capacity(ends.len());
        for (from, to) in ends {
            let ways = self.ways(from, to)?;
            let all = ways.len() as u8;
            if workload.each_path == Some(true) {
                let own = |way| Pair::new(from, to, vec![way], all);
                pairs.extend(ways.into_iter().map(own));
            } else {
                pairs.push(Pair::new(from, to, ways, all));
            }
        }
        Ok(pairs)
    }
}
