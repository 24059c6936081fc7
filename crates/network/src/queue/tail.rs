//! Drop-tail as a discipline, for queues whose room depends on other queues. Elsewhere the link implements drop-tail itself.

use foundation::Instant;

use super::fifo::{Bounds, Fifo};
use super::{Discipline, QueueActions, QueueLimit, QueuedPacket, Transmitter};
use crate::link::Count;

/// A drop-tail queue.
pub(super) struct Tail {
    bounds: Bounds,
    fifo: Fifo,
}

impl Tail {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self {
            bounds: Bounds::new(limit),
            fifo: Fifo::default(),
        }
    }
}

impl Discipline for Tail {
    fn enqueue(
        &mut self,
        _: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let length = self.fifo.count() + transmitter.sending;
        if self.bounds.admit(length, arriving.size()) {
            self.fifo.push(arriving);
        } else {
            actions.drop(arriving);
        }
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}
