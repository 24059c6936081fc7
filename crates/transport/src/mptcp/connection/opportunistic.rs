//! Data that cannot leave because the receive window is full, while a slow subflow holds what would open it
//! (Raiciu et al., "How hard can it be? Designing and implementing a deployable multipath TCP", NSDI 2012, section 4.2).

use foundation::Instant;

use super::Connection;
use crate::mptcp::scheduler::fastest_ready;

impl Connection {
    /// The peer's window has no room for what is to be sent. The oldest data that is not acknowledged leaves on the fastest
    /// subflow that has room too, if it was given to a slower one: once, until it is acknowledged. That one's window
    /// shrinks, where that is wished, as after a mark of congestion, at most once a round trip. Gives whether anything may
    /// leave.
    pub(super) fn unblock(&mut self, now: Instant) -> bool {
        if !self.setup.retransmits_when_blocked() || self.outgoing.unblocked == self.outgoing.una {
            return false;
        }
        let Some(slow) = self.oldest_holder() else {
            return false;
        };
        let una = self.outgoing.una;
        let held = self.subflows[slow].sent.length_from(una);
        let most = u64::from(self.subflows[slow].tcp.segment_size());
        let bytes = held.min(most);
        self.collect_views(now, bytes, Some(self.subflows[slow].id));
        let slow_rtt = self.subflows[slow].sibling().rtt;
        let Some(fast) = fastest_ready(&self.views)
            .filter(|(_, view)| view.srtt < slow_rtt)
            .and_then(|(_, view)| self.index_of(view.id))
        else {
            return false;
        };
        self.outgoing.unblocked = una;
        let bytes = bytes.min(self.max_payload(fast));
        self.assign(now, fast, una, una + bytes);
        if self.setup.penalises() {
            self.subflows[slow].tcp.reduce_window(now);
        }
        true
    }
}
