//! TCP Vegas (L. S. Brakmo and L. L. Peterson, "TCP Vegas: end to end congestion avoidance on a global
//! Internet", IEEE JSAC 13 (8), 1995): keeps between alpha and beta packets in the queue, told by how much
//! less is delivered than the least round-trip time would allow, and so avoids losses instead of causing them.

use foundation::{Duration, Instant, Problem};

use super::arithmetic::scale;
use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, CwndState, LossBased, LossBasedSettings};
use super::reno::AdditiveIncrease;
use super::rules::{Rules, packets, remembered};
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::siblings::Siblings;
use super::wvegas::Weighting;
use super::{Acknowledgement, Controller};

/// The least window, in packets.
const MIN_WINDOW: u64 = 2;
/// Linux judges a round by its least round trip if it has more samples than this.
const FEW_SAMPLES: u64 = 2;

/// Whose Vegas.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum VegasRules {
    /// Brakmo and Peterson's: slow start doubles every other round trip, the rate of a round is judged by one
    /// packet's flight, a loss takes a quarter.
    #[default]
    Paper,
    /// Linux's: slow start as Reno's, a round is judged by its least round trip, a loss takes a half.
    Linux,
}

/// Vegas: keeps alpha to beta packets in the queue; yields to flows that fill it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VegasSettings {
    /// Window at the start, in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Grow while fewer packets than this wait in the queue (default 1; with rules = "linux", and in TCP with
    /// profile = "ns3", 2).
    pub alpha: Option<u64>,
    /// Shrink while more packets than this wait in the queue, at least alpha (default 3; with rules = "linux",
    /// and in TCP with profile = "ns3", 4).
    pub beta: Option<u64>,
    /// End slow start when more packets than this wait in the queue (default 1).
    pub gamma: u64,
    /// Whose Vegas: "paper" or "linux" (default "linux" in TCP with profile = "linux", else "paper").
    pub rules: Option<VegasRules>,
    /// Spread the window over the round trip instead of sending on each ACK (default false).
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
    /// alpha and beta in packets: those set, else those of the rules, else those of the owner's stack.
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
        // The owner is not known yet: what is set must fit all.
        let wrong = [Rules::Linux, Rules::Rfc, Rules::Ns3]
            .into_iter()
            .map(|stack| self.thresholds(stack))
            .find(|(alpha, beta)| beta < alpha);
        let (alpha, beta) = (self.alpha.unwrap_or(0), self.beta.unwrap_or(0));
        for (key, value) in [("alpha", alpha), ("beta", beta), ("gamma", self.gamma)] {
            if value > 10_000 {
                problems.push(Problem::new(
                    key,
                    format!("{value} is out of range: 0 to 10000 packets"),
                ));
            }
        }
        if let Some((alpha, beta)) = wrong {
            let key = if self.beta.is_some() { "beta" } else { "alpha" };
            problems.push(Problem::new(
                key,
                format!("beta is {beta} and alpha {alpha}: beta must not be less than alpha"),
            ));
        }
        problems
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let whose = self.rules.unwrap_or(match context.rules {
            Rules::Linux => VegasRules::Linux,
            Rules::Rfc | Rules::Ns3 => VegasRules::Paper,
        });
        let rules = match whose {
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
        let growth = Vegas::new(whose, thresholds, None, context.segment);
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

/// How many bytes may wait in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub alpha: u64,
    pub beta: u64,
    pub gamma: u64,
}

/// Congestion avoidance of Vegas and of wVegas.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    /// For rounds that tell too little.
    reno: AdditiveIncrease,
    segment: u64,
    linux: bool,
    thresholds: Thresholds,
    /// What wVegas has beyond Vegas.
    weighting: Option<Weighting>,
    /// The least round-trip time ever seen.
    base_rtt: Option<Duration>,
    round: Option<Round>,
    /// Bytes that waited in the queue in the last round.
    waiting: u64,
    /// Whether slow start doubled in the last round: in the next it stands still, to compare.
    grew: bool,
}

/// The flight of one packet, and what came back meanwhile.
#[derive(Clone, Copy, Debug)]
struct Round {
    started: Instant,
    /// Whether the window was in use.
    limited: bool,
    samples: u64,
    min_rtt: Option<Duration>,
    sum_of_rtts: Duration,
}

