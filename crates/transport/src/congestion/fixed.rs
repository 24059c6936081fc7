//! A constant window and an optional pacing rate without congestion control, for private paths and for experiments on
//! the effect of the window.
//!
//! Parameters: `window` in packets, `rate`.

use foundation::{Instant, Problem, Rate};

use super::settings::{ConnectionContext, ControllerSettings};
use super::{Acknowledgement, Controller, Loss, Outputs};

/// A constant window, regardless of the network; not for shared paths.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FixedSettings {
    /// Window in packets (default 64).
    pub window: u64,
    /// Maximum sending rate, e.g. "10Mbit/s" (default: no limit).
    pub rate: Option<Rate>,
}

impl Default for FixedSettings {
    fn default() -> Self {
        Self {
            window: 64,
            rate: None,
        }
    }
}

impl ControllerSettings for FixedSettings {
    fn validate(&self) -> Vec<Problem> {
        let valid = (1..=1 << 32).contains(&self.window);
        let problem = Problem::range("window", self.window, valid, "1 to 4294967296 packets");
        problem.into_iter().collect()
    }

    /// Ignores the initial window of the connection: the window is constant.
    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Fixed {
            window: self.window.saturating_mul(context.segment),
            rate: self.rate,
        })
    }
}

#[derive(Debug)]
struct Fixed {
    window: u64,
    rate: Option<Rate>,
}

impl Controller for Fixed {
    fn on_acknowledged(&mut self, _ack: &Acknowledgement) {}
    fn on_lost(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, _now: Instant, _bytes_in_flight: u64) {}

    fn outputs(&self) -> Outputs {
        Outputs {
            window: self.window,
            pacing_rate: self.rate,
            in_slow_start: false,
        }
    }

    fn phase(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::loss;

    #[test]
    fn ignores_losses_and_timeouts() {
        let mut fixed = FixedSettings {
            window: 4,
            rate: None,
        }
        .build(1000);
        fixed.on_lost(&loss(Instant::from_nanos(2), Instant::from_nanos(1), 4000));
        fixed.on_timeout(Instant::from_nanos(3), 4000);
        assert_eq!((fixed.window(), fixed.pacing_rate()), (4000, None));
    }
}
