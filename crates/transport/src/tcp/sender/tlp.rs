//! Tail loss probes (RFC 8985, section 7): they detect the loss of a flight's last segments, which no later segment's
//! acknowledgement reveals.

use foundation::{Duration, Instant};

use super::Sender;
use super::ack::{AckSummary, Losses};
use super::timers::{TIMER_GRAIN, Timer};
use crate::tcp::state::CongestionState;

/// An unacknowledged probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailLossProbe {
    /// Next position when the probe was sent (`TLP.end_seq`).
    end: u64,
    /// The retransmitted segment as a loss; `None` for a probe of new data (`TLP.is_retrans`).
    retransmission: Option<Losses>,
}

impl Sender {
    /// Whether the connection uses probes and is not repairing losses.
    fn may_probe(&self) -> bool {
        self.parameters.tail_loss_probe
            && self.negotiated.sack
            && matches!(self.state, CongestionState::Open | CongestionState::Cwr)
            && !self.scoreboard.is_empty()
    }

    /// Whether the end of the burst sets the timer of a probe, which replaces any other.
    #[inline]
    pub(super) fn is_probe_due_after_burst(&self) -> bool {
        self.may_probe() && self.scoreboard.sacked().packets == 0 && !self.is_reordering_timer()
    }

    /// Sets the timer of a probe and returns whether a probe is possible (RFC 8985, section 7.2).
    pub(super) fn schedule_tail_probe(&mut self, now: Instant) -> bool {
        if !self.may_probe() || self.scoreboard.sacked().packets > 0 {
            return false;
        }
        let mut wait = if self.rtt.has_sample() {
            let margin = if self.scoreboard.out().packets == 1 {
                // The peer may delay its ACK of a lone segment (`TLP.max_ack_delay`).
                Duration::from_millis(200)
            } else {
                TIMER_GRAIN
            };
            self.rtt.smoothed() * 2 + margin
        } else {
            self.parameters.initial_rto
        };
        // Not later than the retransmission timeout.
        let left = self.until_timeout(now);
        if !left.is_zero() {
            wait = wait.min(left);
        }
        self.timeout.timer = Some((Timer::TailProbe, now + wait));
        true
    }

    /// Handles the timeout of a probe (RFC 8985, section 7.3). `poll` chooses its segment.
    pub(super) fn on_tail_probe_timeout(&mut self, now: Instant) {
        if self.tail_probe.is_none() && !self.scoreboard.is_empty() {
            self.due.tail_probe = true;
        }
        self.rearm(now);
    }

    /// Sends a probe before its timer. Returns whether one leaves: only if probes are in use and none is unacknowledged.
    pub fn probe_tail(&mut self) -> bool {
        if self.may_probe() && self.tail_probe.is_none() {
            self.due.tail_probe = true;
        }
        self.due.tail_probe
    }

    /// Records a sent probe.
    pub(super) fn tail_probe_sent(&mut self, now: Instant, retransmission: bool) {
        let last = self
            .scoreboard
            .end_number()
            .checked_sub(1)
            .and_then(|last| self.scoreboard.get(last));
        let retransmission = last.filter(|_| retransmission).map(|record| {
            let mut losses = Losses::default();
            losses.add(record);
            losses
        });
        self.due.tail_probe = false;
        self.totals.tail_probes += 1;
        self.tail_probe = Some(Box::new(TailLossProbe {
            end: self.next,
            retransmission,
        }));
        self.rearm(now);
    }

    /// Processes an ACK with respect to an unacknowledged probe (RFC 8985, section 7.4).
    pub(super) fn resolve_tail_probe(&mut self, now: Instant, summary: &AckSummary) {
        let Some(probe) = self.tail_probe.as_deref().copied() else {
            return;
        };
        if self.una < probe.end {
            return;
        }
        let pure_duplicate = !summary.advanced && !summary.not_duplicate && !summary.newly_sacked;
        let Some(losses) = probe.retransmission.filter(|_| !summary.dsack) else {
            self.tail_probe = None;
            return;
        };
        if self.una > probe.end {
            // No DSACK: the original was lost, and the probe repaired the loss.
            self.tail_probe = None;
            self.reduce_for_probe(now, &losses);
        } else if pure_duplicate {
            // The original and the probe arrived.
            self.tail_probe = None;
        }
    }
}
