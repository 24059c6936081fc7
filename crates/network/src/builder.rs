//! The network builder: adds hosts, links and routes and returns their ids.

use std::collections::BTreeSet;

use foundation::Streams;

use crate::calendar::MAX_LINKS;
use crate::config::{LinkSpec, PathSpec};
use crate::cut_through::links_ahead;
use crate::link::Link;
use crate::network::Network;
use crate::observer::Observer;
use crate::packet::{Body, HostId, LinkId, RouteId};
use crate::routes::Routes;
use crate::topology::Topology;

/// The route from host 0 to host 1 of [`Network::two_hosts`] and [`Network::chain`].
pub const FORWARD: RouteId = RouteId(0);
/// The route from host 1 to host 0 of [`Network::two_hosts`] and [`Network::chain`].
pub const REVERSE: RouteId = RouteId(1);

/// A builder of a [`Network`].
///
/// ```
/// use foundation::Streams;
/// use network::{LinkSpec, Network, NetworkBuilder};
/// let mut builder = NetworkBuilder::new(Streams::new(1, 0));
/// let (client, server) = (builder.host(), builder.host());
/// let access = builder.link("access", &LinkSpec::default());
/// let core = builder.link("core", &LinkSpec::default());
/// let route = builder.route(&[access, core], server);
/// let network: Network<Vec<u8>> = builder.build();
/// # let _ = (client, route, network);
/// ```
#[derive(Clone, Debug)]
pub struct NetworkBuilder {
    streams: Streams,
    hosts: u32,
    links: Vec<(String, LinkSpec)>,
    names: BTreeSet<String>,
    /// Links with a histogram of queueing delays.
    recorded: BTreeSet<LinkId>,
    routes: Routes,
    /// Links with exact counters in a network with cut-through.
    exact: Option<Vec<LinkId>>,
}

impl NetworkBuilder {
    /// Returns an empty builder whose links draw from `streams`.
    #[must_use]
    pub fn new(streams: Streams) -> Self {
        Self {
            streams,
            hosts: 0,
            links: Vec::new(),
            names: BTreeSet::new(),
            recorded: BTreeSet::new(),
            routes: Routes::default(),
            exact: None,
        }
    }

    /// Returns hosts 0 and 1 joined by `paths` in series, with the routes [`FORWARD`] and [`REVERSE`].
    ///
    /// One path's links are named `forward` and `reverse`; several are named `forward/1`, `forward/2`, …
    /// (from host 0) and `reverse/1`, … (`reverse/1` is the reverse direction of the first path, so packets cross it last).
    #[must_use]
    pub fn chain(paths: &[PathSpec], streams: Streams) -> Self {
        let topology = Topology::chain(paths);
        let mut builder = topology.builder(streams);
        for &(near, far) in topology.pairs() {
            for (from, to) in [(near, far), (far, near)] {
                // A route always exists: each path has links in both directions.
                let way = topology.links_between(from, to).unwrap_or_default();
                builder.route(&way, to);
            }
        }
        builder
    }

    /// Adds a host.
    pub const fn host(&mut self) -> HostId {
        self.hosts += 1;
        HostId(self.hosts - 1)
    }

    /// Adds a link in one direction. Its random streams derive from its name.
    ///
    /// # Panics
    /// If a link with this name exists (two links with the same streams would lose the same packets), or for more than
    /// four million links.
    pub fn link(&mut self, name: impl Into<String>, spec: &LinkSpec) -> LinkId {
        let name = name.into();
        assert!(self.names.insert(name.clone()), "a second link is named {name:?}");
        assert!(
            self.links.len() < MAX_LINKS,
            "a network has at most {MAX_LINKS} links"
        );
        self.links.push((name, spec.clone()));
        LinkId(self.links.len() as u32 - 1)
    }

    /// Adds a route over `links` that ends at `to`. A route without links delivers immediately.
    ///
    /// # Panics
    /// If a host or link does not exist, or for more than 255 links.
    pub fn route(&mut self, links: &[LinkId], to: HostId) -> RouteId {
        self.routes.add_checked(links, to, self.links.len(), self.hosts)
    }

    /// Records a histogram of queueing delays at a link ([`Network::waits`]).
    ///
    /// # Panics
    /// If the link does not exist.
    pub fn record_waits(&mut self, link: LinkId) {
        assert!(
            (link.0 as usize) < self.links.len(),
            "there is no link {}",
            link.0
        );
        self.recorded.insert(link);
    }

    /// Lets packets join a link as soon as they join the link before it, with their future arrival time, where that makes no
    /// difference: the links have drop-tail queues and no impairments, and only the link before feeds the next one. All
    /// packets arrive in the same order and at the same times, with fewer events.
    ///
    /// The network must not change later. The counters of `exact` are exact at all times; those of the other links may
    /// include packets that are still on their way to the link. An observer would see events out of order, so a network
    /// with one must not have cut-through.
    ///
    /// # Panics
    /// Building panics if a link of `exact` does not exist, or with an observer.
    #[must_use]
    pub fn cut_through(mut self, exact: &[LinkId]) -> Self {
        self.exact = Some(exact.to_vec());
        self
    }

    /// Builds the network.
    #[must_use]
    pub fn build<B: Body>(self) -> Network<B> {
        self.build_observed(())
    }

    /// Builds the network with an observer.
    #[must_use]
    pub fn build_observed<B: Body, O: Observer<B>>(self, observer: O) -> Network<B, O> {
        assert!(
            self.exact.is_none() || !O::ENABLED,
            "cut-through does not call observers in order"
        );
        let is_ahead = self.exact.as_ref().map(|exact| {
            let exact: Vec<LinkId> = exact.iter().chain(&self.recorded).copied().collect();
            links_ahead(&self.routes, self.links.iter().map(|(_, spec)| spec), &exact)
        });
        let mut links = Vec::with_capacity(self.links.len());
        let mut names = Vec::with_capacity(self.links.len());
        for (number, (name, spec)) in self.links.into_iter().enumerate() {
            let id = LinkId(number as u32);
            let mut link = Link::new(id, &spec, self.streams.component(&name));
            if self.recorded.contains(&id) {
                link.meter_mut().record_waits();
            }
            links.push(link);
            names.push(name);
        }
        let mut network = Network::new(links, names, self.routes, self.hosts, observer);
        if let Some(is_ahead) = is_ahead {
            network.look_ahead(&is_ahead);
            for link in self.exact.unwrap_or_default() {
                network.count_exactly(link);
            }
        }
        network
    }
}
