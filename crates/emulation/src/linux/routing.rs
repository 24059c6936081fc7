//! Which route of the network a packet takes, by its addresses and its time to live.
//!
//! Routers do nothing while a packet passes. Where a packet expires is known when it enters: it takes the part of its route
//! that ends at that router, which then answers over the way back. So a router costs nothing a packet.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use foundation::Streams;
use network::{HostId, LinkId, Network, NodeId, RouteId, Topology};
use serde::Serialize;

use super::tap::Tap;
use crate::address::{Block, MOST_ROUTERS, MOST_WAYS};
use crate::icmp::Fault;
use crate::packet::IpPacket;

/// The routes between all hosts, and those to and from routers as they are needed.
#[derive(Debug)]
pub(crate) struct Routing {
    block: Block,
    topology: Topology,
    hosts: usize,
    /// From host to host, row by row, one for each way; none where no path leads.
    routes: Vec<Vec<RouteId>>,
    /// Links of each of these routes.
    lengths: Vec<u8>,
    /// The network's ends beyond its hosts.
    routers: Vec<Router>,
    /// The first routers are those with addresses of their own; there are so many.
    addressed: usize,
    /// Routes that were added since: by their links and the end that they lead to.
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
    /// Its name, which hosts resolve.
    pub name: String,
    /// The address by which it speaks, and at which it answers.
    pub address: Ipv4Addr,
}

/// Where a packet is to go, or has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Host(HostId),
    /// An index into the routers.
    Router(usize),
}

impl Routing {
    /// The network of a topology, and the routes between all its hosts. Its bottlenecks record waits.
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
                // A route of more than 255 links is more than a packet's time to live.
                ways.retain(|way| way.len() <= 255);
                ways.truncate(MOST_WAYS);
                let built = ways.iter().map(|way| {
                    lengths.push(way.len() as u8);
                    builder.route(way, to)
                });
                routes.push(built.collect());
            }
        }
        let (routers, addressed) = routers(topology, block);
        for _ in &routers {
            builder.host();
        }
        for &link in topology.bottlenecks() {
            builder.record_waits(link);
        }
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

    /// How many ways lead from a host to the one to which most do: each is a device of its own. A host that has
    /// nowhere to go has one all the same.
    pub(crate) fn ways(&self, host: HostId) -> u8 {
        let most = self.row(host).iter().map(Vec::len).max();
        most.unwrap_or(1).max(1) as u8
    }

    /// Links of the longest route between hosts.
    pub(crate) fn longest(&self) -> u8 {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// The routers that have addresses of their own.
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

    /// The route of a packet that `from` has sent on one of its ways: to its destination, or to the router at which it
    /// expires or that knows no way.
    ///
    /// # Errors
    /// Why it cannot go anywhere.
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

    /// The route of a packet that ends at a router.
    #[cold]
    fn route_to_router(
        &mut self,
        network: &mut Network<IpPacket, Tap>,
        from: HostId,
        packet: &IpPacket,
        target: Result<End, Fault>,
    ) -> Result<RouteId, Fault> {
        let way = packet.way;
        // Hosts do not send what has no hop left.
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
            // The first router knows that there is no way; where there is none, the sender is told at once.
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

    /// The links to a router: on the way itself, where one leads over it, or else the fewest.
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

    /// The route by which a router answers who has sent it a packet over the first `hops` links of `route`: the same
    /// links the other way round.
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

    /// A route over links that may be there already.
    fn add(&mut self, network: &mut Network<IpPacket, Tap>, links: Vec<LinkId>, end: HostId) -> RouteId {
        *self.added.entry((end, links)).or_insert_with_key(|(end, links)| {
            network.observer_mut().add_route(links.len() as u8);
            network.add_route(links, *end)
        })
    }

    /// What stands at an end of the network's routes.
    #[inline]
    pub(crate) fn end(&self, end: HostId) -> End {
        match (end.0 as usize).checked_sub(self.hosts) {
            None => End::Host(end),
            Some(router) => End::Router(router),
        }
    }

    /// The end at a router.
    fn end_of(&self, node: NodeId) -> Option<HostId> {
        let router = self.routers.iter().position(|router| router.node == node)?;
        Some(HostId((self.hosts + router) as u32))
    }

    /// The address by which a router speaks.
    pub(crate) fn address(&self, router: usize) -> Ipv4Addr {
        self.routers[router].address
    }

    /// The address by which the router speaks that a link begins at.
    pub(crate) fn address_before(&self, link: LinkId) -> Ipv4Addr {
        let node = self.topology.links()[link.0 as usize].from;
        let router = self.routers.iter().find(|router| router.node == node);
        router.map_or_else(|| self.block.anonymous(), |router| router.address)
    }

    /// Whether an address is a router's own.
    pub(crate) fn is_of(&self, router: usize, address: Ipv4Addr) -> bool {
        router < self.addressed && self.routers[router].address == address
    }

    /// Why no router knows a way for what `from` sends to this address; `None` where there is one.
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

    /// The way of a packet whose sender has no devices: that of its source, or else that of its destination.
    pub(crate) fn way(&self, packet: &IpPacket) -> u8 {
        let of = |address| self.block.find(address, self.hosts).map_or(0, |(_, way)| way);
        match of(packet.source()) {
            0 => of(packet.destination()),
            way => way,
        }
    }

    /// What a packet is to reach. Of two hosts, the other one has all addresses of other emulations: it passes them on if
    /// one begins there.
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

    /// The address by which those routers speak that have none.
    pub(crate) fn anonymous(&self) -> Ipv4Addr {
        self.block.anonymous()
    }
}

/// The routers of a topology, those first that have addresses of their own, and how many these are. The others speak by the
/// address of the host that sits there and has the same name, or by none.
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
