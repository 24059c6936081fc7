//! PCC Vivace (M. Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018): the sender measures the utility of
//! rates above and below its own in monitor intervals, and moves its rate along the gradient.
//!
//! The utility of a rate of x Mbit/s is x^0.9 - 900 x S - 11.35 x L (section 4.1), where the growth S of the
//! round-trip times per time and the share L of lost bytes are those of the interval. Without queue, 0.9 x^-0.1 = 11.35 L is the equilibrium under random
//! loss: 5 % are tolerated up to 101 Mbit/s.
//!
//! Parameters: see [`VivaceSettings`].

use std::collections::VecDeque;

use foundation::{Duration, Instant, Problem, Rate};

use super::pacer::Bursts;
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::{Acknowledgement, Controller, Loss, Outputs};

/// Exponent of the rate (section 4.1).
const EXPONENT: f64 = 0.9;
/// Relative distance of the rates of a pair of intervals (section 5.1).
const EPSILON: f64 = 0.05;
/// Mbit/s per unit of the gradient, before amplification (section 5.2).
const CONVERSION: f64 = 1.0;
/// First limit of a change relative to the rate, and its growth at each change that it limits (section 5.2).
const BOUNDARY: f64 = 0.05;
const BOUNDARY_STEP: f64 = 0.1;
/// Slopes of round-trip times below this are noise (section 5.3).
const SLOPE_TOLERANCE: f64 = 0.01;
/// Packets that an interval contains at least.
const LEAST_PACKETS: f64 = 10.0;
/// Lowest rate in packets per round trip.
const LEAST_PER_ROUND: f64 = 2.0;

/// PCC Vivace: follows the gradient of a utility of rate, delay and loss (NSDI 2018).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VivaceSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Weight of growing delay, 0 (Vivace-loss) to 10000 (default 900).
    pub latency: f64,
    /// Weight of loss, 1 to 1000 (default 11.35).
    pub loss: f64,
}

impl Default for VivaceSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            latency: 900.0,
            loss: 11.35,
        }
    }
}

impl VivaceSettings {
    /// Returns the utility of a rate in Mbit/s.
    fn utility(&self, rate: f64, slope: f64, lost: f64) -> f64 {
        rate.powf(EXPONENT) - self.latency * rate * slope - self.loss * rate * lost
    }
}

impl ControllerSettings for VivaceSettings {
    fn validate(&self) -> Vec<Problem> {
        let (latency, loss) = (self.latency, self.loss);
        let latency = Problem::range(
            "latency",
            latency,
            (0.0..=10_000.0).contains(&latency),
            "0 to 10000",
        );
        let loss = Problem::range("loss", loss, (1.0..=1000.0).contains(&loss), "1 to 1000");
        let window = check_initial_window(self.initial_window);
        window.into_iter().chain(latency).chain(loss).collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Vivace {
            settings: self.clone(),
            segment: context.segment as f64,
            initial_window: context.initial_window.unwrap_or(self.initial_window) as f64,
            acknowledged: 0.0,
            smoothed: None,
            rate: 0.0,
            sending: 0.0,
            phase: Phase::Starting { utility: None },
            plan: VecDeque::new(),
            intervals: VecDeque::new(),
            results: Vec::new(),
            is_up_first: true,
            direction: 0.0,
            streak: 0,
            limited: 0,
        })
    }
}

/// The search for a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The rate doubles while the utility grows.
    Starting { utility: Option<f64> },
    /// The rate follows the gradient.
    Learning,
}

/// Packets sent at one rate, and what became of them.
#[derive(Clone, Debug)]
struct Interval {
    start: Instant,
    end: Instant,
    /// Mbit/s.
    rate: f64,
    sent: u64,
    acknowledged: u64,
    lost: u64,
    /// Whether the application had too little data: the round trips and losses are not those of the rate.
    is_unused: bool,
    /// Sums of a regression of round-trip times on departures, in seconds: count, x, y, xx, xy.
    sums: [f64; 5],
}

