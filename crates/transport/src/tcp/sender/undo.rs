//! Undoing a reduction whose losses prove spurious (Eifel, RFC 3522 and RFC 4015; DSACK, RFC 3708; F-RTO, RFC 5682).

use foundation::Instant;

use super::Sender;
use super::ack::AckSummary;
use crate::statistics::Statistics;
use crate::tcp::state::CongestionState;

/// State needed to undo the reduction of a recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// Lowest unacknowledged position at the start of the recovery.
    marker: u64,
    /// Retransmissions of the recovery that no DSACK has proved spurious.
    outstanding: u32,
    /// Whether there was any retransmission.
    any: bool,
    /// Whether the reduction may be undone: false if the network marked packets.
    pub allowed: bool,
}

impl Sender {
    /// Starts the undo state of a recovery.
    pub(super) fn begin_undo(&mut self, allowed: bool) {
        let out = self.scoreboard.retransmitted().packets;
        self.undo = self.parameters.undo.then_some(Undo {
            marker: self.una,
            outstanding: out as u32,
            any: out > 0,
            allowed,
        });
    }

    pub(super) fn note_retransmission(&mut self, clock: u32) {
        self.first_retransmission_clock.get_or_insert(clock);
        if let Some(undo) = &mut self.undo {
            undo.outstanding += 1;
            undo.any = true;
        }
    }

    /// Processes a DSACK: the peer received `start..end` twice (RFC 3708, section 3).
    pub(super) fn on_duplicate(&mut self, (start, end): (u64, u64), prior_una: u64) {
        let segment = u64::from(self.segment);
        if let Some(undo) = &mut self.undo
            && end > undo.marker
            && start < end
            && end <= prior_una.max(self.next)
        {
            let segments = u32::try_from((end - start).div_ceil(segment)).unwrap_or(u32::MAX);
            undo.outstanding = undo.outstanding.saturating_sub(segments);
        }
    }

    fn may_undo(&self, summary: &AckSummary) -> bool {
        self.undo.is_some_and(|undo| undo.any && undo.outstanding == 0) || self.is_delayed(summary)
    }

    /// Whether the ACK answers a segment sent before the first retransmission (Eifel; RFC 3522, section 3.2).
    fn is_delayed(&self, summary: &AckSummary) -> bool {
        let (Some(_), Some(echo), Some(retransmitted)) =
            (self.undo, summary.echo, self.first_retransmission_clock)
        else {
            return false;
        };
        self.negotiated.timestamps && echo != 0 && (echo.wrapping_sub(retransmitted) as i32) < 0
    }

    fn undo(&mut self, now: Instant, clear_losses: bool, statistics: &mut Statistics) {
        if clear_losses {
            self.scoreboard.clear_losses();
            if !self.negotiated.sack {
                self.duplicates = 0;
            }
        }
        if self.undo.is_some_and(|undo| undo.allowed) {
            self.controller.on_spurious(now);
        }
        statistics.spurious_retransmissions += self.scoreboard.retransmitted().packets.max(1);
        self.prr = None;
        self.undo = None;
        self.rack.request_detection();
    }

    /// Ends a recovery whose recovery point is acknowledged, and undoes its reduction if spurious. Returns whether the
    /// recovery continues nevertheless.
    pub(super) fn try_undo_recovery(
        &mut self,
        now: Instant,
        summary: &AckSummary,
        statistics: &mut Statistics,
    ) -> bool {
        if self.may_undo(summary) {
            self.undo(now, false, statistics);
        }
        if self.una == self.recovery_point && !self.negotiated.sack && !self.scoreboard.is_empty() {
            // RFC 6582, section 3.2, step 1: duplicate ACKs of retransmissions must not start another recovery.
            if self.scoreboard.retransmitted().packets == 0 {
                self.first_retransmission_clock = None;
            }
            return true;
        }
        self.state = CongestionState::Open;
        self.frto.checking = false;
        self.frto.new_data_first = false;
        self.first_retransmission_clock = None;
        false
    }

    /// Undoes the reduction if a partial ACK answers a segment sent before any retransmission.
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
            // Wait for the ACKs of the retransmissions in flight.
            return true;
        }
        self.first_retransmission_clock = None;
        self.undo(now, true, statistics);
        self.keep_open();
        true
    }

    /// Undoes the reduction if DSACKs prove every retransmission spurious.
    pub(super) fn try_undo_dsack(&mut self, now: Instant, statistics: &mut Statistics) -> bool {
        if !self.undo.is_some_and(|undo| undo.any && undo.outstanding == 0) {
            return false;
        }
        self.undo(now, false, statistics);
        true
    }

    /// Undoes the reduction of a timeout if it is spurious.
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
        self.timeout.consecutive = 0;
        self.frto.checking = false;
        self.frto.new_data_first = false;
        if found_by_frto || self.negotiated.sack {
            self.state = CongestionState::Open;
            self.first_retransmission_clock = None;
        }
        true
    }
}
