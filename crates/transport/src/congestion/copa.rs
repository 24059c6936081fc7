//! Copa (V. Arun and H. Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018): the rate
//! approaches 1 / (delta dq) packets per second, where dq is the queueing delay, so that a flow keeps about 1 / delta
//! packets in the queue. Beside flows that fill the queue, 1 / delta follows losses like the window of TCP.
//!
//! Parameters: see [`CopaSettings`].

use std::collections::VecDeque;

use foundation::{Duration, Instant, Problem, Rate};

use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::{Acknowledgement, Controller, Loss, Outputs};

/// Time over which the minimum round-trip time is that of the empty path (section 2).
const MIN_RTT_TIME: Duration = Duration::from_secs(10);
/// Smoothed round-trip times within which the queue must be nearly empty once (section 2.2).
const EMPTY_ROUNDS: u64 = 5;
/// Smoothed round-trip times over which the maximum is measured (section 2.2).
const MAX_ROUNDS: u64 = 4;
/// Part of the range of round-trip times below which a queue is nearly empty (section 2.2).
const NEARLY_EMPTY: f64 = 0.1;
/// Rounds in one direction after which the velocity doubles: 2.5 are part of the oscillation in steady state (section 2.1).
const STEADY_ROUNDS: u32 = 3;
const MIN_WINDOW: f64 = 2.0;

/// Copa: keeps about 1 / delta packets of each flow in the queue (NSDI 2018).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CopaSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Weight of delay against rate: a flow keeps 1 / delta packets in the queue; 0.001 to 1 (default 0.5).
    pub delta: f64,
    /// Compete with flows that fill the queue, by a delta that follows losses (default true).
    pub competitive: bool,
}

impl Default for CopaSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            delta: 0.5,
            competitive: true,
        }
    }
}

impl ControllerSettings for CopaSettings {
    fn validate(&self) -> Vec<Problem> {
        let allowed = (0.001..=1.0).contains(&self.delta);
        let delta = Problem::range("delta", self.delta, allowed, "0.001 to 1");
        let window = check_initial_window(self.initial_window);
        window.into_iter().chain(delta).collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let window = context.initial_window.unwrap_or(self.initial_window) as f64;
        Box::new(Copa {
            settings: self.clone(),
            segment: context.segment as f64,
            window,
            slow_start: true,
            delta: self.delta,
            velocity: 1.0,
            is_rising: true,
            steady_rounds: 0,
            round_start: Instant::ZERO,
            round_window: window,
            lost_in_round: false,
            minimum: Minimum::default(),
            standing: Minimum::default(),
            maximum: Minimum::default(),
            empty_at: None,
        })
    }
}

/// The least of recent values. Negated values give the greatest.
#[derive(Clone, Debug, Default)]
struct Minimum(VecDeque<(Instant, i64)>);

impl Minimum {
    /// Adds a value, drops those older than `age`, and returns the least.
    fn add(&mut self, now: Instant, value: i64, age: Duration) -> i64 {
        while self.0.back().is_some_and(|(_, last)| *last >= value) {
            self.0.pop_back();
        }
        self.0.push_back((now, value));
        while self.0.len() > 1 && self.0.front().is_some_and(|(at, _)| now - *at > age) {
            self.0.pop_front();
        }
        self.least().unwrap_or(value)
    }

    fn least(&self) -> Option<i64> {
        self.0.front().map(|(_, value)| *value)
    }
}

#[derive(Debug)]
struct Copa {
    settings: CopaSettings,
    segment: f64,
    /// Packets.
    window: f64,
    slow_start: bool,
    delta: f64,
    velocity: f64,
    /// Direction of the window, and the rounds for which it has not changed.
    is_rising: bool,
    steady_rounds: u32,
    /// A round ends with the first ACK of a packet sent from then on.
    round_start: Instant,
    round_window: f64,
    lost_in_round: bool,
    /// Round-trip times in ns: the least of 10 s and of half a round trip, and the negated greatest of four.
    minimum: Minimum,
    standing: Minimum,
    maximum: Minimum,
    /// When the queue was last nearly empty.
    empty_at: Option<Instant>,
}

impl Copa {
    /// Returns the queueing delay and the standing round-trip time in s.
    fn delays(&self) -> Option<(f64, f64)> {
        let (least, standing) = (self.minimum.least()?, self.standing.least()?);
        Some(((standing - least) as f64 * 1e-9, standing as f64 * 1e-9))
    }

