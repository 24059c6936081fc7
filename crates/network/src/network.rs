//! The network: links, and the routes that packets take over them.

use foundation::{Instant, Ring, Streams};
use hdrhistogram::Histogram;

use crate::builder::NetworkBuilder;
use crate::calendar::{Calendar, DueTime, IDLE};
use crate::config::{LinkSpec, PathSpec};
use crate::link::{Count, Link, LinkCounters, Occupancy};
use crate::observer::Observer;
use crate::outages::{Change, OutageSchedule};
use crate::packet::{Body, HostId, LinkId, Packet, RouteId};
use crate::packet_store::{PacketStore, Ticket, TooBig};
use crate::routes::{Next, Routes, Span};

/// A packet that has reached a host and is still stored in the network.
#[derive(Debug)]
pub struct Arrival {
    /// The host at the end of the route.
    pub host: HostId,
    ticket: Ticket,
}

/// Links joined by routes, as a state machine. The [crate documentation](crate) describes how to drive it.
///
/// `B` is the type of packet bodies; `O` is the [`Observer`], `()` for none.
pub struct Network<B, O = ()> {
    links: Vec<Link>,
    names: Vec<String>,
    routes: Routes,
    hosts: u32,
    calendar: Calendar,
    now: u64,
    sent: u64,
    deliveries: Ring<(HostId, Ticket)>,
    store: PacketStore<B, O>,
    /// Whether links and routes may not change, because packets cross them ahead of time.
    is_fixed: bool,
    /// Failures and recoveries of links. Their entry in the calendar follows those of the links.
    outages: Option<Box<OutageSchedule>>,
    /// The random streams of the network, from which changed links draw the starts of traces again.
    streams: Streams,
}

impl<B: Body> Network<B> {
    /// Returns hosts 0 and 1 with one link in each direction. The routes are
    /// [`FORWARD`](crate::FORWARD) (from 0 to 1) and [`REVERSE`](crate::REVERSE).
    #[must_use]
    pub fn two_hosts(path: &PathSpec, streams: Streams) -> Self {
        Self::chain(std::slice::from_ref(path), streams)
    }

    /// Returns hosts 0 and 1 joined by several paths in series.
    #[must_use]
    pub fn chain(paths: &[PathSpec], streams: Streams) -> Self {
        NetworkBuilder::chain(paths, streams).build()
    }
}

impl<B: Body, O: Observer<B>> Network<B, O> {
    pub(crate) fn new(
        links: Vec<Link>,
        names: Vec<String>,
        routes: Routes,
        hosts: u32,
        streams: Streams,
        observer: O,
    ) -> Self {
        Self {
            calendar: Calendar::new(links.len()),
            links,
            names,
            routes,
            hosts,
            now: 0,
            sent: 0,
            deliveries: Ring::default(),
            store: PacketStore::new(observer),
            is_fixed: false,
            outages: None,
            streams,
        }
    }

    /// Schedules outages since time 0.
    pub(crate) fn schedule(&mut self, outages: OutageSchedule) {
        self.calendar = Calendar::new(self.links.len() + 1);
        self.outages = Some(Box::new(outages));
        self.await_change();
    }

    /// Sets the time of the next change in the calendar. Of simultaneous events, changes are the first.
    fn await_change(&mut self) {
        let due = self.outages.as_ref().and_then(|outages| outages.due());
        let due = due.map_or(DueTime::NEVER, |at| DueTime::new(at, 0));
        self.calendar.set(self.links.len() as u32, due);
    }

    /// Applies the changes due at `now`.
    #[cold]
    fn change(&mut self, at: u64) {
        // On wall time, a restarted schedule may start in the past.
        let now = at.max(self.now);
        while let Some(change) = self.outages.as_mut().and_then(|outages| outages.pop(now)) {
            match change {
                Change::Fail(LinkId(index)) => {
                    let link = &mut self.links[index as usize];
                    link.fail(now, &mut self.store);
                    self.calendar.set(index, link.due());
                }
                Change::Recover(LinkId(index)) => self.links[index as usize].recover(),
                Change::Reroute(route, span) => self.change_route(now, route, span),
            }
        }
        self.await_change();
    }

    fn change_route(&mut self, now: u64, route: RouteId, span: Span) {
        self.routes.change(route, span);
        if O::ENABLED {
            let hops = self.routes.links(route).count() as u8;
            let at = Instant::from_nanos(now);
            self.store.observer.rerouted(at, route, hops);
        }
    }

