//! Execution of the drops and marks that a queue discipline decides.

use foundation::{Ecn, Instant};

use crate::link::LinkCounters;
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId};
use crate::packet_store::PacketStore;
use crate::queue::{QueueActions, QueuedPacket};

/// Counts and reports the drops and marks of a discipline, and removes dropped packets.
pub(super) struct Executor<'a, B, O> {
    pub(super) now: u64,
    pub(super) link: LinkId,
    pub(super) counters: &'a mut LinkCounters,
    pub(super) store: &'a mut PacketStore<B, O>,
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
}
