//! The decisions of all senders of a trial.

use std::collections::HashMap;

use experiment::trace::Decision;
use foundation::Instant;

/// Keeps the states that differ from the one before.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// The changes so far, in order of time.
    pub changes: Vec<Decision>,
    /// The last change of each flow and subflow.
    last: HashMap<(u32, Option<u8>), Decision>,
}

impl Decisions {
    pub(super) fn add(&mut self, at: Instant, flow: u32, mut decision: Decision) {
        let key = (flow, decision.subflow);
        if self.last.get(&key).is_some_and(|last| !decision.differs(last)) {
            return;
        }
        (decision.time, decision.flow) = (at.as_secs_f64(), flow);
        self.last.insert(key, decision.clone());
        self.changes.push(decision);
    }
}
