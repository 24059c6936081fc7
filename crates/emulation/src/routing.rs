//! Routes of packets by their addresses and time to live.
//!
//! Routers need no work for packets that pass. A packet's expiry is known when it enters: its route then ends at that
//! router, which replies over the way back.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use foundation::Streams;
use network::{HostId, LinkId, Network, NodeId, RouteId, Topology};
use serde::Serialize;

use super::tap::Tap;
use crate::address::{Block, MOST_ROUTERS, MOST_WAYS};
use crate::icmp::Fault;
use crate::packet::IpPacket;

/// The routes between all hosts, plus those from and to routers, created on demand.
#[derive(Debug)]
pub(crate) struct Routing {
    block: Block,
    topology: Topology,
    hosts: usize,
    /// By source and destination host, one route for each way; empty without a path.
    routes: Vec<Vec<RouteId>>,
    /// Number of links of each of these routes.
    lengths: Vec<u8>,
    /// The network's ends beyond its hosts.
    routers: Vec<Router>,
    /// Number of routers with an address; they come first.
    addressed: usize,
    /// Routes created on demand, by end and links.
    added: BTreeMap<(HostId, Vec<LinkId>), RouteId>,
}

#[derive(Debug)]
struct Router {
    node: NodeId,
    address: Ipv4Addr,
}

/// A router of an emulated network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouterState {
    /// Its name, which hosts can resolve.
    pub name: String,
    /// The source of its packets, which also answers pings.
    pub address: Ipv4Addr,
}

/// An end of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Host(HostId),
    /// Index of a router.
    Router(usize),
}

impl Routing {
    /// Builds the network of a topology and the routes between all hosts. Its observed links record waiting times.
    pub(crate) fn build(
        topology: &Topology,
        streams: Streams,
        block: Block,
    ) -> (Network<IpPacket, Tap>, Self) {
        let mut builder = topology.builder(streams);
        let hosts = topology.hosts().len();
        let all = || (0..hosts as u32).map(HostId);
        let mut search = topology.search();
        let (mut routes, mut lengths) = (Vec::with_capacity(hosts * hosts), Vec::new());
        for from in all() {
            for to in all() {
                let mut ways = if from == to {
                    Vec::new()
                } else {
                    search.ways(from, to)
                };
                // The time to live allows at most 255 links.
                ways.retain(|way| way.len() <= 255);
                ways.truncate(MOST_WAYS);
                let built = ways.iter().map(|way| {
                    lengths.push(way.len() as u8);
                    builder.route_from(from, way, to)
                });
                routes.push(built.collect());
            }
        }
        let (routers, addressed) = routers(topology, block);
        for _ in &routers {
            builder.host();
        }
        for link in topology.observed() {
            builder.record_waits(link);
        }
        topology.avoid_outages(&mut builder);
        let network = builder.build_observed(Tap::new(lengths.clone()));
        let routing = Self {
            block,
            topology: topology.clone(),
            hosts,
            routes,
            lengths,
            routers,
            addressed,
            added: BTreeMap::new(),
        };
        (network, routing)
    }

    /// The number of devices that a host needs: its largest number of ways to any host, and at least one.
    pub(crate) fn ways(&self, host: HostId) -> u8 {
        let most = self.row(host).iter().map(Vec::len).max();
        most.unwrap_or(1).max(1) as u8
    }

    /// Number of links of the longest route between hosts.
    pub(crate) fn longest(&self) -> u8 {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// The routers with an address.
    pub(crate) fn routers(&self) -> impl Iterator<Item = RouterState> + '_ {
        let names: Vec<&str> = self.topology.nodes().collect();
        self.routers[..self.addressed]
            .iter()
            .map(move |router| RouterState {
                name: names[router.node.0 as usize].to_owned(),
                address: router.address,
            })
    }

    fn row(&self, host: HostId) -> &[Vec<RouteId>] {
        let start = host.0 as usize * self.hosts;
        &self.routes[start..start + self.hosts]
    }

