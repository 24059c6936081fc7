//! The schedule of outages: when links fail and recover, and when routes change because of that.

use std::collections::BTreeMap;

use foundation::Duration;

use crate::packet::{LinkId, RouteId};
use crate::routes::Span;

/// A change of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Fail(LinkId),
    Recover(LinkId),
    Reroute(RouteId, Span),
}

/// Changes in order of time since the start.
#[derive(Clone, Debug)]
pub(crate) struct OutageSchedule {
    changes: Vec<(Duration, Change)>,
    /// Number of changes so far.
    next: usize,
    /// Time of the start in nanoseconds.
    start: u64,
    /// The routes that change, as they are without failures.
    original: BTreeMap<RouteId, Span>,
}

impl OutageSchedule {
    /// Returns the schedule of these changes. Of several at one time, failures and recoveries precede changes of routes.
    pub(crate) fn new(mut changes: Vec<(Duration, Change)>, original: BTreeMap<RouteId, Span>) -> Self {
        changes.sort_by_key(|&(at, change)| (at, matches!(change, Change::Reroute(..))));
        Self {
            changes,
            next: 0,
            start: 0,
            original,
        }
    }

    /// Returns the time of the next change in nanoseconds, if there is one.
    pub(crate) fn due(&self) -> Option<u64> {
        let (after, _) = self.changes.get(self.next)?;
        Some(self.start.saturating_add(after.as_nanos()))
    }

    /// Returns the next change due by `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Change> {
        self.due().filter(|&due| due <= now)?;
        self.next += 1;
        Some(self.changes[self.next - 1].1)
    }

    /// Starts again at `now`. Returns the links that are down, and the routes without failures.
    pub(crate) fn restart(&mut self, now: u64) -> (Vec<LinkId>, &BTreeMap<RouteId, Span>) {
        let mut down = Vec::new();
        for (_, change) in &self.changes[..self.next] {
            match *change {
                Change::Fail(link) => down.push(link),
                Change::Recover(link) => down.retain(|&other| other != link),
                Change::Reroute(..) => {}
            }
        }
        self.next = 0;
        self.start = now;
        (down, &self.original)
    }
}
