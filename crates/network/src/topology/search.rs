//! Shortest routes between many nodes of one topology, with cached searches.

use std::collections::{BTreeMap, VecDeque};

use super::equal_cost::Ties;
use super::{NodeId, Topology};
use crate::packet::{HostId, LinkId};

/// Number of cached searches per direction before the cache is cleared. Each takes 8 bytes per node.
const MAX_CACHED: usize = 64;

/// Finds routes in one topology. Each node is searched from or towards once; a node with a single link needs no search,
/// because its routes are those of its neighbour plus that link. The pairs of a dumbbell, a star or a tree therefore cost a
/// few searches, regardless of their number.
///
/// The routes equal those of [`Topology::links_between`] and [`Topology::ways`].
#[derive(Debug)]
pub struct WaySearch<'a> {
    topology: &'a Topology,
    /// Incoming links of each node, in order of declaration.
    arriving: Vec<Vec<LinkId>>,
    /// By start node of a search: the link by which each node was first reached.
    trees: BTreeMap<NodeId, Vec<Option<LinkId>>>,
    /// By goal node of a search: the number of links from each node to it.
    distances: BTreeMap<NodeId, Vec<u32>>,
    /// Nodes visited in all searches.
    visited: u64,
}

impl<'a> WaySearch<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        Self {
            topology,
            arriving: topology.arriving(),
            trees: BTreeMap::new(),
            distances: BTreeMap::new(),
            visited: 0,
        }
    }

    /// Like [`Topology::links_between`].
    ///
    /// # Panics
    /// If a host does not exist.
    pub fn links_between(&mut self, from: HostId, to: HostId) -> Option<Vec<LinkId>> {
        self.shortest(self.topology.node_of(from), self.topology.node_of(to))
    }

    /// Like [`Topology::ways`].
    ///
    /// # Panics
    /// If a host does not exist.
    pub fn ways(&mut self, from: HostId, to: HostId) -> Vec<Vec<LinkId>> {
        let (start, goal) = (self.topology.node_of(from), self.topology.node_of(to));
        let Some(first) = self.shortest(start, goal) else {
            return Vec::new();
        };
        // The first route uses the only link of a node.
        if first.is_empty() || self.only_departing(start).is_some() || self.only_arriving(goal).is_some() {
            return vec![first];
        }
        let mut used = vec![false; self.topology.links.len()];
        let mut ways = Vec::new();
        let mut next = Some(first);
        while let Some(way) = next {
            for link in &way {
                used[link.0 as usize] = true;
            }
            ways.push(way);
            self.visited += self.topology.nodes.len() as u64;
            next = self.topology.shortest(start, goal, &used);
        }
        ways
    }

    /// Returns the shortest route from one node to another.
    fn shortest(&mut self, start: NodeId, goal: NodeId) -> Option<Vec<LinkId>> {
        if start == goal {
            return Some(Vec::new());
        }
        let links = &self.topology.links;
        let first = self.only_departing(start);
        let near = first.map_or(start, |link| links[link.0 as usize].to);
        if near == goal {
            return Some(first.into_iter().collect());
        }
        let last = self.only_arriving(goal);
        let far = last.map_or(goal, |link| links[link.0 as usize].from);
        let passes = |node: NodeId, end: NodeId| node == end || self.topology.nodes[node.0 as usize].forwards;
        if !passes(near, start) || !(passes(far, goal) || far == start) {
            return None;
        }
        let mut way: Vec<LinkId> = first.into_iter().collect();
        self.extend(&mut way, near, far, (start, goal))?;
        way.extend(last);
        Some(way)
    }

    /// Returns the outgoing link of a node if it has exactly one.
    fn only_departing(&self, node: NodeId) -> Option<LinkId> {
        only(&self.topology.nodes[node.0 as usize].links)
    }

    /// Returns the incoming link of a node if it has exactly one.
    fn only_arriving(&self, node: NodeId) -> Option<LinkId> {
        only(&self.arriving[node.0 as usize])
    }

    /// Appends the links from `start` to `goal`, a part of the route between `ends`; `None` if no route exists.
    fn extend(
        &mut self,
        way: &mut Vec<LinkId>,
        start: NodeId,
        goal: NodeId,
        ends: (NodeId, NodeId),
    ) -> Option<()> {
        if start == goal {
            return Some(());
        }
        // A tree of first arrivals contains one route to each node only.
        let needs_distances = self.topology.ties == Ties::Spread;
        if !self.distances.contains_key(&goal) && (needs_distances || !self.trees.contains_key(&start)) {
            if !needs_distances {
                // Either end may be the one that other pairs share.
                self.search_from(start);
            }
            self.search_towards(goal);
        }
        match self.trees.get(&start) {
            Some(tree) => self.topology.trace_back(tree, goal, way),
            None => {
                let distances = &self.distances[&goal];
                self.topology.descend(distances, &[], start, goal, ends, way)
            }
        }
    }

    /// Searches breadth first from a node.
    fn search_from(&mut self, start: NodeId) {
        if self.trees.len() >= MAX_CACHED {
            self.trees.clear();
        }
        let (nodes, links) = (&self.topology.nodes, &self.topology.links);
        let mut arrived_by = vec![None; nodes.len()];
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            self.visited += 1;
            if node != start && !nodes[node.0 as usize].forwards {
                continue;
            }
            for &link in &nodes[node.0 as usize].links {
                let next = links[link.0 as usize].to;
                if next != start && arrived_by[next.0 as usize].is_none() {
                    arrived_by[next.0 as usize] = Some(link);
                    open.push_back(next);
                }
            }
        }
        self.trees.insert(start, arrived_by);
    }

    /// Searches breadth first towards a node, against the direction of the links.
    fn search_towards(&mut self, goal: NodeId) {
        if self.distances.len() >= MAX_CACHED {
            self.distances.clear();
        }
        let (distances, visited) = self.topology.distances(&self.arriving, goal, &[]);
        self.visited += visited;
        self.distances.insert(goal, distances);
    }
}

