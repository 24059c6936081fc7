//! A queue whose packets wait until its discipline lets them go.
//!
//! The link looks at it when a packet joins and when the packet before has been sent, so a packet that
//! has to wait costs one event more than with drop-tail.

use foundation::Instant;

use crate::calendar::Due;
use crate::impairment::Lag;
use crate::link::pace::Pace;
use crate::link::{Count, LinkCounters, Wire};
use crate::packet::Packet;
use crate::queue::{Discipline, Waiting};

/// A discipline, and the packet that is being sent.
pub(crate) struct Held<B> {
    discipline: Box<dyn Discipline<B>>,
    /// When the packet that is being sent, or was last, has been sent; with the sequence number that it took.
    free: Due,
    /// Its size.
    sending: u32,
    /// What the discipline has dropped since it was last asked for.
    pub(super) dropped: Vec<Waiting<B>>,
}

impl<B> Held<B> {
    pub(crate) fn new(discipline: Box<dyn Discipline<B>>) -> Self {
        Self {
            discipline,
            free: Due::new(0, 0),
            sending: 0,
            dropped: Vec::new(),
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.discipline.waiting().packets as usize
    }

    /// When the next waiting packet can be sent.
    pub(crate) fn due(&self) -> Due {
        if self.discipline.waiting().packets == 0 {
            return Due::NEVER;
        }
        self.free
    }

    /// A packet joins those that wait.
    pub(crate) fn join(&mut self, now: u64, packet: Packet<B>, lag: Lag, counters: &mut LinkCounters) {
        let sending = self.sending(now);
        let since = Instant::from_nanos(now);
        let arriving = Waiting { packet, since, lag };
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
    pub(super) fn send(&mut self, now: u64, sequence: &mut u64, pace: &mut Pace, wire: &mut Wire<B>) {
        while self.free.nanos() <= now {
            let Some(next) = self
                .discipline
                .dequeue(Instant::from_nanos(now), &mut self.dropped)
            else {
                return;
            };
            // Asked as of when the packet joined: the link has been busy since, so it goes on without a gap.
            let departure = pace.departure(next.since.as_nanos(), next.packet.size).max(now);
            *sequence += 1;
            self.free = Due::new(departure, *sequence);
            self.sending = next.packet.size;
            wire.take_off_with(departure, *sequence, next.packet, next.lag);
        }
    }
}
