//! Changes of a link while packets are on it.

use std::num::NonZeroU64;

use foundation::{Instant, Streams};

use super::active_queue::ActiveQueue;
use super::flight::Withdrawn;
use super::link_rate::LinkRate;
use super::{Link, Queue, size_limit};
use crate::config::LinkSpec;
use crate::impairment::{Impairments, Lag};
use crate::medium::Sharing;
use crate::nat::Translator;
use crate::observer::Observer;
use crate::packet::Body;
use crate::packet_store::{PacketStore, Ticket};
use crate::queue::drop_tail::DropTail;
use crate::queue::shared_buffer::BufferPool;
use crate::queue::{QueueConfig, QueueContext, RouteHosts};

/// The specification of a link and the source of random streams for its changes.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    spec: LinkSpec,
    streams: Streams,
    /// Number of changes so far.
    changes: u64,
    surroundings: Surroundings,
}

/// The parts of the network that a queue shares with others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// The shared buffer that contains it.
    pub(crate) pool: Option<BufferPool>,
    pub(crate) hosts: RouteHosts,
    /// The address translator of both directions.
    pub(crate) translator: Option<Translator>,
    /// The other users of its medium.
    pub(crate) sharing: Sharing,
}

impl Origin {
    pub(super) const fn new(spec: LinkSpec, streams: Streams, surroundings: Surroundings) -> Self {
        Self {
            spec,
            streams,
            changes: 0,
            surroundings,
        }
    }

    pub(super) const fn pool(&self) -> Option<&BufferPool> {
        self.surroundings.pool.as_ref()
    }

    /// Returns an empty queue.
    pub(super) fn queue(&self, spec: &LinkSpec, streams: Streams) -> Queue {
        let context = QueueContext {
            rate: spec.capacity.mean_rate(),
            streams,
            hosts: self.surroundings.hosts.clone(),
        };
        let own = self.surroundings.sharing.discipline(spec, &context);
        let discipline = match &self.surroundings.pool {
            Some(pool) => Some(pool.member(own.unwrap_or_else(|| spec.queue.discipline_or_tail(&context)))),
            None => own.or_else(|| spec.queue.discipline(&context)),
        };
        match discipline {
            Some(discipline) => Queue::Active(Box::new(ActiveQueue::new(discipline))),
            None => Queue::DropTail(DropTail::new(spec.queue.limit())),
        }
    }

    pub(super) const fn translator(&self) -> Option<&Translator> {
        self.surroundings.translator.as_ref()
    }

    pub(super) const fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Returns the random streams of another queue.
    pub(super) fn next_streams(&mut self) -> Streams {
        self.changes += 1;
        self.streams.component(&format!("change/{}", self.changes))
    }
}

/// A packet that leaves its queue before its transmission.
pub(super) struct Moved {
    since: u64,
    pub(super) ticket: Ticket,
    lag: Lag,
}

impl Link {
    /// Applies `spec` at `now`. The packets of a queue whose kind or settings change move to the new one in the order in which
    /// they joined, as if they arrived there; without such a change, packets already accepted leave as scheduled, and later packets
    /// stay behind them. Changed random impairments draw from new streams for each change.
    pub(crate) fn change<B: Body, O: Observer<B>>(
        &mut self,
        now: u64,
        spec: &LinkSpec,
        store: &mut PacketStore<B, O>,
    ) {
        let before = self.origin.spec.clone();
        let changes = self.origin.changes + 1;
        let streams = self.origin.streams.component(&format!("change/{changes}"));
        let moved = self.change_queue(now, &before, spec, streams);
        if before.capacity != spec.capacity || moved.is_some() {
            self.rate = LinkRate::after(&spec.capacity, self.queue.last_departure().0);
            if let (Queue::DropTail(queue), LinkRate::Unlimited) = (&mut self.queue, &self.rate) {
                queue.fix();
            }
        }
        let translator = self.origin.translator();
        self.impairments = Impairments::changed(self.impairments.take(), &before, spec, streams, translator);
        self.wire.delay = spec.delay.as_nanos();
        if !self.is_down() {
            self.size_limit = size_limit(spec);
        }
        self.origin.spec = spec.clone();
        self.origin.changes = changes;
        for Moved { since, ticket, lag } in moved.into_iter().flatten() {
            store.observe(ticket, |observer, packet| {
                observer.requeued(Instant::from_nanos(now), self.id, packet);
            });
            self.add(now, since, ticket, lag, store);
        }
        self.send(now, store);
    }

