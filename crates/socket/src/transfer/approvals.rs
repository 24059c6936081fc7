//! Decisions of a person about senders, from any thread.

use std::sync::{Arc, Mutex, PoisonError};

/// Decisions that the receiver has not read yet, by the number of the request.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    decisions: Arc<Mutex<Vec<(u64, bool)>>>,
}

impl Approvals {
    /// Accepts or declines what the sender of request `number` offers.
    pub fn decide(&self, number: u64, accept: bool) {
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.push((number, accept));
    }

    /// Returns the new decisions.
    #[must_use]
    pub fn take(&self) -> Vec<(u64, bool)> {
        std::mem::take(&mut *self.decisions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