impl Interval {
    fn new(start: Instant, length: Duration, rate: f64) -> Self {
        Self {
            start,
            end: start + length,
            rate,
            sent: 0,
            acknowledged: 0,
            lost: 0,
            is_unused: false,
            sums: [0.0; 5],
        }
    }

    fn contains(&self, departure: Instant) -> bool {
        (self.start..self.end).contains(&departure)
    }

    fn add_round_trip(&mut self, departure: Instant, rtt: Duration) {
        let (x, y) = ((departure - self.start).as_secs_f64(), rtt.as_secs_f64());
        for (sum, value) in self.sums.iter_mut().zip([1.0, x, y, x * x, x * y]) {
            *sum += value;
        }
    }

    /// Returns the growth of round-trip times per time, by least squares.
    fn slope(&self) -> f64 {
        let [count, x, y, xx, xy] = self.sums;
        let spread = count * xx - x * x;
        if spread <= 0.0 {
            return 0.0;
        }
        let slope = (count * xy - x * y) / spread;
        if slope.abs() < SLOPE_TOLERANCE { 0.0 } else { slope }
    }

    /// Returns whether the fate of its packets is known, given the departure of the newest packet with a known one.
    fn is_complete(&self, newest: Instant, smoothed: Duration) -> bool {
        let all = self.acknowledged + self.lost >= self.sent;
        newest >= self.end && (all || newest >= self.end + smoothed)
    }

    /// Returns the utility of the planned rate, or of the measured one if a window kept the sender more than a burst of the pacer
    /// below the plan: a rate that the receiver does not permit is no better than the one before. Packets contain `segment` bytes.
    fn utility(&self, settings: &VivaceSettings, segment: f64) -> f64 {
        let lost = self.lost as f64 / self.sent.max(1) as f64;
        let planned = Rate::from_bits_per_second((self.rate * 1e6) as u64);
        let burst = planned.map_or(0, |rate| Bursts::Usual.bytes(rate, segment as u64));
        let most = (self.sent + burst) as f64 * 8.0 / 1e6 / (self.end - self.start).as_secs_f64();
        settings.utility(self.rate.min(most), self.slope(), lost)
    }
}

#[derive(Debug)]
struct Vivace {
    settings: VivaceSettings,
    segment: f64,
    initial_window: f64,
    /// Bytes acknowledged so far.
    acknowledged: f64,
    /// Smoothed round-trip time.
    smoothed: Option<Duration>,
    /// Rate in Mbit/s; 0 until the first round trip.
    rate: f64,
    /// Rate of the current interval, or `rate` between two pairs.
    sending: f64,
    phase: Phase,
    /// Rates of the next intervals.
    plan: VecDeque<f64>,
    /// Intervals whose packets are on the way, in order.
    intervals: VecDeque<Interval>,
    /// Rates and utilities of the current pair.
    results: Vec<(f64, f64)>,
    /// Whether the next pair starts with the higher rate: alternates, so that a trend favours neither.
    is_up_first: bool,
    /// Sign of the last change.
    direction: f64,
    /// Consecutive changes in this direction.
    streak: u32,
    /// Consecutive changes that the boundary limited.
    limited: u32,
}

impl Vivace {
    fn length(&self, rate: f64) -> Duration {
        let packets = LEAST_PACKETS * self.segment * 8.0 / (rate * 1e6);
        let round = self.smoothed.unwrap_or_default();
        round.max(Duration::from_secs_f64(packets.min(10.0)))
    }

    fn least_rate(&self) -> f64 {
        let round = self.smoothed.unwrap_or_default().as_secs_f64().max(1e-6);
        LEAST_PER_ROUND * self.segment * 8.0 / round / 1e6
    }

