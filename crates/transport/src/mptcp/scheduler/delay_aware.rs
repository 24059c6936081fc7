//! Delay-aware scheduling (G. Sarwar, R. Boreli, E. Lochin, A. Mifdaoui and G. Smith, "Mitigating receiver's buffer
//! blocking by delay aware packet scheduling in multipath data transfer", WAINA 2013): a segment for a slower path is
//! taken from as far ahead in the data as the faster ones will have come when it arrives.
//!
//! Of the paper its abstract was read; how far ahead is inferred: what a faster subflow sends, at a window a round
//! trip, during the difference of the one-way delays, each half a smoothed round-trip time.

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, fastest_ready, in_order};

/// Slower subflows take segments from so far ahead that all arrive in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayAware {}

impl SchedulerSettings for DelayAware {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(DelayAware {})
    }
}

impl Scheduler for DelayAware {
    fn choose(&mut self, _: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        if data.reinjection {
            return fastest_ready(subflows).map_or(Choice::Wait, |(place, _)| Choice::Take(place));
        }
        in_order::choose(subflows, |subflow| subflow.srtt.as_secs_f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    /// 10 kB at 20 ms and 100 ms: during the 40 ms that one way takes longer the fast one sends 20 kB; the slow one
    /// takes what comes after them.
    #[test]
    fn the_slow_one_takes_what_comes_later() {
        let mut scheduler = DelayAware {}.build();
        let mut subflows = [subflow(0, 20, false), subflow(1, 100, true)];
        let mut choose =
            |subflows: &[SubflowView]| scheduler.choose(Instant::ZERO, &DataView::default(), subflows);
        let mut waiting = 0;
        while choose(&subflows) == Choice::Take(0) {
            waiting += 1;
            subflows[0].queued += 1000;
        }
        assert_eq!((waiting, choose(&subflows)), (20, Choice::Take(1)));
        subflows[1].room = false;
        assert_eq!(choose(&subflows), Choice::Wait);
        // With room the fast one goes first.
        assert_eq!(
            choose(&[subflow(0, 20, true), subflow(1, 100, true)]),
            Choice::Take(0)
        );
        // Nothing is kept for one that does not answer.
        let silent = SubflowView {
            timeouts: 1,
            ..subflow(0, 20, false)
        };
        assert_eq!(choose(&[silent, subflow(1, 100, true)]), Choice::Take(1));
    }
}
