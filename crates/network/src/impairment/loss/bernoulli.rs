//! Independent losses.

use foundation::{Generator, Probability, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::Key;
use super::{LossModel, LossProcess};
use crate::impairment::chance::Chance;

/// Independent loss of each packet
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bernoulli {
    /// Probability of loss, e.g. "2%"
    pub probability: Probability,
}

impl LossModel for Bernoulli {
    type Process = Coin;
    const NAME: &'static str = "bernoulli";
    const TOLD_BY_KEY: bool = false;
    const KEYS: &'static [Key] = &[Key::needed::<Probability>("probability", "\"2%\"")];
    const EXAMPLE: &'static str = "{ model = \"bernoulli\", probability = \"2%\" }";

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