    /// Plans the next intervals.
    fn plan(&mut self) {
        self.results.clear();
        match self.phase {
            Phase::Starting { .. } => self.plan.push_back(self.rate),
            Phase::Learning => {
                let mut pair = [self.rate * (1.0 + EPSILON), self.rate * (1.0 - EPSILON)];
                if !self.is_up_first {
                    pair.reverse();
                }
                self.is_up_first = !self.is_up_first;
                self.plan.extend(pair);
            }
        }
    }

    /// Returns the interval that lasts at `now`; the rate of the time between two pairs is that of no interval.
    fn current(&mut self, now: Instant) -> Option<&mut Interval> {
        self.intervals
            .back_mut()
            .filter(|interval| interval.contains(now))
    }

    /// Processes the intervals that are complete.
    fn conclude(&mut self, newest: Instant) {
        let smoothed = self.smoothed.unwrap_or_default();
        while let Some(first) = self.intervals.front()
            && first.is_complete(newest, smoothed)
        {
            let Some(interval) = self.intervals.pop_front() else {
                break;
            };
            if interval.is_unused {
                // The interval is repeated.
                self.plan.push_back(interval.rate);
                continue;
            }
            let utility = interval.utility(&self.settings, self.segment);
            match self.phase {
                Phase::Starting { utility: before } => self.start(utility, before),
                Phase::Learning => self.results.push((interval.rate, utility)),
            }
            if let [first, second] = self.results[..] {
                self.learn(first, second);
                self.plan();
            }
        }
    }

    /// Doubles the rate, or returns to the one before if the utility did not grow (section 5.1).
    fn start(&mut self, utility: f64, before: Option<f64>) {
        if before.is_some_and(|before| utility <= before) {
            self.rate = (self.rate / 2.0).max(self.least_rate());
            self.phase = Phase::Learning;
        } else {
            self.rate *= 2.0;
            self.phase = Phase::Starting {
                utility: Some(utility),
            };
        }
        self.plan();
    }

    /// Moves the rate along the gradient (section 5.2).
    fn learn(&mut self, first: (f64, f64), second: (f64, f64)) {
        let gradient = (first.1 - second.1) / (first.0 - second.0);
        let direction = gradient.signum();
        if direction == self.direction {
            self.streak += 1;
        } else {
            (self.direction, self.streak, self.limited) = (direction, 1, 0);
        }
        let streak = f64::from(self.streak);
        let amplifier = if self.streak <= 3 {
            streak
        } else {
            2.0 * streak - 3.0
        };
        let change = (amplifier * CONVERSION * gradient).abs();
        let boundary = |limited: u32| (BOUNDARY + BOUNDARY_STEP * f64::from(limited)) * self.rate;
        let bounded = change.min(boundary(self.limited));
        if change > boundary(self.limited) {
            self.limited += 1;
        } else {
            self.limited = (0..=self.limited)
                .find(|&limited| change <= boundary(limited))
                .unwrap_or(0);
        }
        self.rate = (self.rate + direction * bounded).max(self.least_rate());
    }
}

impl Controller for Vivace {
    fn on_sent(&mut self, now: Instant, bytes: u64, _bytes_in_flight: u64) {
        if self.current(now).is_none()
            && let Some(rate) = self.plan.pop_front()
        {
            let length = self.length(rate);
            self.intervals.push_back(Interval::new(now, length, rate));
        }
        let base = self.rate;
        self.sending = match self.current(now) {
            Some(interval) => {
                interval.sent += bytes;
                interval.rate
            }
            None => base,
        };
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.acknowledged += ack.bytes as f64;
        if self.smoothed.is_none() {
            let round = ack.smoothed_rtt.as_secs_f64().max(1e-6);
            self.rate = self.initial_window * self.segment * 8.0 / round / 1e6;
            self.smoothed = Some(ack.smoothed_rtt);
            self.plan();
        }
        self.smoothed = Some(ack.smoothed_rtt);
        let newest = ack.newest_sent_at;
        if let Some(interval) = self
            .intervals
            .iter_mut()
            .find(|interval| interval.contains(newest))
        {
            interval.acknowledged += ack.bytes;
            interval.is_unused |= ack.rate_sample.is_some_and(|sample| sample.application_limited);
            if let Some(rtt) = ack.rtt {
                interval.add_round_trip(newest, rtt);
            }
        }
        self.conclude(newest);
        let base = self.rate;
        let planned = self.plan.front().copied().unwrap_or(base);
        self.sending = self.current(ack.now).map_or(planned, |interval| interval.rate);
    }

