//! What losses tell about the path: bounds for the long term, found while probing, and for the
//! short term, until the next probe (draft-ietf-ccwg-bbr, section 5.5.10).

use foundation::Instant;

use super::undo::Undo;
use super::{AckPhase, Bbr, Flight, PPM, Round, State, UNBOUNDED, scale};
use crate::congestion::Loss;

impl Bbr {
    /// Whether more was lost during a packet's flight than the network may lose.
    pub(super) fn is_too_high(&self, flight: Flight) -> bool {
        let allowed = self.share(flight.in_flight);
        flight.lost > allowed && flight.lost > allowed + self.ambient_loss(flight.in_flight)
    }

    /// The loss threshold's part of `bytes`.
    fn share(&self, bytes: u64) -> u64 {
        scale(bytes, self.loss_ppm, PPM)
    }

    fn begin_loss_round(&mut self) {
        if !self.loss_in_round {
            self.loss_round_end = self.delivered;
            self.remember();
        }
        self.loss_in_round = true;
    }

    /// A mark is congestion for certain: the draft leaves the response open but demands one
    /// (section 3.6). It ends Startup and a probe, and lowers the short-term bounds else.
    pub(super) fn note_mark(&mut self, now: Instant) {
        self.begin_loss_round();
        self.marked_in_round = true;
        match self.state {
            State::Startup => self.full_pipe.ever = true,
            State::Refill | State::Up if self.probe_samples => {
                self.handle_too_high(self.in_flight, false, now)
            }
            _ => {}
        }
        // Congestion that was marked was some: there is nothing to undo.
        self.undo = Undo::default();
    }

    pub(super) fn note_loss(&mut self, loss: &Loss) {
        self.begin_loss_round();
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

    /// The bytes in flight at which the losses crossed the threshold, somewhere within the `bytes`
    /// that were now lost (section 5.5.10.2).
    pub(super) fn in_flight_at_loss(&self, flight: Flight, bytes: u64) -> u64 {
        let prior = flight.in_flight.saturating_sub(bytes);
        let lost_prior = flight.lost.saturating_sub(bytes);
        let allowed = (self.share(prior) + self.ambient_loss(prior)).saturating_sub(lost_prior);
        prior + scale(allowed, PPM, PPM - self.loss_ppm).min(bytes)
    }

    /// Probing put too much into the network: remember how much, and stop probing.
    fn handle_too_high(&mut self, in_flight: u64, application_limited: bool, now: Instant) {
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

    /// Follows the deliveries of the round at hand; at its end, adapts to the losses in it.
    pub(super) fn update_congestion_signals(&mut self, round: &mut Round) {
        self.bw_latest = self.bw_latest.max(round.rate);
        self.inflight_latest = self.inflight_latest.max(round.delivered);
        if round.prior_delivered < self.loss_round_end {
            return;
        }
        self.loss_round_end = self.delivered;
        round.loss_round_starts = true;
        let congested = self.marked_in_round || self.loss_in_round && self.round_lost_too_much();
        if congested && !self.is_probing() {
            self.lower_short_term_bounds();
        }
        self.loss_in_round = false;
        self.marked_in_round = false;
    }

    /// By beta at most, and not below what the path has just delivered.
    fn lower_short_term_bounds(&mut self) {
        if self.bw_shortterm == UNBOUNDED {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == UNBOUNDED {
            self.inflight_shortterm = self.window;
        }
        let reduced = |value: u64| (value as f64 * self.beta) as u64;
        self.bw_shortterm = self.bw_latest.max(reduced(self.bw_shortterm));
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

    /// Whether the sender is looking for more bandwidth.
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// Follows the ACKs of a probe, and raises the long-term bound where it held without loss
    /// (section 5.3.3.6). True where it decided the next state.
    pub(super) fn adapt_long_term_bound(&mut self, round: &Round) -> bool {
        if round.starts && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if round.starts && self.ack_phase == AckPhase::ProbeStopping {
            self.probe_samples = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bandwidth() {
                if !round.application_limited {
                    self.bandwidth.advance();
                    self.ambient.advance_cycle();
                }
                if self.previous_probe_precautionary && !self.previous_probe_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.inflight_longterm != UNBOUNDED && !self.is_too_high(round.flight) {
            self.inflight_longterm = self.inflight_longterm.max(round.flight.in_flight);
            if self.state == State::Up {
                self.raise_long_term_bound(round);
            }
        }
        false
    }
}