    /// Returns the route of a packet from `from` on its way: to its destination, or to the router where it expires or
    /// has no route.
    ///
    /// # Errors
    /// The reason why there is no route.
    #[inline]
    pub(crate) fn route(
        &mut self,
        network: &mut Network<IpPacket, Tap>,
        from: HostId,
        packet: &IpPacket,
    ) -> Result<RouteId, Fault> {
        let (way, hops) = (packet.way, packet.time_to_live());
        let target = self.target(from, packet.destination());
        if let Ok(End::Host(to)) = target
            && let Some(&route) = self.row(from)[to.0 as usize].get(way as usize)
            && hops >= self.lengths[route.0 as usize]
        {
            return Ok(route);
        }
        self.route_to_router(network, from, packet, target)
    }

    /// Returns the route of a packet that ends at a router.
    #[cold]
    fn route_to_router(
        &mut self,
        network: &mut Network<IpPacket, Tap>,
        from: HostId,
        packet: &IpPacket,
        target: Result<End, Fault>,
    ) -> Result<RouteId, Fault> {
        let way = packet.way;
        // Hosts do not send packets with a time to live of 0.
        let hops = usize::from(packet.time_to_live().max(1));
        let links = match target {
            Ok(End::Host(to)) => self.links_to_host(network, from, to, way),
            Ok(End::Router(router)) => self.links_to_router(network, from, router, way),
            Err(_) => None,
        };
        let fault = target.err().unwrap_or(Fault::Host);
        let links = match links {
            Some(mut links) => {
                links.truncate(hops);
                links
            }
            // The first router replies that there is no route; without a router, the sender gets the error at once.
            None => {
                let mut ways = self.row(from).iter().filter_map(|ways| ways.get(way as usize));
                let route = ways
                    .find(|route| self.lengths[route.0 as usize] > 1)
                    .ok_or(fault)?;
                network.route_links(*route).take(1).collect()
            }
        };
        let node = match links.last() {
            Some(link) => self.topology.links()[link.0 as usize].to,
            None => self.topology.node_of(from),
        };
        let end = self.end_of(node).ok_or(fault)?;
        Ok(self.add(network, links, end))
    }

    fn links_to_host(
        &self,
        network: &Network<IpPacket, Tap>,
        from: HostId,
        to: HostId,
        way: u8,
    ) -> Option<Vec<LinkId>> {
        let route = *self.row(from)[to.0 as usize].get(way as usize)?;
        Some(network.route_links(route).collect())
    }

    /// Returns the links to a router, on the given way if it passes there, else the fewest.
    fn links_to_router(
        &self,
        network: &Network<IpPacket, Tap>,
        from: HostId,
        router: usize,
        way: u8,
    ) -> Option<Vec<LinkId>> {
        let node = self.routers[router].node;
        let ends_there = |link: LinkId| self.topology.links()[link.0 as usize].to == node;
        if way > 0 {
            for route in self.row(from).iter().filter_map(|ways| ways.get(way as usize)) {
                let mut links: Vec<LinkId> = network.route_links(*route).collect();
                if let Some(last) = links.iter().position(|&link| ends_there(link)) {
                    links.truncate(last + 1);
                    return Some(links);
                }
            }
        }
        let links = self.topology.links_to(from, node)?;
        (links.len() <= 255).then_some(links)
    }

    /// Returns the route of a router's reply to `sender`: the first `hops` links of `route` in reverse.
    pub(crate) fn back(
        &mut self,
        network: &mut Network<IpPacket, Tap>,
        route: RouteId,
        hops: u8,
        sender: HostId,
    ) -> Option<RouteId> {
        let there: Vec<LinkId> = network.route_links(route).take(usize::from(hops)).collect();
        let back = there.iter().rev().map(|&link| self.topology.reverse_of(link));
        let links = back.collect::<Option<Vec<_>>>()?;
        Some(self.add(network, links, sender))
    }

    /// Returns a route over these links, creating it if needed.
    fn add(&mut self, network: &mut Network<IpPacket, Tap>, links: Vec<LinkId>, end: HostId) -> RouteId {
        *self.added.entry((end, links)).or_insert_with_key(|(end, links)| {
            network.observer_mut().add_route(links.len() as u8);
            network.add_route(links, *end)
        })
    }

