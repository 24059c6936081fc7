//! The end of a run whose clock stands still.

use foundation::Instant;

/// Events at one instant that end a run, up to twice as many. They can only come from flows whose packets take no time.
pub(super) const MOST_EVENTS: u32 = 1_000_000;

/// Counts events and compares the clock with its time [`MOST_EVENTS`] before.
#[derive(Debug)]
pub(super) struct StoppedClock {
    /// Events until the next comparison, and the time of the last one.
    left: u32,
    compared_at: Instant,
    /// The flow whose events stopped the clock.
    flow: Option<u32>,
}

impl Default for StoppedClock {
    fn default() -> Self {
        Self {
            left: MOST_EVENTS,
            compared_at: Instant::ZERO,
            flow: None,
        }
    }
}

impl StoppedClock {
    /// Counts an event of a flow. Returns whether the clock has stopped.
    #[inline]
    pub(super) fn count(&mut self, now: Instant, flow: u32) -> bool {
        self.left -= 1;
        self.left == 0 && self.compare(now, flow)
    }

    #[cold]
    fn compare(&mut self, now: Instant, flow: u32) -> bool {
        self.left = MOST_EVENTS;
        if std::mem::replace(&mut self.compared_at, now) < now {
            return false;
        }
        self.flow = Some(flow);
        true
    }

    /// Returns the flow whose events stopped the clock.
    pub(super) const fn flow(&self) -> Option<u32> {
        self.flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of the event, of those at these times, that finds the clock stopped.
    fn stops(mut times: impl Iterator<Item = u64>) -> Option<usize> {
        let mut clock = StoppedClock::default();
        times
            .position(|at| clock.count(Instant::from_nanos(at), 7))
            .inspect(|_| assert_eq!(clock.flow(), Some(7)))
    }

    #[test]
    fn stops_after_one_to_two_million_events_at_an_instant() {
        assert_eq!(stops(std::iter::repeat(0)), Some(999_999));
        // `before` events precede those at the instant.
        for (before, last) in [(1, 1_999_999), (999_999, 1_999_999), (1_000_001, 2_999_999)] {
            let times = (0..4_000_000).map(|number| 1 + u64::from(number >= before));
            assert_eq!(stops(times), Some(last), "{before}");
        }
    }

    #[test]
    fn continues_while_the_clock_advances() {
        assert_eq!(stops((0..5_000_000).map(|number| number / 999_999)), None);
    }
}
