//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus; LEDBAT: RFC 6817): a controller for background traffic, which keeps the
//! queueing delay at a target of 60 ms and leaves the link to flows that fill the queue. Periodic slowdowns empty the queue, so
//! that a flow that starts late measures the path instead of the queue of the others.
//!
//! Parameters: see [`LedbatSettings`].

use std::collections::VecDeque;

use foundation::{Duration, Instant, Problem};

use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::{Acknowledgement, Controller, Loss, Outputs};

/// Minutes over which the base round-trip time is the minimum (RFC 6817, section 4.2).
const BASE_MINUTES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Newest round-trip times of which the minimum is the current one (section 4.5; RFC 6817, section 4.2).
const CURRENT_SAMPLES: usize = 4;
/// Largest divisor of the growth of Reno (section 4.2).
const MAX_DIVISOR: f64 = 16.0;
/// Part of the target at which the initial slow start ends (section 4.1).
const SLOW_START_PART: f64 = 0.75;
/// Round trips before the initial slowdown, and those with a window of two packets (section 4.4).
const SLOWDOWN_ROUNDS: u64 = 2;
/// Time until the next slowdown, in durations of the last one (section 4.4).
const SLOWDOWN_PERIOD: u64 = 9;
/// Smallest window in packets, also that of a slowdown (section 4.4).
const MIN_WINDOW: f64 = 2.0;

/// LEDBAT++: background traffic that keeps a queueing delay and yields to other flows.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LedbatSettings {
    /// Initial window in packets (default 2, RFC 6817).
    pub initial_window: u64,
    /// Queueing delay, "1ms" to "1s" (default "60ms").
    pub target: Duration,
}

impl Default for LedbatSettings {
    fn default() -> Self {
        Self {
            initial_window: 2,
            target: Duration::from_millis(60),
        }
    }
}

