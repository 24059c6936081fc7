//! Shortest routes between two hosts by number of links, with ties broken as the topology says, and link-disjoint routes.
//! A [`WaySearch`] finds the same routes for many pairs of hosts at lower cost.

use std::collections::VecDeque;

use super::equal_cost::Ties;
use super::{NodeId, Topology, WaySearch};
use crate::packet::{HostId, LinkId};

impl Topology {
    /// Returns a search for the routes of many pairs of hosts.
    #[must_use]
    pub fn search(&self) -> WaySearch<'_> {
        WaySearch::new(self)
    }

    /// Returns the shortest route from one host to another as a list of links. Of several, a leaf-spine or fat-tree
    /// network chooses one by a hash of the two hosts, others the one declared first.
    /// The route between hosts at one node is empty; `None` if no route exists.
    ///
    /// # Panics
    /// If a host does not exist.
    #[must_use]
    pub fn links_between(&self, from: HostId, to: HostId) -> Option<Vec<LinkId>> {
        self.shortest(self.node_of(from), self.node_of(to), &[])
    }

    /// Returns link-disjoint routes from one host to another: first that of [`Self::links_between`], then repeatedly the
    /// shortest over the remaining links. Hosts at one node have a single route without links.
    ///
    /// # Panics
    /// If a host does not exist.
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

    /// Returns the shortest route over links not in `used`; links beyond the end of that list are unused.
    pub(super) fn shortest(&self, start: NodeId, goal: NodeId, used: &[bool]) -> Option<Vec<LinkId>> {
        let (start, goal) = (start.0 as usize, goal.0 as usize);
        if start == goal {
            return Some(Vec::new());
        }
        if self.ties == Ties::Spread {
            let (start, goal) = (NodeId(start as u32), NodeId(goal as u32));
            let (distances, _) = self.distances(&self.arriving(), goal, used);
            let mut way = Vec::new();
            self.descend(&distances, used, start, goal, (start, goal), &mut way)?;
            return Some(way);
        }
        // Breadth first: the first route that reaches a node has the fewest links.
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

    /// Appends the links by which a search reached `goal`; `None` if it did not.
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
