//! The subflow with the smallest smoothed round-trip time first, the default of the first MPTCP for Linux (Raiciu et
//! al., "How hard can it be? Designing and implementing a deployable multipath TCP", NSDI 2012).

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, fastest_ready};

/// The subflow with the smallest smoothed round-trip time that has room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MinRtt {}

impl SchedulerSettings for MinRtt {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(MinRtt {})
    }
}

impl Scheduler for MinRtt {
    fn choose(&mut self, _: Instant, _: &DataView, subflows: &[SubflowView]) -> Choice {
        fastest_ready(subflows).map_or(Choice::Wait, |(place, _)| Choice::Take(place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    #[test]
    fn chooses_fastest_subflow_with_room() {
        let choose =
            |subflows: &[SubflowView]| MinRtt {}.choose(Instant::ZERO, &DataView::default(), subflows);
        assert_eq!(
            choose(&[subflow(0, 30, true), subflow(1, 20, true)]),
            Choice::Take(1)
        );
        assert_eq!(
            choose(&[subflow(0, 30, true), subflow(1, 20, false)]),
            Choice::Take(0)
        );
        assert_eq!(choose(&[subflow(0, 30, false)]), Choice::Wait);
    }
}
