//! The network: links, and the routes that packets take over them.

use std::collections::VecDeque;

use foundation::{Instant, Streams};
use hdrhistogram::Histogram;

use crate::builder::NetworkBuilder;
use crate::calendar::Calendar;
use crate::cargo::{Cargo, Ticket, TooBig};
use crate::config::{LinkSpec, PathSpec};
use crate::link::{Count, Link, LinkCounters, Occupancy, QueueInUse};
use crate::observer::Observer;
use crate::packet::{Body, HostId, LinkId, Packet, RouteId};
use crate::routes::{Next, Routes};

/// Links joined by routes, as a state machine. The crate's page states the contract of its four verbs.
///
/// `B` is what packets carry; `O` watches them ([`Observer`]), `()` being nobody.
pub struct Network<B, O = ()> {
    links: Vec<Link>,
    names: Vec<String>,
    routes: Routes,
    hosts: u32,
    calendar: Calendar,
    now: u64,
    sent: u64,
    deliveries: VecDeque<(HostId, Ticket)>,
    cargo: Cargo<B, O>,
}

impl<B: Body> Network<B> {
    /// Hosts 0 and 1 and a link in either direction: the routes are
    /// [`FORWARD`](crate::FORWARD) (from 0 to 1) and [`REVERSE`](crate::REVERSE).
    #[must_use]
    pub fn two_hosts(path: &PathSpec, streams: Streams) -> Self {
        Self::chain(std::slice::from_ref(path), streams)
    }

    /// Hosts 0 and 1 with several paths behind one another between them.
    #[must_use]
    pub fn chain(paths: &[PathSpec], streams: Streams) -> Self {
        NetworkBuilder::chain(paths, streams).build()
    }
}

impl<B: Body, O: Observer<B>> Network<B, O> {
    pub(crate) fn new(links: Vec<Link>, names: Vec<String>, routes: Routes, hosts: u32, observer: O) -> Self {
        Self {
            calendar: Calendar::new(links.len()),
            links,
            names,
            routes,
            hosts,
            now: 0,
            sent: 0,
            deliveries: VecDeque::new(),
            cargo: Cargo::new(observer),
        }
    }

    /// Sends a packet at the start of its route (from its present `hop`, which is 0 for a new packet), and
    /// gives it the id that it keeps on its way.
    ///
    /// `now` does not fall from call to call; an earlier one counts as the latest seen.
    ///
    /// # Panics
    /// For a route that this network does not have.
    #[inline]
    pub fn send(&mut self, now: Instant, mut packet: Packet<B>) -> u64 {
        let now = now.as_nanos();
        // What is due goes first, so that every link sees packets in order, also where a caller on wall time is late.
        self.advance(now);
        self.sent += 1;
        packet.id = self.sent;
        let step = self.routes.step(packet.route, packet.hop);
        let ticket = self.cargo.load(packet, step);
        self.forward(self.now, ticket);
        self.sent
    }

