//! The state of a shared buffer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::SharedBuffer;

/// A shared buffer: the bytes in it, and when those in transmission leave it.
#[derive(Debug)]
pub(super) struct Pool {
    size: u64,
    alpha: f64,
    used: u64,
    /// End of transmission, in nanoseconds, and bytes of each packet in transmission.
    leaving: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Pool {
    const fn new(buffer: &SharedBuffer) -> Self {
        Self {
            size: buffer.size.bytes(),
            alpha: buffer.alpha,
            used: 0,
            leaving: BinaryHeap::new(),
        }
    }

    /// Removes the packets whose transmission has ended by `now`.
    fn forget_sent(&mut self, now: u64) {
        while let Some(&Reverse((end, size))) = self.leaving.peek()
            && end <= now
        {
            self.leaving.pop();
            self.used -= u64::from(size);
        }
    }

    /// Returns whether a queue with `length` bytes accepts a packet of `size` bytes at `now`.
    pub(super) fn accepts(&mut self, now: u64, length: u64, size: u32) -> bool {
        self.forget_sent(now);
        let free = self.size - self.used;
        u64::from(size) <= free && (length as f64) < self.alpha * free as f64
    }

    /// Adds bytes to a queue.
    pub(super) const fn add(&mut self, bytes: u64) {
        self.used += bytes;
    }

    /// Removes bytes from a queue.
    pub(super) const fn remove(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Adds a packet that is in transmission until `end`.
    pub(super) fn add_until(&mut self, end: u64, size: u32) {
        self.used += u64::from(size);
        self.leaving.push(Reverse((end, size)));
    }

    /// Returns the bytes in the buffer at `now`.
    fn used(&self, now: u64) -> u64 {
        let sent = self.leaving.iter().filter(|Reverse((end, _))| *end <= now);
        self.used - sent.map(|Reverse((_, size))| u64::from(*size)).sum::<u64>()
    }
}

/// A shared buffer of several links. The links of a network belong to one thread, so the lock is never contended.
#[derive(Clone, Debug)]
pub(crate) struct BufferPool(Arc<Mutex<Pool>>);

impl BufferPool {
    pub(crate) fn new(buffer: &SharedBuffer) -> Self {
        Self(Arc::new(Mutex::new(Pool::new(buffer))))
    }

    /// Returns the bytes in the buffer at `now`, the packets in transmission included.
    pub(crate) fn used(&self, now: u64) -> u64 {
        self.lock().used(now)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
