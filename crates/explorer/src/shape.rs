//! The network of a trial, for its drawing.

use network::HostId;
use serde::Serialize;
use simulation::session::Session;

/// Nodes and links. Numbers of links and nodes are indices of these lists.
#[derive(Serialize)]
pub(crate) struct NetworkShape {
    /// Names of links.
    links: Vec<String>,
    /// Nodes at the near and the far end of each link.
    ends: Vec<[u32; 2]>,
    /// Names of nodes.
    nodes: Vec<String>,
    /// Node and name of the sender and the receiver of each pair of hosts.
    pairs: Vec<[Host; 2]>,
    /// The groups of flows: the measured ones, then the traffic.
    groups: Vec<GroupShape>,
    /// The bottlenecks on the paths of the data.
    bottlenecks: Vec<u32>,
}

#[derive(Serialize)]
struct Host {
    node: u32,
    name: String,
}

#[derive(Serialize)]
struct GroupShape {
    /// Name of the traffic; none for the measured flows.
    name: Option<String>,
    /// Sending and receiving host of each pair.
    pairs: Vec<[String; 2]>,
}

impl NetworkShape {
    pub(crate) fn of(session: &Session) -> Self {
        let topology = session.topology();
        let host = |host: HostId| Host {
            node: topology.node_of(host).0,
            name: topology.hosts()[host.0 as usize].clone(),
        };
        let pairs = topology.pairs().iter();
        let name = |host: HostId| topology.hosts()[host.0 as usize].clone();
        let groups = session.groups().iter().map(|group| GroupShape {
            name: group.name.clone(),
            pairs: group
                .pairs
                .iter()
                .map(|pair| [name(pair.from), name(pair.to)])
                .collect(),
        });
        Self {
            links: session.links(),
            ends: topology
                .links()
                .iter()
                .map(|link| [link.from.0, link.to.0])
                .collect(),
            nodes: topology.nodes().map(str::to_owned).collect(),
            pairs: pairs.map(|&(from, to)| [host(from), host(to)]).collect(),
            groups: groups.collect(),
            bottlenecks: topology.bottlenecks().iter().map(|link| link.0).collect(),
        }
    }
}
