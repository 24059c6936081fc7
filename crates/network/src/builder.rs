//! The network builder: adds hosts, links and routes and returns their ids.

use std::collections::{BTreeMap, BTreeSet};

use foundation::{Duration, Streams};

use crate::calendar::MAX_LINKS;
use crate::config::{Capacity, LinkSpec, PathSpec};
use crate::cut_through::links_ahead;
use crate::link::{Link, Surroundings};
use crate::medium::{Channel, Sharing, Station};
use crate::nat::Translator;
use crate::network::Network;
use crate::observer::Observer;
use crate::outages::{Change, OutageSchedule};
use crate::packet::{Body, HostId, LinkId, RouteId};
use crate::queue::discipline::UNKNOWN_HOST;
use crate::queue::shared_buffer::BufferPool;
use crate::queue::{RouteHosts, SharedBuffer};
use crate::routes::{Routes, Span};
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
    /// The hosts that send over routes.
    sources: BTreeMap<RouteId, HostId>,
    /// Shared buffers.
    buffers: Vec<SharedBuffer>,
    /// The links whose queues are in a shared buffer, with its index.
    buffered: BTreeMap<LinkId, usize>,
    /// The links of each Wi-Fi channel.
    channels: Vec<Vec<LinkId>>,
    /// Both directions of each link with an address translator.
    translated: Vec<[LinkId; 2]>,
    /// Links with exact counters in a network with cut-through.
    exact: Option<Vec<LinkId>>,
    /// Changes of routes, by the time since the start.
    reroutes: Vec<(Duration, Change)>,
    /// The routes that change, as they were added.
    original: BTreeMap<RouteId, Span>,
    /// Other links of these routes, each stored once.
    alternatives: BTreeMap<(RouteId, Vec<LinkId>), Span>,
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
            sources: BTreeMap::new(),
            buffers: Vec::new(),
            buffered: BTreeMap::new(),
            channels: Vec::new(),
            translated: Vec::new(),
            exact: None,
            reroutes: Vec::new(),
            original: BTreeMap::new(),
            alternatives: BTreeMap::new(),
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
                builder.route_from(from, &way, to);
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
        let mut spec = spec.clone();
        spec.draw_start(self.streams);
        self.links.push((name, spec));
        LinkId(self.links.len() as u32 - 1)
    }

    /// Adds a route over `links` that ends at `to`. A route without links delivers immediately.
    ///
    /// # Panics
    /// If a host or link does not exist, or for more than 255 links.
    pub fn route(&mut self, links: &[LinkId], to: HostId) -> RouteId {
        self.routes.add_checked(links, to, self.links.len(), self.hosts)
    }

    /// Adds a route like [`route`](Self::route) whose packets the host `from` sends. Disciplines with fairness between hosts
    /// read it.
    ///
    /// # Panics
    /// If a host or link does not exist, or for more than 255 links.
    pub fn route_from(&mut self, from: HostId, links: &[LinkId], to: HostId) -> RouteId {
        assert!(from.0 < self.hosts, "host {} does not exist", from.0);
        let route = self.route(links, to);
        self.sources.insert(route, from);
        route
    }

    /// Returns the links of each route, in the order of their ids.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (RouteId, Vec<LinkId>)> + '_ {
        let all = self.routes.all();
        all.map(|route| (route, self.routes.links(route).collect()))
    }

    /// Changes the links of a route at a time since the start. Packets inside the network at that time keep their route.
    ///
    /// # Panics
    /// If the route or a link does not exist, or for more than 255 links.
    pub fn reroute(&mut self, after: Duration, route: RouteId, links: &[LinkId]) {
        let original = *self
            .original
            .entry(route)
            .or_insert_with(|| self.routes.span(route));
        let span = if self.routes.links(route).eq(links.iter().copied()) {
            original
        } else {
            let alternative = self.alternatives.entry((route, links.to_vec()));
            let (routes, known) = (&mut self.routes, self.links.len());
            *alternative.or_insert_with(|| routes.add_alternative(route, links, known))
        };
        self.reroutes.push((after, Change::Reroute(route, span)));
    }

    /// Returns the changes of links and routes over time; `None` if there are none.
    fn outages(&self) -> Option<OutageSchedule> {
        let mut changes = Vec::new();
        for (number, (_, spec)) in self.links.iter().enumerate() {
            let link = LinkId(number as u32);
            for outage in &spec.down {
                changes.push((outage.from, Change::Fail(link)));
                changes.push((outage.to, Change::Recover(link)));
            }
        }
        changes.extend(&self.reroutes);
        (!changes.is_empty()).then(|| OutageSchedule::new(changes, self.original.clone()))
    }

    /// Records a histogram of queueing delays at a link ([`Network::waits`]).
    ///
    /// # Panics
    /// If the link does not exist.
    pub fn record_waits(&mut self, link: LinkId) {
        self.check(link);
        self.recorded.insert(link);
    }

    /// Panics if a link does not exist.
    fn check(&self, link: LinkId) {
        let is_known = (link.0 as usize) < self.links.len();
        assert!(is_known, "there is no link {}", link.0);
    }

    /// Puts the queues of `links` into one buffer, whose dynamic threshold applies in addition to the limit of each queue.
    ///
    /// # Panics
    /// If a link does not exist, or if its queue is in a buffer.
    pub fn share_buffer(&mut self, buffer: SharedBuffer, links: &[LinkId]) {
        for &link in links {
            self.check(link);
            let other = self.buffered.insert(link, self.buffers.len());
            assert!(other.is_none(), "the queue of link {} is in a buffer", link.0);
        }
        self.buffers.push(buffer);
    }

    /// Puts `links` on one Wi-Fi channel. Each other link has a separate channel.
    ///
    /// # Panics
    /// If a link does not exist, or is on a channel.
    pub fn share_channel(&mut self, links: &[LinkId]) {
        for &link in links {
            self.check(link);
            let is_on_one = self.channels.iter().flatten().any(|&other| other == link);
            assert!(!is_on_one, "link {} is on a channel", link.0);
        }
        self.channels.push(links.to_vec());
    }

    /// Lets both directions of a link use one address translator, with the settings of the first. Without this, the
    /// mappings of a link's translator contain no connections of another direction.
    ///
    /// # Panics
    /// If a link does not exist.
    pub fn share_translator(&mut self, links: [LinkId; 2]) {
        for link in links {
            self.check(link);
        }
        self.translated.push(links);
    }

    /// Returns the translators of links.
    fn translators(&self) -> BTreeMap<LinkId, Translator> {
        let mut translators = BTreeMap::new();
        let specs = self.links.iter().map(|(_, spec)| spec.nat.as_ref());
        for (number, nat) in (0..).zip(specs) {
            if let Some(nat) = nat {
                translators.insert(LinkId(number), Translator::new(nat));
            }
        }
        for [first, second] in &self.translated {
            if let Some(translator) = translators.get(first).cloned() {
                translators.insert(*second, translator);
            }
        }
        translators
    }

    /// Returns the users of each link that is a part of a cell, in the order of the hosts.
    fn users(&self, hosts: &RouteHosts) -> BTreeMap<LinkId, BTreeSet<HostId>> {
        let mut users: BTreeMap<LinkId, BTreeSet<HostId>> = BTreeMap::new();
        let is_cell = |(_, spec): &(String, LinkSpec)| matches!(spec.capacity, Capacity::Cell(_));
        if !self.links.iter().any(is_cell) {
            return users;
        }
        for route in self.routes.all() {
            for link in self.routes.links(route) {
                if let Capacity::Cell(cell) = &self.links[link.0 as usize].1.capacity {
                    users.entry(link).or_default().insert(cell.user(hosts.of(route)));
                }
            }
        }
        users
    }

    /// Returns the stations of the links on channels.
    fn stations(&self) -> BTreeMap<LinkId, Station> {
        let channels = self.channels.iter().map(|links| (Channel::default(), links));
        let stations = channels.flat_map(|(channel, links)| {
            let station = move |&link| (link, channel.station());
            links.iter().map(station)
        });
        stations.collect()
    }

    /// Lets packets join a link as soon as they join the link before it, with their future arrival time, where that makes no
    /// difference: the links have drop-tail queues and no impairments, and only the link before feeds the next one. All
    /// packets arrive in the same order and at the same times, with fewer events.
    ///
    /// The network must not change later. The counters of `exact` are exact at all times; those of the other links may
    /// include packets that are still on their way to the link. An observer would see events out of order, so a network
    /// with one must not have cut-through. A network with outages ignores this: its links change.
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
        let outages = self.outages();
        let hosts = RouteHosts::new(self.routes.all().map(|route| {
            let source = self.sources.get(&route).copied();
            [source.unwrap_or(UNKNOWN_HOST), self.routes.end(route)]
        }));
        let pools: Vec<BufferPool> = self.buffers.iter().map(BufferPool::new).collect();
        let exact = self.exact.as_ref().filter(|_| outages.is_none());
        let is_ahead = exact.map(|exact| {
            let exact: Vec<LinkId> = exact.iter().chain(&self.recorded).copied().collect();
            let specs = self.links.iter().map(|(_, spec)| spec);
            links_ahead(&self.routes, specs, &exact, |link| {
                self.buffered.contains_key(&link)
            })
        });
        let (mut users, mut stations) = (self.users(&hosts), self.stations());
        let mut translators = self.translators();
        let mut links = Vec::with_capacity(self.links.len());
        let mut names = Vec::with_capacity(self.links.len());
        for (number, (name, spec)) in self.links.into_iter().enumerate() {
            let id = LinkId(number as u32);
            let surroundings = Surroundings {
                pool: self.buffered.get(&id).map(|&buffer| pools[buffer].clone()),
                hosts: hosts.clone(),
                translator: translators.remove(&id),
                sharing: Sharing {
                    users: users.remove(&id).into_iter().flatten().collect(),
                    station: stations.remove(&id),
                },
            };
            let mut link = Link::new(id, &spec, self.streams.component(&name), surroundings);
            if self.recorded.contains(&id) {
                link.meter_mut().record_waits();
            }
            links.push(link);
            names.push(name);
        }
        let mut network = Network::new(links, names, self.routes, self.hosts, self.streams, observer);
        if let Some(outages) = outages {
            network.schedule(outages);
        }
        if let Some(is_ahead) = is_ahead {
            network.look_ahead(&is_ahead);
            for link in self.exact.unwrap_or_default() {
                network.count_exactly(link);
            }
        }
        network
    }
}
