//! ProbeBW: sends slower than, as fast as, and faster than the network delivers, in turn (draft-ietf-ccwg-bbr,
//! section 5.3.3).

use foundation::{Duration, Instant};

use super::{AckPhase, AckSample, Bbr, State, UNBOUNDED};

/// Headroom below the long-term bound for other flows, in percent (BBR.Headroom).
const HEADROOM_PERCENT: u64 = 15;
/// Maximum number of rounds between probes, for coexistence with Reno and CUBIC.
const MAX_ROUNDS: u64 = 63;
/// Minimum time between probes; up to one second is added at random.
const PROBE_WAIT: Duration = Duration::from_secs(2);

impl Bbr {
    pub(super) fn enter_probe_bandwidth(&mut self, now: Instant) {
        self.start_down(now);
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_bytes_a_segment = UNBOUNDED;
        self.draw_probe_wait(now);
        self.cycle_started = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// Draws the time of the next probe. Flows that share a bottleneck should not probe together: the draw depends on
    /// the time and the bytes so far, which differ between flows, so that a controller needs no external random
    /// numbers.
    fn draw_probe_wait(&mut self, now: Instant) {
        let mixed = (now.as_nanos() ^ self.delivered.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.rounds_since_probe = mixed >> 63;
        self.probe_wait = PROBE_WAIT + Duration::from_nanos((mixed >> 32) % 1_000_000_000);
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term_bounds();
        self.probe_up_rounds = 0;
        self.probe_up_acknowledged = 0;
        self.previous_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &AckSample) {
        self.probe_samples = true;
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_pipe.restart(sample.rate);
        self.state = State::Up;
        self.steepen_long_term_bound();
    }

    pub(super) fn update_cycle(&mut self, sample: &AckSample) {
        if !self.full_pipe.ever || self.adapt_long_term_bound(sample) {
            return;
        }
        if self.state == State::Up && self.is_time_to_go_down(sample) {
            self.previous_probe_too_high = false;
            self.start_down(sample.now);
            return;
        }
        match self.state {
            State::Down if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Refill if sample.starts_round => self.start_up(sample),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno_rounds = (self.target_inflight() / self.segment).min(MAX_ROUNDS);
        now > self.cycle_started + self.probe_wait || self.rounds_since_probe >= reno_rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom()
            && self.in_flight <= self.inflight_at(self.max_bw(), 100)
    }

    fn is_time_to_go_down(&mut self, sample: &AckSample) -> bool {
        if self.previous_probe_too_high && self.in_flight >= self.inflight_longterm {
            self.previous_probe_precautionary = true;
            return true;
        }
        if self.is_window_limited() && self.window >= self.inflight_longterm {
            // The bound limits the rate, not the path.
            self.full_pipe.restart(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// Returns the long-term bound minus the headroom.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = (self.inflight_longterm / 100 * HEADROOM_PERCENT).max(self.segment);
        self.inflight_longterm
            .saturating_sub(headroom)
            .max(self.min_window())
    }

    /// Makes the long-term bound grow by 1, 2, 4, … segments in the rounds of a probe.
    fn steepen_long_term_bound(&mut self) {
        let growth = 1 << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_bytes_a_segment = (self.window / growth).max(self.segment);
    }

    pub(super) fn raise_long_term_bound(&mut self, sample: &AckSample) {
        if !self.is_window_limited() || self.window < self.inflight_longterm {
            return;
        }
        self.probe_up_acknowledged += sample.acknowledged;
        if self.probe_up_acknowledged >= self.probe_up_bytes_a_segment {
            let segments = self.probe_up_acknowledged / self.probe_up_bytes_a_segment;
            self.probe_up_acknowledged -= segments * self.probe_up_bytes_a_segment;
            self.inflight_longterm = self.inflight_longterm.saturating_add(segments * self.segment);
        }
        if sample.starts_round {
            self.steepen_long_term_bound();
        }
    }
}
