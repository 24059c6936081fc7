//! Failure and recovery of a link.

use super::change::Moved;
use super::link_rate::LinkRate;
use super::{Link, size_limit};
use crate::observer::{DropReason, Observer};
use crate::packet::Body;
use crate::packet_store::PacketStore;

impl Link {
    /// Returns whether the link is down. An MTU is at least one byte, so no link in operation refuses all packets.
    pub(crate) const fn is_down(&self) -> bool {
        self.size_limit == 0
    }

    /// Takes the link down: it drops the waiting packets, and later ones when they arrive. The packet in transmission and
    /// those in propagation reach the far end. The queue starts anew.
    pub(crate) fn fail<B: Body, O: Observer<B>>(&mut self, now: u64, store: &mut PacketStore<B, O>) {
        self.size_limit = 0;
        let moved = self.withdraw(now);
        if !moved.is_empty() {
            let spec = self.spec().clone();
            let (free, size) = self.queue.last_departure();
            let streams = self.origin.next_streams();
            self.rate = LinkRate::after(&spec.capacity, free);
            self.queue = self.origin.queue(&spec, streams).after(now, free, size);
        }
        for Moved { ticket, .. } in moved {
            self.drop(now, DropReason::Outage, ticket, store);
        }
    }

    /// Returns the link to operation.
    pub(crate) fn recover(&mut self) {
        self.size_limit = size_limit(self.spec());
    }
}
