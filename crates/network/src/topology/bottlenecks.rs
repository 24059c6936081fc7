//! The links whose queue and use are measured.

use std::collections::BTreeSet;

use super::Topology;
use crate::packet::LinkId;

/// How a topology says which links are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BottleneckSource {
    /// The kind of topology has links that many flows share; data may cross them in either direction.
    #[default]
    Shared,
    /// The slowest link on each way.
    Slowest,
    /// Exactly those that a study names.
    Named,
}

impl Topology {
    /// The links that are measured, in order. Before [`Topology::measure`] they are those of the topology's own pairs.
    #[must_use]
    pub fn bottlenecks(&self) -> &[LinkId] {
        &self.bottlenecks
    }

    /// Makes the bottlenecks those of data that crosses `ways`. A study that names links gets exactly these.
    /// Of links that the topology's kind has as bottlenecks, each is measured in the directions that data crosses it; where
    /// data crosses none of them, and where there are none, the slowest link of each way is measured.
    ///
    /// # Panics
    /// For a link that there is not.
    pub fn measure<'w>(&mut self, ways: impl IntoIterator<Item = &'w [LinkId]> + Clone) {
        if self.bottleneck_source == BottleneckSource::Named {
            return;
        }
        let crossed: BTreeSet<LinkId> = ways.clone().into_iter().flatten().copied().collect();
        let shared = match self.bottleneck_source {
            BottleneckSource::Shared => self.directions(&crossed),
            BottleneckSource::Slowest | BottleneckSource::Named => Vec::new(),
        };
        self.bottlenecks = match shared.is_empty() {
            true => self.slowest_of(ways),
            false => shared,
        };
    }

    /// The bottlenecks in the directions in which they are crossed.
    fn directions(&self, crossed: &BTreeSet<LinkId>) -> Vec<LinkId> {
        let both = |&link: &LinkId| [Some(link), self.reverse_of(link)];
        let all = self.bottlenecks.iter().flat_map(both).flatten();
        all.filter(|link| crossed.contains(link)).collect()
    }

    /// The slowest link of each way, in order of declaration.
    pub(super) fn slowest_of<'w>(&self, ways: impl IntoIterator<Item = &'w [LinkId]>) -> Vec<LinkId> {
        let slowest = ways.into_iter().filter_map(|way| self.slowest(way));
        let each: BTreeSet<LinkId> = slowest.collect();
        each.into_iter().collect()
    }

    /// The slowest link of a way, in bit/s on average; the first of several. `None` for a way over no link.
    fn slowest(&self, way: &[LinkId]) -> Option<LinkId> {
        let rate = |link: &LinkId| {
            let capacity = &self.links[link.0 as usize].spec.capacity;
            capacity
                .mean_rate()
                .map_or(u64::MAX, |rate| rate.bits_per_second())
        };
        way.iter().copied().min_by_key(rate)
    }
}
