//! The way between two hosts: the fewest links, and of several such ways the one declared first. And all ways that share
//! no link.

use std::collections::VecDeque;

use super::{NodeId, Topology};
use crate::packet::{HostId, LinkId};

impl Topology {
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
                    return Some(self.trace_back(&arrived_by, goal));
                }
                open.push_back(next);
            }
        }
        None
    }

    fn trace_back(&self, arrived_by: &[Option<LinkId>], goal: usize) -> Vec<LinkId> {
        let mut way = Vec::new();
        let mut node = goal;
        while let Some(link) = arrived_by[node] {
            way.push(link);
            node = self.links[link.0 as usize].from.0 as usize;
        }
        way.reverse();
        way
    }
}
