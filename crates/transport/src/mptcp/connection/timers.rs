//! Timers of the subflows and of the connection.

use foundation::Instant;

use super::{Connection, Mode};
use crate::machine::Machine as _;
use crate::tcp::Error;

impl Connection {
    #[inline]
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let mut at = self
            .resend_at
            .min(self.alone_until)
            .min(self.addresses.next_due());
        if let Some(tail) = &self.tail {
            at = at.min(tail.due_at);
        }
        if let Some(retry) = &self.retry {
            at = at.min(retry.due_at);
        }
        for subflow in &self.subflows {
            at = at.min(subflow.wake);
        }
        if !self.joins.is_empty() {
            at = at.min(self.next_join());
        }
        if !self.rejoins.is_empty() {
            at = at.min(self.next_rejoin());
        }
        (at != Instant::MAX).then_some(at)
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        for index in 0..self.subflows.len() {
            if self.subflows[index].wake <= now {
                self.on_subflow_timeout(now, index);
            }
        }
        if self.retry.as_ref().is_some_and(|retry| retry.due_at <= now) {
            self.on_handshake_retry(now);
        }
        if self.resend_at <= now {
            self.on_resend_timeout(now);
        }
        if self.addresses.next_due() <= now {
            self.on_announcement_timeout(now);
        }
        if self.alone_until <= now {
            self.fail(now, Error::TimedOut);
        }
        if self.tail.as_ref().is_some_and(|tail| tail.due_at <= now) {
            self.on_tail_timeout(now);
        }
        if !self.joins.is_empty() {
            self.open_due_joins(now);
        }
        if !self.rejoins.is_empty() {
            self.open_due_rejoins(now);
        }
    }

    fn on_subflow_timeout(&mut self, now: Instant, index: usize) {
        if self.coupled {
            self.update_siblings(index);
        }
        let subflow = &mut self.subflows[index];
        if subflow.third_at <= now {
            // The third segment is retransmitted until the fourth arrives (RFC 8684, section 3.2).
            subflow.third_at = now + subflow.tcp.retransmission_timeout() * 2;
            subflow.tcp.demand_acknowledgement();
        }
        let before = subflow.tcp.statistics().timeouts;
        subflow.tcp.handle_timeout(now);
        let timeouts = subflow.tcp.statistics().timeouts - before;
        self.process_events(now, index);
        if timeouts > 0 {
            self.statistics.timeouts += timeouts;
            let others = self.subflows.iter().filter(|subflow| subflow.usable).count() > 1;
            if others && self.setup.reinjects_at_timeout() && !self.over {
                self.reinject(index);
                self.return_queue(index);
            }
        }
    }

    /// Starts the timer of unacknowledged data or of the DATA_FIN.
    #[inline]
    pub(super) fn arm_resend(&mut self, now: Instant) {
        if self.resend_at == Instant::MAX && self.mode == Mode::Multipath {
            self.una_at_resend = self.outgoing.una;
            self.resend_at = now + self.resend_after();
        }
    }

    fn resend_after(&self) -> foundation::Duration {
        let timeouts = self
            .subflows
            .iter()
            .filter(|subflow| subflow.usable)
            .map(|subflow| subflow.tcp.retransmission_timeout());
        timeouts
            .max()
            .unwrap_or(foundation::Duration::from_secs(1))
            .doubled(self.backoff)
            .min(crate::rtt::MAX_TIMEOUT)
    }

    /// Retransmits data that its subflows delivered but no DATA_ACK covers (RFC 8684, section 3.3.6), because the
    /// DATA_ACK was lost or the peer dropped the data; likewise the DATA_FIN.
    fn on_resend_timeout(&mut self, now: Instant) {
        self.resend_at = Instant::MAX;
        let outgoing = &self.outgoing;
        let waits_for_fin = outgoing.has_sent_all() && !outgoing.fin_acknowledged();
        if self.over || (outgoing.in_flight() == 0 && !waits_for_fin) {
            return;
        }
        let moved = outgoing.una != self.una_at_resend;
        let busy = self.subflows.iter().any(|subflow| {
            !subflow.gone && (subflow.written > subflow.acknowledged || !subflow.queue.is_empty())
        });
        if !moved && !busy && self.outgoing.next_reinjection().is_none() {
            self.backoff = (self.backoff + 1).min(10);
            let (una, next) = (self.outgoing.una, self.outgoing.next);
            self.outgoing.reinject(una, next, u8::MAX);
            self.fin_sent = false;
        }
        self.arm_resend(now);
    }
}
