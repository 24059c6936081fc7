//! Startup and Drain: find the bandwidth by doubling, then empty the queue that this filled
//! (draft-ietf-ccwg-bbr, sections 5.3.1 and 5.3.2).

use super::{Bbr, Round, State};

/// Growth below which a round counts as a plateau: 25 %.
const GROWTH_PERCENT: u64 = 125;
/// Rounds of plateau that make a full pipe.
const FULL_ROUNDS: u32 = 3;
/// ACKs with losses in a round that make a loss more than noise (BBRStartupFullLossCnt).
const LOSS_EVENTS: u32 = 6;
/// Drain ends after this many rounds in any case.
const DRAIN_ROUNDS: u64 = 3;

/// Looks for a plateau of the delivery rate while sending accelerates (section 5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::congestion) struct FullPipe {
    /// The rate that the next ones are compared with.
    pub baseline: u64,
    rounds: u32,
    /// Full since the search began.
    pub now: bool,
    /// Full once in the life of the connection.
    pub ever: bool,
}

impl FullPipe {
    /// A new search, which expects growth over `baseline`.
    pub(in crate::congestion) fn restart(&mut self, baseline: u64) {
        (self.baseline, self.rounds, self.now) = (baseline, 0, false);
    }

    /// A round with enough to send `starts`; what is delivered now is `rate`.
    pub(in crate::congestion) fn check(&mut self, starts: bool, rate: u64) {
        if self.now || !starts {
            return;
        }
        if rate.saturating_mul(100) >= self.baseline.saturating_mul(GROWTH_PERCENT) {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.ever |= self.now;
    }
}

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    pub(super) fn check_startup_and_drain(&mut self, round: &Round) {
        self.full_pipe
            .check(round.starts && !round.application_limited, round.rate);
        if self.state == State::Startup {
            self.check_startup_loss(round);
            if self.full_pipe.ever {
                self.state = State::Drain;
                self.drain_started = self.round_count;
                self.review_ambient_loss();
            }
        }
        if round.loss_round_starts {
            self.loss_events = 0;
        }
        if self.state == State::Drain
            && (self.in_flight <= self.inflight(100) || self.round_count > self.drain_started + DRAIN_ROUNDS)
        {
            self.enter_probe_bandwidth(round.now);
        }
    }

    /// Losses end Startup when there are many, for a whole round (section 5.3.1.3).
    fn check_startup_loss(&mut self, round: &Round) {
        if round.loss_round_starts && self.loss_events >= LOSS_EVENTS && self.is_too_high(round.flight) {
            self.full_pipe.ever = true;
            self.undo.ended = Some(State::Startup);
            self.inflight_longterm = self.bdp(100).max(self.inflight_latest);
        }
    }
}
