//! Periodic losses.

use foundation::{Generator, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LossModel, LossProcess};

/// Loss of every n-th packet
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Every {
    /// Period n in packets: packets n, 2n, 3n, … of each direction are lost, counted as in kind packets; at least 1
    #[schemars(range(min = 1))]
    pub every: u64,
}

impl LossModel for Every {
    type Process = Countdown;

    fn mean(&self) -> f64 {
        1.0 / self.every as f64
    }

    fn validate(&self) -> Vec<Problem> {
        if self.every > 0 {
            return Vec::new();
        }
        vec![Problem::new("every", "0 is out of range: at least 1")]
    }

    fn start(&self, _: Generator) -> Countdown {
        let period = self.every.max(1);
        Countdown { period, left: period }
    }
}

/// The number of packets until the next loss.
#[derive(Clone, Debug)]
pub(crate) struct Countdown {
    period: u64,
    left: u64,
}

impl LossProcess for Countdown {
    #[inline]
    fn next(&mut self) -> bool {
        self.left -= 1;
        let lost = self.left == 0;
        if lost {
            self.left = self.period;
        }
        lost
    }
}
