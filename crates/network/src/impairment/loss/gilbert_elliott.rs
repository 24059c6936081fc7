//! Burst losses: a Markov chain with a good and a bad state and one step per packet
//! (Gilbert, BSTJ 39, 1960; Elliott, BSTJ 42, 1963).

use foundation::{Generator, Probability, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LossModel, LossProcess};
use crate::impairment::chance::Chance;

/// Burst loss: a good and a bad state with these transition probabilities per packet (Gilbert 1960; Elliott 1963). The share of packets in the bad state is enter_bad / (enter_bad + leave_bad); it lasts 1 / leave_bad packets on average
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability per packet of a change from the good to the bad state; above "0%"
    pub enter_bad: Probability,
    /// Probability per packet of a change from the bad to the good state; above "0%"
    pub leave_bad: Probability,
    /// Probability of loss in the good state; default "0%"
    #[serde(default)]
    pub loss_good: Probability,
    /// Probability of loss in the bad state; default "100%"
    #[serde(default = "certain")]
    pub loss_bad: Probability,
}

/// 100 %.
fn certain() -> Probability {
    Probability::new(1.0).unwrap_or_default()
}

impl GilbertElliott {
    /// Returns the share of packets in the bad state.
    fn bad(&self) -> f64 {
        self.enter_bad.value() / (self.enter_bad.value() + self.leave_bad.value())
    }
}

impl LossModel for GilbertElliott {
    type Process = Chain;

    fn mean(&self) -> f64 {
        let bad = self.bad();
        bad * self.loss_bad.value() + (1.0 - bad) * self.loss_good.value()
    }

    fn validate(&self) -> Vec<Problem> {
        let rates = [("enter_bad", self.enter_bad), ("leave_bad", self.leave_bad)];
        let stuck = rates
            .into_iter()
            .filter(|(_, probability)| probability.value() <= 0.0);
        let message = "\"0%\" is out of range: above 0% (otherwise the chain never changes state)";
        stuck.map(|(key, _)| Problem::new(key, message)).collect()
    }

    fn start(&self, mut stream: Generator) -> Chain {
        // The stationary distribution as the initial one gives the same mean loss from the first packet on.
        let start = Probability::new(self.bad()).unwrap_or_default();
        Chain {
            bad: Chance::new(start).draw(&mut stream),
            enter_bad: Chance::new(self.enter_bad),
            leave_bad: Chance::new(self.leave_bad),
            loss_good: Chance::new(self.loss_good),
            loss_bad: Chance::new(self.loss_bad),
            stream,
        }
    }
}

/// The state of the chain.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    bad: bool,
    enter_bad: Chance,
    leave_bad: Chance,
    loss_good: Chance,
    loss_bad: Chance,
    stream: Generator,
}

impl LossProcess for Chain {
    /// Always takes two draws, so that two models with different losses stay in the same state.
    #[inline]
    fn next(&mut self) -> bool {
        let (loss, step) = if self.bad {
            (self.loss_bad, self.leave_bad)
        } else {
            (self.loss_good, self.enter_bad)
        };
        let lost = loss.draw(&mut self.stream);
        self.bad ^= step.draw(&mut self.stream);
        lost
    }
}
