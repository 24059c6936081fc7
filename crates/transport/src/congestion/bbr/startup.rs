//! Startup and Drain: find the bandwidth by doubling, then drain the queue that this filled (draft-ietf-ccwg-bbr,
//! sections 5.3.1 and 5.3.2).

use super::{AckSample, Bbr, State};

/// Minimum ACKs with losses in a round to end Startup (BBRStartupFullLossCnt).
const LOSS_EVENTS: u32 = 6;
/// Maximum number of rounds of Drain.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    pub(super) fn check_startup_and_drain(&mut self, sample: &AckSample) {
        self.full_pipe
            .check(sample.starts_round && !sample.application_limited, sample.rate);
        if self.state == State::Startup {
            self.check_startup_loss(sample);
            if self.full_pipe.ever {
                self.state = State::Drain;
                self.drain_started = self.round_count;
                self.review_ambient_loss();
            }
        }
        if sample.starts_loss_round {
            self.loss_events = 0;
        }
        if self.state == State::Drain
            && (self.in_flight <= self.inflight(100) || self.round_count > self.drain_started + DRAIN_ROUNDS)
        {
            self.enter_probe_bandwidth(sample.now);
        }
    }

    /// Ends Startup after many losses in a whole round (section 5.3.1.3).
    fn check_startup_loss(&mut self, sample: &AckSample) {
        if sample.starts_loss_round && self.loss_events >= LOSS_EVENTS && self.is_too_high(sample.flight) {
            self.full_pipe.ever = true;
            self.undo.ended = Some(State::Startup);
            self.inflight_longterm = self.bdp(100).max(self.inflight_latest);
        }
    }
}
