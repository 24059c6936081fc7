//! Which route of the network a packet takes, by its addresses.

use std::net::Ipv4Addr;

use foundation::Streams;
use network::{HostId, Network, RouteId, Topology};

use crate::address::Block;
use crate::packet::IpPacket;

/// The routes between all hosts.
#[derive(Debug)]
pub(crate) struct Routing {
    block: Block,
    hosts: usize,
    /// From host to host, row by row; `None` where no path leads.
    routes: Vec<Option<RouteId>>,
}

impl Routing {
    /// The network of a topology, and the routes between all its hosts. Its bottlenecks record waits.
    pub(crate) fn build(topology: &Topology, streams: Streams, block: Block) -> (Network<IpPacket>, Self) {
        let mut builder = topology.builder(streams);
        let hosts = topology.hosts().len();
        let all = || (0..hosts as u32).map(HostId);
        let mut routes = Vec::with_capacity(hosts * hosts);
        for from in all() {
            for to in all() {
                // A route of more than 255 links is more than a packet's time to live.
                let way = topology.links_between(from, to).filter(|way| way.len() <= 255);
                routes.push(way.filter(|_| from != to).map(|way| builder.route(&way, to)));
            }
        }
        for &link in topology.bottlenecks() {
            builder.record_waits(link);
        }
        let routing = Self { block, hosts, routes };
        (builder.build(), routing)
    }

    /// The route of a packet that `from` has sent to `destination`.
    pub(crate) fn route(&self, from: HostId, destination: Ipv4Addr) -> Option<RouteId> {
        let to = self.towards(from, destination)?;
        self.routes[from.0 as usize * self.hosts + to.0 as usize]
    }

    /// The host that a packet is to reach. Of two hosts, the other one has all addresses that are not of this
    /// emulation: it passes them on if another emulation begins there.
    fn towards(&self, from: HostId, destination: Ipv4Addr) -> Option<HostId> {
        let found = self.block.find(destination, self.hosts);
        found.or_else(|| (self.hosts == 2).then_some(HostId(1 - from.0)))
    }

    /// The address by which routers speak.
    pub(crate) fn router(&self) -> Ipv4Addr {
        self.block.router()
    }
}
