//! The subflows in turn, as in ns-3's MPTCP.

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, ready};

/// The subflows with room, in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundRobin {}

impl SchedulerSettings for RoundRobin {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(RoundRobinScheduler { last: None })
    }
}

#[derive(Debug)]
struct RoundRobinScheduler {
    /// Subflow used last.
    last: Option<u8>,
}

impl Scheduler for RoundRobinScheduler {
    fn choose(&mut self, _: Instant, _: &DataView, subflows: &[SubflowView]) -> Choice {
        let after = |subflow: &SubflowView| self.last.is_some_and(|last| subflow.id <= last);
        // Subflows after the last one come first; both halves are ordered by number.
        let next = ready(subflows).min_by_key(|(_, subflow)| (after(subflow), subflow.id));
        next.map_or(Choice::Wait, |(place, subflow)| {
            self.last = Some(subflow.id);
            Choice::Take(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    #[test]
    fn serves_subflows_in_turn() {
        let mut scheduler = RoundRobin {}.build();
        let mut subflows = [subflow(0, 30, true), subflow(1, 20, true), subflow(2, 10, true)];
        let mut choose =
            |subflows: &[SubflowView]| scheduler.choose(Instant::ZERO, &DataView::default(), subflows);
        let order: Vec<_> = (0..4).map(|_| choose(&subflows)).collect();
        assert_eq!(order, [0, 1, 2, 0].map(Choice::Take));
        subflows[1].room = false;
        assert_eq!(choose(&subflows), Choice::Take(2));
        assert_eq!(choose(&subflows), Choice::Take(0));
    }
}
