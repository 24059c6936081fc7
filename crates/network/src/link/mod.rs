//! One link: what reaches its near end leaves its far end later, or not at all.

mod counters;
mod flight;
mod held;
pub(crate) mod pace;

use std::mem;

use foundation::{Instant, Streams};

use crate::calendar::Due;
use crate::config::LinkSpec;
use crate::impairment::{Impairments, Lag};
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId, Packet};
use crate::queue::QueueConfig;
use crate::queue::drop_tail::DropTail;

use flight::Flight;
use held::Held;
use pace::Pace;

pub use counters::{Count, LinkCounters};

/// A link in one direction.
pub(crate) struct Link<B> {
    queue: Queue<B>,
    pace: Pace,
    wire: Wire<B>,
    mtu: u32,
    impairments: Option<Box<Impairments>>,
    counters: LinkCounters,
    id: LinkId,
}

/// What stands between the link's near end and its wire.
enum Queue<B> {
    /// The departure of a packet is known when it joins.
    DropTail(DropTail),
    /// Packets wait until the discipline lets them go.
    Held(Box<Held<B>>),
}

/// The way from the queue to the far end.
struct Wire<B> {
    delay: u64,
    flight: Flight<B>,
}

impl<B> Wire<B> {
    #[inline]
    fn take_off(&mut self, departure: u64, sequence: u64, packet: Packet<B>) {
        let landing = departure.saturating_add(self.delay);
        self.flight.push_in_order(landing, sequence, packet);
    }

    fn take_off_with(&mut self, departure: u64, sequence: u64, packet: Packet<B>, lag: Lag) {
        let delay = self.delay.saturating_add_signed(lag.jitter);
        let landing = departure.saturating_add(delay);
        match lag.held_back {
            Some(longer) => self
                .flight
                .push_aside(landing.saturating_add(longer), sequence, packet),
            None if lag.free => self.flight.push_free(landing, sequence, packet),
            None => self.flight.push_in_order(landing, sequence, packet),
        }
    }
}

impl<B: Body> Link<B> {
    pub(crate) fn new(id: LinkId, spec: &LinkSpec, streams: Streams) -> Self
    where
        B: Send + 'static,
    {
        let queue = match (&spec.queue, spec.queue.discipline(streams)) {
            (_, Some(discipline)) => Queue::Held(Box::new(Held::new(discipline))),
            (QueueConfig::DropTail(config), None) => Queue::DropTail(DropTail::new(config.limit)),
            (_, None) => Queue::DropTail(DropTail::new(crate::queue::QueueLimit::default())),
        };
        Self {
            queue,
            pace: Pace::new(&spec.capacity),
            wire: Wire {
                delay: spec.delay.as_nanos(),
                flight: Flight::new(),
            },
            mtu: spec.mtu.unwrap_or(u32::MAX),
            impairments: Impairments::new(spec, streams),
            counters: LinkCounters::default(),
            id,
        }
    }

