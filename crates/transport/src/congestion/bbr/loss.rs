//! Response to losses: long-term bounds, found while probing, and short-term bounds, until the next probe
//! (draft-ietf-ccwg-bbr, section 5.5.10).

use foundation::Instant;

use super::{AckPhase, AckSample, Bbr, Flight, PPM, State, UNBOUNDED, scale};
use crate::congestion::Loss;

impl Bbr {
    /// Returns whether more than the allowed share was lost during a packet's flight.
    pub(super) fn is_too_high(&self, flight: Flight) -> bool {
        let allowed = self.share(flight.in_flight);
        flight.lost > allowed && flight.lost > allowed + self.ambient_loss(flight.in_flight)
    }

    /// Returns the loss threshold's share of `bytes`.
    fn share(&self, bytes: u64) -> u64 {
        scale(bytes, self.loss_ppm, PPM)
    }

    pub(super) fn start_loss_round(&mut self) {
        if !self.loss_in_round {
            self.loss_round_end = self.delivered;
            self.save_bounds();
        }
        self.loss_in_round = true;
    }

    pub(super) fn note_loss(&mut self, loss: &Loss) {
        self.start_loss_round();
        self.loss_events += 1;
        self.ambient.on_lost(loss.bytes);
        if !self.probe_samples {
            return;
        }
        let flight = Flight {
            in_flight: loss.in_flight_at_send,
            lost: loss.lost_since_send,
        };
        if self.is_too_high(flight) {
            let at_loss = self.in_flight_at_loss(flight, loss.bytes);
            self.handle_too_high(at_loss, loss.application_limited, loss.now);
        }
    }

    /// Returns the bytes in flight at which the losses crossed the threshold, within the last `bytes` lost (section
    /// 5.5.10.2).
    pub(super) fn in_flight_at_loss(&self, flight: Flight, bytes: u64) -> u64 {
        let prior = flight.in_flight.saturating_sub(bytes);
        let lost_prior = flight.lost.saturating_sub(bytes);
        let allowed = (self.share(prior) + self.ambient_loss(prior)).saturating_sub(lost_prior);
        prior + scale(allowed, PPM, PPM - self.loss_ppm).min(bytes)
    }

    /// Handles too much loss of a probe: lowers the long-term bound and stops probing.
    pub(super) fn handle_too_high(&mut self, in_flight: u64, application_limited: bool, now: Instant) {
        self.previous_probe_too_high = true;
        self.probe_samples = false;
        if !application_limited {
            let least = (self.target_inflight() as f64 * self.beta) as u64;
            self.inflight_longterm = in_flight.max(least);
        }
        if self.state == State::Up {
            self.undo.ended = Some(State::Up);
            self.start_down(now);
        }
    }

    /// Updates the delivery signals of the current round; at its end, responds to its losses.
    pub(super) fn update_congestion_signals(&mut self, sample: &mut AckSample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.prior_delivered < self.loss_round_end {
            return;
        }
        self.loss_round_end = self.delivered;
        sample.starts_loss_round = true;
        let congested = self.marked_in_round || self.loss_in_round && self.round_lost_too_much();
        if congested && !self.is_probing() {
            self.lower_short_term_bounds();
        }
        self.loss_in_round = false;
        self.marked_in_round = false;
    }

    /// Reduces by beta at most, and not below the last delivery. A round without a measured rate shows no lower bandwidth: if
    /// such rounds reduced it, it would have no lower bound.
    fn lower_short_term_bounds(&mut self) {
        if self.bw_shortterm == UNBOUNDED {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == UNBOUNDED {
            self.inflight_shortterm = self.window;
        }
        let reduced = |value: u64| (value as f64 * self.beta) as u64;
        if self.bw_latest > 0 {
            self.bw_shortterm = self.bw_latest.max(reduced(self.bw_shortterm));
        }
        self.inflight_shortterm = self.inflight_latest.max(reduced(self.inflight_shortterm));
    }

    pub(super) fn reset_short_term_bounds(&mut self) {
        self.bw_shortterm = UNBOUNDED;
        self.inflight_shortterm = UNBOUNDED;
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.marked_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// Returns whether the sender probes for more bandwidth.
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// Processes the ACKs of a probe, and raises the long-term bound if there was no loss (section 5.3.3.6). Returns
    /// whether it changed the state.
    pub(super) fn adapt_long_term_bound(&mut self, sample: &AckSample) -> bool {
        if sample.starts_round && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if sample.starts_round && self.ack_phase == AckPhase::ProbeStopping {
            self.probe_samples = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bandwidth() {
                if !sample.application_limited {
                    self.bandwidth.advance();
                    self.ambient.advance_cycle();
                }
                if self.previous_probe_precautionary && !self.previous_probe_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.inflight_longterm != UNBOUNDED && !self.is_too_high(sample.flight) {
            self.inflight_longterm = self.inflight_longterm.max(sample.flight.in_flight);
            if self.state == State::Up {
                self.raise_long_term_bound(sample);
            }
        }
        false
    }
}
