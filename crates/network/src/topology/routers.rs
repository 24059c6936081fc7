//! Routers: the nodes that forward packets, and the routes to and from them.

use super::{NodeId, Topology};
use crate::packet::{HostId, LinkId};

impl Topology {
    /// Returns the nodes that forward packets, in the order of their ids. Hosts may be attached to them.
    pub fn routers(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..)
            .map(NodeId)
            .zip(&self.nodes)
            .filter_map(|(id, node)| node.forwards.then_some(id))
    }

    /// Returns the links from a host to a node, in order, by the rule of [`Self::links_between`].
    ///
    /// # Panics
    /// If the host or the node does not exist.
    #[must_use]
    pub fn links_to(&self, from: HostId, node: NodeId) -> Option<Vec<LinkId>> {
        self.shortest(self.node_of(from), node, &[])
    }

    /// Returns the reverse direction of a link: its counterpart, or else the first link in the opposite direction.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn reverse_of(&self, link: LinkId) -> Option<LinkId> {
        let (from, to) = (self.links[link.0 as usize].from, self.links[link.0 as usize].to);
        let leads_back = |other: &LinkId| {
            let other = self.links.get(other.0 as usize);
            other.is_some_and(|other| (other.from, other.to) == (to, from))
        };
        // The two directions of a cable have consecutive ids.
        let drawn_with = Some(LinkId(link.0 ^ 1)).filter(leads_back);
        drawn_with.or_else(|| self.nodes[to.0 as usize].links.iter().copied().find(leads_back))
    }
}
