//! Execution of the drops and marks that a queue discipline decides.

use foundation::{Ecn, Instant};

use crate::link::LinkCounters;
use crate::link::link_rate::LinkRate;
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId, TcpAck};
use crate::packet_store::PacketStore;
use crate::queue::{QueueActions, QueuedPacket};

/// Counts and reports the drops and marks of a discipline, and removes dropped packets.
pub(super) struct Executor<'a, B, O> {
    pub(super) now: u64,
    pub(super) link: LinkId,
    pub(super) rate: &'a mut LinkRate,
    pub(super) counters: &'a mut LinkCounters,
    pub(super) store: &'a mut PacketStore<B, O>,
}

/// Returns the end of transmission of a packet that leaves its queue at `now`.
fn departure(rate: &mut LinkRate, now: u64, packet: &QueuedPacket) -> u64 {
    // As of the time of joining: the link has been busy since then, so transmission continues without a gap.
    rate.departure(packet.since.as_nanos(), packet.size()).max(now)
}

impl<B, O> Executor<'_, B, O> {
    /// Starts the transmission of a packet. Returns its end.
    pub(super) fn transmit(&mut self, packet: &QueuedPacket) -> u64 {
        departure(self.rate, self.now, packet)
    }
}

impl<B: Body, O: Observer<B>> QueueActions for Executor<'_, B, O> {
    fn drop(&mut self, packet: QueuedPacket) {
        self.counters.add_drop(DropReason::Queue, packet.size());
        self.store
            .drop(self.now, self.link, DropReason::Queue, packet.ticket);
    }

    fn ecn(&self, packet: &QueuedPacket) -> Ecn {
        self.store.ecn(packet.ticket)
    }

    fn priority(&self, packet: &QueuedPacket) -> u8 {
        self.store.priority(packet.ticket)
    }

    fn acknowledgement(&self, packet: &QueuedPacket) -> Option<TcpAck> {
        self.store.acknowledgement(packet.ticket)
    }

    fn mark(&mut self, packet: &QueuedPacket) -> bool {
        let marked = self.store.mark(packet.ticket);
        if marked {
            self.counters.marked.add(packet.size());
            let (at, link) = (Instant::from_nanos(self.now), self.link);
            self.store.observe(packet.ticket, |observer, packet| {
                observer.marked(at, link, packet)
            });
        }
        marked
    }

    fn transmission_end(&self, packet: &QueuedPacket) -> Option<Instant> {
        let end = departure(&mut self.rate.clone(), self.now, packet);
        Some(Instant::from_nanos(end))
    }
}
