//! wVegas, weighted Vegas (Y. Cao, M. Xu and X. Fu, "Delay-based congestion control for multipath TCP", ICNP 2012;
//! draft-xu-mptcp-congestion-control-05): each subflow is a Vegas that keeps its share of `total_alpha` packets in
//! the queue, proportional to its rate, so that traffic moves to short queues.
//!
//! The rate of a subflow is its current window over its smoothed round-trip time; the authors' Linux code uses the
//! last round with at least alpha packets queued.

use foundation::Problem;

use super::Controller;
use super::hystart::HyStartKind;
use super::loss_based::{LossBased, LossBasedSettings};
use super::rules::Rules;
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::vegas::{Thresholds, Vegas, VegasRules};
use super::weighting::{MIN_ALPHA, Weighting, WvegasDrain};

/// wVegas: all subflows together keep total_alpha packets in queues; yields to flows that fill queues.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WvegasSettings {
    /// Initial window of each subflow in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Packets that all subflows together keep in queues, 2 to 10000 (default 10); at least 2 each.
    pub total_alpha: u64,
    /// Exit from slow start with more packets than this in the queue (default 1).
    pub gamma: u64,
    /// Halve the window at twice the minimum queueing delay: "equilibrium" (minimum while alpha packets are queued),
    /// "always" (minimum at any time, as in Linux) or "off" (default "equilibrium").
    pub drain: WvegasDrain,
    /// Pace the window over the round trip instead of sending on each ACK (default false).
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
        let (alpha, gamma) = (self.total_alpha, self.gamma);
        let problems = [
            check_initial_window(self.initial_window),
            Problem::range(
                "total_alpha",
                alpha,
                (MIN_ALPHA..=10_000).contains(&alpha),
                "2 to 10000 packets",
            ),
            Problem::range("gamma", gamma, gamma <= 10_000, "0 to 10000 packets"),
        ];
        problems.into_iter().flatten().collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: None,
            hystart: HyStartKind::Off,
            pacing: self.pacing,
            // Slow start, rounds and losses follow Linux's Vegas, on which the draft builds.
            rules: Rules::Linux,
        };
        let alpha = MIN_ALPHA * context.segment;
        let thresholds = Thresholds {
            alpha,
            beta: alpha,
            gamma: self.gamma * context.segment,
        };
        let weighting = Weighting::new(self.total_alpha * context.segment, self.drain);
        let growth = Vegas::new(VegasRules::Linux, thresholds, Some(weighting), context.segment);
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_settings() {
        let settings = WvegasSettings {
            total_alpha: 1,
            gamma: 10_001,
            ..WvegasSettings::default()
        };
        let keys: Vec<_> = settings.validate().iter().map(|p| p.key.clone()).collect();
        assert_eq!(keys, ["total_alpha", "gamma"]);
    }
}
