//! All-reduces: the parts that a host sends when those of the step before have arrived.

use std::sync::Arc;

use experiment::all_reduce::{AllReduce, Part};
use experiment::outcome::Transaction;
use experiment::plan::Group;
use experiment::schedule::FlowStart;
use foundation::Duration;

use super::World;
use crate::body::Side;
use crate::watch::WorldObserver;

/// The all-reduces of a group.
pub(super) struct Collective {
    state: AllReduce,
    /// The flow of each pair, as a place in the world.
    places: Vec<u32>,
    /// All-reduces that have not started.
    left: u64,
    /// Pause between two all-reduces.
    think: Duration,
}

impl Collective {
    /// Returns the all-reduces of a group, if it has any.
    pub(super) fn of(group: &Group) -> Option<Self> {
        let steps = Arc::clone(group.steps.as_ref()?);
        Some(Self {
            state: AllReduce::new(steps),
            places: vec![0; group.pairs.len()],
            left: group.workload.rounds.unwrap_or(1).into(),
            think: group.workload.think.unwrap_or_default(),
        })
    }

    /// Records the place of the flow of a pair.
    pub(super) fn begin(&mut self, pair: u32, place: u32) {
        self.places[pair as usize] = place;
    }
}

impl<W: WorldObserver> World<W> {
    /// Starts the next all-reduce of a group, if it has any: all its connections are established, and all hosts have the result of the
    /// one before.
    pub(super) fn start_collective(&mut self, group: u32) {
        let Some(collective) = self.collectives[group as usize].as_mut() else {
            return;
        };
        // The failure of a flow releases the others, too.
        let Some(left) = collective.left.checked_sub(1) else {
            return;
        };
        collective.left = left;
        let parts = collective.state.start(self.now);
        self.send_parts(group, &parts);
    }

    fn send_parts(&mut self, group: u32, parts: &[Part]) {
        for &Part { pair, bytes } in parts {
            let Some(collective) = &self.collectives[group as usize] else {
                return;
            };
            let place = collective.places[pair as usize];
            self.with_end(place, Side::Sender, |end, now, network, host| {
                end.send_part(now, network, host, bytes)
            });
        }
    }

    /// Handles the bytes that a receiver has read since the start of the flow: its host may send the part of the next step, and the
    /// flow may have carried all its parts.
    #[cold]
    pub(super) fn read_part(&mut self, place: u32, start: FlowStart, read: u64) {
        let FlowStart { group, pair, .. } = start;
        let Some(collective) = &mut self.collectives[group as usize] else {
            return;
        };
        let due = collective.state.read(pair, read);
        self.send_parts(group, &due);
        let (Some(collective), Some(flow)) =
            (&self.collectives[group as usize], &mut self.flows[place as usize])
        else {
            return;
        };
        let transactions = &mut flow.ends[0].port.progress.records_mut().transactions;
        let rounds = collective.state.started();
        if transactions.len() as u64 == rounds || !collective.state.is_complete(pair) {
            return;
        }
        transactions.push(Transaction {
            requested_at: collective.state.started_at(),
            responded_at: self.now,
            on_wire: None,
        });
        if collective.left > 0 {
            self.wait(place, self.now + collective.think);
        }
    }
}
