//! The way between two hosts: the fewest links, and of several such ways the one declared first.

use std::collections::VecDeque;

use super::Topology;
use crate::packet::{HostId, LinkId};

impl Topology {
    /// The links from one host to another, in order: the fewest, ties broken by the order of declaration.
    /// Empty between hosts at one node; `None` where no way leads there.
    ///
    /// # Panics
    /// For a host that there is not.
    #[must_use]
    pub fn links_between(&self, from: HostId, to: HostId) -> Option<Vec<LinkId>> {
        let (start, goal) = (self.node_of(from).0 as usize, self.node_of(to).0 as usize);
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
                if next == start || arrived_by[next].is_some() {
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