fn only(links: &[LinkId]) -> Option<LinkId> {
    match links {
        [link] => Some(*link),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::LinkSpec;
    use crate::topology::TopologyConfig;

    fn topology(json: &str) -> Topology {
        let config: TopologyConfig = serde_json::from_str(json).unwrap();
        config.resolve(&mut |_| Err("no files here".into())).unwrap()
    }

    /// Finds the routes of all pairs in both directions; returns the number of nodes visited.
    fn cost(json: &str) -> u64 {
        let topology = topology(json);
        let mut search = topology.search();
        for &(from, to) in topology.pairs() {
            for (from, to) in [(from, to), (to, from)] {
                assert_eq!(search.ways(from, to).len(), 1);
            }
        }
        search.visited
    }

    #[test]
    fn many_pairs_cost_a_few_searches() {
        let dumbbell = |pairs: u64| {
            cost(&format!(
                r#"{{"kind": "dumbbell", "pairs": {pairs}, "bottleneck": {{}}, "access": {{}}, "exit": {{}}}}"#
            ))
        };
        assert!(dumbbell(1_000) <= 8 * 2_002, "{}", dumbbell(1_000));
        assert!(dumbbell(10_000) <= 8 * 20_002, "{}", dumbbell(10_000));
        let tree = cost(r#"{"kind": "tree", "depth": 10, "level": {}}"#);
        assert!(tree <= 4 * 2_047, "{tree}");
        let star = cost(r#"{"kind": "star", "leaves": 5000, "leaf": {}}"#);
        assert!(star <= 4 * 5_002, "{star}");
    }

    /// Any directed graph, hosts at all its nodes.
    fn graph() -> impl Strategy<Value = Topology> {
        (2_usize..9)
            .prop_flat_map(|nodes| {
                let links = prop::collection::vec((0..nodes, 0..nodes), 0..24);
                let weights = prop::collection::btree_map(0_u32..24, 1_u64..5, 0..6);
                (
                    prop::collection::vec(any::<bool>(), nodes),
                    links,
                    any::<bool>(),
                    weights,
                )
            })
            .prop_map(|(forwards, links, spreads, weights)| {
                let mut topology = Topology::default();
                if spreads {
                    topology.ties = Ties::Spread;
                    topology.weights = weights
                        .into_iter()
                        .map(|(link, weight)| (LinkId(link), weight))
                        .collect();
                }
                for (number, &forwards) in forwards.iter().enumerate() {
                    let node = topology.add_node(format!("n{number}"), forwards);
                    topology.add_host(format!("h{number}"), node);
                }
                for (number, (from, to)) in links.into_iter().filter(|(from, to)| from != to).enumerate() {
                    let (from, to) = (NodeId(from as u32), NodeId(to as u32));
                    topology.add_link(format!("l{number}"), &LinkSpec::default(), from, to);
                }
                topology
            })
    }

    proptest! {
        /// Cached searches return the same routes as a fresh search.
        #[test]
        fn cached_searches_match_a_fresh_search(topology in graph(), pairs in prop::collection::vec((0_u32..9, 0_u32..9), 1..40)) {
            let hosts = topology.hosts().len() as u32;
            let mut search = topology.search();
            for (from, to) in pairs {
                let (from, to) = (HostId(from % hosts), HostId(to % hosts));
                prop_assert_eq!(search.links_between(from, to), topology.links_between(from, to));
                prop_assert_eq!(search.ways(from, to), topology.ways(from, to));
            }
        }
    }
}
