//! Minimum round-trip time, and ProbeRTT, which measures the path with a drained queue (draft-ietf-ccwg-bbr, section
//! 5.3.4).

use foundation::{Duration, Instant};

use super::{AckPhase, AckSample, Bbr, PPM, State, scale};

/// Memory of the minimum round-trip time in probe intervals: 10 s with the draft's 5 s.
const MEMORY: u64 = 2;

/// Windowed minimum of the round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRttFilter {
    /// Minimum used by the model; `None` before the first sample.
    pub value: Option<Duration>,
    at: Instant,
    /// Minimum since the last probe.
    recent: Option<Duration>,
    recent_at: Instant,
    /// `recent` is older than the probe interval.
    pub expired: bool,
}

impl MinRttFilter {
    pub(super) const NONE: Self = Self {
        value: None,
        at: Instant::ZERO,
        recent: None,
        recent_at: Instant::ZERO,
        expired: false,
    };

    /// `tolerance` is the share in parts per million by which a sample that confirms the minimum may exceed it.
    fn update(&mut self, now: Instant, rtt: Option<Duration>, interval: Duration, tolerance: u64) {
        self.expired = self.recent.is_some() && now > self.recent_at + interval;
        if let Some(rtt) = rtt
            && (self.expired || self.recent.is_none_or(|recent| rtt < recent))
        {
            self.recent = Some(rtt);
            self.recent_at = now;
        }
        if tolerance > 0
            && let (Some(rtt), Some(recent)) = (rtt, self.recent)
            && rtt.as_nanos() <= recent.as_nanos() + scale(recent.as_nanos(), tolerance, PPM)
        {
            self.recent_at = now;
        }
        let Some(recent) = self.recent else { return };
        if self.value.is_none_or(|value| recent < value) || now > self.at + interval * MEMORY {
            self.value = Some(recent);
            self.at = self.recent_at;
        }
    }
}

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, sample: &AckSample) {
        self.min_rtt.update(
            sample.now,
            sample.rtt,
            self.probe_rtt_interval,
            self.additions.min_rtt_tolerance,
        );
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.restarting {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe_rtt_done_at = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        self.restarting = false;
    }

    fn handle_probe_rtt(&mut self, sample: &AckSample) {
        // Rates measured now, and of everything in flight at the end, are not representative.
        self.limited_until = self.delivered + self.in_flight;
        match self.probe_rtt_done_at {
            None if self.in_flight <= self.probe_rtt_window() => {
                self.probe_rtt_done_at = Some(sample.now + self.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= sample.starts_round;
                if self.probe_rtt_round_done {
                    self.leave_probe_rtt_when_done(sample.now);
                }
            }
        }
    }

    pub(super) fn leave_probe_rtt_when_done(&mut self, now: Instant) {
        if self.probe_rtt_done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.recent_at = now;
        self.window = self.window.max(self.prior_window);
        self.reset_short_term_bounds();
        if self.full_pipe.ever {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.enter_startup();
        }
    }

    /// Returns half of the bandwidth-delay product.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(50).max(self.min_window())
    }
}
