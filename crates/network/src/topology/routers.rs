//! Routers: the nodes that pass packets on, the ways to them, and the ways back.

use super::{NodeId, Topology};
use crate::packet::{HostId, LinkId};

impl Topology {
    /// The nodes that pass packets on, in the order of their numbers. A host may sit at one.
    pub fn routers(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..)
            .map(NodeId)
            .zip(&self.nodes)
            .filter_map(|(id, node)| node.forwards.then_some(id))
    }

    /// The links from a host to a node, in order: the fewest, as in [`Self::links_between`].
    ///
    /// # Panics
    /// For a host or a node that there is not.
    #[must_use]
    pub fn links_to(&self, from: HostId, node: NodeId) -> Option<Vec<LinkId>> {
        self.shortest(self.node_of(from), node, &[])
    }

    /// The other direction of a link: the one that it was drawn together with, or else the first that leads back.
    ///
    /// # Panics
    /// For a link that there is not.
    #[must_use]
    pub fn reverse_of(&self, link: LinkId) -> Option<LinkId> {
        let (from, to) = (self.links[link.0 as usize].from, self.links[link.0 as usize].to);
        let leads_back = |other: &LinkId| {
            let other = self.links.get(other.0 as usize);
            other.is_some_and(|other| (other.from, other.to) == (to, from))
        };
        // Both directions are drawn one after the other.
        let drawn_with = Some(LinkId(link.0 ^ 1)).filter(leads_back);
        drawn_with.or_else(|| self.nodes[to.0 as usize].links.iter().copied().find(leads_back))
    }
}
