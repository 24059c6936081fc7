//! COBALT, the AQM of each queue of CAKE: CoDel's signals with a gradual decrease of their rate, next to BLUE, which drops at
//! random with a probability that grows while the queue overflows (Palmei et al., "Design and Evaluation of COBALT Queue
//! Discipline", LANMAN 2019; BLUE: Feng et al., IEEE/ACM ToN 10, 2002).

use foundation::Generator;
use rand::Rng;

use crate::queue::codel::ControlLaw;
use crate::queue::{QueueActions, QueuedPacket};

/// Increase of BLUE's probability at an overflow, and decrease when the queue is empty, in units of 2^-32: 1/256 and 1/4096
/// (Linux).
const BLUE_INCREASE: u32 = 1 << 24;
const BLUE_DECREASE: u32 = 1 << 20;
/// Packets whose transmission time is no standing queue.
const SHORT_QUEUE: u64 = 4;

/// The parameters of all queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) law: ControlLaw,
    /// Transmission time of a large packet at the rate of the shaper, in nanoseconds; 0 without one.
    pub(super) packet_time: u64,
}

/// The state of one queue.
#[derive(Debug, Default)]
pub(super) struct Cobalt {
    /// Signals in this phase, which decrease as fast as they grew.
    count: u32,
    is_signalling: bool,
    /// When the next signal is due or, without signals, when the state is at rest.
    next: u64,
    /// BLUE's probability in units of 2^-32, and the time of its last change.
    blue: u32,
    blue_changed: u64,
}

impl Cobalt {
    /// Records that the queue dropped a packet because all queues together exceeded their limit.
    pub(super) fn overflowed(&mut self, now: u64, parameters: &Parameters) {
        if self.blue_may_change(now, parameters) {
            self.blue = self.blue.saturating_add(BLUE_INCREASE);
            self.blue_changed = now;
        }
        self.is_signalling = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// Records that the queue was empty at its turn.
    pub(super) fn ran_empty(&mut self, now: u64, parameters: &Parameters) {
        if self.blue > 0 && self.blue_may_change(now, parameters) {
            self.blue = self.blue.saturating_sub(BLUE_DECREASE);
            self.blue_changed = now;
        }
        self.is_signalling = false;
        if self.is_due(now) {
            self.decrease(parameters);
        }
    }

    /// Returns whether the state has decayed.
    pub(super) const fn is_at_rest(&self, now: u64) -> bool {
        self.blue == 0 && self.count == 0 && now >= self.next
    }

    /// Marks a packet that leaves, or returns true if it is to be dropped. BLUE does not mark: a flow that overflows the queue
    /// ignores marks.
    pub(super) fn drops(
        &mut self,
        now: u64,
        packet: &QueuedPacket,
        parameters: &Parameters,
        stream: &mut Generator,
        actions: &mut dyn QueueActions,
    ) -> bool {
        let law = &parameters.law;
        let wait = now - packet.since.as_nanos();
        let is_due = self.is_due(now);
        if wait > law.target.as_nanos() && wait > SHORT_QUEUE * parameters.packet_time {
            if !self.is_signalling {
                self.is_signalling = true;
                self.next = law.next_drop(now, self.count);
            }
            self.count = self.count.max(1);
        } else {
            self.is_signalling = false;
        }
        let mut drops = false;
        if is_due && self.is_signalling {
            drops = !actions.mark(packet);
            self.count = self.count.saturating_add(1);
            self.next = law.next_drop(self.next, self.count);
        } else if is_due {
            while self.is_due(now) {
                self.decrease(parameters);
            }
        }
        if self.blue > 0 {
            drops |= stream.next_u32() < self.blue;
        }
        if self.count == 0 {
            self.next = now.saturating_add(law.interval.as_nanos());
        } else if now > self.next && !drops {
            // Signals that were due in the past do not come in a burst.
            self.next = now;
        }
        drops
    }

    const fn is_due(&self, now: u64) -> bool {
        self.count > 0 && now >= self.next
    }

    fn decrease(&mut self, parameters: &Parameters) {
        self.count -= 1;
        self.next = parameters.law.next_drop(self.next, self.count);
    }

    const fn blue_may_change(&self, now: u64, parameters: &Parameters) -> bool {
        now - self.blue_changed > parameters.law.target.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::Duration;

    const MILLI: u64 = 1_000_000;

    fn parameters() -> Parameters {
        Parameters {
            law: ControlLaw {
                target: Duration::from_millis(5),
                interval: Duration::from_millis(100),
                ecn: true,
                ce_threshold: None,
                ect1_only: false,
            },
            packet_time: 0,
        }
    }

    /// The probability of BLUE grows by 1/256 per overflow and falls by 1/4096 per empty queue, each at most once per target
    /// (Linux); 16 decreases undo an increase.
    #[test]
    fn blue_grows_with_overflows_and_falls_while_empty() {
        let parameters = parameters();
        let mut cobalt = Cobalt::default();
        for number in 1..=4 {
            cobalt.overflowed(number * 6 * MILLI, &parameters);
            cobalt.overflowed(number * 6 * MILLI + MILLI, &parameters);
        }
        assert_eq!(cobalt.blue, 4 << 24);
        for number in 5..=20 {
            cobalt.ran_empty(number * 6 * MILLI, &parameters);
            cobalt.ran_empty(number * 6 * MILLI + MILLI, &parameters);
        }
        assert_eq!(cobalt.blue, 3 << 24);
        for _ in 0..300 {
            cobalt.blue_changed = 0;
            cobalt.overflowed(1000 * MILLI, &parameters);
        }
        assert_eq!(cobalt.blue, u32::MAX);
    }

    /// An empty queue forgets one signal each time the next one would be due.
    #[test]
    fn the_count_falls_as_it_grew() {
        let parameters = parameters();
        let mut cobalt = Cobalt {
            count: 2,
            next: 100 * MILLI,
            ..Cobalt::default()
        };
        cobalt.ran_empty(99 * MILLI, &parameters);
        assert_eq!(cobalt.count, 2);
        cobalt.ran_empty(100 * MILLI, &parameters);
        assert_eq!((cobalt.count, cobalt.next), (1, 200 * MILLI));
        cobalt.ran_empty(250 * MILLI, &parameters);
        assert_eq!((cobalt.count, cobalt.next), (0, 300 * MILLI));
        assert!(!cobalt.is_at_rest(299 * MILLI));
        assert!(cobalt.is_at_rest(300 * MILLI));
    }
}
