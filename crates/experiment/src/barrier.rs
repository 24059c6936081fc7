//! A barrier between the requests of flows (`barrier`): all wait until the last one has its response.

/// The members of a barrier. It has no clock and no threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Barrier {
    /// Flows that have not ended.
    members: usize,
    /// Flows that have the response to their request.
    waiting: usize,
}

impl Barrier {
    /// Returns the barrier of this number of flows.
    #[must_use]
    pub const fn new(members: usize) -> Self {
        Self { members, waiting: 0 }
    }

    /// Records that a flow waits. Returns whether all flows go on.
    pub const fn arrive(&mut self) -> bool {
        self.waiting += 1;
        self.release()
    }

    /// Records that a flow has ended. Returns whether all others go on.
    pub const fn leave(&mut self) -> bool {
        self.members = self.members.saturating_sub(1);
        self.release()
    }

    const fn release(&mut self) -> bool {
        let is_complete = self.waiting > 0 && self.waiting == self.members;
        if is_complete {
            self.waiting = 0;
        }
        is_complete
    }
}
