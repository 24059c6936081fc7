//! The barrier between the requests of all flows of a group.

use std::sync::{Condvar, Mutex};

use experiment::barrier::Barrier;

use super::flow::locked;
use super::waiting::INTERVAL;

/// Holds flows until all of them have the response to their request.
#[derive(Debug)]
pub(super) struct RequestBarrier {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug)]
struct State {
    barrier: Barrier,
    /// Number of releases.
    releases: u64,
}

/// A flow's place at a barrier: the number of releases before its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket(u64);

impl RequestBarrier {
    pub(super) fn new(members: usize) -> Self {
        Self {
            state: Mutex::new(State {
                barrier: Barrier::new(members),
                releases: 0,
            }),
            released: Condvar::new(),
        }
    }

    /// Records that a flow waits.
    pub(super) fn arrive(&self) -> Ticket {
        let mut state = locked(&self.state);
        let ticket = Ticket(state.releases);
        if state.barrier.arrive() {
            self.release(&mut state);
        }
        ticket
    }

    /// Records that a flow has ended.
    pub(super) fn leave(&self) {
        let mut state = locked(&self.state);
        if state.barrier.leave() {
            self.release(&mut state);
        }
    }

    fn release(&self, state: &mut State) {
        state.releases += 1;
        self.released.notify_all();
    }

    /// Returns whether the flow may go on.
    pub(super) fn is_released(&self, ticket: Ticket) -> bool {
        locked(&self.state).releases > ticket.0
    }

    /// Waits for the other flows; returns false if `is_over` before.
    pub(super) fn wait(&self, is_over: impl Fn() -> bool) -> bool {
        let ticket = self.arrive();
        let mut state = locked(&self.state);
        while state.releases == ticket.0 {
            if is_over() {
                return false;
            }
            let waited = self.released.wait_timeout(state, INTERVAL);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_with_the_last_flow_or_the_end_of_one() {
        let barrier = RequestBarrier::new(3);
        let first = barrier.arrive();
        let second = barrier.arrive();
        assert!(!barrier.is_released(first));
        barrier.leave();
        assert!(barrier.is_released(first) && barrier.is_released(second));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait(|| false));
            let third = barrier.arrive();
            assert!(waiting.join().unwrap() && barrier.is_released(third));
        });
        assert!(!barrier.wait(|| true), "the trial is over");
    }
}
