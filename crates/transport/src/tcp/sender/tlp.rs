//! Tail loss probes (RFC 8985, section 7): a flight's last segments have nothing behind them whose
//! acknowledgement would tell of their loss.

use foundation::{Duration, Instant};

use super::ack::{AckSummary, Losses};
use super::timers::{TIMER_GRAIN, Timer};
use super::{CongestionState, Sender};

/// A probe that left and was not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailLossProbe {
    /// `TLP.end_seq`: what was sent when it left.
    end: u64,
    /// `TLP.is_retrans`: it was a retransmission, not new data. Then what the network was like as it left.
    retransmission: Option<Losses>,
}

impl Sender {
    /// RFC 8985, section 7.2: sets the timer of a probe, or says that none is due.
    pub(super) fn schedule_tail_probe(&mut self, now: Instant) -> bool {
        let calm = matches!(self.state, CongestionState::Open | CongestionState::Cwr);
        if !self.parameters.tail_loss_probe || !self.use_sack || !calm || self.scoreboard.sacked().packets > 0
        {
            return false;
        }
        if self.scoreboard.is_empty() {
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
        // Not later than the retransmission timeout would be.
        let left = self.until_timeout(now);
        if !left.is_zero() {
            wait = wait.min(left);
        }
        self.timer = Some((Timer::TailProbe, now + wait));
        true
    }

    /// RFC 8985, section 7.3: the probe is due. What it sends is chosen in `transmit`.
    pub(super) fn on_tail_probe_timeout(&mut self, now: Instant) {
        if self.tail_probe.is_none() && !self.scoreboard.is_empty() {
            self.send_tail_probe = true;
        }
        self.rearm(now);
    }

    /// Sends the probe now, for one who knows that an acknowledgement is late. Gives whether it leaves: not where probes are
    /// not used, none is possible, or one is out.
    pub fn probe_tail(&mut self) -> bool {
        let calm = matches!(self.state, CongestionState::Open | CongestionState::Cwr);
        let may = self.parameters.tail_loss_probe && self.use_sack && calm && self.tail_probe.is_none();
        if may && !self.scoreboard.is_empty() {
            self.send_tail_probe = true;
        }
        self.send_tail_probe
    }

    /// The probe has left.
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
        self.send_tail_probe = false;
        self.tail_probe = Some(TailLossProbe {
            end: self.next,
            retransmission,
        });
        self.rearm(now);
    }

    /// RFC 8985, section 7.4: what an ACK says about the probe.
    pub(super) fn resolve_tail_probe(&mut self, now: Instant, summary: &AckSummary) {
        let Some(probe) = self.tail_probe else { return };
        if self.una < probe.end {
            return;
        }
        let pure_duplicate = !summary.advanced && !summary.not_duplicate && !summary.newly_sacked;
        let Some(losses) = probe.retransmission.filter(|_| !summary.dsack) else {
            self.tail_probe = None;
            return;
        };
        if self.una > probe.end {
            // Without a DSACK, the probe's ACK alone came: it repaired a loss.
            self.tail_probe = None;
            self.reduce_for_probe(now, &losses);
        } else if pure_duplicate {
            // Both the original and the probe arrived.
            self.tail_probe = None;
        }
    }
}
