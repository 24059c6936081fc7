//! The end of the data, which nothing that follows shows to be lost: where its acknowledgement is late it leaves on
//! another path too.

use foundation::{Duration, Instant};

use super::{Connection, Mode};
use crate::mptcp::policy::Join;

impl Connection {
    /// All data may be with subflows, or more of it acknowledged: the wait begins anew.
    pub(super) fn watch_tail(&mut self, now: Instant) {
        let Some(tail) = self.tail.filter(|_| !self.tail_waits) else {
            return;
        };
        let waits =
            self.mode == Mode::Multipath && self.outgoing.has_sent_all() && self.outgoing.in_flight() > 0;
        let oldest_holder = if waits { self.oldest_holder() } else { None };
        self.tail_at = match oldest_holder {
            Some(index) => {
                let rtt = self.subflows[index].tcp.round_trips();
                let srtt = if rtt.has_sample() {
                    rtt.smoothed()
                } else {
                    Duration::ZERO
                };
                now + srtt * u64::from(tail.after) / 100
            }
            None => Instant::MAX,
        };
    }

    /// The subflow that was given the oldest data that is not acknowledged.
    pub(super) fn oldest_holder(&self) -> Option<usize> {
        let una = self.outgoing.una;
        let holds = |index: &usize| {
            let subflow = &self.subflows[*index];
            !subflow.gone && subflow.sent.holds(una)
        };
        (0..self.subflows.len()).find(holds)
    }

    /// The acknowledgement is late, or the subflow that waits for the tail can take it now.
    pub(super) fn on_late_tail(&mut self, now: Instant) {
        self.tail_at = Instant::MAX;
        let Some(index) = self.oldest_holder().filter(|_| self.outgoing.in_flight() > 0) else {
            return;
        };
        let Some(tail) = self.tail else { return };
        let subflow = &self.subflows[index];
        let (id, segment) = (subflow.id, u64::from(subflow.tcp.segment_size()));
        let others = self.subflows.iter().filter(|other| other.id != id && !other.gone);
        let (any, usable) = others.fold((false, false), |found, other| (true, found.1 || other.usable));
        if usable {
            let una = self.outgoing.una;
            let end = self.outgoing.next.min(una + segment * u64::from(tail.segments));
            self.outgoing.reinject(una, end, id);
            self.tail = None;
            return;
        }
        if !std::mem::replace(&mut self.tail_probed, true) {
            // Its own subflow is nearer than one that would have to join.
            if self.subflows[index].tcp.probe_tail() {
                self.dirty |= 1 << index;
            }
        }
        self.tail_waits = true;
        if !any
            && let Some(path) = tail.path
            && self.joinable_since.is_some()
        {
            self.paths.push(path);
            self.join(now, Join::immediately(path));
        }
    }

    /// A further subflow can be used.
    pub(super) fn on_further_subflow(&mut self, now: Instant) {
        if self.tail_waits {
            self.tail_at = now;
        }
    }
}