    /// Starts the schedule of outages and of rebindings again at `now`: all links operate and all routes are as built, until the first change
    /// after `now`.
    pub fn restart_outages(&mut self, now: Instant) {
        self.advance(now.as_nanos());
        for link in &self.links {
            link.restart_translator(now.as_nanos());
        }
        let Some(mut outages) = self.outages.take() else {
            return;
        };
        let (down, original) = outages.restart(now.as_nanos());
        for LinkId(index) in down {
            self.links[index as usize].recover();
        }
        for (&route, &span) in original {
            self.change_route(self.now, route, span);
        }
        self.outages = Some(outages);
        self.await_change();
    }

    /// Returns whether a link is down.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn is_down(&self, link: LinkId) -> bool {
        self.links[link.0 as usize].is_down()
    }

    /// Lets packets join the links of `is_ahead` as soon as they join the link before.
    pub(crate) fn look_ahead(&mut self, is_ahead: &[bool]) {
        self.routes.look_ahead(is_ahead);
        self.is_fixed = true;
    }

    /// Counts the packets that have crossed a link by the time of reading, not ahead of time.
    pub(crate) fn count_exactly(&mut self, link: LinkId) {
        self.links[link.0 as usize].count_exactly();
    }

    /// Sends a packet on its route from its current `hop` (0 for a new packet). Returns the id that the packet keeps.
    ///
    /// `now` must not decrease between calls; an earlier time counts as the latest one passed in.
    ///
    /// # Panics
    /// If the route does not exist.
    pub fn send(&mut self, now: Instant, packet: Packet<B>) -> u64 {
        self.send_from(now, packet.route, packet.hop, packet.size, || packet.body)
    }

    /// Sends a new packet of `size` bytes, headers included, whose body `make` writes to its place in the network; otherwise like
    /// [`Network::send`].
    ///
    /// # Panics
    /// If the route does not exist.
    #[inline]
    pub fn send_with(&mut self, now: Instant, route: RouteId, size: u32, make: impl FnOnce() -> B) -> u64 {
        self.send_from(now, route, 0, size, make)
    }

    #[inline(always)]
    fn send_from(
        &mut self,
        now: Instant,
        route: RouteId,
        hop: u8,
        size: u32,
        make: impl FnOnce() -> B,
    ) -> u64 {
        // Due events come first, so that every link sees packets in order even if a wall-clock caller is late.
        self.advance(now.as_nanos());
        self.sent += 1;
        let id = self.sent;
        let step = self.routes.step(route, hop);
        let packet = || Packet {
            id,
            size,
            route,
            hop,
            body: make(),
        };
        let ticket = self.store.insert(size, hop, step, packet);
        self.forward(self.now, ticket);
        self.sent
    }

    /// Processes all events due by `now`, each at its own time and in order.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now.as_nanos());
    }

    /// Processes events due by `limit`, up to the first time at which packets reach a host or exceed an MTU, and returns
    /// that time; all events of that nanosecond have been processed. Returns `None` if there is no such time by `limit`.
    ///
    /// Saves callers on virtual time one loop iteration per packet-hop.
    #[inline]
    pub fn handle_timeouts_until_delivery(&mut self, limit: Instant) -> Option<Instant> {
        let limit = limit.as_nanos();
        loop {
            let (at, link) = self.calendar.first();
            if at > limit || at == IDLE {
                return None;
            }
            self.now = self.now.max(at);
            self.step(at, link);
            let has_output = self.deliveries.front().is_some() || !self.store.too_big.is_empty();
            if has_output && self.calendar.first().0 > at {
                return Some(Instant::from_nanos(self.now));
            }
        }
    }

    /// Returns the time of the next event; `None` while the network is empty and no outage is to start or end.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = self.calendar.first().0;
        (at != IDLE).then(|| Instant::from_nanos(at))
    }

    /// Returns the next packet that has reached the host at the end of its route, in order of arrival.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<(HostId, Packet<B>)> {
        let arrival = self.poll_arrival()?;
        Some((arrival.host, self.store.remove(arrival.ticket)?))
    }

    /// Returns the next packet that has reached a host, like [`Network::poll_delivery`], but leaves its body in place: the
    /// caller reads it with [`Network::arrived`], then calls [`Network::release`].
    #[inline]
    pub fn poll_arrival(&mut self) -> Option<Arrival> {
        let (host, ticket) = self.deliveries.pop()?;
        Some(Arrival { host, ticket })
    }

    /// Returns the body of a packet that has reached a host.
    ///
    /// # Panics
    /// If it is not a packet of this network.
    #[inline]
    #[must_use]
    pub fn arrived(&self, arrival: &Arrival) -> &B {
        self.store.body(arrival.ticket)
    }

    /// As [`arrived`](Self::arrived), for a host that takes a part of the body.
    ///
    /// # Panics
    /// If it is not a packet of this network.
    #[inline]
    #[must_use]
    pub fn arrived_mut(&mut self, arrival: &Arrival) -> &mut B {
        self.store.body_mut(arrival.ticket)
    }

    /// Returns the body of the packet that probably arrives next, if it does so at the next event, so that the caller can
    /// prefetch what it will need. `None` until the network has held more packets than a processor's caches.
    #[inline]
    #[must_use]
    pub fn expected(&self) -> Option<&B> {
        if !self.store.is_large() {
            return None;
        }
        let (_, index) = self.calendar.first();
        let ticket = self.links.get(index as usize)?.front()?;
        match self.routes.next(ticket.step + 1) {
            Next::Host(_) => Some(self.store.body(ticket)),
            Next::Link(_) | Next::LinkAhead(_) => None,
        }
    }

    /// Removes a packet that has reached a host.
    #[inline]
    pub fn release(&mut self, arrival: Arrival) {
        self.store.release(arrival.ticket);
    }

    /// Returns the next packet that was larger than the MTU of a link. The caller reports it to the sender if the protocol
    /// expects that. At most 64 packets are kept between calls.
    #[inline]
    pub fn poll_too_big(&mut self) -> Option<TooBig<B>> {
        self.store.too_big.pop_front()
    }

    #[inline]
    fn advance(&mut self, now: u64) {
        loop {
            let (at, link) = self.calendar.first();
            if at > now || at == IDLE {
                break;
            }
            self.step(at, link);
        }
        self.now = self.now.max(now);
    }

    #[inline]
    fn step(&mut self, at: u64, index: u32) {
        let Some(link) = self.links.get_mut(index as usize) else {
            return self.change(at);
        };
        let landed = link.advance(at, &mut self.store);
        self.calendar.set(index, link.due());
        if self.store.is_large()
            && let Some(next) = link.front()
        {
            self.store.prefetch(next);
        }
        if let Some(mut ticket) = landed {
            ticket.step += 1;
            match self.routes.next(ticket.step) {
                Next::Host(host) => self.deliveries.push((host, ticket)),
                Next::Link(_) | Next::LinkAhead(_) => self.forward(at, ticket),
            }
        }
    }

    /// Passes a packet to the next link of its route, or to the host at its end.
    fn forward(&mut self, mut at: u64, mut ticket: Ticket) {
        loop {
            match self.routes.next(ticket.step) {
                Next::Host(host) => return self.deliveries.push((host, ticket)),
                Next::Link(LinkId(index)) => {
                    let link = &mut self.links[index as usize];
                    let before = link.due();
                    link.enter(at, ticket, &mut self.store);
                    let due = link.due();
                    if due != before {
                        self.calendar.set(index, due);
                    }
                    return;
                }
                Next::LinkAhead(LinkId(index)) => {
                    match self.links[index as usize].cross(at, ticket, &mut self.store) {
                        Some(arrival) => at = arrival,
                        None => return,
                    }
                    ticket.step += 1;
                }
            }
        }
    }

    /// Returns the ids of all links.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<B, O> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// Returns the name of a link.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> &str {
        &self.names[link.0 as usize]
    }

    /// Returns the current specification of a link.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn link_spec(&self, link: LinkId) -> &LinkSpec {
        self.links[link.0 as usize].spec()
    }

    /// Changes the specification of a link at `now`. Packets already accepted, including those in a drop-tail queue, leave as
    /// scheduled; later packets stay behind them. If the kind or the settings of the queue change, the waiting packets move to the
    /// new queue in the order in which they joined: it drops what exceeds its limit. A new limit of a drop-tail queue applies to
    /// later packets only. Random impairments with unchanged settings continue their streams; the
    /// others restart with streams derived from the link and the number of its changes, so the same changes at the same times
    /// have the same result.
    ///
    /// # Panics
    /// If the link does not exist, or with [`NetworkBuilder::cut_through`].
    pub fn change_link(&mut self, now: Instant, LinkId(index): LinkId, spec: &LinkSpec) {
        assert!(!self.is_fixed, "cut-through requires links that do not change");
        self.advance(now.as_nanos());
        let link = &mut self.links[index as usize];
        let mut spec = spec.clone();
        spec.draw_start(self.streams);
        link.change(self.now, &spec, &mut self.store);
        self.calendar.set(index, link.due());
    }

    /// Takes a link down at `now`, as an outage of its schedule does: it drops the packets that wait or arrive, until
    /// [`Network::recover`] or the end of a scheduled outage. `now` is on the network's clock and does not precede earlier calls.
    ///
    /// # Panics
    /// If the link does not exist, or with [`NetworkBuilder::cut_through`].
    pub fn fail(&mut self, now: Instant, LinkId(index): LinkId) {
        assert!(!self.is_fixed, "cut-through requires links that do not change");
        self.advance(now.as_nanos());
        let link = &mut self.links[index as usize];
        link.fail(self.now, &mut self.store);
        self.calendar.set(index, link.due());
    }

    /// Returns a link to operation at `now`.
    ///
    /// # Panics
    /// If the link does not exist.
    pub fn recover(&mut self, now: Instant, LinkId(index): LinkId) {
        self.advance(now.as_nanos());
        self.links[index as usize].recover();
    }

    /// Requests the loss of a packet by its id, at the far end of its current link: it keeps its place in the queue and its
    /// transmission time, like a packet that the medium corrupts. Duplicates are lost too. Returns whether the packet is
    /// inside the network.
    ///
    /// # Panics
    /// With [`NetworkBuilder::cut_through`].
    pub fn lose(&mut self, id: u64) -> bool {
        assert!(
            !self.is_fixed,
            "cut-through does not examine packets at each link"
        );
        self.store.lose(id)
    }

    /// Requests the loss of the next packet that satisfies a condition when it is sent; see [`Network::lose`]. With several
    /// requests, a packet satisfies the earliest one.
    ///
    /// # Panics
    /// With [`NetworkBuilder::cut_through`].
    pub fn lose_next(&mut self, condition: impl Fn(&Packet<B>) -> bool + Send + Sync + 'static) {
        assert!(
            !self.is_fixed,
            "cut-through does not examine packets at each link"
        );
        self.store.requested.add_next(Box::new(condition));
    }

    /// Returns the counters of a link. With [`NetworkBuilder::cut_through`], they are exact for the links named there.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn counters(&self, link: LinkId) -> LinkCounters {
        self.links[link.0 as usize].counters(self.now)
    }

    /// Returns the queue length of a link at `now`, the packet in transmission included. The caller has called
    /// [`Network::handle_timeout`] for `now`.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn queue(&self, link: LinkId, now: Instant) -> Count {
        self.links[link.0 as usize].length(now.as_nanos())
    }

    /// Returns the bytes at `now` in the shared buffer of a link's queue, the packets in transmission included; `None` if the
    /// queue has its own buffer. The caller has called [`Network::handle_timeout`] for `now`.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn shared_buffer(&self, link: LinkId, now: Instant) -> Option<u64> {
        let pool = self.links[link.0 as usize].pool();
        pool.map(|pool| pool.used(now.as_nanos()))
    }

    /// Returns the time integrals of a link's queue length and busy time from the start to `now`, for which the caller has
    /// called [`Network::handle_timeout`]. The difference of two results yields the means of the interval between them.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn occupancy(&self, link: LinkId, now: Instant) -> Occupancy {
        self.links[link.0 as usize].occupancy(now.as_nanos())
    }

    /// Returns a histogram of the time from joining the queue to the start of transmission, in nanoseconds
    /// ([`duration_histogram`](foundation::duration_histogram)). Dropped packets do not count. `None` without [`NetworkBuilder::record_waits`].
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn waits(&self, link: LinkId) -> Option<Histogram<u64>> {
        self.links[link.0 as usize].meter().waits()
    }

    /// Takes the histogram of [`Network::waits`] and stops recording it.
    ///
    /// # Panics
    /// If the link does not exist.
    pub fn take_waits(&mut self, link: LinkId) -> Option<Box<Histogram<u64>>> {
        self.links[link.0 as usize].meter_mut().take_waits()
    }

    /// Clears the histogram of [`Network::waits`], as at the start of a measurement.
    ///
    /// # Panics
    /// If the link does not exist.
    pub fn reset_waits(&mut self, link: LinkId) {
        self.links[link.0 as usize].meter_mut().reset_waits();
    }

    /// Returns the ids of all hosts.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<B, O> {
        (0..self.hosts).map(HostId)
    }

    /// Returns the ids of all routes.
    pub fn routes(&self) -> impl Iterator<Item = RouteId> + use<B, O> {
        (0..self.routes.len() as u32).map(RouteId)
    }

    /// Adds a route over `links` that ends at `to`, like [`NetworkBuilder::route`].
    ///
    /// # Panics
    /// If a host or link does not exist, for more than 255 links, or with [`NetworkBuilder::cut_through`].
    pub fn add_route(&mut self, links: &[LinkId], to: HostId) -> RouteId {
        assert!(!self.is_fixed, "cut-through requires that all routes are known");
        self.routes.add_checked(links, to, self.links.len(), self.hosts)
    }

    /// Returns the links of a route, in order.
    ///
    /// # Panics
    /// If the route does not exist.
    pub fn route_links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        self.routes.links(route)
    }

    /// Returns the number of packets inside the network: queued, in flight, or not yet polled.
    #[must_use]
    pub fn packets_inside(&self) -> usize {
        self.store.len()
    }

    /// Returns the observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.store.observer
    }

    /// Returns the observer for changes.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.store.observer
    }
}
