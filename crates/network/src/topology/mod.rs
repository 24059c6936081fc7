//! Topologies: hosts and routers joined by links, and the routes between hosts.
//!
//! A [`TopologyConfig`] is the `[topology]` table of a study file, a [`Topology`] is the resulting graph, and
//! [`Topology::builder`] creates a [`NetworkBuilder`] with its hosts and links. Each kind of topology is one file
//! in this module with its keys and a function that draws it.
//!
//! A host is attached to a node. Hosts without access links are attached to the router itself, which then adds no hop.

mod bottlenecks;
mod change;
mod config;
mod draft;
mod equal_cost;
mod links;
mod reroute;
mod routers;
mod search;
mod shortest;
mod switches;

use std::collections::BTreeMap;

use foundation::quantity::nearest;
use foundation::{Duration, Problem, Streams, kinds};

use crate::builder::NetworkBuilder;
use crate::config::{Capacity, LinkSpec, PathSpec};
use crate::packet::{HostId, LinkId};
use crate::queue::SharedBuffer;
use config::TopologyKind;

pub use change::changed_link;
pub use free::FreeLink;
pub use links::Links;
pub use multipath::Delays;
pub use search::WaySearch;

kinds! {
    /// Hosts and routers joined by links, whose tables have the keys of a path.
    #[serde(tag = "kind")]
    #[schemars(rename = "Topology")]
    pub enum TopologyConfig: TopologyKind {
        "dumbbell" => Dumbbell in dumbbell,
        "parking-lot" => ParkingLot in parking_lot,
        "star" => Star in star,
        "tree" => Tree in tree,
        "leaf-spine" => LeafSpine in leaf_spine,
        "fat-tree" => FatTree in fat_tree,
        "multipath" => Multipath in multipath,
        "loopback" => Loopback in loopback,
        "free" => Free in free,
    }
}

/// A node, where links meet. An index into [`Topology::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A link of a topology, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyLink {
    /// Name, from which its random streams derive.
    pub name: String,
    /// Specification.
    pub spec: LinkSpec,
    /// Node at the near end.
    pub from: NodeId,
    /// Node at the far end.
    pub to: NodeId,
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    name: String,
    /// Whether it forwards packets. Hosts of a free topology do not.
    forwards: bool,
    /// Outgoing links, in order of declaration.
    links: Vec<LinkId>,
}

/// Hosts and routers joined by directed links.
///
/// ```
/// use foundation::{Streams, kinds};
/// use network::{Network, Topology, TopologyConfig};
/// let config: TopologyConfig = serde_json::from_str(
///     r#"{"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate": "10Mbit/s", "delay": "10ms"}, "access": {"rate": "1Gbit/s"}}"#,
/// )?;
/// let topology = config.resolve(&mut |_| Err("no files here".into())).unwrap();
/// let mut builder = topology.builder(Streams::new(1, 0));
/// for &(from, to) in topology.pairs() {
///     let links = topology.links_between(from, to).unwrap();
///     builder.route(&links, to);
/// }
/// let network: Network<Vec<u8>> = builder.build();
/// assert_eq!(network.link_name(topology.bottlenecks()[0]), "bottleneck");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    nodes: Vec<Node>,
    host_names: Vec<String>,
    /// The node of each host.
    host_nodes: Vec<NodeId>,
    links: Vec<TopologyLink>,
    pairs: Vec<(HostId, HostId)>,
    bottlenecks: Vec<LinkId>,
    /// Links observed on request.
    requested: Vec<LinkId>,
    bottleneck_source: bottlenecks::BottleneckSource,
    ties: equal_cost::Ties,
    /// Weights of links among those of equally short routes; 1 for others.
    weights: BTreeMap<LinkId, u64>,
    /// MTU of the loopback interface of the only host, for the kind loopback.
    loopback: Option<u32>,
    /// Time after which routers avoid a failed link; `None` if routes never change.
    detection: Option<Duration>,
    /// Buffer of each switch; `None` if each queue has its own.
    shared_buffer: Option<SharedBuffer>,
}

impl Topology {
    /// Returns the hosts `sender` and `receiver` joined by one path, whose links are `forward` and `reverse`.
    #[must_use]
    pub fn path(spec: &PathSpec) -> Self {
        Self::chain(std::slice::from_ref(spec))
    }

    /// Returns the hosts `sender` and `receiver` joined by paths in series, with the routers `r1`, `r2`, … between them.
    ///
    /// One path's links are named `forward` and `reverse`; several are named `forward/1`, `reverse/1`,
    /// `forward/2`, … The forward links are the bottlenecks.
    #[must_use]
    pub fn chain(specs: &[PathSpec]) -> Self {
        let mut topology = Self::default();
        let sender = topology.add_node("sender", true);
        let last = specs.len().saturating_sub(1);
        let (mut near, mut far) = (sender, sender);
        for (number, spec) in specs.iter().enumerate() {
            far = match number {
                _ if number == last => topology.add_node("receiver", true),
                _ => topology.add_node(format!("r{}", number + 1), true),
            };
            let name = |direction: &str| match specs.len() {
                1 => direction.to_owned(),
                _ => format!("{direction}/{}", number + 1),
            };
            let forward = topology.add_link(name("forward"), &spec.forward, near, far);
            topology.add_link(name("reverse"), &spec.reverse, far, near);
            topology.bottlenecks.push(forward);
            near = far;
        }
        let pair = (
            topology.add_host("sender", sender),
            topology.add_host("receiver", far),
        );
        topology.pairs.push(pair);
        topology
    }

