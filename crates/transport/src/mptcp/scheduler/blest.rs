//! BLEST, blocking estimation (S. Ferlin, Ö. Alay, O. Mehani and R. Boreli, "BLEST: blocking estimation-based MPTCP
//! scheduler for heterogeneous networks", IFIP Networking 2016): leaves a slower subflow idle if its data would keep
//! the fastest one from using the receive window.

use foundation::{Duration, Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, fastest, fastest_ready};

/// Waits for the fastest subflow if a slower one would block the receive window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blest {
    /// Initial overestimation factor of the data that the fastest subflow sends (default 1.2).
    pub lambda: f64,
    /// Minimum lambda (default 1).
    pub least_lambda: f64,
    /// Maximum lambda (default 1.3).
    pub largest_lambda: f64,
}

impl Default for Blest {
    fn default() -> Self {
        Self {
            lambda: 1.2,
            least_lambda: 1.0,
            largest_lambda: 1.3,
        }
    }
}

/// Increase of lambda after a round trip with a blocked window, decrease after any other (the authors' Linux code).
const STEP_UP: f64 = 0.04;
const STEP_DOWN: f64 = 0.01;

impl SchedulerSettings for Blest {
    fn validate(&self) -> Vec<Problem> {
        let ordered = 0.0 < self.least_lambda
            && self.least_lambda <= self.lambda
            && self.lambda <= self.largest_lambda
            && self.largest_lambda <= 100.0;
        if ordered {
            return Vec::new();
        }
        let message = format!(
            "least_lambda {}, lambda {}, largest_lambda {}: must be ascending, above 0 and at most 100",
            self.least_lambda, self.lambda, self.largest_lambda
        );
        vec![Problem::new("lambda", message)]
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(BlestScheduler {
            settings: self.clone(),
            lambda: self.lambda,
            adjusted: None,
            blocked: false,
        })
    }
}

#[derive(Debug)]
struct BlestScheduler {
    settings: Blest,
    lambda: f64,
    adjusted: Option<Instant>,
    /// The window was blocked since the last adjustment.
    blocked: bool,
}

impl BlestScheduler {
    /// Adjusts lambda once per round trip of the slower subflow.
    fn adjust(&mut self, now: Instant, rtt: Duration) {
        let since = *self.adjusted.get_or_insert(now);
        if now - since < rtt {
            return;
        }
        let lambda = if self.blocked {
            self.lambda + STEP_UP
        } else {
            self.lambda - STEP_DOWN
        };
        self.lambda = lambda.clamp(self.settings.least_lambda, self.settings.largest_lambda);
        self.adjusted = Some(now);
        self.blocked = false;
    }

    /// Returns whether the data that `fast` will send during a round trip of `slow` exceeds the window minus
    /// the data in flight on `slow` (section III of the paper).
    fn blocks(&self, data: &DataView, fast: &SubflowView, slow: &SubflowView) -> bool {
        let rounds = slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64();
        let segment = f64::from(fast.segment);
        // Its window grows by one packet per round, as in Reno.
        let sends = (fast.window as f64 + segment * (rounds - 1.0) / 2.0) * rounds;
        let window = data.in_flight + data.window;
        let taken = slow.in_flight + u64::from(slow.segment);
        self.lambda * sends > window.saturating_sub(taken) as f64
    }
}

impl Scheduler for BlestScheduler {
    fn choose(&mut self, now: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        let Some((place, slow)) = fastest_ready(subflows) else {
            return Choice::Wait;
        };
        // After this segment the window is too small for another one, with more data to send.
        let segment = u64::from(slow.segment);
        let blocks_window = data.window < 2 * segment && data.unsent > data.window;
        let choice = match fastest(subflows) {
            Some(fast) if fast.srtt < slow.srtt && !fast.srtt.is_zero() && !data.reinjection => {
                self.adjust(now, slow.srtt);
                if self.blocks(data, fast, slow) {
                    Choice::Wait
                } else {
                    Choice::Take(place)
                }
            }
            _ => Choice::Take(place),
        };
        self.blocked |= blocks_window && choice != Choice::Wait;
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    fn with_window(window: u64) -> DataView {
        DataView {
            unsent: 1_000_000,
            in_flight: 10_000,
            window: window - 10_000,
            reinjection: false,
        }
    }

    /// Worked by hand from the paper's equations: 10 packets of 1000 bytes at 20 ms, the slow subflow at 100 ms: 5
    /// rounds, (10 + 4 / 2) × 5 = 60 packets, times 1.2 is 72,000 bytes, plus a segment of the slow subflow.
    #[test]
    fn slow_subflow_waits_if_it_would_block_window() {
        let subflows = [subflow(0, 20, false), subflow(1, 100, true)];
        let choose = |window| {
            let mut blest = Blest::default().build();
            blest.choose(Instant::ZERO, &with_window(window), &subflows)
        };
        assert_eq!(choose(72_999), Choice::Wait);
        assert_eq!(choose(73_000), Choice::Take(1));
        // Data in flight on the slow subflow occupies the window for as long.
        let busy = SubflowView {
            in_flight: 5000,
            ..subflow(1, 100, true)
        };
        let choose = |window| {
            let mut blest = Blest::default().build();
            blest.choose(
                Instant::ZERO,
                &with_window(window),
                &[subflow(0, 20, false), busy],
            )
        };
        assert_eq!(choose(77_999), Choice::Wait);
        assert_eq!(choose(78_000), Choice::Take(1));
    }

    /// Lambda decreases by 0.01 per round trip of the slow subflow and increases by 0.04 after a blocked window:
    /// 60,000 lambda plus a segment of 1000 bytes is compared with the window.
    #[test]
    fn lambda_adapts_to_blocking() {
        let subflows = [subflow(0, 20, false), subflow(1, 100, true)];
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut blest = Blest::default().build();
        assert_eq!(blest.choose(at(0), &with_window(72_900), &subflows), Choice::Wait);
        assert_eq!(
            blest.choose(at(99), &with_window(72_900), &subflows),
            Choice::Wait
        );
        // 1.19: 71,400 plus 1000.
        assert_eq!(
            blest.choose(at(100), &with_window(72_400), &subflows),
            Choice::Take(1)
        );
        // The fastest subflow takes the rest of the window: 1.23 is 73,800 plus 1000.
        let blocks_window = DataView {
            window: 1500,
            ..with_window(73_000)
        };
        let free = [subflow(0, 20, true), subflow(1, 100, true)];
        assert_eq!(blest.choose(at(150), &blocks_window, &free), Choice::Take(0));
        assert_eq!(
            blest.choose(at(200), &with_window(74_799), &subflows),
            Choice::Wait
        );
        assert_eq!(
            blest.choose(at(200), &with_window(74_801), &subflows),
            Choice::Take(1)
        );
    }

    #[test]
    fn validates_order_of_lambdas() {
        let settings = Blest {
            lambda: 0.9,
            ..Blest::default()
        };
        assert_eq!(settings.validate()[0].key, "lambda");
        assert!(Blest::default().validate().is_empty());
    }
}
