//! The room that all connections of a receiver share: a limit of bytes, and the free space of the disk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Space that stays free for others.
const MARGIN: u64 = 64 << 10;

/// Room for files, shared by all connections.
#[derive(Clone, Debug)]
pub struct Budget {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// Bytes that may still be reserved; `None` without a limit.
    left: Option<u64>,
    /// Reserved bytes that are not on the disk yet.
    outstanding: u64,
}

impl Budget {
    /// Creates a budget of `most` bytes; `None` sets no limit except for the disk.
    #[must_use]
    pub fn new(most: Option<u64>) -> Self {
        let state = State {
            left: most,
            outstanding: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves `bytes`, if `free` bytes of the disk suffice for them and for all other reservations.
    ///
    /// # Errors
    /// Why not, in one line.
    pub fn reserve(&self, bytes: u64, free: u64) -> Result<Reservation, String> {
        let mut state = self.lock();
        if let Some(left) = state.left.filter(|&left| bytes > left) {
            return Err(format!(
                "its {bytes} bytes exceed the receiver's limit (--max-bytes): {left} bytes left"
            ));
        }
        let room = free.saturating_sub(state.outstanding.saturating_add(MARGIN));
        if bytes > 0 && bytes > room {
            return Err(format!(
                "its {bytes} bytes exceed the free space of the receiver: {room} bytes"
            ));
        }
        state.left = state.left.map(|left| left - bytes);
        state.outstanding = state.outstanding.saturating_add(bytes);
        Ok(Reservation {
            budget: self.clone(),
            bytes,
        })
    }
}

/// Reserved bytes that are not on the disk yet. Dropping it returns them.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
}

impl Reservation {
    /// Records that `bytes` of it are on the disk.
    pub fn used(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.lock().outstanding -= bytes;
    }

    /// Returns what is left of it.
    pub fn release(&mut self) {
        let mut state = self.budget.lock();
        state.outstanding -= self.bytes;
        state.left = state.left.map(|left| left + self.bytes);
        self.bytes = 0;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_the_limit() {
        let budget = Budget::new(Some(100));
        let mut first = budget.reserve(60, u64::MAX).unwrap();
        assert_eq!(
            budget.reserve(41, u64::MAX).unwrap_err(),
            "its 41 bytes exceed the receiver's limit (--max-bytes): 40 bytes left"
        );
        first.used(50);
        drop(first);
        // The ten bytes that did not arrive are free again.
        assert!(budget.reserve(51, u64::MAX).is_err());
        let second = budget.reserve(50, u64::MAX).unwrap();
        assert!(budget.reserve(0, 0).is_ok());
        drop(second);
    }

    #[test]
    fn connections_share_the_disk() {
        let budget = Budget::new(None);
        let free = MARGIN + 100;
        let mut first = budget.reserve(70, free).unwrap();
        assert_eq!(
            budget.reserve(31, free).unwrap_err(),
            "its 31 bytes exceed the free space of the receiver: 30 bytes"
        );
        // Bytes on the disk are no longer counted twice.
        first.used(70);
        assert!(budget.reserve(31, free - 70).is_err());
        assert!(budget.reserve(30, free - 70).is_ok());
    }
}