    fn on_lost(&mut self, loss: &Loss) {
        let newest = loss.newest_sent_at;
        if let Some(interval) = self
            .intervals
            .iter_mut()
            .find(|interval| interval.contains(newest))
        {
            interval.lost += loss.bytes;
        }
    }

    /// Starts again at half of the rate: the packets of all intervals are lost, so none of them has a result.
    fn on_timeout(&mut self, _now: Instant, _bytes_in_flight: u64) {
        self.intervals.clear();
        self.plan.clear();
        (self.direction, self.streak, self.limited) = (0.0, 0, 0);
        if self.smoothed.is_some() {
            self.rate = (self.rate / 2.0).max(self.least_rate());
            self.sending = self.rate;
            self.phase = Phase::Starting { utility: None };
            self.plan();
        }
    }

    /// Paces at the rate; the window permits it over two round trips, so that it rarely limits. As in slow start, the window
    /// grows by at most the acknowledged bytes.
    fn outputs(&self) -> Outputs {
        let Some(smoothed) = self.smoothed else {
            return Outputs {
                window: (self.initial_window * self.segment) as u64,
                pacing_rate: None,
                in_slow_start: true,
            };
        };
        let rate = self.sending;
        let two_round_trips = 2.0 * rate * 1e6 / 8.0 * smoothed.as_secs_f64();
        let window = two_round_trips.min(self.initial_window * self.segment + self.acknowledged);
        Outputs {
            window: window.max(4.0 * self.segment) as u64,
            pacing_rate: Rate::from_bits_per_second((rate * 1e6) as u64),
            in_slow_start: matches!(self.phase, Phase::Starting { .. }),
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.outputs().window as f64);
        report("base_rate_bps", self.rate * 1e6);
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Starting { .. } => "slow-start",
            Phase::Learning => "congestion-avoidance",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Returns the utility's derivative at a rate under random loss.
    fn derivative(rate: f64, lost: f64) -> f64 {
        let settings = VivaceSettings::default();
        let utility = |rate| settings.utility(rate, 0.0, lost);
        (utility(rate * 1.0001) - utility(rate * 0.9999)) / (0.0002 * rate)
    }

    /// Section 4.1: with 11.35, the utility grows up to (0.9 / (11.35 L))^10 Mbit/s under a random loss of L: 101 Mbit/s at 5 %.
    #[test]
    fn random_loss_of_five_percent_is_tolerated_up_to_100_mbit() {
        for (lost, equilibrium) in [(0.05, 101.4), (0.06, 16.4), (0.07, 3.51)] {
            assert!(derivative(0.98 * equilibrium, lost) > 0.0, "{lost}");
            assert!(derivative(1.02 * equilibrium, lost) < 0.0, "{lost}");
        }
    }

    /// Section 4.2: with 900, up to 1000 senders on 1 Gbit/s gain nothing from a growing queue: at the capacity, where the slope
    /// is the excess of all senders over the capacity, the derivative is negative for each of them.
    #[test]
    fn many_senders_keep_the_queue_empty() {
        let settings = VivaceSettings::default();
        for senders in [1.0, 2.0, 10.0, 100.0, 980.0] {
            let share = 1000.0 / senders;
            let utility = |rate: f64| settings.utility(rate, ((rate - share) / 1000.0).max(0.0), 0.0);
            assert!(utility(share * 1.001) < utility(share), "{senders}");
        }
    }

    fn learning(rate: f64) -> Vivace {
        Vivace {
            settings: VivaceSettings::default(),
            segment: 1000.0,
            initial_window: 10.0,
            acknowledged: 1e6,
            smoothed: Some(Duration::from_millis(40)),
            rate,
            sending: rate,
            phase: Phase::Learning,
            plan: VecDeque::new(),
            intervals: VecDeque::new(),
            results: Vec::new(),
            is_up_first: true,
            direction: 0.0,
            streak: 0,
            limited: 0,
        }
    }

    /// Section 5.2: a gradient of 0.2 at 100 Mbit/s changes the rate by m times 0.2 with m = 1, 2, 3, 5, 7; a turn restarts.
    #[test]
    fn steps_grow_with_confidence() {
        let mut vivace = learning(100.0);
        let mut step = |gradient: f64| {
            let before = vivace.rate;
            let [up, down] = [before * 1.05, before * 0.95];
            vivace.learn((up, gradient * up), (down, gradient * down));
            vivace.rate - before
        };
        for expected in [0.2, 0.4, 0.6, 1.0, 1.4] {
            assert!((step(0.2) - expected).abs() < 1e-9);
        }
        assert!((step(-0.2) + 0.2).abs() < 1e-9);
    }

    /// Section 5.2: a steep gradient changes the rate by 5 %, 15 %, 25 %, …, and by 5 % again after a turn.
    #[test]
    fn the_boundary_limits_steps_and_grows() {
        let mut vivace = learning(10.0);
        let mut step = |gradient: f64| {
            let before = vivace.rate;
            let [up, down] = [before * 1.05, before * 0.95];
            vivace.learn((up, gradient * up), (down, gradient * down));
            vivace.rate / before - 1.0
        };
        for expected in [0.05, 0.15, 0.25, 0.35] {
            assert!((step(1e3) - expected).abs() < 1e-9);
        }
        assert!((step(-1e3) + 0.05).abs() < 1e-9);
    }

    /// The window of a receiver permits 20 packets per round trip, 4 Mbit/s. Doubling stops there.
    #[test]
    fn the_window_of_a_receiver_limits_the_rate() {
        let mut vivace = learning(2.0);
        vivace.phase = Phase::Starting { utility: None };
        vivace.plan();
        let round_trip = Duration::from_millis(40);
        for round in 0..200_u64 {
            let start = ms(40 * round);
            let departures: Vec<Instant> = (0..20)
                .map(|packet| start + Duration::from_millis(2 * packet))
                .collect();
            for &departure in &departures {
                vivace.on_sent(departure, 1000, 20_000);
            }
            for &departure in &departures {
                vivace.on_acknowledged(&Acknowledgement {
                    now: departure + round_trip,
                    bytes: 1000,
                    marked_bytes: 0,
                    rtt: Some(round_trip),
                    newest_sent_at: departure,
                    smoothed_rtt: round_trip,
                    bytes_in_flight: 19_000,
                    delivered: 0,
                    rate_sample: None,
                    window_limited: false,
                    in_recovery: false,
                });
            }
        }
        assert_eq!(vivace.phase, Phase::Learning);
        assert!((2.0..10.0).contains(&vivace.rate), "{}", vivace.rate);
    }

    /// The round-trip times of an interval at 12 Mbit/s over 10 Mbit/s grow by 0.2 per time.
    #[test]
    fn the_slope_is_the_excess_over_the_capacity() {
        let mut interval = Interval::new(ms(0), Duration::from_millis(40), 12.0);
        for packet in 0..40_u64 {
            let departure = ms(0) + Duration::from_millis(packet);
            interval.add_round_trip(departure, Duration::from_micros(20_000 + packet * 200));
        }
        assert!((interval.slope() - 0.2).abs() < 1e-9);
        let mut noise = Interval::new(ms(0), Duration::from_millis(40), 12.0);
        for packet in 0..40_u64 {
            let departure = ms(0) + Duration::from_millis(packet);
            noise.add_round_trip(departure, Duration::from_micros(20_000 + packet * 9));
        }
        assert_eq!(noise.slope(), 0.0);
    }
}
