//! Which route of the network a packet takes, by its addresses.

use std::net::Ipv4Addr;

use foundation::Streams;
use network::{HostId, Network, RouteId, Topology};

use super::tap::Tap;
use crate::address::{Block, MOST_WAYS};
use crate::packet::IpPacket;

/// The routes between all hosts.
#[derive(Debug)]
pub(crate) struct Routing {
    block: Block,
    hosts: usize,
    /// From host to host, row by row, one for each way; none where no path leads.
    routes: Vec<Vec<RouteId>>,
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
        let (mut routes, mut hops) = (Vec::with_capacity(hosts * hosts), Vec::new());
        for from in all() {
            for to in all() {
                let mut ways = if from == to {
                    Vec::new()
                } else {
                    topology.ways(from, to)
                };
                // A route of more than 255 links is more than a packet's time to live.
                ways.retain(|way| way.len() <= 255);
                ways.truncate(MOST_WAYS);
                let built = ways.iter().map(|way| {
                    hops.push(way.len());
                    builder.route(way, to)
                });
                routes.push(built.collect());
            }
        }
        for &link in topology.bottlenecks() {
            builder.record_waits(link);
        }
        let routing = Self { block, hosts, routes };
        (builder.build_observed(Tap::new(hops)), routing)
    }

    /// How many ways lead from a host to the one to which most do: each is a device of its own. A host that has
    /// nowhere to go has one all the same.
    pub(crate) fn ways(&self, host: HostId) -> u8 {
        let row = host.0 as usize * self.hosts;
        let most = self.routes[row..row + self.hosts].iter().map(Vec::len).max();
        most.unwrap_or(1).max(1) as u8
    }

    /// The route of a packet to `destination` that `from` has sent on one of its ways.
    pub(crate) fn route(&self, from: HostId, way: u8, destination: Ipv4Addr) -> Option<RouteId> {
        let to = self.towards(from, destination)?;
        let routes = &self.routes[from.0 as usize * self.hosts + to.0 as usize];
        routes.get(way as usize).copied()
    }

    /// The way of a packet whose sender has no devices: that of its source, or else that of its destination.
    pub(crate) fn way(&self, packet: &IpPacket) -> u8 {
        let of = |address| self.block.find(address, self.hosts).map_or(0, |(_, way)| way);
        match of(packet.source()) {
            0 => of(packet.destination()),
            way => way,
        }
    }

    /// The host that a packet is to reach. Of two hosts, the other one has all addresses that are not of this
    /// emulation: it passes them on if another emulation begins there.
    fn towards(&self, from: HostId, destination: Ipv4Addr) -> Option<HostId> {
        let found = self.block.find(destination, self.hosts).map(|(host, _)| host);
        found.or_else(|| (self.hosts == 2).then_some(HostId(1 - from.0)))
    }

    /// The address by which routers speak.
    pub(crate) fn router(&self) -> Ipv4Addr {
        self.block.router()
    }
}
