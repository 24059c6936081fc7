//! The way between two hosts: the fewest links, and of several such ways the one declared first. And all ways that share
//! no link. A [`WaySearch`] gives the same ways for many pairs of hosts at less cost.

use std::collections::VecDeque;

use super::{NodeId, Topology, WaySearch};
use crate::packet::{HostId, LinkId};

impl Topology {
    /// A search for the ways of many pairs of hosts.
    #[must_use]
    pub fn search(&self) -> WaySearch<'_> {
        WaySearch::new(self)
    }

    /// The links from one host to another, in order: the fewest, ties broken by the order of declaration.
    /// Empty between hosts at one node; `None` where no way leads there.
    ///
    /// # Panics
    /// For a host that there is not.
    #[must_use]
    pub fn links_between(&self, from: HostId, to: HostId) -> Option<Vec<LinkId>> {
        self.shortest(self.node_of(from), self.node_of(to), &[])
    }

    /// All ways from one host to another that have no link in common: the first is that of
    /// [`Self::links_between`], each further one the shortest over the links that are left. None where no way leads
    /// there; one, over no link, between hosts at one node.
    ///
    /// # Panics
    /// For a host that there is not.
    #[must_use]
    pub fn ways(&self, from: HostId, to: HostId) -> Vec<Vec<LinkId>> {
        let (mut ways, mut used) = (Vec::new(), vec![false; self.links.len()]);
        let (start, goal) = (self.node_of(from), self.node_of(to));
        while let Some(way) = self.shortest(start, goal, &used) {
            for link in &way {
                used[link.0 as usize] = true;
            }
            let is_last = way.is_empty();
            ways.push(way);
            if is_last {
                break;
            }
        }
        ways
    }

    /// The way with the fewest links that are not yet `used`; where that list ends, the rest are not.
    pub(super) fn shortest(&self, start: NodeId, goal: NodeId, used: &[bool]) -> Option<Vec<LinkId>> {
        let (start, goal) = (start.0 as usize, goal.0 as usize);
        if start == goal {
            return Some(Vec::new());
        }
        // Breadth first: a node is reached the first time by a way with the fewest links.
        let mut arrived_by: Vec<Option<LinkId>> = vec![None; self.nodes.len()];
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            if node != start && !self.nodes[node].forwards {
                continue;
            }
            for &link in &self.nodes[node].links {
                let next = self.links[link.0 as usize].to.0 as usize;
                let is_used = used.get(link.0 as usize).is_some_and(|&used| used);
                if is_used || next == start || arrived_by[next].is_some() {
                    continue;
                }
                arrived_by[next] = Some(link);
                if next == goal {
                    let mut way = Vec::new();
                    self.trace_back(&arrived_by, NodeId(goal as u32), &mut way)?;
                    return Some(way);
                }
                open.push_back(next);
            }
        }
        None
    }

    /// Adds the links by which a search arrived at `goal`; `None` where it did not.
    pub(super) fn trace_back(
        &self,
        arrived_by: &[Option<LinkId>],
        goal: NodeId,
        way: &mut Vec<LinkId>,
    ) -> Option<()> {
        let (before, mut node) = (way.len(), goal);
        while let Some(link) = arrived_by[node.0 as usize] {
            way.push(link);
            node = self.links[link.0 as usize].from;
        }
        way[before..].reverse();
        (way.len() > before).then_some(())
    }
}
