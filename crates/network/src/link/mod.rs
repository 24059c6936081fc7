//! One link: what reaches its near end leaves its far end later, or not at all.

mod counters;
mod flight;
mod held;
pub(crate) mod pace;

use foundation::{Instant, Streams};

use crate::calendar::Due;
use crate::cargo::{Cargo, Ticket};
use crate::config::LinkSpec;
use crate::impairment::{Impairments, Lag};
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId};
use crate::queue::DropTail as DropTailConfig;
use crate::queue::drop_tail::DropTail;

use flight::Flight;
use held::Held;
use pace::Pace;

pub use counters::{Count, LinkCounters};

/// A link in one direction.
pub(crate) struct Link {
    wire: Wire,
    queue: Queue,
    pace: Pace,
    mtu: u32,
    id: LinkId,
    impairments: Option<Box<Impairments>>,
    counters: LinkCounters,
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
                .push_aside(landing.saturating_add(longer), sequence, ticket),
            None if lag.free => self.flight.push_free(landing, sequence, ticket),
            None => self.flight.push_in_order(landing, sequence, ticket),
        }
    }
}

impl Link {
    pub(crate) fn new(id: LinkId, spec: &LinkSpec, streams: Streams) -> Self {
        let queue = match spec.queue.discipline(streams) {
            Ok(discipline) => Queue::Held(Box::new(Held::new(discipline))),
            Err(DropTailConfig { limit }) => Queue::DropTail(DropTail::new(limit)),
        };
        Self {
            wire: Wire {
                delay: spec.delay.as_nanos(),
                flight: Flight::new(),
            },
            queue,
            pace: Pace::new(&spec.capacity),
            mtu: spec.mtu.unwrap_or(u32::MAX),
            id,
            impairments: Impairments::new(spec, streams),
            counters: LinkCounters::default(),
        }
    }

    pub(crate) const fn counters(&self) -> &LinkCounters {
        &self.counters
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
            return self.drop(now, DropReason::Mtu, ticket, cargo);
        }
        if let Queue::DropTail(queue) = &mut self.queue {
            match queue.join(now, ticket.size, &mut self.pace, &mut self.counters) {
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
            return self.drop(now, DropReason::Mtu, ticket, cargo);
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

    /// A packet joins the queue.
    fn join<B: Body, O: Observer<B>>(&mut self, now: u64, ticket: Ticket, lag: Lag, cargo: &mut Cargo<B, O>) {
        match &mut self.queue {
            Queue::DropTail(queue) => {
                match queue.join(now, ticket.size, &mut self.pace, &mut self.counters) {
                    Some(departure) => self.wire.take_off_with(departure, cargo.sequence(), ticket, lag),
                    None => self.drop(now, DropReason::Queue, ticket, cargo),
                }
            }
            Queue::Held(held) => {
                held.join(now, cargo.route(ticket), ticket, lag, &mut self.counters);
                held.send(now, &mut self.pace, &mut self.wire, cargo);
                self.drop_chosen(now, cargo);
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
            held.send(now, &mut self.pace, &mut self.wire, cargo);
            self.drop_chosen(now, cargo);
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

    /// Counts and shows what the discipline has dropped.
    fn drop_chosen<B: Body, O: Observer<B>>(&mut self, now: u64, cargo: &mut Cargo<B, O>) {
        let Queue::Held(held) = &mut self.queue else {
            return;
        };
        for waiting in held.dropped.drain(..) {
            self.counters.add_drop(DropReason::Queue, waiting.size());
            cargo.drop(now, self.id, DropReason::Queue, waiting.ticket);
        }
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