    /// Adds a sample, and compares the queue with an empty one (section 2.2).
    fn measure(&mut self, ack: &Acknowledgement, rtt: Duration) {
        let nanos = i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX);
        let least = self.minimum.add(ack.now, nanos, MIN_RTT_TIME);
        let half = (ack.smoothed_rtt / 2).min(MIN_RTT_TIME);
        let standing = self.standing.add(ack.now, nanos, half);
        let greatest = -self.maximum.add(ack.now, -nanos, ack.smoothed_rtt * MAX_ROUNDS);
        if (standing - least) as f64 <= NEARLY_EMPTY * (greatest - least) as f64 {
            self.empty_at = Some(ack.now);
        }
    }

    /// Returns whether the queue was not nearly empty in the last five round trips: other flows fill it (section 2.2).
    fn is_queue_filled(&self, ack: &Acknowledgement) -> bool {
        self.empty_at
            .is_some_and(|at| ack.now - at > ack.smoothed_rtt * EMPTY_ROUNDS)
    }

    /// Adapts the velocity, and delta beside flows that fill the queue, once per round trip.
    fn end_round(&mut self, ack: &Acknowledgement) {
        let is_rising = self.window > self.round_window;
        if is_rising == self.is_rising {
            self.steady_rounds += 1;
            if self.steady_rounds >= STEADY_ROUNDS {
                // At most a doubling of the window per round trip, like the authors' code (genericCC, `markoviancc.cc`).
                self.velocity = (2.0 * self.velocity).min(self.window * self.delta).max(1.0);
            }
        } else {
            self.turn(is_rising);
        }
        if !self.settings.competitive || !self.is_queue_filled(ack) {
            self.delta = self.settings.delta;
        } else if !self.lost_in_round {
            self.delta = 1.0 / (1.0 / self.delta + 1.0);
        }
        self.lost_in_round = false;
        (self.round_start, self.round_window) = (ack.now, self.window);
    }

    fn turn(&mut self, is_rising: bool) {
        (self.is_rising, self.steady_rounds, self.velocity) = (is_rising, 0, 1.0);
    }

    /// Moves the window towards the target rate by velocity / delta packets per round trip (section 2.1).
    fn approach(&mut self, packets: f64, is_below: bool, window_limited: bool) {
        if self.velocity > 1.0 && is_below != self.is_rising {
            // A velocity for the other direction would overshoot until the end of the round (mvfst, `Copa.cpp`).
            self.turn(is_below);
        }
        let per_round = (self.velocity / self.delta).min(self.window);
        let step = per_round * packets / self.window;
        if !is_below {
            self.window = (self.window - step.min(self.window / 2.0)).max(MIN_WINDOW);
        } else if window_limited {
            self.window += step;
        }
    }
}

impl Controller for Copa {
    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        if let Some(rtt) = ack.rtt {
            self.measure(ack, rtt);
        }
        let Some((queueing, standing)) = self.delays() else {
            return;
        };
        let packets = ack.bytes as f64 / self.segment;
        // The rate window / standing is below 1 / (delta dq), which has no limit without a queue.
        let is_below = self.window * self.delta * queueing <= standing;
        if self.slow_start && !is_below {
            // The ACK shows the queue of a round trip ago, at half of the window. Otherwise it takes more than five round trips to
            // drain the rest, which appears as a queue that other flows fill.
            self.window = (self.window / 2.0).max(MIN_WINDOW);
            self.slow_start = false;
        }
        if !self.slow_start {
            self.approach(packets, is_below, ack.window_limited);
        } else if ack.window_limited {
            self.window += packets;
        }
        if ack.newest_sent_at >= self.round_start {
            self.end_round(ack);
        }
    }

    /// Losses count beside flows that fill the queue alone: they halve 1 / delta (section 2.2).
    fn on_lost(&mut self, _loss: &Loss) {
        if !self.lost_in_round {
            self.delta = (self.delta * 2.0).min(self.settings.delta);
        }
        self.lost_in_round = true;
    }

    fn on_timeout(&mut self, now: Instant, _bytes_in_flight: u64) {
        self.window = MIN_WINDOW;
        self.slow_start = true;
        self.turn(true);
        (self.round_start, self.round_window) = (now, self.window);
    }

    /// Paces at two windows per round trip, which avoids bursts and leaves control to the window (section 2.1).
    fn outputs(&self) -> Outputs {
        let window = self.window * self.segment;
        let rate = self
            .delays()
            .and_then(|(_, standing)| Rate::from_bits_per_second((16.0 * window / standing) as u64));
        Outputs {
            window: window as u64,
            pacing_rate: rate,
            in_slow_start: self.slow_start,
        }
    }

    fn phase(&self) -> &'static str {
        if self.slow_start {
            "slow-start"
        } else if self.delta < self.settings.delta {
            "competitive"
        } else {
            "default"
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window * self.segment);
        report("delta", self.delta);
        report("velocity", self.velocity);
        if let Some((queueing, _)) = self.delays() {
            report("queueing_delay_seconds", queueing);
        }
    }
}
