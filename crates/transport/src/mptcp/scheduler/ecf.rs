//! Earliest completion first (Y. Lim, E. M. Nahum, D. Towsley and R. J. Gibbens, "ECF: an MPTCP path scheduler to
//! manage heterogeneous paths", CoNEXT 2017): a slower subflow is left idle where all that is to be sent would be
//! there sooner by waiting for the fastest one.

use foundation::{Duration, Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, fastest, fastest_ready};

/// Waits for the fastest subflow where the rest of the data completes sooner that way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecf {
    /// How much longer than at first it waits on once it has begun to wait, as a part (default 0.25).
    pub beta: f64,
}

impl Default for Ecf {
    fn default() -> Self {
        Self { beta: 0.25 }
    }
}

impl SchedulerSettings for Ecf {
    fn validate(&self) -> Vec<Problem> {
        if (0.0..=10.0).contains(&self.beta) {
            return Vec::new();
        }
        let message = format!("{} is out of range: 0 to 10", self.beta);
        vec![Problem::new("beta", message)]
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
    /// Whether it waited last time.
    waiting: bool,
}

/// Round trips that `bytes` take over a subflow, at least one.
fn rounds(bytes: u64, subflow: &SubflowView) -> f64 {
    let window = subflow.window.max(1);
    bytes.max(window) as f64 / window as f64
}

impl EcfScheduler {
    /// Algorithm 1 of the paper: whether to wait for `fast` although `slow` has room.
    fn waits(&mut self, unsent: u64, fast: &SubflowView, slow: &SubflowView) -> bool {
        let seconds = Duration::as_secs_f64;
        let (rtt_fast, rtt_slow) = (seconds(fast.srtt), seconds(slow.srtt));
        let margin = seconds(fast.rtt_variation.max(slow.rtt_variation));
        let patience = if self.waiting { 1.0 + self.beta } else { 1.0 };
        // Until the fastest has room a round trip passes, and then those that the data takes.
        if (1.0 + rounds(unsent, fast)) * rtt_fast < patience * (rtt_slow + margin) {
            // The slow one might still help, if it is through before the fastest begins.
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

    /// By hand from Algorithm 1, windows of 10 kB: 20 ms and full, 200 ms and free. With 10 kB to send the fastest is
    /// done after (1 + 1) 20 = 40 ms, before 200, and the slow one, 200 ms, is no help within 2 * 20.
    #[test]
    fn little_data_waits_for_the_fastest() {
        let mut ecf = Ecf::default().build();
        let subflows = [subflow(0, 20, false), subflow(1, 200, true)];
        assert_eq!(choose(&mut *ecf, 10_000, &subflows), Choice::Wait);
        // 90 kB: (1 + 9) 20 = 200 ms is not before 200, but 1.25 * 200 for who waits already.
        assert_eq!(choose(&mut *ecf, 90_000, &subflows), Choice::Wait);
        assert_eq!(
            choose(&mut *Ecf::default().build(), 90_000, &subflows),
            Choice::Take(1)
        );
        // 115 kB: (1 + 11.5) 20 = 250 ms is not before 250; and then patience is as at first.
        assert_eq!(choose(&mut *ecf, 115_000, &subflows), Choice::Take(1));
        assert_eq!(choose(&mut *ecf, 90_000, &subflows), Choice::Take(1));
        // With room the fastest takes all.
        let free = [subflow(0, 20, true), subflow(1, 200, true)];
        assert_eq!(choose(&mut *ecf, 1000, &free), Choice::Take(0));
    }

    /// 100 ms and 120 ms: 2 * 100 is not before 120, so the slower one is used.
    #[test]
    fn alike_paths_are_both_used() {
        let mut ecf = Ecf::default().build();
        let subflows = [subflow(0, 100, false), subflow(1, 120, true)];
        assert_eq!(choose(&mut *ecf, 1000, &subflows), Choice::Take(1));
        // 100 and 210 ms with a deviation of 50: 200 is before 260, but 210 not after 2 * 100 + 50.
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
    fn nobody_waits_for_one_that_timed_out() {
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
    fn beta_has_a_range() {
        assert_eq!(Ecf { beta: -1.0 }.validate()[0].key, "beta");
        assert!(Ecf::default().validate().is_empty());
    }
}
