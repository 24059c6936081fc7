//! Loss detection and loss recovery (RFC 5681 section 3.2, RFC 6582, RFC 6675 section 5, RFC 8985 section 6, RFC 5682).

use foundation::{Duration, Instant};

use super::ack::{AckSummary, Losses};
use super::prr::Prr;
use super::{DUPLICATE_THRESHOLD, Sender};
use crate::statistics::Statistics;
use crate::tcp::state::CongestionState;

impl Sender {
    /// Processes an ACK that indicates loss, reordering or congestion, or that arrives in a state other than Open.
    pub(super) fn process_dubious_ack(
        &mut self,
        now: Instant,
        summary: &mut AckSummary,
        statistics: &mut Statistics,
    ) {
        if summary.ece
            && let Some(undo) = &mut self.undo
        {
            // A congestion mark justifies the reduction even if no segment was lost (RFC 3168, section 6.1.2).
            undo.allowed = false;
        }
        if self.scoreboard.is_empty() {
            self.duplicates = 0;
        }
        if self.una >= self.recovery_point {
            match self.state {
                CongestionState::Cwr if self.una > self.recovery_point || self.scoreboard.is_empty() => {
                    self.end_reduction()
                }
                CongestionState::Recovery => {
                    if !self.negotiated.sack {
                        self.duplicates = 0;
                    }
                    if self.try_undo_recovery(now, summary, statistics) {
                        return;
                    }
                    self.rack.on_recovered();
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.state {
            CongestionState::Recovery => {
                if !summary.advanced {
                    if !self.negotiated.sack {
                        self.add_duplicate(summary);
                    }
                } else if self.try_undo_partial(now, summary, statistics) {
                    return;
                }
                if self.try_undo_dsack(now, statistics) {
                    self.try_open(now, summary);
                }
                self.detect_losses(now, summary);
                if self.state == CongestionState::Recovery {
                    self.report_losses_of(now, summary, true);
                    return;
                }
                if !self.has_losses() {
                    self.report_losses_of(now, summary, false);
                    return;
                }
            }
            CongestionState::Loss => {
                self.process_loss(now, summary, statistics);
                if self.state != CongestionState::Loss && self.negotiated.sack {
                    self.rack.request_detection();
                }
                self.detect_losses(now, summary);
                if self.state != CongestionState::Open || !self.has_losses() {
                    self.report_losses_of(now, summary, true);
                    return;
                }
            }
            _ => {
                if !self.negotiated.sack {
                    if summary.advanced {
                        self.duplicates = 0;
                    }
                    self.add_duplicate(summary);
                }
                self.try_undo_dsack(now, statistics);
                self.detect_losses(now, summary);
                if !self.has_losses() {
                    self.report_losses_of(now, summary, false);
                    self.try_open(now, summary);
                    return;
                }
            }
        }
        self.enter_recovery(now, summary);
    }

    fn report_losses_of(&mut self, now: Instant, summary: &AckSummary, in_recovery: bool) {
        if summary.losses.packets > 0 {
            self.report_losses(now, &summary.losses, summary.prior_in_flight, in_recovery);
        }
    }

    /// Without SACK: counts a duplicate ACK as the delivery of one segment.
    fn add_duplicate(&mut self, summary: &mut AckSummary) {
        if summary.duplicates == 0 {
            return;
        }
        // At most the segments in flight that are not lost (RFC 5681, section 3.2, on misbehaving receivers).
        let most = self.scoreboard.out().packets - self.scoreboard.lost().packets;
        if self.duplicates < most {
            self.duplicates += 1;
            summary.delivered += 1;
            summary.delivered_bytes += u64::from(self.segment);
        }
    }

    /// Detects losses after an ACK.
    fn detect_losses(&mut self, now: Instant, summary: &mut AckSummary) {
        let mut losses = Losses::default();
        if !self.negotiated.sack {
            let is_first = self.state < CongestionState::Recovery
                && self.duplicates >= u64::from(self.reordering.extent);
            // RFC 6582, section 3.2, step 5: a partial acknowledgement reveals the next loss.
            let is_partial = self.state == CongestionState::Recovery && summary.advanced;
            if is_first || is_partial {
                let first = self.scoreboard.first_number();
                if let Some(record) = self.scoreboard.get(first).copied()
                    && self.scoreboard.mark_lost(first)
                {
                    losses.add(&record);
                    // Retransmit at once, unless PRR schedules it.
                    self.due.first |= is_partial && self.prr.is_none();
                }
                let most = self.scoreboard.out().packets - self.scoreboard.lost().packets;
                self.duplicates = self.duplicates.min(most);
            }
        } else if self.is_rack() {
            self.detect_by_time(now, &mut losses, summary);
        } else if self.state != CongestionState::Loss {
            self.scoreboard
                .mark_lost_by_count(u64::from(self.reordering.extent), |record| losses.add(record));
        }
        summary.losses = losses;
    }

    fn detect_by_time(&mut self, now: Instant, losses: &mut Losses, summary: &mut AckSummary) {
        if !self.rack.has_advanced() {
            return;
        }
        let window = self.reordering_window();
        if let Some(wait) = self
            .rack
            .detect(now, window, &mut self.scoreboard, |record| losses.add(record))
        {
            self.set_reordering_timer(now, wait);
            summary.set_timer = false;
        }
    }

    /// RFC 8985, section 6.2, step 4.
    pub(super) fn reordering_window(&self) -> Duration {
        let is_likely_loss = self.state >= CongestionState::Recovery
            || self.scoreboard.sacked().packets >= u64::from(self.reordering.extent);
        if self.reordering.events == 0 && is_likely_loss {
            return Duration::ZERO;
        }
        self.rack
            .reordering_window(self.rtt.minimum().unwrap_or_default(), self.rtt.smoothed())
    }

    fn has_losses(&self) -> bool {
        self.scoreboard.lost().packets > 0
    }

    /// Handles the expiry of the reordering timer (RFC 8985, section 6.3).
    pub(super) fn on_reordering_timeout(&mut self, now: Instant) {
        let mut summary = AckSummary {
            prior_in_flight: self.pipe_bytes(),
            ..AckSummary::default()
        };
        self.rack.request_detection();
        let mut losses = Losses::default();
        self.detect_by_time(now, &mut losses, &mut summary);
        summary.losses = losses;
        if losses.packets > 0 {
            self.totals.late += losses.packets as u32;
            if self.state == CongestionState::Recovery {
                self.report_losses_of(now, &summary, true);
            } else {
                self.enter_recovery(now, &mut summary);
            }
        }
        if !self.is_reordering_timer() {
            self.rearm(now);
        }
    }

    /// RFC 6675, section 5, step 4; RFC 5681, section 3.2, step 2.
    fn enter_recovery(&mut self, now: Instant, summary: &mut AckSummary) {
        let reducing = self.state == CongestionState::Cwr;
        self.begin_undo(!summary.ece);
        let before = self.window_packets();
        let target = self.controller.window();
        if summary.losses.packets == 0 {
            // The losses were detected earlier: report one packet of zero bytes.
            if let Some(front) = self.scoreboard.front().copied() {
                summary.losses.add(&front);
                summary.losses.bytes = 0;
            }
        }
        self.report_losses(now, &summary.losses, summary.prior_in_flight, false);
        self.recovery_point = self.next;
        self.state = CongestionState::Recovery;
        if !reducing || self.controller.window() < target {
            self.begin_reduction(before, target);
            self.due.reduction = self.negotiated.ecn;
        }
        self.due.first = self.prr.is_none();
        let in_flight = self.pipe();
        if summary.delivered == 0
            && let Some(prr) = &mut self.prr
        {
            // After a timer there is no delivery, but the first retransmission must leave.
            let target = self.controller.packets();
            prr.on_acknowledged(1, in_flight, target, false);
        }
    }

    /// Starts PRR if the controller reduced its window from `target`.
    fn begin_reduction(&mut self, before: u64, target: u64) {
        self.tail_probe = None;
        let reduced = self.controller.window() < target;
        self.prr = (self.parameters.prr && reduced).then(|| Box::new(Prr::new(before)));
    }

    /// Reduces the window for a congestion mark, at most once per round trip (RFC 3168, section 6.1.2). The peer learns of it
    /// if it expects that.
    pub fn reduce_window(&mut self, now: Instant) {
        if self.state >= CongestionState::Cwr {
            return;
        }
        let before = self.window_packets();
        let target = self.controller.window();
        self.controller.on_congestion_experienced(now, now);
        self.undo = None;
        self.begin_reduction(before, target);
        self.recovery_point = self.next;
        self.state = CongestionState::Cwr;
        self.due.reduction = self.negotiated.ecn;
    }

    /// Reduces the window for a loss that a tail loss probe repaired (RFC 8985, section 7.4.2).
    pub(super) fn reduce_for_probe(&mut self, now: Instant, losses: &Losses) {
        if self.state < CongestionState::Cwr {
            self.report_losses(now, losses, self.pipe_bytes(), false);
            self.due.reduction = self.negotiated.ecn;
            self.recovery_point = self.next;
        }
        self.keep_open();
    }

    /// Ends a reduction, but keeps its undo state: a late DSACK (RFC 3708) may undo it until the next recovery.
    fn end_reduction(&mut self) {
        self.prr = None;
        self.state = CongestionState::Open;
    }

    /// Leaves the state of recovery when no losses remain.
    fn try_open(&mut self, now: Instant, summary: &AckSummary) {
        if self.scoreboard.retransmitted().packets == 0 {
            self.first_retransmission_clock = None;
        }
        if summary.ece {
            self.reduce_window(now);
        }
        if self.state != CongestionState::Cwr {
            self.keep_open();
        }
    }

    pub(super) fn keep_open(&mut self) {
        let scoreboard = &self.scoreboard;
        let odd = scoreboard.sacked().packets
            + scoreboard.lost().packets
            + self.duplicates
            + scoreboard.retransmitted().packets;
        let state = if odd > 0 {
            CongestionState::Disorder
        } else {
            CongestionState::Open
        };
        if self.state != state {
            self.state = state;
            self.recovery_point = self.next;
        }
        self.prr = None;
    }

    /// Handles a retransmission timeout (RFC 5681, section 3.1; RFC 6675, section 5.1).
    pub(super) fn enter_loss(&mut self, now: Instant, statistics: &mut Statistics) {
        statistics.timeouts += 1;
        let in_flight = self.pipe_bytes();
        let fresh = self.state < CongestionState::Recovery;
        let mut losses = Losses::default();
        if self.scoreboard.front_is_sacked() {
            self.scoreboard.clear_sacks();
        }
        if !self.negotiated.sack {
            self.duplicates = 0;
        }
        let window = self.reordering_window();
        for number in self.scoreboard.first_number()..self.scoreboard.end_number() {
            let Some(record) = self.scoreboard.get(number).copied() else {
                break;
            };
            // RFC 8985, section 6.3: recently sent segments are not lost.
            let is_recent = number != self.scoreboard.first_number()
                && self.is_rack()
                && self.rack.is_recent(now, &record, window);
            if !is_recent && self.scoreboard.mark_lost(number) {
                losses.add(&record);
            }
        }
        self.estimator.on_lost(losses.bytes);
        self.totals.lost += losses.packets as u32;
        if fresh
            || self.una > self.recovery_point
            || (self.state == CongestionState::Loss && self.timeout.consecutive == 0)
        {
            self.begin_undo(true);
        }
        self.controller.on_timeout(now, in_flight);
        if fresh && self.scoreboard.sacked().packets >= DUPLICATE_THRESHOLD {
            // Three deliveries behind the loss: reordering does not explain it.
            self.reordering.extent = self.reordering.extent.min(DUPLICATE_THRESHOLD as u32);
        }
        self.frto.checking = self.parameters.frto && (fresh || self.timeout.consecutive > 0);
        self.prr = None;
        self.state = CongestionState::Loss;
        self.recovery_point = self.next;
        self.tail_probe = None;
        self.frto.new_data_first = false;
        self.due.reduction = self.negotiated.ecn;
        self.due.first = true;
    }

    /// Processes an ACK after a timeout: undoes a spurious timeout (RFC 5682, sections 2.1 and 3.1), or ends recovery.
    fn process_loss(&mut self, now: Instant, summary: &mut AckSummary, statistics: &mut Statistics) {
        let recovered = self.una >= self.recovery_point;
        if summary.advanced && self.try_undo_loss(now, false, summary, statistics) {
            return;
        }
        if self.frto.checking {
            // RFC 5682, section 3.1, step 3b: data sent before the timeout arrives without retransmission.
            if summary.original_acked && self.try_undo_loss(now, true, summary, statistics) {
                return;
            }
            if self.next > self.recovery_point {
                if summary.newly_sacked || summary.duplicates > 0 {
                    // Step 3a: the timeout was genuine.
                    self.frto.checking = false;
                    self.frto.new_data_first = false;
                }
            } else if summary.advanced && !recovered {
                self.recovery_point = self.next;
                // Step 2b: send two new segments instead of retransmissions.
                if self.next < self.writes.end && self.una + self.peer.window > self.next {
                    self.frto.new_data_first = true;
                    return;
                }
                self.frto.checking = false;
            }
        }
        self.frto.new_data_first = false;
        if recovered {
            if !self.try_undo_recovery(now, summary, statistics) {
                self.end_loss();
            }
            return;
        }
        if !self.negotiated.sack {
            if summary.advanced {
                self.duplicates = 0;
            } else if self.next > self.recovery_point {
                self.add_duplicate(summary);
            }
        }
    }

    fn end_loss(&mut self) {
        self.state = CongestionState::Open;
        self.frto.checking = false;
        self.frto.new_data_first = false;
    }
}
