//! Endpoint timers: a heap with lazy updates. Its nodes have eight children, which are in two cache lines: with 200,000 timers, most
//! levels of a heap are in no near cache.
//!
//! A retransmission timer moves with every ACK. The heap keeps the earlier entry; the caller re-inserts the timer at its
//! current time when the entry expires, so postponing a timer is free.

use std::cmp::Reverse;

use dary_heap::OctonaryHeap;
use foundation::Instant;

/// Expiry times of numbered timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: OctonaryHeap<Reverse<(Instant, u32)>>,
    /// The earliest entry of each timer; `MAX` for none.
    armed: Vec<Instant>,
}

impl Timers {
    /// Sets timer `number` to expire at `at`.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, at: Instant) {
        let index = number as usize;
        if index >= self.armed.len() {
            self.armed.resize(index + 1, Instant::MAX);
        }
        if at < self.armed[index] {
            self.armed[index] = at;
            self.heap.push(Reverse((at, number)));
        }
    }

    /// Returns a lower bound of the next expiry.
    #[inline]
    pub(crate) fn first(&self) -> Instant {
        self.heap.peek().map_or(Instant::MAX, |entry| entry.0.0)
    }

    /// Returns a timer with an entry at or before `now`. The caller checks its current time and, if that is later,
    /// [`set`](Self::set)s it again.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((at, number))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[number as usize];
            // Skips an entry replaced by an earlier one.
            if *armed == at {
                *armed = Instant::MAX;
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every timer expires at its last set time, not earlier or later.
        #[test]
        fn wakes_every_endpoint_in_time(moves in prop::collection::vec((0_u32..5, 1_u64..100), 1..60)) {
            let mut timers = Timers::default();
            let mut wanted = [Instant::MAX; 5];
            let mut now = Instant::ZERO;
            let run = |timers: &mut Timers, wanted: &mut [Instant; 5], until: Instant| {
                while timers.first() <= until {
                    let at = timers.first();
                    while let Some(number) = timers.pop(at) {
                        let want = &mut wanted[number as usize];
                        if *want <= at {
                            assert_eq!(*want, at, "woken late");
                            *want = Instant::MAX;
                        } else {
                            timers.set(number, *want);
                        }
                    }
                }
            };
            for (number, after) in moves {
                let at = now + foundation::Duration::from_nanos(after);
                wanted[number as usize] = at;
                timers.set(number, at);
                now += foundation::Duration::from_nanos(7);
                run(&mut timers, &mut wanted, now);
            }
            run(&mut timers, &mut wanted, Instant::from_nanos(1_000_000));
            prop_assert_eq!(wanted, [Instant::MAX; 5]);
        }
    }
}
