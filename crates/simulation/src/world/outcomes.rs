//! The outcomes of flows that have ended, and at the end of the run those of all.

use experiment::ideal;
use experiment::outcome::FlowOutcome;

use super::{GONE, World};
use crate::endpoint::outcome;
use crate::flow::Flow;
use crate::watch::WorldObserver;

// Otherwise the outcomes of active flows would need memory of their own.
const _: () = assert!(size_of::<FlowOutcome>() <= size_of::<Option<Flow>>());

/// Returns the outcomes of the active flows, in the memory of these flows.
fn outcomes(flows: Vec<Option<Flow>>) -> Vec<FlowOutcome> {
    flows.into_iter().filter_map(|slot| slot.map(outcome)).collect()
}

impl<W: WorldObserver> World<W> {
    /// Removes a flow and keeps its outcome.
    pub(super) fn retire_flow(&mut self, place: u32) {
        if let Some(flow) = self.flows[place as usize].take() {
            self.places[flow.number as usize] = GONE;
            self.outcomes.push(outcome(flow));
            self.free.push(place);
        }
    }

    /// Sets the ideal completion times of the outcomes.
    pub(crate) fn set_ideals(&mut self) {
        ideal::set(&mut self.outcomes, &self.groups, &self.topology);
    }

    /// Retires all active flows and sorts the outcomes by start.
    pub(crate) fn close(&mut self) {
        let mut active = outcomes(std::mem::take(&mut self.flows));
        if self.outcomes.is_empty() {
            self.outcomes = active;
        } else {
            self.outcomes.append(&mut active);
        }
        self.free.clear();
        self.places.fill(GONE);
        self.outcomes.sort_unstable_by_key(|outcome| outcome.number);
    }

    /// Returns the outcome of every started flow after the run, in order of start.
    #[must_use]
    pub fn outcomes(&self) -> &[FlowOutcome] {
        &self.outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::spec::TrialSpec;

    /// Collecting in place is an optimization of the standard library, which a change of the iterator may lose.
    #[test]
    fn outcomes_take_the_memory_of_active_flows() {
        let json = r#"{"path": {"rate": "1Mbit/s", "delay": "1ms"}, "protocol": {"kind": "tcp"},
            "workload": {"kind": "bulk", "flows": 10, "duration": "1s"}, "seed": 1}"#;
        let mut world = World::new(&TrialSpec::from_json(json).unwrap(), (), None).unwrap();
        world.run(None).unwrap();
        let place = world.flows.as_ptr().addr();
        world.close();
        assert_eq!(world.outcomes().as_ptr().addr(), place);
        let numbers = world.outcomes().iter().map(|outcome| outcome.number);
        assert!(numbers.eq(0..10));
    }
}
