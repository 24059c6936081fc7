//! A queue whose packets wait until its discipline lets them go.
//!
//! The link looks at it when a packet joins and when the packet before has been sent, so a packet that
//! has to wait costs one event more than with drop-tail.

use foundation::{Duration, Instant};

use super::verdicts::Executor;
use crate::calendar::Due;
use crate::link::meter::{Meter, Occupancy};
use crate::link::pace::Pace;
use crate::link::{Count, Wire};
use crate::observer::Observer;
use crate::packet::Body;
use crate::queue::{Discipline, Line, Waiting};

/// A discipline, and the packet that is being sent.
pub(crate) struct Held {
    discipline: Box<dyn Discipline + Send>,
    /// What waits in it, remembered because it is asked for more often than it changes.
    waiting: Count,
    /// When the packet that is being sent, or was last, has been sent; with the sequence number that it took.
    free: Due,
    /// Its size.
    sending: u32,
    /// Until when the meter knows of the packets that wait.
    metered: u64,
}

impl Held {
    pub(crate) fn new(discipline: Box<dyn Discipline + Send>) -> Self {
        Self {
            discipline,
            waiting: Count::default(),
            free: Due::new(0, 0),
            sending: 0,
            metered: 0,
        }
    }

    /// When the packet that is being sent, or was last, has been sent.
    pub(crate) const fn busy_until(&self) -> u64 {
        self.free.nanos()
    }

    /// When the next waiting packet can be sent.
    #[inline]
    pub(crate) fn due(&self) -> Due {
        if self.waiting.packets == 0 {
            return Due::NEVER;
        }
        self.free
    }

    /// A packet joins those that wait.
    pub(super) fn join<B: Body, O: Observer<B>>(
        &mut self,
        arriving: Waiting,
        meter: &mut Meter,
        verdicts: &mut Executor<'_, B, O>,
    ) {
        let now = verdicts.now;
        self.meter(now, meter);
        let line = Line {
            sending: self.sending(now),
            free: Instant::from_nanos(self.free.nanos()),
        };
        self.discipline.enqueue(arriving.since, arriving, &line, verdicts);
        self.waiting = self.discipline.waiting();
        let held = self.waiting + line.sending;
        verdicts.counters.saw_queue(held.packets, held.bytes);
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
    pub(super) fn send<B: Body, O: Observer<B>>(
        &mut self,
        pace: &mut Pace,
        wire: &mut Wire,
        meter: &mut Meter,
        verdicts: &mut Executor<'_, B, O>,
    ) {
        let now = verdicts.now;
        while self.waiting.packets > 0 && self.free.nanos() <= now {
            self.meter(now, meter);
            let next = self.discipline.dequeue(Instant::from_nanos(now), verdicts);
            self.waiting = self.discipline.waiting();
            let Some(next) = next else { return };
            // Asked as of when the packet joined: the link has been busy since, so it goes on without a gap.
            let joined = next.since.as_nanos();
            let departure = pace.departure(joined, next.size()).max(now);
            let sequence = verdicts.cargo.sequence();
            self.free = Due::new(departure, sequence);
            self.sending = next.size();
            meter.waited(now - joined);
            meter.sends(now, departure, next.size());
            wire.take_off_with(departure, sequence, next.ticket, next.lag);
        }
    }

    /// Tells the meter of the packets that have waited until now.
    fn meter(&mut self, now: u64, meter: &mut Meter) {
        meter.stand(self.waiting, now - self.metered);
        self.metered = now;
    }

    /// What waits or is being sent.
    pub(super) fn length(&self, now: u64) -> Count {
        self.waiting + self.sending(now)
    }

    /// The sums of the meter up to `now`.
    pub(super) fn occupancy(&self, now: u64, meter: &Meter) -> Occupancy {
        let left = self.free.nanos().saturating_sub(now);
        let mut sums = meter.without(&Occupancy {
            packet_nanos: u128::from(left),
            byte_nanos: u128::from(left) * u128::from(self.sending),
            busy: Duration::from_nanos(left),
        });
        let waiting = self.waiting;
        let unmetered = u128::from(now.saturating_sub(self.metered));
        sums.packet_nanos += u128::from(waiting.packets) * unmetered;
        sums.byte_nanos += u128::from(waiting.bytes) * unmetered;
        sums
    }
}
