//! BBR with an estimate of the path's random loss: the controller of the draft with [`ambient`](super::ambient).

use foundation::{Probability, Problem};

use super::{Bbr, BbrSettings, ppm};
use crate::congestion::Controller;
use crate::congestion::settings::{ConnectionContext, ControllerSettings};

/// BBR that sustains its rate under random loss: subtracts the loss that occurs without a queue. An addition to the draft.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct BbrTolerantSettings {
    /// The settings of `bbr`.
    #[serde(flatten)]
    pub draft: BbrSettings,
    /// Largest loss attributed to the path instead of congestion, 0% to 50%; only loss without a queue counts (default "10%").
    pub random_loss_limit: Probability,
    /// Queueing delay in Startup that suspends its growth, as a share of the minimum RTT but at least 4 ms; below half of it, losses count as random; 0% for the draft (default "0%").
    pub startup_queue: Probability,
    /// RTT samples up to this share above the minimum confirm it, so that ProbeRTT is not necessary; 0% for the draft (default "0%").
    pub min_rtt_tolerance: Probability,
    /// Largest factor by which the dispersion of the initial window may raise window and rate at once, at most 64; 0 for the draft (default 0).
    pub startup_jump: u64,
}

impl BbrTolerantSettings {
    /// Returns the settings for files (see [`CongestionConfig::for_files`](crate::congestion::CongestionConfig)).
    pub(in crate::congestion) fn for_files() -> Self {
        Self {
            draft: BbrSettings {
                initial_window: 32,
                ..BbrSettings::default()
            },
            startup_queue: Probability::new(0.25).unwrap_or_default(),
            min_rtt_tolerance: Probability::new(0.0625).unwrap_or_default(),
            startup_jump: 16,
            ..Self::default()
        }
    }
}

/// What the controller adds to the draft, in parts per million unless stated otherwise. Zero is the draft.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Additions {
    pub random_loss_limit: u64,
    pub startup_queue: u64,
    pub min_rtt_tolerance: u64,
    /// A factor.
    pub startup_jump: u64,
}

impl Default for BbrTolerantSettings {
    fn default() -> Self {
        Self {
            draft: BbrSettings::default(),
            random_loss_limit: Probability::new(0.1).unwrap_or_default(),
            startup_queue: Probability::default(),
            min_rtt_tolerance: Probability::default(),
            startup_jump: 0,
        }
    }
}

impl ControllerSettings for BbrTolerantSettings {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = self.draft.validate();
        for (key, share) in [
            ("random_loss_limit", self.random_loss_limit),
            ("startup_queue", self.startup_queue),
            ("min_rtt_tolerance", self.min_rtt_tolerance),
        ] {
            problems.extend(Problem::range(key, share, share.value() <= 0.5, "0% to 50%"));
        }
        let jump = self.startup_jump;
        problems.extend(Problem::range("startup_jump", jump, jump <= 64, "0 to 64"));
        problems
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Bbr::new(
            &self.draft.with_context(context),
            Additions {
                random_loss_limit: ppm(self.random_loss_limit),
                startup_queue: ppm(self.startup_queue),
                min_rtt_tolerance: ppm(self.min_rtt_tolerance),
                startup_jump: self.startup_jump,
            },
            context.segment,
        ))
    }
}
