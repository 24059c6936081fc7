//! A queue of a shared buffer: any discipline, behind the threshold of the buffer.

use foundation::Instant;

use super::BufferPool;
use crate::link::Count;
use crate::queue::{Discipline, QueueActions, QueuedPacket, Transmitter};

/// A discipline whose packets are in a shared buffer.
pub(super) struct Member {
    discipline: Box<dyn Discipline + Send>,
    pool: BufferPool,
}

impl BufferPool {
    /// Returns a discipline whose packets are in this buffer.
    pub(crate) fn member(&self, discipline: Box<dyn Discipline + Send>) -> Box<dyn Discipline + Send> {
        Box::new(Member {
            discipline,
            pool: self.clone(),
        })
    }
}

impl Discipline for Member {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let before = self.discipline.waiting();
        let length = before + transmitter.sending;
        let (at, size) = (now.as_nanos(), arriving.size());
        if !self.pool.lock().accepts(at, length.bytes, size) {
            return actions.drop(arriving);
        }
        self.discipline.enqueue(now, arriving, transmitter, actions);
        let mut pool = self.pool.lock();
        pool.add(self.discipline.waiting().bytes);
        pool.remove(before.bytes);
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        let before = self.discipline.waiting();
        let next = self.discipline.dequeue(now, actions);
        let mut pool = self.pool.lock();
        pool.remove((before - self.discipline.waiting()).bytes);
        if let Some(packet) = &next
            && let Some(end) = actions.transmission_end(packet)
        {
            pool.add_until(end.as_nanos(), packet.size());
        }
        next
    }

    fn ready(&self) -> Option<Instant> {
        self.discipline.ready()
    }

    fn withdraw(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Vec<QueuedPacket> {
        self.pool.lock().remove(self.discipline.waiting().bytes);
        self.discipline.withdraw(now, actions)
    }

    fn waiting(&self) -> Count {
        self.discipline.waiting()
    }
}
