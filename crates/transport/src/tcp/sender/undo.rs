//! Taking back a reduction that turns out to be needless: what was taken for lost had arrived
//! (Eifel, RFC 3522 and RFC 4015; DSACK, RFC 3708; F-RTO, RFC 5682).

use foundation::Instant;

use super::ack::AckSummary;
use super::{CongestionState, Sender};
use crate::statistics::Statistics;

/// What is needed to take back the reduction of an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The lowest position that was not acknowledged when the episode began.
    marker: u64,
    /// Retransmissions of the episode that no DSACK has shown to be needless.
    outstanding: u64,
    /// Whether any left.
    any: bool,
    /// Whether the reduction may be taken back: not where the network marked packets.
    pub allowed: bool,
}

impl Sender {
    /// An episode begins.
    pub(super) fn begin_undo(&mut self, allowed: bool) {
        let out = self.scoreboard.retransmitted().packets;
        self.undo = self.parameters.undo.then_some(Undo {
            marker: self.una,
            outstanding: out,
            any: out > 0,
            allowed,
        });
    }

    /// A retransmission left.
    pub(super) fn note_retransmission(&mut self, clock: u32) {
        self.first_retransmission_clock.get_or_insert(clock);
        if let Some(undo) = &mut self.undo {
            undo.outstanding += 1;
            undo.any = true;
        }
    }

    /// A DSACK: the peer had `start..end` already (RFC 3708, section 3).
    pub(super) fn on_duplicate(&mut self, (start, end): (u64, u64), prior_una: u64) {
        let segment = u64::from(self.segment);
        if let Some(undo) = &mut self.undo
            && end > undo.marker
            && start < end
            && end <= prior_una.max(self.next)
        {
            undo.outstanding = undo.outstanding.saturating_sub((end - start).div_ceil(segment));
        }
    }

    fn may_undo(&self, summary: &AckSummary) -> bool {
        self.undo.is_some_and(|undo| undo.any && undo.outstanding == 0) || self.is_delayed(summary)
    }

    /// Eifel (RFC 3522, section 3.2): the ACK answers a segment that left before the first retransmission.
    fn is_delayed(&self, summary: &AckSummary) -> bool {
        let (Some(_), Some(echo), Some(retransmitted)) =
            (self.undo, summary.echo, self.first_retransmission_clock)
        else {
            return false;
        };
        self.use_timestamps && echo != 0 && (echo.wrapping_sub(retransmitted) as i32) < 0
    }

    fn undo(&mut self, now: Instant, forget: bool, statistics: &mut Statistics) {
        if forget {
            self.scoreboard.forget_losses();
            if !self.use_sack {
                self.duplicates = 0;
            }
        }
        if self.undo.is_some_and(|undo| undo.allowed) {
            self.controller.on_spurious(now);
        }
        statistics.spurious_retransmissions += self.scoreboard.retransmitted().packets.max(1);
        self.prr = None;
        self.undo = None;
        self.rack.touch();
    }

    /// All that was in flight when recovery began is acknowledged. `true`: recovery goes on nevertheless.
    pub(super) fn try_undo_recovery(
        &mut self,
        now: Instant,
        summary: &AckSummary,
        statistics: &mut Statistics,
    ) -> bool {
        if self.may_undo(summary) {
            self.undo(now, false, statistics);
        }
        if self.una == self.recovery_point && !self.use_sack && !self.scoreboard.is_empty() {
            // RFC 6582, section 3.2, step 1: duplicates of what was sent again must not start another recovery.
            if self.scoreboard.retransmitted().packets == 0 {
                self.first_retransmission_clock = None;
            }
            return true;
        }
        self.state = CongestionState::Open;
        self.frto = false;
        self.new_data_first = false;
        self.first_retransmission_clock = None;
        false
    }

    /// A part of what was in flight is acknowledged, by an ACK from before any retransmission.
    pub(super) fn try_undo_partial(
        &mut self,
        now: Instant,
        summary: &AckSummary,
        statistics: &mut Statistics,
    ) -> bool {
        if !self.is_delayed(summary) {
            return false;
        }
        self.on_reordering(
            summary.prior_una,
            self.scoreboard.highest_sacked().max(summary.prior_una + 1),
        );
        if self.scoreboard.retransmitted().packets > 0 {
            // Retransmissions are out: wait for what they tell.
            return true;
        }
        self.first_retransmission_clock = None;
        self.undo(now, true, statistics);
        self.keep_open();
        true
    }

    /// DSACKs came for every retransmission.
    pub(super) fn try_undo_dsack(&mut self, now: Instant, statistics: &mut Statistics) -> bool {
        if !self.undo.is_some_and(|undo| undo.any && undo.outstanding == 0) {
            return false;
        }
        self.undo(now, false, statistics);
        true
    }

    /// After a timeout.
    pub(super) fn try_undo_loss(
        &mut self,
        now: Instant,
        found_by_frto: bool,
        summary: &AckSummary,
        statistics: &mut Statistics,
    ) -> bool {
        if self.undo.is_none() || !(found_by_frto || self.may_undo(summary)) {
            return false;
        }
        self.undo(now, true, statistics);
        self.timeouts = 0;
        self.frto = false;
        self.new_data_first = false;
        if found_by_frto || self.use_sack {
            self.state = CongestionState::Open;
            self.first_retransmission_clock = None;
        }
        true
    }
}
