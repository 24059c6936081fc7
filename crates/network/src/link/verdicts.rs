//! What becomes of the packets that a discipline drops or marks.

use foundation::Instant;

use crate::cargo::Cargo;
use crate::link::LinkCounters;
use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId};
use crate::queue::{Verdicts, Waiting};

/// Counts and shows what a discipline decides at a moment, and lets go of what it drops.
pub(super) struct Executor<'a, B, O> {
    pub(super) now: u64,
    pub(super) link: LinkId,
    pub(super) counters: &'a mut LinkCounters,
    pub(super) cargo: &'a mut Cargo<B, O>,
}

impl<B: Body, O: Observer<B>> Verdicts for Executor<'_, B, O> {
    fn drop(&mut self, packet: Waiting) {
        self.counters.add_drop(DropReason::Queue, packet.size());
        self.cargo
            .drop(self.now, self.link, DropReason::Queue, packet.ticket);
    }

    fn mark(&mut self, packet: &Waiting) -> bool {
        let marked = self.cargo.mark(packet.ticket);
        if marked {
            self.counters.marked.add(packet.size());
            let (at, link) = (Instant::from_nanos(self.now), self.link);
            self.cargo.show(packet.ticket, |observer, packet| {
                observer.marked(at, link, packet)
            });
        }
        marked
    }
}
