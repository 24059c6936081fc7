//! One link in one direction: impairments, queue, transmission, and propagation.

mod actions;
mod active_queue;
mod change;
mod counters;
mod crossing;
mod flight;
pub(crate) mod link_rate;
pub(crate) mod meter;
mod outage;

use foundation::{Instant, Streams};

use crate::calendar::DueTime;
use crate::config::LinkSpec;
use crate::impairment::{Impairments, Lag};
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId};
use crate::packet_store::{PacketStore, Ticket};
use crate::queue::QueuedPacket;
use crate::queue::drop_tail::DropTail;
use crate::queue::shared_buffer::BufferPool;

use actions::Executor;
use active_queue::ActiveQueue;
use change::Origin;
use crossing::Crossing;
use flight::Flight;
use link_rate::LinkRate;
use meter::Meter;

pub(crate) use change::Surroundings;
pub use counters::{Count, LinkCounters};
pub use meter::Occupancy;

/// A link in one direction.
pub(crate) struct Link {
    wire: Wire,
    queue: Queue,
    rate: LinkRate,
    /// Packets of this size or larger are dropped: the MTU and one byte, or 0 while the link is down.
    size_limit: u32,
    id: LinkId,
    impairments: Option<Box<Impairments>>,
    counters: LinkCounters,
    meter: Meter,
    /// Packets that have been counted as delivered ahead of time, if counters must be exact.
    crossing: Option<Crossing>,
    origin: Box<Origin>,
}

/// Returns the smallest size of packets that exceed the MTU of a link.
fn size_limit(spec: &LinkSpec) -> u32 {
    spec.mtu.map_or(u32::MAX, |mtu| mtu.saturating_add(1))
}

/// The queue of a link.
enum Queue {
    /// Drop-tail: the departure time is known when a packet joins.
    DropTail(DropTail),
    /// Any other discipline: packets wait until the discipline releases them.
    Active(Box<ActiveQueue>),
}

/// The propagation from the queue to the far end.
struct Wire {
    delay: u64,
    flight: Flight,
}

impl Wire {
    /// Returns the time of arrival.
    #[inline]
    fn take_off(&mut self, now: u64, departure: u64, ticket: Ticket) -> u64 {
        let landing = departure.saturating_add(self.delay);
        self.flight.push_in_order(landing, now, ticket)
    }

    /// Returns the time of arrival.
    fn take_off_with(&mut self, now: u64, departure: u64, ticket: Ticket, lag: Lag) -> u64 {
        let delay = self.delay.saturating_add_signed(lag.jitter);
        let landing = departure.saturating_add(delay);
        match lag.reorder_delay {
            Some(longer) => self
                .flight
                .push_aside(landing.saturating_add(longer.get()), now, ticket),
            None if lag.may_overtake => self.flight.push_free(landing, now, ticket),
            None => self.flight.push_in_order(landing, now, ticket),
        }
    }
}

impl Link {
    pub(crate) fn new(id: LinkId, spec: &LinkSpec, streams: Streams, surroundings: Surroundings) -> Self {
        let origin = Origin::new(spec.clone(), streams, surroundings);
        Self {
            wire: Wire {
                delay: spec.delay.as_nanos(),
                flight: Flight::new(),
            },
            queue: origin.queue(spec, streams),
            rate: LinkRate::new(&spec.capacity),
            size_limit: size_limit(spec),
            id,
            impairments: Impairments::new(spec, streams, origin.translator()),
            counters: LinkCounters::default(),
            meter: Meter::default(),
            crossing: None,
            origin: Box::new(origin),
        }
    }

    /// Returns the shared buffer of the queue.
    pub(crate) const fn pool(&self) -> Option<&BufferPool> {
        self.origin.pool()
    }

    /// Starts the times of the address translator at `epoch`.
    pub(crate) fn restart_translator(&self, epoch: u64) {
        if let Some(translator) = self.origin.translator() {
            translator.restart(epoch);
        }
    }

    /// Returns the current specification.
    pub(crate) const fn spec(&self) -> &LinkSpec {
        self.origin.spec()
    }

    /// Returns the counters at `now`.
    pub(crate) fn counters(&self, now: u64) -> LinkCounters {
        let mut counters = self.counters;
        if let Some(crossing) = &self.crossing {
            counters.delivered = counters.delivered - crossing.after(now);
        }
        counters
    }

