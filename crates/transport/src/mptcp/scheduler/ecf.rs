//! Earliest completion first (Y. Lim, E. M. Nahum, D. Towsley and R. J. Gibbens, "ECF: an MPTCP path scheduler to
//! manage heterogeneous paths", CoNEXT 2017): leaves a slower subflow idle if all remaining data arrives sooner by
//! waiting for the fastest one.

use foundation::{Duration, Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, fastest, fastest_ready};

/// Waits for the fastest subflow if all remaining data then completes sooner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecf {
    /// Hysteresis: fraction by which the waiting limit increases while it waits, 0 to 10 (default 0.25).
    pub beta: f64,
}

impl Default for Ecf {
    fn default() -> Self {
        Self { beta: 0.25 }
    }
}

impl SchedulerSettings for Ecf {
    fn validate(&self) -> Vec<Problem> {
        let problem = Problem::range("beta", self.beta, (0.0..=10.0).contains(&self.beta), "0 to 10");
        problem.into_iter().collect()
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(EcfScheduler {
            beta: self.beta,
            waiting: false,
        })
    }
}

#[derive(Debug)]
struct EcfScheduler {
    beta: f64,
    /// Whether the last decision was to wait.
    waiting: bool,
}

/// Returns the round trips that `bytes` take on a subflow, at least one.
fn rounds(bytes: u64, subflow: &SubflowView) -> f64 {
    let window = subflow.window.max(1);
    bytes.max(window) as f64 / window as f64
}

impl EcfScheduler {
    /// Returns whether to wait for `fast` although `slow` has room (algorithm 1 of the paper).
    fn waits(&mut self, unsent: u64, fast: &SubflowView, slow: &SubflowView) -> bool {
        let seconds = Duration::as_secs_f64;
        let (rtt_fast, rtt_slow) = (seconds(fast.srtt), seconds(slow.srtt));
        let margin = seconds(fast.rtt_variation.max(slow.rtt_variation));
        let factor = if self.waiting { 1.0 + self.beta } else { 1.0 };
        // The fastest subflow has room after one round trip, and then sends the data.
        if (1.0 + rounds(unsent, fast)) * rtt_fast < factor * (rtt_slow + margin) {
            // The slower subflow still helps if it finishes before the fastest one starts.
            if rounds(unsent, slow) * rtt_slow >= 2.0 * rtt_fast + margin {
                self.waiting = true;
                return true;
            }
        } else {
            self.waiting = false;
        }
        false
    }
}

impl Scheduler for EcfScheduler {
    fn choose(&mut self, _: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        let Some((place, slow)) = fastest_ready(subflows) else {
            return Choice::Wait;
        };
        match fastest(subflows) {
            Some(fast) if fast.srtt < slow.srtt && !data.reinjection => {
                if self.waits(data.unsent, fast, slow) {
                    Choice::Wait
                } else {
                    Choice::Take(place)
                }
            }
            _ => Choice::Take(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    fn choose(scheduler: &mut dyn Scheduler, unsent: u64, subflows: &[SubflowView]) -> Choice {
        let data = DataView {
            unsent,
            ..DataView::default()
        };
        scheduler.choose(Instant::ZERO, &data, subflows)
    }

    /// Worked by hand from algorithm 1, windows of 10 kB: 20 ms without room, 200 ms with room. With 10 kB left the
    /// fastest subflow finishes after (1 + 1) × 20 = 40 ms, before 200 ms, and the slower one cannot help within 2 ×
    /// 20 ms.
    #[test]
    fn little_data_waits_for_fastest_subflow() {
        let mut ecf = Ecf::default().build();
        let subflows = [subflow(0, 20, false), subflow(1, 200, true)];
        assert_eq!(choose(&mut *ecf, 10_000, &subflows), Choice::Wait);
        // 90 kB: (1 + 9) × 20 = 200 ms is not below 200 ms, but below 1.25 × 200 ms while it already waits.
        assert_eq!(choose(&mut *ecf, 90_000, &subflows), Choice::Wait);
        assert_eq!(
            choose(&mut *Ecf::default().build(), 90_000, &subflows),
            Choice::Take(1)
        );
        // 115 kB: (1 + 11.5) × 20 = 250 ms is not below 250 ms, which ends the hysteresis.
        assert_eq!(choose(&mut *ecf, 115_000, &subflows), Choice::Take(1));
        assert_eq!(choose(&mut *ecf, 90_000, &subflows), Choice::Take(1));
        // With room the fastest subflow takes all.
        let free = [subflow(0, 20, true), subflow(1, 200, true)];
        assert_eq!(choose(&mut *ecf, 1000, &free), Choice::Take(0));
    }

    /// 100 ms and 120 ms: 2 × 100 is not below 120, so that the slower subflow is used.
    #[test]
    fn uses_both_of_similar_paths() {
        let mut ecf = Ecf::default().build();
        let subflows = [subflow(0, 100, false), subflow(1, 120, true)];
        assert_eq!(choose(&mut *ecf, 1000, &subflows), Choice::Take(1));
        // 100 and 210 ms with a deviation of 50 ms: 200 is below 260, but 210 is not above 2 × 100 + 50.
        let wide = SubflowView {
            rtt_variation: Duration::from_millis(50),
            ..subflow(1, 210, true)
        };
        assert_eq!(
            choose(&mut *ecf, 1000, &[subflow(0, 100, false), wide]),
            Choice::Take(1)
        );
    }

    #[test]
    fn does_not_wait_for_subflow_after_timeout() {
        let silent = SubflowView {
            timeouts: 1,
            ..subflow(0, 20, false)
        };
        let mut ecf = Ecf::default().build();
        assert_eq!(
            choose(&mut *ecf, 1000, &[silent, subflow(1, 200, true)]),
            Choice::Take(1)
        );
        let data = DataView {
            reinjection: true,
            ..DataView::default()
        };
        let subflows = [subflow(0, 20, false), subflow(1, 200, true)];
        assert_eq!(ecf.choose(Instant::ZERO, &data, &subflows), Choice::Take(1));
    }

    #[test]
    fn validates_beta() {
        assert_eq!(Ecf { beta: -1.0 }.validate()[0].key, "beta");
        assert!(Ecf::default().validate().is_empty());
    }
}