impl Round {
    /// The mean of what was measured.
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
        whose: VegasRules,
        thresholds: Thresholds,
        weighting: Option<Weighting>,
        segment: u64,
    ) -> Self {
        let rules = match whose {
            VegasRules::Paper => Rules::Rfc,
            VegasRules::Linux => Rules::Linux,
        };
        Self {
            reno: AdditiveIncrease::new(segment, rules),
            segment,
            linux: whose == VegasRules::Linux,
            thresholds,
            weighting,
            base_rtt: None,
            round: None,
            waiting: 0,
            grew: false,
        }
    }

    /// Bytes of `window` that do not fit into the path without queue, and those that do, or `None` where
    /// a round tells too little.
    fn judge(&self, round: &Round, ack: &Acknowledgement, window: u64) -> Option<(u64, u64)> {
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
            // cwnd * (RTT - baseRTT) / baseRTT whole packets, as `tcp_vegas_cong_avoid` has it.
            let rtt = round.min_rtt?.as_nanos().max(base);
            let packets = window / self.segment;
            let waiting = scale(packets, rtt - base, base).saturating_mul(self.segment);
            return Some((waiting, scale(packets, base, rtt) * self.segment));
        }
        if !round.limited {
            return None;
        }
        // Section 3.2 of the paper: Expected = W / BaseRTT, Actual = what was transmitted in the flight of
        // the distinguished packet over its time; Diff * BaseRTT bytes are extra. What was transmitted is the
        // window where that is in use: counting it packet by packet would be off by one with delayed ACKs,
        // as much as alpha.
        let rtt = ack.rtt.unwrap_or(ack.now - round.started).as_nanos().max(base);
        let actual = scale(window, base, rtt);
        Some((window - actual, actual))
    }

    /// The state where the queue begins to fill in slow start, `None` to go on.
    fn leave_slow_start(&self, waiting: u64, fits: u64, state: CwndState) -> Option<CwndState> {
        if waiting <= self.thresholds.gamma {
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

    /// The most that the threshold may be for slow start not to take back what was decided. Linux takes
    /// the window itself, below which alone it starts slowly.
    fn ceiling(&self, window: u64) -> u64 {
        if self.linux {
            window
        } else {
            window.saturating_sub(self.segment)
        }
    }

    /// A packet more, a packet less, or as it is.
    fn adjust(&mut self, round: &Round, waiting: u64, mut state: CwndState) -> CwndState {
        let full = waiting >= self.thresholds.alpha;
        if let Some(weighting) = &mut self.weighting {
            let share = weighting.share(waiting, self.thresholds.alpha, self.segment);
            (self.thresholds.alpha, self.thresholds.beta) = (share, share);
        }
        if waiting > self.thresholds.beta {
            state.window = state.window.saturating_sub(self.segment);
            state.ssthresh = state.ssthresh.min(self.ceiling(state.window));
        } else if waiting < self.thresholds.alpha {
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
            // `tcp_current_ssthresh`: three quarters of the window are remembered.
            state.ssthresh = state.ssthresh.max(remembered(state.window, self.segment));
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
            // What a recovery measures says nothing about the window.
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
            // Within a round slow start alone grows: in Linux always, in the paper in every other round.
            let grows = slow && (self.linux || self.grew && ack.window_limited);
            return Some(if grows { self.slow_start(ack, state) } else { state });
        }
        self.round = Some(Round::new(ack.now));
        let judged = self.judge(&round, ack, state.window);
        let Some((waiting, fits)) = judged else {
            // As Reno does; a window that is not in use stays as it is.
            if !ack.window_limited {
                return Some(state);
            }
            if slow {
                return Some(self.slow_start(ack, state));
            }
            let window = state.window + self.reno.increase(ack, ack.bytes, state.window);
            return Some(CwndState { window, ..state });
        };
        self.waiting = waiting;
        let state = if !slow {
            self.adjust(&round, waiting, state)
        } else if self.grew && !self.linux {
            // Actual and expected rate compare where the window stood still alone (section 3.3).
            self.grew = false;
            state
        } else {
            self.grew = true;
            self.leave_slow_start(waiting, fits, state)
                .unwrap_or_else(|| self.slow_start(ack, state))
        };
        Some(self.finish(state))
    }

    fn increase(&mut self, _ack: &Acknowledgement, _bytes: u64, _window: u64) -> u64 {
        0
    }

    /// Linux measures the path anew after it has been idle (`tcp_vegas_cwnd_event`).
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
        // The quarter: U. Hengartner, J. Bolliger and T. Gross, "TCP Vegas revisited", 2000.
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
        report("queued_bytes", self.waiting as f64);
        if self.weighting.is_some() {
            report("alpha_bytes", self.thresholds.alpha as f64);
        }
    }
}
