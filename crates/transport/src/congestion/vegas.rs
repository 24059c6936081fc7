//! TCP Vegas (L. S. Brakmo and L. L. Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet",
//! IEEE JSAC 13 (8), 1995): keeps between alpha and beta packets in the queue, estimated from the difference between
//! the actual rate and the rate at the minimum round-trip time, and thereby avoids losses.
//!
//! Parameters: `alpha`, `beta` and `gamma` in packets.

use foundation::{Duration, Instant, Problem};

use super::arithmetic::scale;
use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, CwndState, LossBased, LossBasedSettings};
use super::reno::AdditiveIncrease;
use super::rules::{Rules, kept_ssthresh, packets};
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::siblings::Siblings;
use super::weighting::Weighting;
use super::{Acknowledgement, Controller};

/// Minimum window in packets.
const MIN_WINDOW: u64 = 2;
/// Linux evaluates a round with more samples than this by its minimum round-trip time.
const FEW_SAMPLES: u64 = 2;

/// Variant of Vegas.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum VegasRules {
    /// Brakmo and Peterson: slow start doubles every other round trip, the flight of one packet determines the rate
    /// of a round, and a loss reduces the window by a quarter.
    #[default]
    Paper,
    /// Linux: slow start of Reno, the minimum round-trip time determines the rate of a round, and a loss halves the
    /// window.
    Linux,
}

/// Vegas: keeps alpha to beta packets in the queue; yields to flows that fill it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VegasSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Grow with fewer packets than this in the queue (default 1; with rules = "linux", and in TCP with profile =
    /// "ns3", 2).
    pub alpha: Option<u64>,
    /// Shrink with more packets than this in the queue, at least alpha (default 3; with rules = "linux", and in TCP
    /// with profile = "ns3", 4).
    pub beta: Option<u64>,
    /// Exit from slow start with more packets than this in the queue (default 1).
    pub gamma: u64,
    /// Variant: "paper" or "linux" (default "linux" in TCP with profile = "linux", else "paper").
    pub rules: Option<VegasRules>,
    /// Pace the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
}

impl Default for VegasSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            alpha: None,
            beta: None,
            gamma: 1,
            rules: None,
            pacing: false,
        }
    }
}

impl VegasSettings {
    /// Returns alpha and beta in packets: as configured, or the defaults of the rules or of the connection's stack.
    fn thresholds(&self, stack: Rules) -> (u64, u64) {
        let (alpha, beta) = match (self.rules, stack) {
            (Some(VegasRules::Paper), _) | (None, Rules::Rfc) => (1, 3),
            // `tcp_vegas.c` of Linux; the attributes Alpha and Beta of ns-3's `TcpVegas`.
            (Some(VegasRules::Linux), _) | (None, Rules::Linux | Rules::Ns3) => (2, 4),
        };
        (self.alpha.unwrap_or(alpha), self.beta.unwrap_or(beta))
    }
}

impl ControllerSettings for VegasSettings {
    fn validate(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = check_initial_window(self.initial_window).into_iter().collect();
        // The stack is not known yet: the settings must be valid for all stacks.
        let invalid = [Rules::Linux, Rules::Rfc, Rules::Ns3]
            .into_iter()
            .map(|stack| self.thresholds(stack))
            .find(|(alpha, beta)| beta < alpha);
        let (alpha, beta) = (self.alpha.unwrap_or(0), self.beta.unwrap_or(0));
        for (key, value) in [("alpha", alpha), ("beta", beta), ("gamma", self.gamma)] {
            problems.extend(Problem::range(key, value, value <= 10_000, "0 to 10000 packets"));
        }
        if let Some((alpha, beta)) = invalid {
            let key = if self.beta.is_some() { "beta" } else { "alpha" };
            problems.push(Problem::new(
                key,
                format!("beta is {beta} and alpha is {alpha}: beta must be at least alpha"),
            ));
        }
        problems
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let variant = self.rules.unwrap_or(match context.rules {
            Rules::Linux => VegasRules::Linux,
            Rules::Rfc | Rules::Ns3 => VegasRules::Paper,
        });
        let rules = match variant {
            VegasRules::Paper => Rules::Rfc,
            VegasRules::Linux => Rules::Linux,
        };
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: None,
            hystart: HyStartKind::Off,
            pacing: self.pacing,
            rules,
        };
        let (alpha, beta) = self.thresholds(context.rules);
        let thresholds = Thresholds {
            alpha: alpha * context.segment,
            beta: beta * context.segment,
            gamma: self.gamma * context.segment,
        };
        let growth = Vegas::new(variant, thresholds, None, context.segment);
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

/// Thresholds of queued bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub alpha: u64,
    pub beta: u64,
    pub gamma: u64,
}

