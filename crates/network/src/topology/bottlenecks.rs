//! Selection of the links whose queue and utilisation are measured.

use std::collections::BTreeSet;

use foundation::Problem;

use super::Topology;
use crate::packet::LinkId;

/// How a topology selects the measured links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BottleneckSource {
    /// The shared links of the kind of topology, in either direction.
    #[default]
    Shared,
    /// The slowest link of each route.
    Slowest,
    /// The links named in the study.
    Named,
}

impl Topology {
    /// Returns the measured links, in order. Before [`Topology::measure`] these are the bottlenecks of the default pairs.
    #[must_use]
    pub fn bottlenecks(&self) -> &[LinkId] {
        &self.bottlenecks
    }

    /// Observes these links in addition to the bottlenecks.
    ///
    /// # Errors
    /// There is no link with one of the names.
    pub fn observe(&mut self, names: &[String]) -> Result<(), Problem> {
        for name in names {
            let link = self.known_link(name)?;
            if !self.requested.contains(&link) {
                self.requested.push(link);
            }
        }
        Ok(())
    }

    /// Returns the links observed on request, each once.
    #[must_use]
    pub fn requested(&self) -> &[LinkId] {
        &self.requested
    }

    /// Returns the bottlenecks, then the other links observed on request.
    pub fn observed(&self) -> impl Iterator<Item = LinkId> + '_ {
        let others = self
            .requested
            .iter()
            .filter(|link| !self.bottlenecks.contains(link));
        self.bottlenecks.iter().chain(others).copied()
    }

    /// Selects the bottlenecks for data on these routes (`ways`, as lists of links). Links named in the study take
    /// precedence. Otherwise each shared link of the topology kind is measured in the directions in which data crosses it; if
    /// data crosses none, the slowest link of each route is measured.
    ///
    /// # Panics
    /// If a link does not exist.
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

    /// Returns the bottlenecks in the directions in which data crosses them.
    fn directions(&self, crossed: &BTreeSet<LinkId>) -> Vec<LinkId> {
        let both = |&link: &LinkId| [Some(link), self.reverse_of(link)];
        let all = self.bottlenecks.iter().flat_map(both).flatten();
        all.filter(|link| crossed.contains(link)).collect()
    }

    /// Returns the slowest link of each route, in order of declaration.
    pub(super) fn slowest_of<'w>(&self, ways: impl IntoIterator<Item = &'w [LinkId]>) -> Vec<LinkId> {
        let slowest = ways.into_iter().filter_map(|way| self.slowest(way));
        let each: BTreeSet<LinkId> = slowest.collect();
        each.into_iter().collect()
    }

    /// Returns the link of a route with the lowest mean rate, the first of several. `None` for a route without links.
    fn slowest(&self, way: &[LinkId]) -> Option<LinkId> {
        let rate = |link: &LinkId| {
            let rate = self.links[link.0 as usize].spec.mean_rate();
            rate.map_or(u64::MAX, |rate| rate.bits_per_second())
        };
        way.iter().copied().min_by_key(rate)
    }
}
