//! Jitter-aware scheduling, JAPS (M.-C. Chan, C.-C. Tseng and L.-H. Yen, "Jitter-aware packet scheduler for concurrent
//! multipath transmission in heterogeneous wireless networks", WCNC 2016): delay-aware scheduling on paths whose delay
//! changes from packet to packet.
//!
//! Of the paper its abstract was read: DAPS fails where delays are not quasi-static, and a scheduler should know of
//! jitter. The rest is inferred: each segment is decided anew, and a subflow's delay is half of its smoothed round-trip
//! time and so many mean deviations of it as `margin` says, so that what a jittering path carries is from further ahead.

use foundation::{Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, fastest_ready, in_order};

/// As "delay-aware", with delays that allow for jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JitterAware {
    /// Mean deviations of the round-trip time that are added to it (default 1).
    pub margin: f64,
}

impl Default for JitterAware {
    fn default() -> Self {
        Self { margin: 1.0 }
    }
}

impl SchedulerSettings for JitterAware {
    fn validate(&self) -> Vec<Problem> {
        if (0.0..=100.0).contains(&self.margin) {
            return Vec::new();
        }
        let message = format!("{} is out of range: 0 to 100", self.margin);
        vec![Problem::new("margin", message)]
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

impl Scheduler for JitterAware {
    fn choose(&mut self, _: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        if data.reinjection {
            return fastest_ready(subflows).map_or(Choice::Wait, |(place, _)| Choice::Take(place));
        }
        let delay = |subflow: &SubflowView| {
            (subflow.srtt.as_secs_f64() + self.margin * subflow.rtt_variation.as_secs_f64()) / 2.0
        };
        in_order::choose(subflows, delay)
    }
}

#[cfg(test)]
mod tests {
    use foundation::Duration;

    use super::super::tests::subflow;
    use super::*;

    fn kept(settings: &JitterAware, slow: SubflowView) -> u64 {
        let mut scheduler = settings.build();
        let mut subflows = [subflow(0, 20, false), slow];
        while scheduler.choose(Instant::ZERO, &DataView::default(), &subflows) == Choice::Take(0) {
            subflows[0].queued += 1000;
        }
        subflows[0].queued
    }

    /// 10 kB at 20 ms; 100 ms and a mean deviation of 20: 40 ms and 10 more.
    #[test]
    fn jitter_is_delay() {
        let steady = subflow(1, 100, true);
        let jitters = SubflowView {
            rtt_variation: Duration::from_millis(20),
            ..steady
        };
        assert_eq!(kept(&JitterAware::default(), steady), 20_000);
        assert_eq!(kept(&JitterAware::default(), jitters), 25_000);
        assert_eq!(kept(&JitterAware { margin: 3.0 }, jitters), 35_000);
        assert_eq!(kept(&JitterAware { margin: 0.0 }, jitters), 20_000);
        assert_eq!(JitterAware { margin: f64::NAN }.validate()[0].key, "margin");
    }
}