    fn add_node(&mut self, name: impl Into<String>, forwards: bool) -> NodeId {
        self.nodes.push(Node {
            name: name.into(),
            forwards,
            links: Vec::new(),
        });
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn add_host(&mut self, name: impl Into<String>, node: NodeId) -> HostId {
        self.host_names.push(name.into());
        self.host_nodes.push(node);
        HostId(self.host_nodes.len() as u32 - 1)
    }

    fn add_link(&mut self, name: impl Into<String>, spec: &LinkSpec, from: NodeId, to: NodeId) -> LinkId {
        let link = LinkId(self.links.len() as u32);
        self.nodes[from.0 as usize].links.push(link);
        self.links.push(TopologyLink {
            name: name.into(),
            spec: spec.clone(),
            from,
            to,
        });
        link
    }

    /// Returns the names of the hosts, in the order of their ids.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.host_names
    }

    /// Returns the host with this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<HostId> {
        let place = self.host_names.iter().position(|known| known == name)?;
        Some(HostId(place as u32))
    }

    /// Returns the node of a host.
    ///
    /// # Panics
    /// If the host does not exist.
    #[must_use]
    pub fn node_of(&self, host: HostId) -> NodeId {
        self.host_nodes[host.0 as usize]
    }

    /// Returns the names of the nodes, in the order of their ids.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// Returns the links, in the order of their ids.
    #[must_use]
    pub fn links(&self) -> &[TopologyLink] {
        &self.links
    }

    /// Replaces the specification of a link, e.g. after a change in the network built from this topology.
    ///
    /// # Panics
    /// If the link does not exist.
    pub fn set_link(&mut self, link: LinkId, spec: LinkSpec) {
        self.links[link.0 as usize].spec = spec;
    }

    /// Returns the link with this name.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<LinkId> {
        let place = self.links.iter().position(|link| link.name == name)?;
        Some(LinkId(place as u32))
    }

    /// Returns the link with this name.
    ///
    /// # Errors
    /// There is no such link; the message names the nearest one.
    pub fn known_link(&self, name: &str) -> Result<LinkId, Problem> {
        self.link(name).ok_or_else(|| {
            let names = self.links.iter().map(|link| link.name.as_str());
            Problem::new("", unknown("link", name, names))
        })
    }

    /// Returns the default pairs of sender and receiver, in order.
    #[must_use]
    pub fn pairs(&self) -> &[(HostId, HostId)] {
        &self.pairs
    }

    /// Returns the MTU of the loopback interface in bytes; `None` for topologies with links.
    #[must_use]
    pub const fn loopback(&self) -> Option<u32> {
        self.loopback
    }

    /// Puts times in place of random starts of traces ([`crate::DeliveryTrace::drawn`]), as [`Topology::builder`] with the same
    /// streams does.
    pub fn draw_starts(&mut self, streams: Streams) {
        for link in &mut self.links {
            link.spec.draw_start(streams);
        }
    }

    /// Returns a network builder with these hosts and links, with the same ids and without routes.
    #[must_use]
    pub fn builder(&self, streams: Streams) -> NetworkBuilder {
        let mut builder = NetworkBuilder::new(streams);
        for _ in &self.host_names {
            builder.host();
        }
        for link in &self.links {
            builder.link(link.name.as_str(), &link.spec);
        }
        self.share_buffers(&mut builder);
        self.share_between_directions(&mut builder);
        builder
    }

    /// Puts both directions of each Wi-Fi link on one channel, and lets both directions of a link share its address translator.
    /// The two directions of a link follow each other.
    fn share_between_directions(&self, builder: &mut NetworkBuilder) {
        let is_wifi = |link: &TopologyLink| matches!(link.spec.capacity, Capacity::Wifi(_));
        for (number, pair) in self.links.windows(2).enumerate().step_by(2) {
            let [there, back] = pair else { continue };
            if (there.from, there.to) != (back.to, back.from) {
                continue;
            }
            let both = [LinkId(number as u32), LinkId(number as u32 + 1)];
            if is_wifi(there) && is_wifi(back) {
                builder.share_channel(&both);
            }
            if there.spec.nat.is_some() {
                builder.share_translator(both);
            }
        }
    }
}

/// Returns the error message for an unknown name.
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    const SHOWN: usize = 12;
    let hint = nearest(name, known.clone()).map_or(String::new(), |near| format!("did you mean {near:?}? "));
    let more = if known.clone().count() > SHOWN {
        ", …"
    } else {
        ""
    };
    let list: Vec<&str> = known.take(SHOWN).collect();
    format!(
        "there is no {what} {name:?}: {hint}allowed: {}{more}",
        list.join(", ")
    )
}
