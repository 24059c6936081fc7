//! Every segment over every subflow (A. Frömmgen, T. Erbshäußer, A. Buchmann, T. Zimmermann and K. Wehrle, "ReMP TCP:
//! low latency multipath TCP", ICC 2016): the rate of one path at the delay of whichever is the fastest just now.

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, eligible, fastest_ready};

/// A copy of every segment for every subflow; what has arrived by another one is not sent any more.
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
            // All others have had it.
            Some((place, _)) if data.reinjection => Choice::Take(place),
            // Those without room keep it until they have, unless it is acknowledged before.
            Some(_) => Choice::Copies(eligible(subflows).fold(0, |set, (place, _)| set | 1 << place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    #[test]
    fn a_copy_for_everyone() {
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
        let again = DataView {
            reinjection: true,
            ..DataView::default()
        };
        assert_eq!(Redundant {}.choose(Instant::ZERO, &again, &both), Choice::Take(0));
    }
}
