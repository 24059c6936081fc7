//! Every segment on every subflow (A. Frömmgen, T. Erbshäußer, A. Buchmann, T. Zimmermann and K. Wehrle, "ReMP TCP:
//! low latency multipath TCP", ICC 2016): the rate of one path at the delay of the currently fastest one.

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, eligible, fastest_ready};

/// A copy of every segment on every subflow, except copies of data that already arrived on another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redundant {}

impl SchedulerSettings for Redundant {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Redundant {})
    }
}

impl Scheduler for Redundant {
    fn choose(&mut self, _: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        match fastest_ready(subflows) {
            None => Choice::Wait,
            // All other subflows carried it.
            Some((place, _)) if data.reinjection => Choice::Take(place),
            // Subflows without room queue their copy, which is dropped if it is acknowledged before.
            Some(_) => Choice::Copies(eligible(subflows).fold(0, |set, (place, _)| set | 1 << place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    #[test]
    fn assigns_a_copy_to_each_subflow() {
        let choose =
            |subflows: &[SubflowView]| Redundant {}.choose(Instant::ZERO, &DataView::default(), subflows);
        let both = [subflow(0, 20, true), subflow(1, 200, false)];
        assert_eq!(choose(&both), Choice::Copies(0b11));
        let backup = SubflowView {
            backup: true,
            ..subflow(2, 20, true)
        };
        assert_eq!(choose(&[both[0], both[1], backup]), Choice::Copies(0b11));
        assert_eq!(choose(&[subflow(0, 20, false)]), Choice::Wait);
        let reinjection = DataView {
            reinjection: true,
            ..DataView::default()
        };
        assert_eq!(
            Redundant {}.choose(Instant::ZERO, &reinjection, &both),
            Choice::Take(0)
        );
    }
}
