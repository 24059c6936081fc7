//! One link: what reaches its near end leaves its far end later, or not at all.

mod change;
mod counters;
mod flight;
mod held;
pub(crate) mod meter;
pub(crate) mod pace;
mod verdicts;

use foundation::{Instant, Streams};

use crate::calendar::Due;
use crate::cargo::{Cargo, Ticket};
use crate::config::LinkSpec;
use crate::impairment::{Impairments, Lag};
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId};
use crate::queue::drop_tail::DropTail;
use crate::queue::{Place, Waiting};

use change::Origin;
use flight::Flight;
use held::Held;
use meter::Meter;
use pace::Pace;
use verdicts::Executor;

pub use change::QueueInUse;
pub use counters::{Count, LinkCounters};
pub use meter::Occupancy;

/// A link in one direction.
pub(crate) struct Link {
    wire: Wire,
    queue: Queue,
    pace: Pace,
    mtu: u32,
    id: LinkId,
    impairments: Option<Box<Impairments>>,
    counters: LinkCounters,
    meter: Meter,
    origin: Box<Origin>,
}

/// What stands between the link's near end and its wire.
enum Queue {
    /// The departure of a packet is known when it joins.
    DropTail(DropTail),
    /// Packets wait until the discipline lets them go.
    Held(Box<Held>),
}

/// The way from the queue to the far end.
struct Wire {
    delay: u64,
    flight: Flight,
}

impl Wire {
    #[inline]
    fn take_off(&mut self, departure: u64, sequence: u64, ticket: Ticket) {
        let landing = departure.saturating_add(self.delay);
        self.flight.push_in_order(landing, sequence, ticket);
    }

    fn take_off_with(&mut self, departure: u64, sequence: u64, ticket: Ticket, lag: Lag) {
        let delay = self.delay.saturating_add_signed(lag.jitter);
        let landing = departure.saturating_add(delay);
        match lag.held_back {
            Some(longer) => self
                .flight
                .push_aside(landing.saturating_add(longer.get()), sequence, ticket),
            None if lag.free => self.flight.push_free(landing, sequence, ticket),
            None => self.flight.push_in_order(landing, sequence, ticket),
        }
    }
}

impl Link {
    pub(crate) fn new(id: LinkId, spec: &LinkSpec, streams: Streams) -> Self {
        let place = Place {
            rate: spec.capacity.mean_rate(),
            streams,
        };
        Self {
            wire: Wire {
                delay: spec.delay.as_nanos(),
                flight: Flight::new(),
            },
            queue: Queue::new(&spec.queue, &place),
            pace: Pace::new(&spec.capacity),
            mtu: spec.mtu.unwrap_or(u32::MAX),
            id,
            impairments: Impairments::new(spec, streams),
            counters: LinkCounters::default(),
            meter: Meter::default(),
            origin: Box::new(Origin::new(spec.clone(), streams)),
        }
    }

    /// What it is asked to be.
    pub(crate) const fn spec(&self) -> &LinkSpec {
        self.origin.spec()
    }

    pub(crate) const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What waits at `now` or is being sent.
    pub(crate) fn length(&self, now: u64) -> Count {
        match &self.queue {
            Queue::DropTail(queue) => queue.length(now),
            Queue::Held(held) => held.length(now),
        }
    }

    /// The queue and the link's use, summed up to `now`.
    pub(crate) fn occupancy(&self, now: u64) -> Occupancy {
        match &self.queue {
            Queue::DropTail(queue) => queue.occupancy(now, &self.meter),
            Queue::Held(held) => held.occupancy(now, &self.meter),
        }
    }

    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(crate) const fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// When the link next has something to do.
    #[inline]
    pub(crate) fn due(&self) -> Due {
        let landing = self.wire.flight.first_due();
        match &self.queue {
            Queue::DropTail(_) => landing,
            Queue::Held(held) => landing.min(held.due()),
        }
    }

