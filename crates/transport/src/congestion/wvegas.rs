//! wVegas, weighted Vegas (Y. Cao, M. Xu and X. Fu, "Delay-based congestion control for multipath TCP", ICNP 2012;
//! draft-xu-mptcp-congestion-control-05): each subflow is a Vegas that keeps its share of `total_alpha` packets in
//! the queue, a share as large as that of its rate, so that traffic goes where queues are short.
//!
//! A subflow's rate is here its window over its smoothed round-trip time as it stands; the authors' code in Linux
//! remembers that of the last round in which at least alpha packets waited.

use foundation::{Duration, Problem};

use super::Controller;
use super::coupled::rate;
use super::hystart::HyStartKind;
use super::loss_based::{LossBased, LossBasedSettings};
use super::rules::Rules;
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::siblings::Siblings;
use super::vegas::{Thresholds, Vegas, VegasRules};

/// The least alpha, and the one to start with, in packets.
const MIN_ALPHA: u64 = 2;

/// What wVegas takes for the least queueing delay, at twice which it drains the queue.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WvegasDrain {
    /// The least of rounds in which alpha packets waited: twice that are those of somebody else.
    #[default]
    Equilibrium,
    /// The least of all rounds of congestion avoidance, as the authors' code in Linux has it: a queue that only
    /// begins to fill has twice its least delay soon, so that alpha packets are rarely reached.
    Always,
    /// The queue is never drained.
    Off,
}

/// wVegas: subflows keep total_alpha packets in queues together; they yield to flows that fill them.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WvegasSettings {
    /// Window of each subflow at the start, in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Packets that all subflows together keep in queues, 2 to 10000 (default 10); each keeps at least 2.
    pub total_alpha: u64,
    /// End slow start when more packets than this wait in the queue (default 1).
    pub gamma: u64,
    /// Halve the window at twice the least queueing delay: "equilibrium", where least is what it was when alpha
    /// packets waited, "always", where it is what it ever was (as in Linux), or "off" (default "equilibrium").
    pub drain: WvegasDrain,
    /// Spread the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
}

impl Default for WvegasSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            total_alpha: 10,
            gamma: 1,
            drain: WvegasDrain::Equilibrium,
            pacing: false,
        }
    }
}

impl ControllerSettings for WvegasSettings {
    fn validate(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = check_initial_window(self.initial_window).into_iter().collect();
        for (key, value, least) in [
            ("total_alpha", self.total_alpha, MIN_ALPHA),
            ("gamma", self.gamma, 0),
        ] {
            if !(least..=10_000).contains(&value) {
                let message = format!("{value} is out of range: {least} to 10000 packets");
                problems.push(Problem::new(key, message));
            }
        }
        problems
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: None,
            hystart: HyStartKind::Off,
            pacing: self.pacing,
            // Slow start, rounds and losses are those of Linux's Vegas, which the draft builds on.
            rules: Rules::Linux,
        };
        let alpha = MIN_ALPHA * context.segment;
        let thresholds = Thresholds {
            alpha,
            beta: alpha,
            gamma: self.gamma * context.segment,
        };
        let weighting = Weighting {
            total: self.total_alpha * context.segment,
            weight: 1.0,
            drain: self.drain,
            min_delay: None,
        };
        let growth = Vegas::new(VegasRules::Linux, thresholds, Some(weighting), context.segment);
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

/// What Vegas becomes weighted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighting {
    /// Bytes that all subflows together keep in queues.
    total: u64,
    /// This one's part of all rates.
    weight: f64,
    drain: WvegasDrain,
    /// The least queueing delay seen since the queue was drained.
    min_delay: Option<Duration>,
}

impl Weighting {
    /// All rates are known anew.
    pub(super) fn weigh(&mut self, siblings: &Siblings<'_>) {
        if siblings.own().rtt.is_zero() {
            return;
        }
        let total: f64 = siblings.measured().map(rate).sum();
        self.weight = rate(siblings.own()) / total;
    }