    pub(crate) const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Packets that wait or fly.
    pub(crate) fn holds(&self) -> usize {
        let waiting = match &self.queue {
            Queue::DropTail(_) => 0,
            Queue::Held(held) => held.waiting(),
        };
        waiting + self.wire.flight.len()
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
    pub(crate) fn enter<O: Observer<B>>(
        &mut self,
        now: u64,
        sequence: &mut u64,
        packet: Packet<B>,
        observer: &mut O,
    ) {
        self.counters.entered.add(packet.size);
        observer.entered(Instant::from_nanos(now), self.id, &packet);
        if self.impairments.is_some() {
            return self.enter_impaired(now, sequence, packet, observer);
        }
        if packet.size > self.mtu {
            return self.drop(now, DropReason::Mtu, &packet, observer);
        }
        if let Queue::DropTail(queue) = &mut self.queue {
            match queue.join(now, packet.size, &mut self.pace, &mut self.counters) {
                Some(departure) => {
                    *sequence += 1;
                    self.wire.take_off(departure, *sequence, packet);
                }
                None => self.drop(now, DropReason::Queue, &packet, observer),
            }
        } else {
            self.join(now, sequence, packet, Lag::default(), observer);
        }
    }

    fn enter_impaired<O: Observer<B>>(
        &mut self,
        now: u64,
        sequence: &mut u64,
        mut packet: Packet<B>,
        observer: &mut O,
    ) {
        let fate = self
            .impairments
            .as_mut()
            .map(|all| all.next())
            .unwrap_or_default();
        if packet.size > self.mtu {
            return self.drop(now, DropReason::Mtu, &packet, observer);
        }
        if fate.lost {
            return self.drop(now, DropReason::Loss, &packet, observer);
        }
        // The copy is made first: it stays whole where the original is corrupted.
        let copy = fate.duplicated.then(|| packet.clone());
        if let Some(choice) = fate.corrupted {
            packet.body.flip_bit(choice);
            self.counters.corrupted.add(packet.size);
            observer.corrupted(Instant::from_nanos(now), self.id, &packet);
        }
        self.join(now, sequence, packet, fate.lag, observer);
        if let Some(copy) = copy {
            self.counters.duplicated.add(copy.size);
            observer.duplicated(Instant::from_nanos(now), self.id, &copy);
            self.join(now, sequence, copy, fate.lag, observer);
        }
    }

    /// A packet joins the queue.
    fn join<O: Observer<B>>(
        &mut self,
        now: u64,
        sequence: &mut u64,
        packet: Packet<B>,
        lag: Lag,
        observer: &mut O,
    ) {
        match &mut self.queue {
            Queue::DropTail(queue) => {
                match queue.join(now, packet.size, &mut self.pace, &mut self.counters) {
                    Some(departure) => {
                        *sequence += 1;
                        self.wire.take_off_with(departure, *sequence, packet, lag);
                    }
                    None => self.drop(now, DropReason::Queue, &packet, observer),
                }
            }
            Queue::Held(held) => {
                held.join(now, packet, lag, &mut self.counters);
                held.send(now, sequence, &mut self.pace, &mut self.wire);
                self.drop_chosen(now, observer);
            }
        }
    }

    /// Does what is due at `now`: gives the packet that lands then; `None` where instead a waiting packet is sent.
    #[inline]
    pub(crate) fn advance<O: Observer<B>>(
        &mut self,
        now: u64,
        sequence: &mut u64,
        observer: &mut O,
    ) -> Option<Packet<B>> {
        if let Queue::Held(held) = &mut self.queue
            && held.due() < self.wire.flight.first_due()
        {
            held.send(now, sequence, &mut self.pace, &mut self.wire);
            self.drop_chosen(now, observer);
            return None;
        }
        let (packet, overtaken) = self.wire.flight.pop()?;
        self.counters.delivered.add(packet.size);
        if overtaken {
            self.counters.reordered.add(packet.size);
        }
        observer.left(Instant::from_nanos(now), self.id, &packet);
        Some(packet)
    }

    /// Counts and shows what the discipline has dropped.
    fn drop_chosen<O: Observer<B>>(&mut self, now: u64, observer: &mut O) {
        let Queue::Held(held) = &mut self.queue else {
            return;
        };
        let mut dropped = mem::take(&mut held.dropped);
        for waiting in dropped.drain(..) {
            self.drop(now, DropReason::Queue, &waiting.packet, observer);
        }
        if let Queue::Held(held) = &mut self.queue {
            held.dropped = dropped;
        }
    }

    #[cold]
    fn drop<O: Observer<B>>(&mut self, now: u64, reason: DropReason, packet: &Packet<B>, observer: &mut O) {
        self.counters.add_drop(reason, packet.size);
        observer.dropped(Instant::from_nanos(now), self.id, reason, packet);
    }
}