    /// Returns the host or router at an end.
    #[inline]
    pub(crate) fn end(&self, end: HostId) -> End {
        match (end.0 as usize).checked_sub(self.hosts) {
            None => End::Host(end),
            Some(router) => End::Router(router),
        }
    }

    /// Returns the end at a router.
    fn end_of(&self, node: NodeId) -> Option<HostId> {
        let router = self.routers.iter().position(|router| router.node == node)?;
        Some(HostId((self.hosts + router) as u32))
    }

    /// A router's source address.
    pub(crate) fn address(&self, router: usize) -> Ipv4Addr {
        self.routers[router].address
    }

    /// The source address of the router at the start of a link.
    pub(crate) fn address_before(&self, link: LinkId) -> Ipv4Addr {
        let node = self.topology.links()[link.0 as usize].from;
        let router = self.routers.iter().find(|router| router.node == node);
        router.map_or_else(|| self.block.anonymous(), |router| router.address)
    }

    /// Whether an address belongs to this router.
    pub(crate) fn is_of(&self, router: usize, address: Ipv4Addr) -> bool {
        router < self.addressed && self.routers[router].address == address
    }

    /// Returns why packets from `from` to this address have no route; `None` if they have one.
    pub(crate) fn fault(&self, from: HostId, way: u8, destination: Ipv4Addr) -> Option<Fault> {
        match self.target(from, destination) {
            Ok(End::Host(to)) => {
                let has_way = self.row(from)[to.0 as usize].len() > way as usize;
                (!has_way).then_some(Fault::Host)
            }
            Ok(End::Router(_)) => None,
            Err(fault) => Some(fault),
        }
    }

    /// The way of a packet from a user-space stack: that of its source address, else that of its destination.
    pub(crate) fn way(&self, packet: &IpPacket) -> u8 {
        let of = |address| self.block.find(address, self.hosts).map_or(0, |(_, way)| way);
        match of(packet.source()) {
            0 => of(packet.destination()),
            way => way,
        }
    }

    /// Returns the end that a packet addresses. With two hosts, the other host forwards packets for other emulations.
    fn target(&self, from: HostId, destination: Ipv4Addr) -> Result<End, Fault> {
        if let Some((host, _)) = self.block.find(destination, self.hosts) {
            return Ok(End::Host(host));
        }
        if let Some(router) = self.block.find_router(destination, self.addressed) {
            return Ok(End::Router(router));
        }
        match Block::depth_of(destination) {
            Some(_) if self.block.has(destination) => Err(Fault::Host),
            Some(_) if self.hosts == 2 => Ok(End::Host(HostId(1 - from.0))),
            _ => Err(Fault::Net),
        }
    }

    /// The source address of routers without one of their own.
    pub(crate) fn anonymous(&self) -> Ipv4Addr {
        self.block.anonymous()
    }
}

/// Returns a topology's routers, those with an address first, and their number. Other routers use the address of the
/// host with the same name at their node, or none.
fn routers(topology: &Topology, block: Block) -> (Vec<Router>, usize) {
    let mut hosts = BTreeMap::new();
    for (number, name) in (0..).map(HostId).zip(topology.hosts()) {
        hosts.insert((topology.node_of(number), name.as_str()), number);
    }
    let names: Vec<&str> = topology.nodes().collect();
    let host_at = |node: &NodeId| hosts.get(&(*node, names[node.0 as usize])).copied();
    let (seats, own): (Vec<NodeId>, Vec<NodeId>) =
        topology.routers().partition(|node| host_at(node).is_some());
    let addressed = own.len().min(MOST_ROUTERS);
    let mut routers: Vec<Router> = own
        .into_iter()
        .enumerate()
        .map(|(number, node)| Router {
            node,
            address: block.router(number),
        })
        .collect();
    routers.extend(seats.into_iter().map(|node| Router {
        node,
        address: host_at(&node).map_or_else(|| block.anonymous(), |host| block.host(host)),
    }));
    (routers, addressed)
}
