//! A queue whose packets wait until its discipline lets them go.
//!
//! The link looks at it when a packet joins and when the packet before has been sent, so a packet that
//! has to wait costs one event more than with drop-tail.

use foundation::Instant;

use crate::calendar::Due;
use crate::cargo::{Cargo, Ticket};
use crate::impairment::Lag;
use crate::link::pace::Pace;
use crate::link::{Count, LinkCounters, Wire};
use crate::packet::RouteId;
use crate::queue::{Discipline, Waiting};

/// A discipline, and the packet that is being sent.
pub(crate) struct Held {
    discipline: Box<dyn Discipline + Send>,
    /// When the packet that is being sent, or was last, has been sent; with the sequence number that it took.
    free: Due,
    /// Its size.
    sending: u32,
    /// What the discipline has dropped since it was last asked for.
    pub(super) dropped: Vec<Waiting>,
}

impl Held {
    pub(crate) fn new(discipline: Box<dyn Discipline + Send>) -> Self {
        Self {
            discipline,
            free: Due::new(0, 0),
            sending: 0,
            dropped: Vec::new(),
        }
    }

    /// When the next waiting packet can be sent.
    pub(crate) fn due(&self) -> Due {
        if self.discipline.waiting().packets == 0 {
            return Due::NEVER;
        }
        self.free
    }

    /// A packet joins those that wait.
    pub(super) fn join(
        &mut self,
        now: u64,
        route: RouteId,
        ticket: Ticket,
        lag: Lag,
        counters: &mut LinkCounters,
    ) {
        let sending = self.sending(now);
        let since = Instant::from_nanos(now);
        let arriving = Waiting {
            since,
            route,
            ticket,
            lag,
        };
        self.discipline
            .enqueue(since, arriving, sending, &mut self.dropped);
        let waiting = self.discipline.waiting();
        counters.saw_queue(waiting.packets + sending.packets, waiting.bytes + sending.bytes);
    }

    fn sending(&self, now: u64) -> Count {
        if self.free.nanos() <= now {
            return Count::default();
        }
        Count {
            packets: 1,
            bytes: u64::from(self.sending),
        }
    }

    /// Sends the next waiting packet if none is being sent.
    pub(super) fn send<B, O>(&mut self, now: u64, pace: &mut Pace, wire: &mut Wire, cargo: &mut Cargo<B, O>) {
        while self.free.nanos() <= now {
            let next = self
                .discipline
                .dequeue(Instant::from_nanos(now), &mut self.dropped);
            let Some(next) = next else { return };
            // Asked as of when the packet joined: the link has been busy since, so it goes on without a gap.
            let departure = pace.departure(next.since.as_nanos(), next.size()).max(now);
            let sequence = cargo.sequence();
            self.free = Due::new(departure, sequence);
            self.sending = next.size();
            wire.take_off_with(departure, sequence, next.ticket, next.lag);
        }
    }
}