    /// A packet reaches the near end.
    #[inline]
    pub(crate) fn enter<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        ticket: Ticket,
        cargo: &mut Cargo<B, O>,
    ) {
        self.counters.entered.add(ticket.size);
        cargo.show(ticket, |observer, packet| {
            observer.entered(Instant::from_nanos(now), self.id, packet);
        });
        if self.impairments.is_some() {
            return self.enter_impaired(now, ticket, cargo);
        }
        if ticket.size > self.mtu {
            return self.refuse(now, ticket, cargo);
        }
        if let Queue::DropTail(queue) = &mut self.queue {
            match queue.join(
                now,
                ticket.size,
                &mut self.pace,
                &mut self.meter,
                &mut self.counters,
            ) {
                Some(departure) => self.wire.take_off(departure, cargo.sequence(), ticket),
                None => self.drop(now, DropReason::Queue, ticket, cargo),
            }
        } else {
            self.join(now, ticket, Lag::default(), cargo);
        }
    }

    fn enter_impaired<B: Body, O: Observer<B>>(&mut self, now: u64, ticket: Ticket, cargo: &mut Cargo<B, O>) {
        let fate = self
            .impairments
            .as_mut()
            .map(|all| all.next())
            .unwrap_or_default();
        if ticket.size > self.mtu {
            return self.refuse(now, ticket, cargo);
        }
        if fate.lost {
            return self.drop(now, DropReason::Loss, ticket, cargo);
        }
        // The copy is made first: it stays whole where the original is corrupted.
        let copy = if fate.duplicated {
            cargo.duplicate(ticket)
        } else {
            None
        };
        if let Some(choice) = fate.corrupted {
            cargo.flip_bit(ticket, choice);
            self.counters.corrupted.add(ticket.size);
            cargo.show(ticket, |observer, packet| {
                observer.corrupted(Instant::from_nanos(now), self.id, packet);
            });
        }
        self.join(now, ticket, fate.lag, cargo);
        if let Some(copy) = copy {
            self.counters.duplicated.add(copy.size);
            cargo.show(copy, |observer, packet| {
                observer.duplicated(Instant::from_nanos(now), self.id, packet);
            });
            self.join(now, copy, fate.lag, cargo);
        }
    }

    /// Drops a packet that is larger than the MTU, as a router does that may not fragment it (RFC 1191, section 4).
    #[cold]
    fn refuse<B: Body, O: Observer<B>>(&mut self, now: u64, ticket: Ticket, cargo: &mut Cargo<B, O>) {
        self.counters.add_drop(DropReason::Mtu, ticket.size);
        cargo.refuse(now, self.id, self.mtu, ticket);
    }

    /// A packet joins the queue.
    fn join<B: Body, O: Observer<B>>(&mut self, now: u64, ticket: Ticket, lag: Lag, cargo: &mut Cargo<B, O>) {
        match &mut self.queue {
            Queue::DropTail(queue) => {
                match queue.join(
                    now,
                    ticket.size,
                    &mut self.pace,
                    &mut self.meter,
                    &mut self.counters,
                ) {
                    Some(departure) => self.wire.take_off_with(departure, cargo.sequence(), ticket, lag),
                    None => self.drop(now, DropReason::Queue, ticket, cargo),
                }
            }
            Queue::Held(held) => {
                let (route, flow) = cargo.route_and_flow(ticket);
                let arriving = Waiting {
                    since: Instant::from_nanos(now),
                    route,
                    flow,
                    ticket,
                    lag,
                };
                let mut verdicts = Executor {
                    now,
                    link: self.id,
                    counters: &mut self.counters,
                    cargo,
                };
                held.join(arriving, &mut self.meter, &mut verdicts);
                held.send(&mut self.pace, &mut self.wire, &mut self.meter, &mut verdicts);
            }
        }
    }

    /// Does what is due at `now`: gives the packet that lands then; `None` where instead a waiting packet is sent.
    #[inline]
    pub(crate) fn advance<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        cargo: &mut Cargo<B, O>,
    ) -> Option<Ticket> {
        if let Queue::Held(held) = &mut self.queue
            && held.due() < self.wire.flight.first_due()
        {
            let mut verdicts = Executor {
                now,
                link: self.id,
                counters: &mut self.counters,
                cargo,
            };
            held.send(&mut self.pace, &mut self.wire, &mut self.meter, &mut verdicts);
            return None;
        }
        let (ticket, overtaken) = self.wire.flight.pop()?;
        self.counters.delivered.add(ticket.size);
        if overtaken {
            self.counters.reordered.add(ticket.size);
        }
        cargo.show(ticket, |observer, packet| {
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
        cargo: &mut Cargo<B, O>,
    ) {
        self.counters.add_drop(reason, ticket.size);
        cargo.drop(now, self.id, reason, ticket);
    }
}
