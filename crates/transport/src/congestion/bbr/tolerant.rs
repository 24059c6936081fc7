//! BBR with an estimate of the path's random loss: the controller of the draft with [`ambient`](super::ambient).

use foundation::{Probability, Problem};

use super::{Bbr, BbrSettings};
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
}

impl Default for BbrTolerantSettings {
    fn default() -> Self {
        Self {
            draft: BbrSettings::default(),
            random_loss_limit: Probability::new(0.1).unwrap_or_default(),
        }
    }
}

impl ControllerSettings for BbrTolerantSettings {
    fn validate(&self) -> Vec<Problem> {
        let limit = self.random_loss_limit;
        let mut problems = self.draft.validate();
        problems.extend(Problem::range(
            "random_loss_limit",
            limit,
            limit.value() <= 0.5,
            "0% to 50%",
        ));
        problems
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Bbr::new(
            &self.draft.with_context(context),
            self.random_loss_limit,
            context.segment,
        ))
    }
}