/// Congestion avoidance of Vegas and of wVegas.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    /// Used in rounds without enough samples.
    reno: AdditiveIncrease,
    segment: u64,
    linux: bool,
    thresholds: Thresholds,
    /// Extension of wVegas.
    weighting: Option<Weighting>,
    /// Minimum round-trip time.
    base_rtt: Option<Duration>,
    round: Option<Round>,
    /// Bytes queued in the last round.
    queued: u64,
    /// Whether slow start doubled in the last round. In the next round the window is constant, for comparison.
    grew: bool,
}

/// Measurements of one round, the flight of one packet.
#[derive(Clone, Copy, Debug)]
struct Round {
    started: Instant,
    /// Whether the window was used.
    limited: bool,
    samples: u64,
    min_rtt: Option<Duration>,
    sum_of_rtts: Duration,
}

impl Round {
    /// Returns the mean round-trip time.
    fn mean_rtt(&self) -> Option<Duration> {
        (self.samples > 0).then(|| self.sum_of_rtts / self.samples)
    }

    const fn new(now: Instant) -> Self {
        Self {
            started: now,
            limited: false,
            samples: 0,
            min_rtt: None,
            sum_of_rtts: Duration::ZERO,
        }
    }
}

impl Vegas {
    pub(super) fn new(
        variant: VegasRules,
        thresholds: Thresholds,
        weighting: Option<Weighting>,
        segment: u64,
    ) -> Self {
        let rules = match variant {
            VegasRules::Paper => Rules::Rfc,
            VegasRules::Linux => Rules::Linux,
        };
        Self {
            reno: AdditiveIncrease::new(segment, rules),
            segment,
            linux: variant == VegasRules::Linux,
            thresholds,
            weighting,
            base_rtt: None,
            round: None,
            queued: 0,
            grew: false,
        }
    }

    /// Returns the bytes of `window` that exceed the path without a queue and the bytes that fit, or `None` without
    /// enough samples.
    fn queued_and_fitting(&self, round: &Round, ack: &Acknowledgement, window: u64) -> Option<(u64, u64)> {
        let base = self.base_rtt?.as_nanos().max(1);
        if self.linux {
            if round.samples <= FEW_SAMPLES {
                return None;
            }
            if self.weighting.is_some() {
                let rtt = round.mean_rtt()?.as_nanos().max(base);
                let fits = scale(window, base, rtt);
                return Some((window - fits, fits / self.segment * self.segment));
            }
            // cwnd × (RTT - baseRTT) / baseRTT whole packets, as in `tcp_vegas_cong_avoid`.
            let rtt = round.min_rtt?.as_nanos().max(base);
            let packets = window / self.segment;
            let queued = scale(packets, rtt - base, base).saturating_mul(self.segment);
            return Some((queued, scale(packets, base, rtt) * self.segment));
        }
        if !round.limited {
            return None;
        }
        // Section 3.2 of the paper: Expected = W / BaseRTT, Actual = bytes sent during the flight of the
        // distinguished packet over its time; Diff × BaseRTT bytes are extra. The window equals the bytes sent if it
        // is used. Counting packets would be off by one with delayed ACKs, as much as alpha.
        let rtt = ack.rtt.unwrap_or(ack.now - round.started).as_nanos().max(base);
        let actual = scale(window, base, rtt);
        Some((window - actual, actual))
    }

    /// Returns the state after the end of slow start if the queue has started to fill, `None` to continue slow start.
    fn leave_slow_start(&self, queued: u64, fits: u64, state: CwndState) -> Option<CwndState> {
        if queued <= self.thresholds.gamma {
            return None;
        }
        let window = if self.linux {
            state.window.min(fits.saturating_add(self.segment))
        } else {
            state.window
        };
        Some(CwndState {
            window,
            ssthresh: state.ssthresh.min(self.ceiling(window)),
            ..state
        })
    }

    /// Returns the largest ssthresh with which slow start does not undo the decision. Linux uses the window itself,
    /// as it uses slow start only below ssthresh.
    fn ceiling(&self, window: u64) -> u64 {
        if self.linux {
            window
        } else {
            window.saturating_sub(self.segment)
        }
    }

