//! Strict priorities: a packet leaves only when no packet of a higher priority waits (class selectors, RFC 2474, section
//! 4.2.2.2).

use foundation::{Instant, Problem, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedPacket, Transmitter,
};

omit_unset! {
    /// Prio: strict priorities; packets of a flow have the priority of its workload.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Prio {
        /// Limit of all priorities together in packets or bytes, the packet in transmission included; default "1000pkt". A packet that finds the queue full replaces the last ones of lower priorities.
        pub limit: Option<QueueLimit>,
    }
}

/// Priorities from 0 to 7.
const PRIORITIES: usize = 8;

impl DisciplineConfig for Prio {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        QueueLimit::problems(self.limit)
    }

    fn build(&self, _: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            bands: Default::default(),
        }))
    }
}

struct Queue {
    bounds: Bounds,
    /// A queue per priority.
    bands: [Fifo; PRIORITIES],
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        _: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let own = usize::from(actions.priority(&arriving)).min(PRIORITIES - 1);
        let (lower, others) = self.bands.split_at_mut(own);
        let kept = others
            .iter()
            .fold(transmitter.sending, |sum, band| sum + band.count());
        if !self.bounds.admit(kept, arriving.size()) {
            return actions.drop(arriving);
        }
        let length = |lower: &[Fifo]| lower.iter().fold(kept, |sum, band| sum + band.count());
        while !self.bounds.admit(length(lower), arriving.size()) {
            let Some(last) = lower.iter_mut().find_map(Fifo::pop_last) else {
                break;
            };
            actions.drop(last);
        }
        self.bands[own].push(arriving);
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.bands.iter_mut().rev().find_map(Fifo::pop)
    }

    fn waiting(&self) -> Count {
        let counts = self.bands.iter().map(Fifo::count);
        counts.fold(Count::default(), |sum, count| sum + count)
    }
}