    /// Makes [`counters`](Self::counters) exact for packets that [`cross`](Self::cross) the link.
    pub(crate) fn count_exactly(&mut self) {
        self.crossing = Some(Crossing::default());
    }

    /// Returns the queue length at `now`, the packet in transmission included.
    pub(crate) fn length(&self, now: u64) -> Count {
        match &self.queue {
            Queue::DropTail(queue) => queue.length(now),
            Queue::Active(queue) => queue.length(now),
        }
    }

    /// Returns the time integrals of queue length and busy time up to `now`.
    pub(crate) fn occupancy(&self, now: u64) -> Occupancy {
        match &self.queue {
            Queue::DropTail(queue) => queue.occupancy(now, &self.meter),
            Queue::Active(queue) => queue.occupancy(now, &self.meter),
        }
    }

    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(crate) const fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// Returns the packet that probably arrives next: a link can reorder packets.
    #[inline]
    pub(crate) fn front(&self) -> Option<Ticket> {
        self.wire.flight.front()
    }

    /// Returns the time of the next event of the link.
    #[inline]
    pub(crate) fn due(&self) -> DueTime {
        let landing = self.wire.flight.first_due();
        match &self.queue {
            Queue::DropTail(_) => landing,
            Queue::Active(queue) => landing.min(queue.due()),
        }
    }