    /// Bytes to keep in the queue: what they were while fewer wait, and then weight * total_alpha (draft,
    /// section 3).
    pub(super) fn share(&self, waiting: u64, alpha: u64, segment: u64) -> u64 {
        if waiting < alpha {
            return alpha;
        }
        let share = (self.total as f64 * self.weight) as u64;
        share.max(MIN_ALPHA * segment)
    }

    /// Whether the queue is to be drained, so that the least round-trip time can be seen: its delay is twice the
    /// least that it has been (draft, section 3). `full`: whether alpha packets waited.
    pub(super) fn drains(&mut self, rtt: Duration, base: Duration, full: bool) -> bool {
        let delay = rtt.saturating_sub(base);
        let counts = match self.drain {
            WvegasDrain::Equilibrium => full,
            WvegasDrain::Always => true,
            WvegasDrain::Off => false,
        };
        if !counts || delay.is_zero() {
            return false;
        }
        let least = self.min_delay.map_or(delay, |least| least.min(delay));
        let drains = delay >= least * 2;
        self.min_delay = (!drains).then_some(least);
        drains
    }

    /// The path may be another one.
    pub(super) fn forget(&mut self) {
        self.min_delay = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Sibling;

    const fn weighting(drain: WvegasDrain) -> Weighting {
        Weighting {
            total: 10_000,
            weight: 1.0,
            drain,
            min_delay: None,
        }
    }

    /// Draft, section 3: 10 packets in 100 ms and 15 in 50 ms are 100 and 300 packets/s, a quarter and three
    /// quarters; 2.5 and 7.5 of 10 packets.
    #[test]
    fn alpha_is_shared_by_rate() {
        let path = |window: u64, rtt| Sibling {
            window: window * 1000,
            rtt: Duration::from_millis(rtt),
            ..Sibling::default()
        };
        let all = [path(10, 100), path(15, 50)];
        let share = |all: &[Sibling], own_index, waiting| {
            let mut weighting = weighting(WvegasDrain::Equilibrium);
            weighting.weigh(&Siblings { all, own_index });
            weighting.share(waiting, 2000, 1000)
        };
        assert_eq!([share(&all, 0, 2000), share(&all, 1, 3000)], [2500, 7500]);
        // Below alpha nothing is learnt, and nobody keeps less than two packets.
        assert_eq!(share(&all, 1, 1999), 2000);
        assert_eq!(share(&[path(1, 100), path(15, 50)], 0, 2000), 2000);
        // One without a sample is told nothing.
        assert_eq!(share(&[path(10, 0), path(15, 50)], 0, 2000), 10_000);
    }

    #[test]
    fn a_queue_of_twice_the_least_delay_is_drained() {
        let ms = Duration::from_millis;
        let drains = |drain, delays: &[(u64, bool)]| -> Vec<bool> {
            let mut weighting = weighting(drain);
            let one = |&(delay, full)| weighting.drains(ms(100 + delay), ms(100), full);
            delays.iter().map(one).collect()
        };
        let filling = [
            (1, false),
            (2, false),
            (5, true),
            (9, true),
            (10, true),
            (12, true),
        ];
        assert_eq!(
            drains(WvegasDrain::Equilibrium, &filling),
            [false, false, false, false, true, false]
        );
        assert_eq!(
            drains(WvegasDrain::Always, &filling),
            [false, true, false, false, true, false]
        );
        assert_eq!(drains(WvegasDrain::Off, &filling), [false; 6]);
    }

    #[test]
    fn what_is_out_of_range_is_said() {
        let settings = WvegasSettings {
            total_alpha: 1,
            gamma: 10_001,
            ..WvegasSettings::default()
        };
        let keys: Vec<_> = settings.validate().iter().map(|p| p.key.clone()).collect();
        assert_eq!(keys, ["total_alpha", "gamma"]);
    }
}
