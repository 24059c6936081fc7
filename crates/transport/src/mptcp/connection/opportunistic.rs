//! Opportunistic retransmission and penalisation, for a receive window that a slow subflow keeps full (Raiciu et al.,
//! "How hard can it be? Designing and implementing a deployable multipath TCP", NSDI 2012, section 4.2).

use foundation::Instant;

use super::Connection;
use crate::mptcp::scheduler::fastest_ready;

impl Connection {
    /// Retransmits the oldest unacknowledged data on the fastest subflow with room, if a slower one carries it, once
    /// for each position. With penalisation, the slower one reduces its window as after a congestion mark, at most
    /// once a round trip. Returns whether a segment may leave.
    pub(super) fn unblock(&mut self, now: Instant) -> bool {
        if !self.setup.retransmits_when_blocked() || self.outgoing.last_unblocked == self.outgoing.una {
            return false;
        }
        let Some(slow) = self.oldest_holder() else {
            return false;
        };
        let una = self.outgoing.una;
        let contiguous = self.subflows[slow].sent.length_from(una);
        let most = u64::from(self.subflows[slow].tcp.segment_size());
        let bytes = contiguous.min(most);
        self.collect_views(now, bytes, Some(self.subflows[slow].id));
        let slow_rtt = self.subflows[slow].sibling().rtt;
        let Some(fast) = fastest_ready(&self.views)
            .filter(|(_, view)| view.srtt < slow_rtt)
            .and_then(|(_, view)| self.index_of(view.id))
        else {
            return false;
        };
        self.outgoing.last_unblocked = una;
        let bytes = bytes.min(self.max_payload(fast));
        self.assign(now, fast, una, una + bytes);
        if self.setup.penalises() {
            self.subflows[slow].tcp.reduce_window(now);
            self.changed |= 1 << slow;
        }
        true
    }
}
