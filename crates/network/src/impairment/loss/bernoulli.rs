//! Independent losses.

use foundation::{Generator, Probability, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LossModel, LossProcess};
use crate::impairment::chance::Chance;

/// Independent loss of each packet, with a probability; short form "2%"
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bernoulli {
    /// Probability of loss, e.g. "2%"
    pub probability: Probability,
}

impl LossModel for Bernoulli {
    type Process = Coin;

    fn mean(&self) -> f64 {
        self.probability.value()
    }

    fn validate(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn start(&self, stream: Generator) -> Coin {
        Coin {
            chance: Chance::new(self.probability),
            stream,
        }
    }
}

/// One draw per packet.
#[derive(Clone, Debug)]
pub(crate) struct Coin {
    chance: Chance,
    stream: Generator,
}

impl LossProcess for Coin {
    #[inline]
    fn next(&mut self) -> bool {
        self.chance.draw(&mut self.stream)
    }
}
