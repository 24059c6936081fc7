//! OTIAS, out-of-order transmission for in-order arrival scheduling (F. Yang, Q. Wang and P. D. Amer, "Out-of-order
//! transmission for in-order arrival scheduling for multipath TCP", WAINA 2014): assigns a segment to the subflow
//! with its earliest arrival, where it is queued if necessary.

use foundation::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, eligible, fastest_ready};

/// Each segment on the subflow with its earliest arrival, queued there if necessary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otias {}

impl SchedulerSettings for Otias {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Otias {})
    }
}

/// Returns the paper's estimate of the arrival: (floor((queued - free) / window) + 1/2) round trips, in packets.
fn arrival(subflow: &SubflowView) -> Duration {
    let segment = u64::from(subflow.segment).max(1);
    let window = (subflow.window / segment).max(1);
    let free = window.saturating_sub(subflow.in_flight.div_ceil(segment));
    let rounds = subflow.queued.div_ceil(segment).saturating_sub(free) / window;
    subflow.srtt * rounds + subflow.srtt / 2
}

impl Scheduler for Otias {
    fn choose(&mut self, _: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        let Some((place, _)) = fastest_ready(subflows) else {
            return Choice::Wait;
        };
        if data.reinjection {
            return Choice::Take(place);
        }
        let may_wait = |subflow: &SubflowView| subflow.timeouts == 0 && !subflow.srtt.is_zero();
        let candidates = eligible(subflows).filter(|(_, subflow)| subflow.room || may_wait(subflow));
        let first = candidates.min_by_key(|(_, subflow)| arrival(subflow));
        Choice::Take(first.map_or(place, |(first, _)| first))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    /// Worked by hand from the paper's estimate, windows of 10 packets: 20 ms with a full window, 100 ms with a free
    /// one. The slow subflow delivers a segment in 50 ms; the fast one within 10, 30 and 50 ms for the first three
    /// windows, then 70 ms.
    #[test]
    fn queues_segment_where_it_arrives_first() {
        let full = SubflowView {
            in_flight: 10_000,
            ..subflow(0, 20, false)
        };
        let mut subflows = [full, subflow(1, 100, true)];
        let choose =
            |subflows: &[SubflowView]| Otias {}.choose(Instant::ZERO, &DataView::default(), subflows);
        let ms = Duration::from_millis;
        for (queued, expected) in [(0, 10), (9, 10), (10, 30), (20, 50), (30, 70)] {
            subflows[0].queued = queued * 1000;
            assert_eq!(arrival(&subflows[0]), ms(expected), "{queued} queued");
        }
        assert_eq!(choose(&subflows), Choice::Take(1));
        subflows[0].queued = 29_000;
        assert_eq!(choose(&subflows), Choice::Take(0));
        // Half of the window is free: five more segments belong to the first round.
        subflows[0].in_flight = 5000;
        subflows[0].queued = 34_000;
        assert_eq!(arrival(&subflows[0]), ms(50));
        subflows[1].room = false;
        assert_eq!(choose(&subflows), Choice::Wait);
        let silent = SubflowView { timeouts: 1, ..full };
        assert_eq!(choose(&[silent, subflow(1, 100, true)]), Choice::Take(1));
    }
}
