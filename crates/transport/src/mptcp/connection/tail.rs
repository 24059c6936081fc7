//! Tail protection: retransmits the end of the data on another subflow when its DATA_ACK is late.
//!
//! No later segment reveals the loss of the last ones, so that they otherwise wait for a timer. Only policies whose plan has
//! a [`Tail`] use this; [`Connection::tail`] is `None` for all others.

use foundation::Instant;

use super::{Connection, Mode};
use crate::mptcp::policy::{Join, Tail};

/// State of the protection, dropped once the tail was retransmitted.
#[derive(Debug)]
pub(super) struct TailProtection {
    settings: Tail,
    /// When the DATA_ACK counts as late.
    pub due_at: Instant,
    /// It was late, and no other subflow could take the tail yet.
    waits_for_subflow: bool,
    /// The subflow that has the tail was probed.
    probed: bool,
}

impl TailProtection {
    pub const fn new(settings: Tail) -> Self {
        Self {
            settings,
            due_at: Instant::MAX,
            waits_for_subflow: false,
            probed: false,
        }
    }
}

impl Connection {
    /// Restarts the timer after the last data was scheduled or more of it was acknowledged.
    pub(super) fn restart_tail_timer(&mut self, now: Instant) {
        let Some(tail) = self.tail.as_ref().filter(|tail| !tail.waits_for_subflow) else {
            return;
        };
        let after = u64::from(tail.settings.after);
        let is_tail =
            self.mode == Mode::Multipath && self.outgoing.has_sent_all() && self.outgoing.in_flight() > 0;
        let holder = if is_tail { self.oldest_holder() } else { None };
        let due_at = match holder {
            Some(index) => now + self.subflows[index].srtt() * after / 100,
            None => Instant::MAX,
        };
        if let Some(tail) = &mut self.tail {
            tail.due_at = due_at;
        }
    }

    /// Returns the index of the subflow that carries the oldest unacknowledged data.
    pub(super) fn oldest_holder(&self) -> Option<usize> {
        let una = self.outgoing.una;
        self.subflows
            .iter()
            .position(|subflow| !subflow.gone && subflow.sent.holds(una))
    }

    /// Retransmits the tail on another subflow. Without one, probes the path of the tail and opens a subflow for it.
    pub(super) fn on_tail_timeout(&mut self, now: Instant) {
        let holder = self.oldest_holder().filter(|_| self.outgoing.in_flight() > 0);
        let Some(tail) = &mut self.tail else { return };
        tail.due_at = Instant::MAX;
        let Some(index) = holder else { return };
        let subflow = &self.subflows[index];
        let (id, segment) = (subflow.id, u64::from(subflow.tcp.segment_size()));
        let others = self.subflows.iter().filter(|other| other.id != id && !other.gone);
        let (any, usable) = others.fold((false, false), |found, other| (true, found.1 || other.usable));
        if usable {
            let una = self.outgoing.una;
            let end = self
                .outgoing
                .next
                .min(una + segment * u64::from(tail.settings.segments));
            self.outgoing.reinject(una, end, id);
            self.tail = None;
            return;
        }
        // A probe on the same path arrives before a subflow that still has to join.
        if !std::mem::replace(&mut tail.probed, true) && self.subflows[index].tcp.probe_tail() {
            self.dirty |= 1 << index;
        }
        tail.waits_for_subflow = true;
        if !any
            && let Some(path) = tail.settings.path
            && self.joinable_since.is_some()
        {
            self.paths.push(path);
            self.join(now, Join::immediately(path));
        }
    }

    /// A further subflow became usable.
    pub(super) fn on_further_subflow(&mut self, now: Instant) {
        if let Some(tail) = self.tail.as_mut().filter(|tail| tail.waits_for_subflow) {
            tail.due_at = now;
        }
    }
}