    /// Moves everything that is due by `now`, each at its own time and in order.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now.as_nanos());
    }

    /// Moves what is due by `limit`, but stops at the first moment at which packets reach a host or prove too big for a
    /// link: that moment is given, and everything that is due then has moved. `None` where there is none by `limit`.
    ///
    /// For callers on virtual time, who save a turn of their loop a packet-hop.
    #[inline]
    pub fn handle_timeouts_until_delivery(&mut self, limit: Instant) -> Option<Instant> {
        let limit = limit.as_nanos();
        loop {
            let (due, link) = self.calendar.first();
            let at = due.nanos();
            if at > limit || due.is_never() {
                return None;
            }
            self.now = self.now.max(at);
            self.step(at, link);
            let has_news = !self.deliveries.is_empty() || !self.cargo.too_big.is_empty();
            if has_news && self.calendar.first().0.nanos() > at {
                return Some(Instant::from_nanos(self.now));
            }
        }
    }

    /// When [`Network::handle_timeout`] next has something to do; `None` while the network is empty.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.calendar.first().0;
        (!due.is_never()).then(|| Instant::from_nanos(due.nanos()))
    }

    /// The next packet that has reached the host at the end of its route, in order of arrival.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<(HostId, Packet<B>)> {
        let (host, ticket) = self.deliveries.pop_front()?;
        Some((host, self.cargo.unload(ticket)?))
    }

    /// The next packet that was larger than the MTU of a link on its way. Its sender is told by the caller, or
    /// finds out by itself; what nobody asks for is told of no further after 64 packets.
    #[inline]
    pub fn poll_too_big(&mut self) -> Option<TooBig<B>> {
        self.cargo.too_big.pop_front()
    }

    #[inline]
    fn advance(&mut self, now: u64) {
        loop {
            let (due, link) = self.calendar.first();
            if due.nanos() > now || due.is_never() {
                break;
            }
            self.step(due.nanos(), link);
        }
        self.now = self.now.max(now);
    }

    #[inline]
    fn step(&mut self, at: u64, index: u32) {
        let link = &mut self.links[index as usize];
        let landed = link.advance(at, &mut self.cargo);
        self.calendar.set(index, link.due());
        if let Some(mut ticket) = landed {
            ticket.hop += 1;
            ticket.step += 1;
            self.forward(at, ticket);
        }
    }

    /// Hands a packet to the next link of its route, or to the host at its end.
    #[inline]
    fn forward(&mut self, at: u64, ticket: Ticket) {
        match self.routes.next(ticket.step) {
            Next::Host(host) => self.deliveries.push_back((host, ticket)),
            Next::Link(LinkId(index)) => {
                let link = &mut self.links[index as usize];
                let before = link.due();
                link.enter(at, ticket, &mut self.cargo);
                let due = link.due();
                if due != before {
                    self.calendar.set(index, due);
                }
            }
        }
    }

    /// The links, by number.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<B, O> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The name that a link was built with.
    ///
    /// # Panics
    /// For a link that this network does not have.
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> &str {
        &self.names[link.0 as usize]
    }

    /// What a link is asked to be: as it was built, or as it was last changed.
    ///
    /// # Panics
    /// For a link that this network does not have.
    #[must_use]
    pub fn link_spec(&self, link: LinkId) -> &LinkSpec {
        self.links[link.0 as usize].spec()
    }

    /// Makes a link another from `now` on, between two packets. What it has taken on leaves as it would have, also what
    /// waits in a drop-tail queue; packets that come later keep behind. What happens by chance and is asked for as before
    /// goes on where it was; the rest begins anew, with draws that follow from the link and the number of its changes: the same
    /// changes at the same times have the same outcome.
    ///
    /// # Errors
    /// Where packets wait in a queue of another kind or with other settings than the new one; drop-tail queues may change
    /// their limits at any time. Nothing is changed then.
    ///
    /// # Panics
    /// For a link that this network does not have.
    pub fn change_link(&mut self, now: Instant, link: LinkId, spec: &LinkSpec) -> Result<(), QueueInUse> {
        self.advance(now.as_nanos());
        self.links[link.0 as usize].change(self.now, spec)
    }

    /// What a link has done so far.
    ///
    /// # Panics
    /// For a link that this network does not have.
    #[must_use]
    pub fn counters(&self, link: LinkId) -> &LinkCounters {
        self.links[link.0 as usize].counters()
    }

    /// What waits at a link or is being sent at `now`, for which [`Network::handle_timeout`] has been called.
    ///
    /// # Panics
    /// For a link that this network does not have.
    #[must_use]
    pub fn queue(&self, link: LinkId, now: Instant) -> Count {
        self.links[link.0 as usize].length(now.as_nanos())
    }

    /// A link's queue and use, summed from the start to `now`, for which [`Network::handle_timeout`] has been called.
    /// The difference of two gives the means of the time between.
    ///
    /// # Panics
    /// For a link that this network does not have.
    #[must_use]
    pub fn occupancy(&self, link: LinkId, now: Instant) -> Occupancy {
        self.links[link.0 as usize].occupancy(now.as_nanos())
    }

    /// How long the packets that a link has taken on waited before it began to send them, in nanoseconds; `None` unless
    /// [`NetworkBuilder::record_waits`] has asked for it. From 1 µs to 1000 s, to three digits. Packets that were
    /// dropped do not count.
    ///
    /// # Panics
    /// For a link that this network does not have.
    #[must_use]
    pub fn waits(&self, link: LinkId) -> Option<&Histogram<u64>> {
        self.links[link.0 as usize].meter().waits()
    }

    /// Takes what [`Network::waits`] gives; from now on they are no longer recorded.
    ///
    /// # Panics
    /// For a link that this network does not have.
    pub fn take_waits(&mut self, link: LinkId) -> Option<Box<Histogram<u64>>> {
        self.links[link.0 as usize].meter_mut().take_waits()
    }

    /// Forgets the waits of a link until now, as where a measurement begins.
    ///
    /// # Panics
    /// For a link that this network does not have.
    pub fn forget_waits(&mut self, link: LinkId) {
        self.links[link.0 as usize].meter_mut().forget_waits();
    }

    /// The hosts, by number.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<B, O> {
        (0..self.hosts).map(HostId)
    }

    /// The routes, by number.
    pub fn routes(&self) -> impl Iterator<Item = RouteId> + use<B, O> {
        (0..self.routes.len() as u32).map(RouteId)
    }

    /// Adds a route over `links` that ends at `to`, as [`NetworkBuilder::route`] does.
    ///
    /// # Panics
    /// If there is no such host or link, or for more than 255 links.
    pub fn add_route(&mut self, links: &[LinkId], to: HostId) -> RouteId {
        self.routes.add_checked(links, to, self.links.len(), self.hosts)
    }

    /// The links of a route, in order.
    ///
    /// # Panics
    /// For a route that this network does not have.
    pub fn route_links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        self.routes.links(route)
    }

    /// Packets that are inside: waiting, on a wire, or not yet polled.
    #[must_use]
    pub fn packets_inside(&self) -> usize {
        self.cargo.len()
    }

    /// The observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.cargo.observer
    }

    /// The observer, to poll it.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.cargo.observer
    }
}
