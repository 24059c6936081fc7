//! Loss recovery: when it begins, what it takes for lost, and when it ends
//! (RFC 5681 section 3.2, RFC 6582, RFC 6675 section 5, RFC 8985 section 6, RFC 5682).

use foundation::Instant;

use super::ack::{AckSummary, Losses};
use super::prr::Prr;
use super::rack::Tolerance;
use super::{CongestionState, DUPLICATE_THRESHOLD, Sender};
use crate::statistics::Statistics;

impl Sender {
    /// An ACK is out of the ordinary, or arrived in an extraordinary state.
    pub(super) fn alert(&mut self, now: Instant, summary: &mut AckSummary, statistics: &mut Statistics) {
        if summary.ece
            && let Some(undo) = &mut self.undo
        {
            // A mark is congestion, whatever became of the segments (RFC 3168, section 6.1.2).
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
                    if !self.use_sack {
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
                    if !self.use_sack {
                        self.add_duplicate(summary);
                    }
                } else if self.try_undo_partial(now, summary, statistics) {
                    return;
                }
                if self.try_undo_dsack(now, statistics) {
                    self.try_open(now, summary);
                }
                self.find_losses(now, summary);
                if self.state == CongestionState::Recovery {
                    self.report(now, summary, true);
                    return;
                }
                if !self.is_time_to_recover() {
                    self.report(now, summary, false);
                    return;
                }
            }
            CongestionState::Loss => {
                self.process_loss(now, summary, statistics);
                if self.state != CongestionState::Loss && self.use_sack {
                    self.rack.touch();
                }
                self.find_losses(now, summary);
                if self.state != CongestionState::Open || !self.is_time_to_recover() {
                    self.report(now, summary, true);
                    return;
                }
            }
            _ => {
                if !self.use_sack {
                    if summary.advanced {
                        self.duplicates = 0;
                    }
                    self.add_duplicate(summary);
                }
                self.try_undo_dsack(now, statistics);
                self.find_losses(now, summary);
                if !self.is_time_to_recover() {
                    self.report(now, summary, false);
                    self.try_open(now, summary);
                    return;
                }
            }
        }
        self.enter_recovery(now, summary);
    }

    fn report(&mut self, now: Instant, summary: &mut AckSummary, in_recovery: bool) {
        if summary.losses.packets > 0 {
            self.report_losses(now, &summary.losses, summary.prior_in_flight, in_recovery);
        }
    }

    /// A duplicate ACK without SACK: a segment has arrived somewhere.
    fn add_duplicate(&mut self, summary: &mut AckSummary) {
        if summary.duplicates == 0 {
            return;
        }
        // Not more than are in flight and not lost (RFC 5681, section 3.2, on misbehaving receivers).
        let most = self.scoreboard.out().packets - self.scoreboard.lost().packets;
        if self.duplicates < most {
            self.duplicates += 1;
            summary.delivered += 1;
            summary.delivered_bytes += u64::from(self.segment);
        }
    }

    /// What is lost by now, after this ACK.
    fn find_losses(&mut self, now: Instant, summary: &mut AckSummary) {
        let mut losses = Losses::default();
        if !self.use_sack {
            let begins = self.state < CongestionState::Recovery && self.duplicates >= self.reordering;
            // RFC 6582, section 3.2, step 5: a partial acknowledgement tells of the next loss.
            let goes_on = self.state == CongestionState::Recovery && summary.advanced;
            if begins || goes_on {
                let first = self.scoreboard.first_number();
                if let Some(record) = self.scoreboard.get(first).copied()
                    && self.scoreboard.mark_lost(first)
                {
                    losses.add(&record);
                    // It leaves at once, whatever is in flight, unless the reduction's own rules say when.
                    self.send_first |= goes_on && self.prr.is_none();
                }
                let most = self.scoreboard.out().packets - self.scoreboard.lost().packets;
                self.duplicates = self.duplicates.min(most);
            }
        } else if self.is_rack() {
            self.detect_by_time(now, &mut losses, summary);
        } else if self.state != CongestionState::Loss {
            self.scoreboard
                .mark_lost_by_count(self.reordering, |record| losses.add(record));
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
    pub(super) fn reordering_window(&self) -> foundation::Duration {
        self.rack.reordering_window(&Tolerance {
            reordering_seen: self.reordering_seen > 0,
            in_recovery: self.state >= CongestionState::Recovery,
            threshold_reached: self.scoreboard.sacked().packets >= self.reordering,
            min_rtt: self.rtt.minimum().unwrap_or_default(),
            smoothed: self.rtt.smoothed(),
        })
    }

    fn is_time_to_recover(&self) -> bool {
        self.scoreboard.lost().packets > 0
    }

    /// The reordering timer has run out (RFC 8985, section 6.3).
    pub(super) fn on_reordering_timeout(&mut self, now: Instant) {
        let mut summary = AckSummary {
            prior_in_flight: self.pipe_bytes(),
            ..AckSummary::default()
        };
        self.rack.touch();
        let mut losses = Losses::default();
        self.detect_by_time(now, &mut losses, &mut summary);
        summary.losses = losses;
        if losses.packets > 0 {
            if self.state == CongestionState::Recovery {
                self.report(now, &mut summary, true);
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
            // What was lost before is repaired in a new episode.
            if let Some(front) = self.scoreboard.front().copied() {
                summary.losses.add(&front);
                summary.losses.bytes = 0;
            }
        }
        self.report_losses(now, &summary.losses, summary.prior_in_flight, reducing);
        self.recovery_point = self.next;
        self.state = CongestionState::Recovery;
        if !reducing {
            self.begin_reduction(before, target);
            self.announce_reduction = self.ecn;
        }
        self.send_first = self.prr.is_none();
        let in_flight = self.pipe();
        if summary.delivered == 0
            && let Some(prr) = &mut self.prr
        {
            // Entered by a timer: the first retransmission leaves all the same.
            let target = (self.controller.window() / self.control_segment).max(1);
            prr.on_acknowledged(1, in_flight, target, false);
        }
    }

    /// The controller has been told to reduce: the window follows in proportion, if it did.
    fn begin_reduction(&mut self, before: u64, target: u64) {
        self.tail_probe = None;
        let reduced = self.controller.window() < target;
        self.prr = (self.parameters.prr && reduced).then(|| Prr::new(before));
    }

    /// RFC 3168, section 6.1.2: once a round trip.
    fn enter_cwr(&mut self, now: Instant) {
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
        self.announce_reduction = true;
    }

    /// The owner wishes a smaller window: as if a packet had been marked, but that the peer hears nothing of it where ECN is not
    /// in use.
    pub fn reduce_window(&mut self, now: Instant) {
        self.enter_cwr(now);
        self.announce_reduction &= self.ecn;
    }

    /// A tail loss probe repaired a loss that nobody saw (RFC 8985, section 7.4.2): the window shrinks for it.
    pub(super) fn reduce_for_probe(&mut self, now: Instant, losses: &Losses) {
        if self.state < CongestionState::Cwr {
            self.report_losses(now, losses, self.pipe_bytes(), false);
            self.announce_reduction = self.ecn;
            self.recovery_point = self.next;
        }
        self.keep_open();
    }

    /// A DSACK that comes late (RFC 3708) still finds what to take back, until the next episode.
    fn end_reduction(&mut self) {
        self.prr = None;
        self.state = CongestionState::Open;
    }

    /// Nothing is lost (any more): the state follows what is known.
    fn try_open(&mut self, now: Instant, summary: &AckSummary) {
        if self.scoreboard.retransmitted().packets == 0 {
            self.first_retransmission_clock = None;
        }
        if summary.ece {
            self.enter_cwr(now);
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

    /// A retransmission timeout (RFC 5681, section 3.1; RFC 6675, section 5.1).
    pub(super) fn enter_loss(&mut self, now: Instant, statistics: &mut Statistics) {
        statistics.timeouts += 1;
        let in_flight = self.pipe_bytes();
        let fresh = self.state < CongestionState::Recovery;
        let mut losses = Losses::default();
        if self.scoreboard.front_is_sacked() {
            self.scoreboard.forget_sacks();
        }
        if !self.use_sack {
            self.duplicates = 0;
        }
        let window = self.reordering_window();
        for number in self.scoreboard.first_number()..self.scoreboard.end_number() {
            let Some(record) = self.scoreboard.get(number).copied() else {
                break;
            };
            // RFC 8985, section 6.3: what left a moment ago is given its time.
            let young = number != self.scoreboard.first_number()
                && self.is_rack()
                && self.rack.is_recent(now, &record, window);
            if !young && self.scoreboard.mark_lost(number) {
                losses.add(&record);
            }
        }
        self.estimator.on_lost(losses.bytes);
        self.lost_total += losses.packets;
        if fresh
            || self.una > self.recovery_point
            || (self.state == CongestionState::Loss && self.timeouts == 0)
        {
            self.begin_undo(true);
        }
        self.controller.on_timeout(now, in_flight);
        if fresh && self.scoreboard.sacked().packets >= DUPLICATE_THRESHOLD {
            // So many arrived behind the loss that no reordering explains it.
            self.reordering = self.reordering.min(DUPLICATE_THRESHOLD);
        }
        self.frto = self.parameters.frto && (fresh || self.timeouts > 0);
        self.prr = None;
        self.state = CongestionState::Loss;
        self.recovery_point = self.next;
        self.tail_probe = None;
        self.new_data_first = false;
        self.announce_reduction = self.ecn;
        self.send_first = true;
    }

    /// After a timeout: was it needless (RFC 5682, section 2.1 and 3.1)? Is it over?
    fn process_loss(&mut self, now: Instant, summary: &mut AckSummary, statistics: &mut Statistics) {
        let recovered = self.una >= self.recovery_point;
        if summary.advanced && self.try_undo_loss(now, false, summary, statistics) {
            return;
        }
        if self.frto {
            // RFC 5682, section 3.1, step 3b: data of before the timeout arrives without having been sent again.
            if summary.original_acked && self.try_undo_loss(now, true, summary, statistics) {
                return;
            }
            if self.next > self.recovery_point {
                if summary.newly_sacked || summary.duplicates > 0 {
                    // Step 3a: the timeout was real.
                    self.frto = false;
                    self.new_data_first = false;
                }
            } else if summary.advanced && !recovered {
                self.recovery_point = self.next;
                // Step 2b: two new segments rather than retransmissions, to see what comes back.
                if self.next < self.written && self.una + self.window > self.next {
                    self.new_data_first = true;
                    return;
                }
                self.frto = false;
            }
        }
        self.new_data_first = false;
        if recovered {
            if !self.try_undo_recovery(now, summary, statistics) {
                self.end_loss();
            }
            return;
        }
        if !self.use_sack {
            if summary.advanced {
                self.duplicates = 0;
            } else if self.next > self.recovery_point {
                self.add_duplicate(summary);
            }
        }
    }

    fn end_loss(&mut self) {
        self.state = CongestionState::Open;
        self.frto = false;
        self.new_data_first = false;
    }
}
