//! A queue whose discipline decides at each departure which packet is next.
//!
//! The link calls the discipline when a packet joins and when a transmission ends, so a packet that
//! waits costs one event more than with drop-tail.

use foundation::{Duration, Ecn, Instant};

use super::actions::Executor;
use crate::calendar::DueTime;
use crate::link::meter::{Meter, Occupancy};
use crate::link::{Count, Wire};
use crate::observer::Observer;
use crate::packet::{Body, TcpAck};
use crate::queue::{Discipline, QueueActions, QueuedPacket, Transmitter};

/// A discipline and the packet in transmission.
pub(crate) struct ActiveQueue {
    discipline: Box<dyn Discipline + Send>,
    /// Packets waiting in the discipline, cached because it is read more often than it changes.
    waiting: Count,
    /// End of the current or last transmission, and its start.
    free: DueTime,
    /// When the next packet may leave: at that time, or when the discipline is ready.
    ready: DueTime,
    /// Size of that packet.
    sending: u32,
    /// Time up to which the meter includes the waiting packets.
    metered: u64,
}

/// Keeps the packets that a discipline drops while its queue is emptied.
struct Withdrawal(Vec<QueuedPacket>);

impl QueueActions for Withdrawal {
    fn drop(&mut self, packet: QueuedPacket) {
        self.0.push(packet);
    }

    fn ecn(&self, _: &QueuedPacket) -> Ecn {
        Ecn::Ect0
    }

    fn priority(&self, _: &QueuedPacket) -> u8 {
        0
    }

    fn acknowledgement(&self, _: &QueuedPacket) -> Option<TcpAck> {
        None
    }

    fn mark(&mut self, _: &QueuedPacket) -> bool {
        true
    }

    fn transmission_end(&self, _: &QueuedPacket) -> Option<Instant> {
        None
    }
}

impl ActiveQueue {
    pub(crate) fn new(discipline: Box<dyn Discipline + Send>) -> Self {
        Self {
            discipline,
            waiting: Count::default(),
            free: DueTime::new(0, 0),
            ready: DueTime::new(0, 0),
            sending: 0,
            metered: 0,
        }
    }

    /// Continues after another queue, which finishes sending a packet of `size` bytes at `free`.
    pub(crate) const fn after(mut self, now: u64, free: u64, size: u32) -> Self {
        self.free = DueTime::new(free, now);
        self.ready = self.free;
        self.sending = size;
        self.metered = now;
        self
    }

    /// Returns the waiting packets in the order in which they joined. The discipline drops and marks none of them.
    pub(super) fn withdraw(&mut self, now: u64, meter: &mut Meter) -> Vec<QueuedPacket> {
        self.meter(now, meter);
        let mut all = Withdrawal(Vec::new());
        let withdrawn = self.discipline.withdraw(Instant::from_nanos(now), &mut all);
        all.0.extend(withdrawn);
        self.waiting = Count::default();
        all.0.sort_by_key(|packet| packet.since);
        all.0
    }

    /// Returns the bytes of the current or last transmission.
    pub(crate) const fn last_size(&self) -> u32 {
        self.sending
    }

    /// Returns the end of the current or last transmission.
    pub(crate) const fn busy_until(&self) -> u64 {
        self.free.nanos()
    }

    /// Returns when the next waiting packet can be sent.
    #[inline]
    pub(crate) fn due(&self) -> DueTime {
        if self.waiting.packets == 0 {
            return DueTime::NEVER;
        }
        self.ready
    }

    /// Passes an arriving packet to the discipline.
    pub(super) fn join<B: Body, O: Observer<B>>(
        &mut self,
        arriving: QueuedPacket,
        meter: &mut Meter,
        actions: &mut Executor<'_, B, O>,
    ) {
        let now = actions.now;
        self.meter(now, meter);
        let transmitter = Transmitter {
            sending: self.sending(now),
            free: Instant::from_nanos(self.free.nanos()),
        };
        self.discipline
            .enqueue(arriving.since, arriving, &transmitter, actions);
        self.waiting = self.discipline.waiting();
        let length = self.waiting + transmitter.sending;
        actions.counters.record_queue(length.packets, length.bytes);
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

    /// Starts transmission of the next waiting packet if the link is idle.
    pub(super) fn send<B: Body, O: Observer<B>>(
        &mut self,
        wire: &mut Wire,
        meter: &mut Meter,
        actions: &mut Executor<'_, B, O>,
    ) {
        let now = actions.now;
        while self.waiting.packets > 0 && self.ready.nanos() <= now {
            self.meter(now, meter);
            let next = self.discipline.dequeue(Instant::from_nanos(now), actions);
            self.waiting = self.discipline.waiting();
            let Some(next) = next else {
                return self.pause(actions);
            };
            let departure = actions.transmit(&next);
            self.free = DueTime::new(departure, now);
            self.ready = self.free;
            self.sending = next.size();
            let joined = next.since.as_nanos();
            meter.waited(now - joined);
            meter.add_transmission(now, departure);
            let arrival = wire.take_off_with(now, departure, next.ticket, next.lag);
            let times = [joined, now, departure, arrival];
            actions
                .store
                .observe_schedule(now, actions.link, times, next.ticket);
        }
    }

    /// Waits until the discipline is ready, if packets wait.
    fn pause<B: Body, O: Observer<B>>(&mut self, actions: &mut Executor<'_, B, O>) {
        if self.waiting.packets > 0
            && let Some(ready) = self.discipline.ready()
        {
            self.ready = DueTime::new(ready.as_nanos(), actions.now);
            actions.rate.pause(ready.as_nanos());
        }
    }

    /// Adds the waiting packets up to now to the meter.
    fn meter(&mut self, now: u64, meter: &mut Meter) {
        meter.add_occupancy(self.waiting.packets, now - self.metered);
        self.metered = now;
    }

    /// Returns the queue length, the packet in transmission included.
    pub(super) fn length(&self, now: u64) -> Count {
        self.waiting + self.sending(now)
    }

    /// Returns the integrals of the meter up to `now`.
    pub(super) fn occupancy(&self, now: u64, meter: &Meter) -> Occupancy {
        let left = self.free.nanos().saturating_sub(now);
        let mut sums = meter.without(&Occupancy {
            packet_nanos: u128::from(left),
            busy: Duration::from_nanos(left),
        });
        let unmetered = u128::from(now.saturating_sub(self.metered));
        sums.packet_nanos += u128::from(self.waiting.packets) * unmetered;
        sums
    }
}
