//! Who wants to be called when: a heap whose entries are moved lazily.
//!
//! A retransmission timer moves with every ACK. An entry that comes too early is put back at its new
//! time when it is met, so that moving a timer to a later time costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foundation::Instant;

/// Wake-up times of numbered sleepers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The earliest entry of each sleeper; `MAX` for none.
    armed: Vec<Instant>,
}

impl Timers {
    /// Sleeper `number` wants to wake at `at`.
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

    /// When somebody may want to wake: never later than somebody does.
    #[inline]
    pub(crate) fn first(&self) -> Instant {
        self.heap.peek().map_or(Instant::MAX, |entry| entry.0.0)
    }

    /// A sleeper with an entry at or before `now`. The caller asks it when it wants to wake, and
    /// [`set`](Self::set)s that again.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((at, number))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[number as usize];
            // An entry that an earlier one has replaced is left over.
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
        /// Whatever moves when, each sleeper is woken at its last time and not before.
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
