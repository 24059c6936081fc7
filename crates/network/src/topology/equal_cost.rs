//! Which of several shortest routes two hosts use (equal-cost multipath, RFC 2992), with weights (WCMP: Zhou et al., EuroSys 2014).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use foundation::random::finalize;

use super::{NodeId, Topology};
use crate::packet::LinkId;

/// How a topology chooses between shortest routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ties {
    /// The links that were declared first.
    #[default]
    Declared,
    /// By a hash of both hosts' nodes and the current node, as routers hash the addresses of a packet; a link's share of the hashes is
    /// its weight over the sum of the weights (weighted ECMP). All packets from one
    /// node to another take one route, and different pairs of nodes use different ones.
    Spread,
}

/// Distance of a node without a route to the goal.
const UNREACHED: u32 = u32::MAX;

/// The range of weights.
pub(super) const WEIGHTS: RangeInclusive<u64> = 1..=65_535;

impl Topology {
    /// Returns the weight of a link among those of equally short routes.
    fn weight(&self, link: LinkId) -> u64 {
        self.weights.get(&link).copied().unwrap_or(1)
    }

    /// Returns the incoming links of each node, in order of declaration.
    pub(super) fn arriving(&self) -> Vec<Vec<LinkId>> {
        let mut arriving = vec![Vec::new(); self.nodes.len()];
        for (number, link) in (0..).map(LinkId).zip(&self.links) {
            arriving[link.to.0 as usize].push(number);
        }
        arriving
    }

    /// Returns the number of links from each node to `goal`, over links not in `used`, and the number of nodes visited.
    pub(super) fn distances(&self, arriving: &[Vec<LinkId>], goal: NodeId, used: &[bool]) -> (Vec<u32>, u64) {
        let mut distances = vec![UNREACHED; self.nodes.len()];
        distances[goal.0 as usize] = 0;
        let (mut open, mut visited) = (VecDeque::from([goal]), 0);
        while let Some(node) = open.pop_front() {
            visited += 1;
            if node != goal && !self.nodes[node.0 as usize].forwards {
                continue;
            }
            for &link in &arriving[node.0 as usize] {
                let before = self.links[link.0 as usize].from.0 as usize;
                if distances[before] == UNREACHED && !is_in(used, link) {
                    distances[before] = distances[node.0 as usize] + 1;
                    open.push_back(NodeId(before as u32));
                }
            }
        }
        (distances, visited)
    }

    /// Appends the links from `node` to `goal`, each of which reduces the distance to it; `None` if no route exists. `ends`
    /// are the first and last nodes of the whole route.
    ///
    /// With [`Ties::Declared`], a search from `node` finds the same route, because it also visits nodes in the order of the
    /// links that lead to them.
    pub(super) fn descend(
        &self,
        distances: &[u32],
        used: &[bool],
        mut node: NodeId,
        goal: NodeId,
        ends: (NodeId, NodeId),
        way: &mut Vec<LinkId>,
    ) -> Option<()> {
        while node != goal {
            let left = distances[node.0 as usize];
            if left == UNREACHED {
                return None;
            }
            let leads_nearer = |link: &&LinkId| {
                let next = self.links[link.0 as usize].to;
                let passes = next == goal || self.nodes[next.0 as usize].forwards;
                passes && distances[next.0 as usize] == left - 1 && !is_in(used, **link)
            };
            let nearer = || self.nodes[node.0 as usize].links.iter().filter(leads_nearer);
            let number = match self.ties {
                Ties::Declared => 0,
                Ties::Spread => {
                    let pair = u64::from(ends.0.0) << 32 | u64::from(ends.1.0);
                    let hash = finalize(finalize(pair + 1) ^ u64::from(node.0));
                    let weights = nearer().map(|&link| self.weight(link));
                    let total: u64 = weights.clone().sum();
                    place(hash % total.max(1), weights)
                }
            };
            let &link = nearer().nth(number)?;
            way.push(link);
            node = self.links[link.0 as usize].to;
        }
        Some(())
    }
}

/// Returns the index of the weight that covers `point` on a line on which each weight is as long as its value. For equal weights
/// of 1, that is `point` itself.
fn place(mut point: u64, weights: impl Iterator<Item = u64>) -> usize {
    for (number, weight) in weights.enumerate() {
        if point < weight {
            return number;
        }
        point -= weight;
    }
    0
}

/// Whether a link is used; links beyond the end of the list are not.
fn is_in(used: &[bool], link: LinkId) -> bool {
    used.get(link.0 as usize).is_some_and(|&used| used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_weight_covers_its_share() {
        let of = |weights: &[u64]| -> Vec<usize> {
            let total: u64 = weights.iter().sum();
            (0..total)
                .map(|point| place(point, weights.iter().copied()))
                .collect()
        };
        assert_eq!(of(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(of(&[3, 1, 2]), [0, 0, 0, 1, 2, 2]);
    }
}