    /// Adds or removes one packet, or keeps the window.
    fn adjust(&mut self, round: &Round, queued: u64, mut state: CwndState) -> CwndState {
        let full = queued >= self.thresholds.alpha;
        if let Some(weighting) = &mut self.weighting {
            let share = weighting.share(queued, self.thresholds.alpha, self.segment);
            (self.thresholds.alpha, self.thresholds.beta) = (share, share);
        }
        if queued > self.thresholds.beta {
            state.window = state.window.saturating_sub(self.segment);
            state.ssthresh = state.ssthresh.min(self.ceiling(state.window));
        } else if queued < self.thresholds.alpha {
            state.window += self.segment;
        }
        if let (Some(weighting), Some(base), Some(rtt)) =
            (&mut self.weighting, self.base_rtt, round.mean_rtt())
            && weighting.drains(rtt, base, full)
        {
            state.window = scale(state.window, base.as_nanos(), 2 * rtt.as_nanos().max(1));
            state.window = state.window / self.segment * self.segment;
            state.ssthresh = state.ssthresh.min(self.ceiling(state.window));
        }
        state
    }

    fn finish(&self, mut state: CwndState) -> CwndState {
        state.window = state.window.max(MIN_WINDOW * self.segment);
        if self.linux && state.ssthresh != u64::MAX {
            // Three quarters of the window are kept (`tcp_current_ssthresh`).
            state.ssthresh = state.ssthresh.max(kept_ssthresh(state.window, self.segment));
        }
        state
    }

    fn slow_start(&self, ack: &Acknowledgement, mut state: CwndState) -> CwndState {
        let growth = if self.linux {
            packets(ack.bytes, self.segment) * self.segment
        } else {
            ack.bytes
        };
        state.window = state.window.saturating_add(growth).min(state.ssthresh);
        state
    }
}

impl Avoidance for Vegas {
    fn observe(&mut self, ack: &Acknowledgement) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            if let Some(round) = &mut self.round {
                round.samples += 1;
                round.min_rtt = Some(round.min_rtt.map_or(rtt, |least| least.min(rtt)));
                round.sum_of_rtts += rtt;
            }
        }
        if ack.in_recovery {
            // Measurements during recovery are not representative.
            self.round = None;
        } else if let Some(round) = &mut self.round {
            round.limited |= ack.window_limited;
        }
    }

    fn steer(&mut self, ack: &Acknowledgement, state: CwndState) -> Option<CwndState> {
        let slow = state.window < state.ssthresh;
        let Some(round) = self.round else {
            self.round = Some(Round::new(ack.now));
            self.grew = true;
            return Some(if slow { self.slow_start(ack, state) } else { state });
        };
        if ack.newest_sent_at < round.started {
            // Within a round only slow start grows: always in Linux, in every other round in the paper.
            let grows = slow && (self.linux || self.grew && ack.window_limited);
            return Some(if grows { self.slow_start(ack, state) } else { state });
        }
        self.round = Some(Round::new(ack.now));
        let estimate = self.queued_and_fitting(&round, ack, state.window);
        let Some((queued, fits)) = estimate else {
            // Reno's growth; an unused window is unchanged.
            if !ack.window_limited {
                return Some(state);
            }
            if slow {
                return Some(self.slow_start(ack, state));
            }
            let window = state.window + self.reno.increase(ack, ack.bytes, state.window);
            return Some(CwndState { window, ..state });
        };
        self.queued = queued;
        let state = if !slow {
            self.adjust(&round, queued, state)
        } else if self.grew && !self.linux {
            // Actual and expected rate are comparable only after a round with a constant window (section 3.3).
            self.grew = false;
            state
        } else {
            self.grew = true;
            self.leave_slow_start(queued, fits, state)
                .unwrap_or_else(|| self.slow_start(ack, state))
        };
        Some(self.finish(state))
    }

    fn increase(&mut self, _ack: &Acknowledgement, _bytes: u64, _window: u64) -> u64 {
        0
    }

    /// Linux measures the base round-trip time again after an idle period (`tcp_vegas_cwnd_event`).
    fn on_silence(&mut self, _now: Instant, _silence: Duration) {
        self.round = None;
        if self.linux {
            self.base_rtt = None;
        }
        if let Some(weighting) = &mut self.weighting {
            weighting.forget();
        }
    }

    fn is_coupled(&self) -> bool {
        self.weighting.is_some()
    }

    fn on_siblings(&mut self, siblings: &Siblings<'_>) {
        if let Some(weighting) = &mut self.weighting {
            weighting.weigh(siblings);
        }
    }

    fn decrease(&mut self, window: u64) -> u64 {
        self.round = None;
        let half = self.reno.decrease(window);
        // Reduction by a quarter: U. Hengartner, J. Bolliger and T. Gross, "TCP Vegas revisited", 2000.
        if self.linux { half } else { window / 4 * 3 }
    }

    fn restart(&mut self) {
        self.round = None;
        self.reno.restart();
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        if let Some(base) = self.base_rtt {
            report("min_rtt_seconds", base.as_secs_f64());
        }
        report("queued_bytes", self.queued as f64);
        if self.weighting.is_some() {
            report("alpha_bytes", self.thresholds.alpha as f64);
        }
    }
}