impl ControllerSettings for LedbatSettings {
    fn validate(&self) -> Vec<Problem> {
        let allowed = (Duration::from_millis(1)..=Duration::from_secs(1)).contains(&self.target);
        let target = Problem::range("target", self.target, allowed, "1ms to 1s");
        let window = check_initial_window(self.initial_window);
        window.into_iter().chain(target).collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Ledbat {
            target: self.target.as_secs_f64(),
            segment: context.segment as f64,
            window: context.initial_window.unwrap_or(self.initial_window) as f64,
            ssthresh: f64::MAX,
            phase: Phase::SlowStart,
            slowdown_at: None,
            slowed_down_at: Instant::ZERO,
            reduced_at: None,
            minutes: VecDeque::new(),
            current: VecDeque::new(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The initial slow start.
    SlowStart,
    Avoidance,
    /// Two packets until this time.
    Slowdown(Instant),
    /// Slow start up to the window before the slowdown.
    Recovery,
}

#[derive(Debug)]
struct Ledbat {
    /// Seconds.
    target: f64,
    segment: f64,
    /// Packets.
    window: f64,
    ssthresh: f64,
    phase: Phase,
    /// Time of the next slowdown, and of the last one.
    slowdown_at: Option<Instant>,
    slowed_down_at: Instant,
    reduced_at: Option<Instant>,
    /// Start and least round-trip time of each minute.
    minutes: VecDeque<(Instant, Duration)>,
    current: VecDeque<Duration>,
}

impl Ledbat {
    fn measure(&mut self, now: Instant, rtt: Duration) {
        match self.minutes.back_mut() {
            Some((start, least)) if now - *start < MINUTE => *least = rtt.min(*least),
            _ => self.minutes.push_back((now, rtt)),
        }
        self.current.push_back(rtt);
        while self.minutes.len() > BASE_MINUTES {
            self.minutes.pop_front();
        }
        while self.current.len() > CURRENT_SAMPLES {
            self.current.pop_front();
        }
    }

    /// Returns the base round-trip time and the queueing delay in s.
    fn delays(&self) -> Option<(f64, f64)> {
        let base = self.minutes.iter().map(|(_, rtt)| *rtt).min()?;
        let current = *self.current.iter().min()?;
        Some((base.as_secs_f64(), current.saturating_sub(base).as_secs_f64()))
    }

    /// Returns the growth in packets per round trip (section 4.2).
    fn gain(&self, base: f64) -> f64 {
        1.0 / (2.0 * self.target / base).ceil().clamp(1.0, MAX_DIVISOR)
    }

    fn leave_slow_start(&mut self, ack: &Acknowledgement) {
        let wait = match self.phase {
            Phase::SlowStart => ack.smoothed_rtt * SLOWDOWN_ROUNDS,
            _ => (ack.now - self.slowed_down_at) * SLOWDOWN_PERIOD,
        };
        self.slowdown_at = Some(ack.now + wait);
        self.phase = Phase::Avoidance;
    }

    fn slow_start(&mut self, ack: &Acknowledgement, gain: f64, delay: f64) {
        let is_initial = self.phase == Phase::SlowStart;
        if is_initial && delay > SLOW_START_PART * self.target {
            self.leave_slow_start(ack);
            return;
        }
        if ack.window_limited && !ack.in_recovery {
            self.window += gain * ack.bytes as f64 / self.segment;
        }
        if self.window >= self.ssthresh {
            self.window = self.ssthresh;
            self.leave_slow_start(ack);
        }
    }

    /// Grows by the gain per round trip, and decreases in proportion to the excess of the delay (section 4.3).
    fn avoid(&mut self, ack: &Acknowledgement, gain: f64, delay: f64) {
        let excess = (delay / self.target - 1.0).max(0.0);
        let change = (gain - self.window * excess).max(-self.window / 2.0);
        if change < 0.0 || ack.window_limited && !ack.in_recovery {
            let part = (ack.bytes as f64 / self.segment / self.window).min(1.0);
            self.window = (self.window + change * part).max(MIN_WINDOW);
        }
    }

    /// Halves the window once for all packets sent before (RFC 6817, section 2.4.2).
    fn reduce(&mut self, now: Instant, sent_at: Instant) {
        if self.reduced_at.is_some_and(|at| sent_at <= at) || matches!(self.phase, Phase::Slowdown(_)) {
            return;
        }
        self.reduced_at = Some(now);
        self.window = (self.window / 2.0).max(MIN_WINDOW.min(self.window));
        // The next ACK ends a slow start.
        self.ssthresh = self.window.max(MIN_WINDOW);
    }
}

impl Controller for Ledbat {
    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        if let Some(rtt) = ack.rtt {
            self.measure(ack.now, rtt);
        }
        let Some((base, delay)) = self.delays() else {
            return;
        };
        let gain = self.gain(base);
        match self.phase {
            Phase::SlowStart | Phase::Recovery => self.slow_start(ack, gain, delay),
            Phase::Slowdown(until) if ack.now >= until => self.phase = Phase::Recovery,
            Phase::Slowdown(_) => {}
            Phase::Avoidance if self.slowdown_at.is_some_and(|at| ack.now >= at) => {
                self.ssthresh = self.window;
                self.window = MIN_WINDOW;
                self.slowed_down_at = ack.now;
                self.phase = Phase::Slowdown(ack.now + ack.smoothed_rtt * SLOWDOWN_ROUNDS);
            }
            Phase::Avoidance => self.avoid(ack, gain, delay),
        }
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.reduce(loss.now, loss.newest_sent_at);
    }

    fn on_timeout(&mut self, now: Instant, _bytes_in_flight: u64) {
        self.ssthresh = (self.window / 2.0).max(MIN_WINDOW);
        self.window = 1.0;
        self.reduced_at = Some(now);
        self.slowed_down_at = now;
        self.phase = Phase::Recovery;
    }

    fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant) {
        self.reduce(now, sent_at);
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            window: (self.window * self.segment) as u64,
            pacing_rate: None,
            in_slow_start: matches!(self.phase, Phase::SlowStart | Phase::Recovery),
        }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::SlowStart => "slow-start",
            Phase::Avoidance => "congestion-avoidance",
            Phase::Slowdown(_) => "slowdown",
            Phase::Recovery => "slowdown-recovery",
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window * self.segment);
        if let Some((base, delay)) = self.delays() {
            report("base_rtt_seconds", base);
            report("queueing_delay_seconds", delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::{ack, loss, metric};

    const SEGMENT: u64 = 1000;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Returns an ACK with this round-trip time in ms.
    fn sample(now: u64, packets: u64, rtt: u64) -> Acknowledgement {
        Acknowledgement {
            rtt: Some(Duration::from_millis(rtt)),
            smoothed_rtt: Duration::from_millis(100),
            ..ack(ms(now), packets * SEGMENT)
        }
    }

    /// Returns a controller with 100 packets and a base of 100 ms, which has left slow start at 1000 ms.
    fn avoiding() -> Box<dyn Controller> {
        let settings = LedbatSettings {
            initial_window: 100,
            ..LedbatSettings::default()
        };
        let mut ledbat = settings.build(SEGMENT);
        for rtt in [100, 145, 145, 145, 145] {
            ledbat.on_acknowledged(&sample(990, 0, rtt));
        }
        assert_eq!(ledbat.phase(), "slow-start", "three quarters of the target");
        for _ in 0..4 {
            ledbat.on_acknowledged(&sample(1000, 0, 146));
        }
        assert_eq!(ledbat.phase(), "congestion-avoidance");
        ledbat
    }

    #[test]
    fn grows_by_a_part_of_reno() {
        // Section 4.2: 1 / ceil(120 ms / base), at least 1/16.
        for (base, gain) in [(200, 1.0), (120, 1.0), (100, 0.5), (20, 1.0 / 6.0), (5, 0.0625)] {
            let mut ledbat = LedbatSettings::default().build(SEGMENT);
            ledbat.on_acknowledged(&sample(100, 2, base));
            let grown = metric(&*ledbat, "window_bytes") / 1000.0 - 2.0;
            assert!((grown - 2.0 * gain).abs() < 1e-9, "{base} ms: {grown}");
        }
    }

    #[test]
    fn decreases_by_the_excess_of_the_delay() {
        // Section 4.3, per round trip: +0.5 up to the target, then 0.5 - 100 (delay / 60 ms - 1), at most half of the window.
        for (rtt, window) in [(160, 100.5), (166, 90.5), (196, 50.0), (400, 50.0)] {
            let mut ledbat = avoiding();
            for packets in [0, 0, 0, 100] {
                ledbat.on_acknowledged(&sample(1010, packets, rtt));
            }
            let found = metric(&*ledbat, "window_bytes") / 1000.0;
            assert!((found - window).abs() < 1e-9, "{rtt} ms: {found}");
        }
    }

    /// Section 4.4: two packets for two round trips, after two round trips and then after nine times the last duration.
    #[test]
    fn slows_down_in_proportion_to_the_last_time() {
        let mut ledbat = avoiding();
        let phase_at = |ledbat: &mut dyn Controller, now, packets| {
            ledbat.on_acknowledged(&sample(now, packets, 100));
            (ledbat.phase(), ledbat.window() / SEGMENT)
        };
        assert_eq!(phase_at(&mut *ledbat, 1199, 0), ("congestion-avoidance", 100));
        assert_eq!(phase_at(&mut *ledbat, 1200, 0), ("slowdown", 2));
        assert_eq!(phase_at(&mut *ledbat, 1399, 2), ("slowdown", 2));
        assert_eq!(phase_at(&mut *ledbat, 1400, 2), ("slowdown-recovery", 2));
        assert_eq!(phase_at(&mut *ledbat, 1500, 20), ("slowdown-recovery", 12));
        assert_eq!(phase_at(&mut *ledbat, 1700, 200), ("congestion-avoidance", 100));
        // 500 ms of slowdown: the next one is 4500 ms later.
        assert_eq!(phase_at(&mut *ledbat, 6199, 0), ("congestion-avoidance", 100));
        assert_eq!(phase_at(&mut *ledbat, 6200, 0), ("slowdown", 2));
    }

    #[test]
    fn halves_once_for_the_losses_of_a_window() {
        let mut ledbat = avoiding();
        ledbat.on_lost(&loss(ms(1100), ms(1050), 100_000));
        ledbat.on_lost(&loss(ms(1110), ms(1090), 90_000));
        assert_eq!(ledbat.window(), 50_000);
        ledbat.on_timeout(ms(1300), 50_000);
        assert_eq!((ledbat.window(), ledbat.phase()), (1000, "slowdown-recovery"));
        // Slow start returns to half of the window before the timeout.
        ledbat.on_acknowledged(&sample(1400, 100, 100));
        assert_eq!(
            (ledbat.window(), ledbat.phase()),
            (25_000, "congestion-avoidance")
        );
    }

    /// RFC 6817, section 4.2: the base is the minimum of ten minutes.
    #[test]
    fn forgets_a_base_after_ten_minutes() {
        let mut ledbat = LedbatSettings::default().build(SEGMENT);
        ledbat.on_acknowledged(&sample(100, 0, 20));
        for minute in 1..=9 {
            ledbat.on_acknowledged(&sample(100 + minute * 60_000, 0, 50));
            assert_eq!(metric(&*ledbat, "base_rtt_seconds"), 0.02, "{minute}");
        }
        ledbat.on_acknowledged(&sample(600_100, 0, 50));
        assert_eq!(metric(&*ledbat, "base_rtt_seconds"), 0.05);
    }
}