    /// Accepts a packet at the near end.
    #[inline]
    pub(crate) fn enter<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        ticket: Ticket,
        store: &mut PacketStore<B, O>,
    ) {
        self.counters.entered.add(ticket.size);
        store.observe(ticket, |observer, packet| {
            observer.entered(Instant::from_nanos(now), self.id, packet);
        });
        if self.impairments.is_some() {
            return self.enter_impaired(now, ticket, store);
        }
        if ticket.size >= self.size_limit {
            return self.refuse(now, ticket, store);
        }
        if let Queue::DropTail(queue) = &mut self.queue {
            let start = queue.busy_until().max(now);
            match queue.join(
                now,
                now,
                ticket.size,
                &mut self.rate,
                &mut self.meter,
                &mut self.counters,
            ) {
                Some(departure) => {
                    let arrival = self.wire.take_off(now, departure, ticket);
                    let times = [now, start, departure, arrival];
                    store.observe_schedule(now, self.id, times, ticket);
                }
                None => self.drop(now, DropReason::Queue, ticket, store),
            }
        } else {
            self.join(now, ticket, Lag::default(), store);
        }
    }

    /// Accepts a packet that joins at `now`, possibly in the future, and returns its arrival time at the far end; `None` if the
    /// link drops it. The link has a drop-tail queue and no impairments, and it has no other way to deliver this packet.
    #[inline]
    pub(crate) fn cross<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        ticket: Ticket,
        store: &mut PacketStore<B, O>,
    ) -> Option<u64> {
        self.counters.entered.add(ticket.size);
        if ticket.size >= self.size_limit {
            self.refuse(now, ticket, store);
            return None;
        }
        let Queue::DropTail(queue) = &mut self.queue else {
            unreachable!("packets cross links with drop-tail queues only");
        };
        let departure = queue.join(
            now,
            now,
            ticket.size,
            &mut self.rate,
            &mut self.meter,
            &mut self.counters,
        );
        let Some(departure) = departure else {
            self.drop(now, DropReason::Queue, ticket, store);
            return None;
        };
        let arrival = departure.saturating_add(self.wire.delay);
        self.counters.delivered.add(ticket.size);
        if let Some(crossing) = &mut self.crossing {
            crossing.add(now, arrival, ticket.size);
        }
        Some(arrival)
    }

    fn enter_impaired<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        ticket: Ticket,
        store: &mut PacketStore<B, O>,
    ) {
        let fate = self
            .impairments
            .as_mut()
            .map(|all| all.next())
            .unwrap_or_default();
        if ticket.size >= self.size_limit {
            return self.refuse(now, ticket, store);
        }
        if let Some(translator) = self.impairments.as_ref().and_then(|all| all.translator())
            && let Some(connection) = store.connection(ticket)
        {
            let Some(external) = translator.pass(now, &connection, store.external(ticket)) else {
                return self.drop(now, DropReason::Nat, ticket, store);
            };
            store.translate(ticket, external);
        }
        if fate.lost {
            return self.drop(now, DropReason::Loss, ticket, store);
        }
        // The copy is made first, so that it stays intact if the original is corrupted.
        let copy = if fate.duplicated {
            store.duplicate(ticket)
        } else {
            None
        };
        if let Some(choice) = fate.corrupted {
            store.flip_bit(ticket, choice);
            self.counters.corrupted.add(ticket.size);
            store.observe(ticket, |observer, packet| {
                observer.corrupted(Instant::from_nanos(now), self.id, packet);
            });
        }
        self.join(now, ticket, fate.lag, store);
        if let Some(copy) = copy {
            self.counters.duplicated.add(copy.size);
            store.observe(copy, |observer, packet| {
                observer.duplicated(Instant::from_nanos(now), self.id, packet);
            });
            self.join(now, copy, fate.lag, store);
        }
    }

    /// Drops a packet while the link is down, or one larger than the MTU, like a router that may not fragment it (RFC 1191,
    /// section 4).
    #[cold]
    fn refuse<B: Body, O: Observer<B>>(&mut self, now: u64, ticket: Ticket, store: &mut PacketStore<B, O>) {
        if self.is_down() {
            return self.drop(now, DropReason::Outage, ticket, store);
        }
        self.counters.add_drop(DropReason::Mtu, ticket.size);
        store.drop_too_big(now, self.id, self.size_limit - 1, ticket);
    }

    /// Adds a packet to the queue.
    fn join<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        ticket: Ticket,
        lag: Lag,
        store: &mut PacketStore<B, O>,
    ) {
        self.add(now, now, ticket, lag, store);
        self.send(now, store);
    }

    /// Adds a packet that has waited since `since` to the queue.
    fn add<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        since: u64,
        ticket: Ticket,
        lag: Lag,
        store: &mut PacketStore<B, O>,
    ) {
        match &mut self.queue {
            Queue::DropTail(queue) => {
                let start = queue.busy_until().max(now);
                match queue.join(
                    now,
                    since,
                    ticket.size,
                    &mut self.rate,
                    &mut self.meter,
                    &mut self.counters,
                ) {
                    Some(departure) => {
                        let arrival = self.wire.take_off_with(since, departure, ticket, lag);
                        let times = [since, start, departure, arrival];
                        store.observe_schedule(now, self.id, times, ticket);
                    }
                    None => self.drop(now, DropReason::Queue, ticket, store),
                }
            }
            Queue::Active(queue) => {
                let (route, flow) = store.route_and_flow(ticket);
                let arriving = QueuedPacket {
                    since: Instant::from_nanos(since),
                    route,
                    flow,
                    ticket,
                    lag,
                };
                let mut actions = Executor {
                    now,
                    link: self.id,
                    rate: &mut self.rate,
                    counters: &mut self.counters,
                    store,
                };
                queue.join(arriving, &mut self.meter, &mut actions);
            }
        }
    }

    /// Starts transmission of the next waiting packet if the link is idle. A drop-tail queue has done so.
    fn send<B: Body, O: Observer<B>>(&mut self, now: u64, store: &mut PacketStore<B, O>) {
        if let Queue::Active(queue) = &mut self.queue {
            let mut actions = Executor {
                now,
                link: self.id,
                rate: &mut self.rate,
                counters: &mut self.counters,
                store,
            };
            queue.send(&mut self.wire, &mut self.meter, &mut actions);
        }
    }

    /// Processes the event due at `now`. Returns the packet that arrives; `None` if a queued packet starts transmission.
    #[inline]
    pub(crate) fn advance<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        store: &mut PacketStore<B, O>,
    ) -> Option<Ticket> {
        if let Queue::Active(queue) = &self.queue
            && queue.due() < self.wire.flight.first_due()
        {
            self.send(now, store);
            return None;
        }
        let (ticket, overtaken) = self.wire.flight.pop()?;
        if store.is_requested(ticket) {
            self.drop(now, DropReason::Requested, ticket, store);
            return None;
        }
        self.counters.delivered.add(ticket.size);
        if overtaken {
            self.counters.reordered.add(ticket.size);
        }
        store.observe(ticket, |observer, packet| {
            observer.left(Instant::from_nanos(now), self.id, packet);
        });
        Some(ticket)
    }

    #[cold]
    fn drop<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        reason: DropReason,
        ticket: Ticket,
        store: &mut PacketStore<B, O>,
    ) {
        self.counters.add_drop(reason, ticket.size);
        store.drop(now, self.id, reason, ticket);
    }
}
