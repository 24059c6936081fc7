//! Scheduled events of a world, apart from packets and timers.

use std::collections::BTreeSet;

use foundation::Instant;

/// A scheduled event of the world itself; ties follow the order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorldEvent {
    /// Start of the measured time.
    Mark,
    /// Goodput sample.
    Window,
    /// Sample of machines and queues.
    Series,
    /// Start of a flow.
    Begin { group: u32, pair: u32, successors: u32 },
    /// Start of a flow of a Poisson process; the next one is drawn.
    Arrive { group: u32, pair: u32 },
    /// End of the trial.
    End,
}

impl WorldEvent {
    /// Returns whether the event only takes a sample.
    const fn is_sample(self) -> bool {
        matches!(self, Self::Window | Self::Series)
    }
}

/// Events in order of time, then in order of scheduling.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    events: BTreeSet<(Instant, u64, WorldEvent)>,
    /// Number of events scheduled so far.
    count: u64,
}

impl Schedule {
    /// Adds an event.
    pub(crate) fn add(&mut self, at: Instant, event: WorldEvent) {
        self.count += 1;
        self.events.insert((at, self.count, event));
    }

    /// Returns the time of the next event; `MAX` if there is none.
    #[inline]
    pub(crate) fn first(&self) -> Instant {
        self.events.first().map_or(Instant::MAX, |first| first.0)
    }

    /// Removes and returns the next event due by `now`, with its time.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, WorldEvent)> {
        let &(at, _, event) = self.events.first().filter(|first| first.0 <= now)?;
        self.events.pop_first();
        Some((at, event))
    }

    /// Returns whether all events only take samples.
    pub(crate) fn has_samples_only(&self) -> bool {
        self.events.iter().all(|(_, _, event)| event.is_sample())
    }
}