    /// Changes the queue. Returns the packets that waited if there is another one.
    fn change_queue(
        &mut self,
        now: u64,
        before: &LinkSpec,
        spec: &LinkSpec,
        streams: Streams,
    ) -> Option<Vec<Moved>> {
        let is_shared = before.capacity.is_shared() || spec.capacity.is_shared();
        let same_medium = !is_shared || before.capacity == spec.capacity;
        if before.queue == spec.queue && same_medium {
            return None;
        }
        if let (Queue::DropTail(queue), QueueConfig::DropTail(_), true) =
            (&mut self.queue, &spec.queue, same_medium)
        {
            queue.set_limit(spec.queue.limit());
            return None;
        }
        let moved = self.withdraw(now);
        let (free, size) = self.queue.last_departure();
        self.queue = self.origin.queue(spec, streams).after(now, free, size);
        Some(moved)
    }

    /// Removes the packets whose transmission has not started.
    pub(super) fn withdraw(&mut self, now: u64) -> Vec<Moved> {
        match &mut self.queue {
            Queue::DropTail(queue) => {
                let times = queue.withdraw(now);
                // They are the last ones in flight.
                let flying = self.wire.flight.withdraw(now, times.len() as u32);
                let joined = flying.iter().map(|packet| packet.since);
                let times = joined
                    .zip(times)
                    .map(|(joined, [start, end])| [joined, start, end]);
                let times: Vec<[u64; 3]> = times.collect();
                self.meter.withdraw_packets(now, times.iter().copied());
                let delay = self.wire.delay;
                let moved = flying.into_iter().zip(times);
                moved
                    .map(|(packet, [since, _, departure])| Moved {
                        since,
                        ticket: packet.ticket,
                        lag: lag(&packet, departure.saturating_add(delay)),
                    })
                    .collect()
            }
            Queue::Active(queue) => {
                let waiting = queue.withdraw(now, &mut self.meter).into_iter();
                let moved = waiting.map(|packet| Moved {
                    since: packet.since.as_nanos(),
                    ticket: packet.ticket,
                    lag: packet.lag,
                });
                moved.collect()
            }
        }
    }
}

/// Returns the deviation of a packet's arrival from the time without one.
fn lag(packet: &Withdrawn, expected: u64) -> Lag {
    let jitter = packet.arrival.wrapping_sub(expected) as i64;
    let reorder_delay = NonZeroU64::new(jitter.max(0) as u64).filter(|_| packet.is_straggler);
    Lag {
        jitter: if reorder_delay.is_some() { 0 } else { jitter },
        may_overtake: packet.is_straggler,
        reorder_delay,
    }
}

impl Queue {
    /// Continues after another queue, which finishes sending a packet of `size` bytes at `free`.
    pub(super) fn after(self, now: u64, free: u64, size: u32) -> Self {
        match self {
            _ if free <= now => self,
            Self::DropTail(queue) => Self::DropTail(queue.after(free, size)),
            Self::Active(queue) => Self::Active(Box::new(queue.after(now, free, size))),
        }
    }

    /// Returns the end of the last known transmission, and the bytes of its packet.
    pub(super) fn last_departure(&self) -> (u64, u32) {
        match self {
            Self::DropTail(queue) => (queue.busy_until(), queue.last_size()),
            Self::Active(queue) => (queue.busy_until(), queue.last_size()),
        }
    }
}
