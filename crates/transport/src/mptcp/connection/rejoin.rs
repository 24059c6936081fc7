//! Subflows in index of those that failed.
//!
//! RFC 8684 leaves open when. Linux's own path manager never does it; the one of the first multipath TCP for Linux did so
//! after a while (fullmesh). Here the wait doubles with each failure on the path until data arrives over it again.

use foundation::{Duration, Instant};

use super::{Connection, Mode};
use crate::mptcp::policy::Join;
use crate::mptcp::segment::PathIndex;

/// The longest wait, but where the first one is longer.
const LONGEST: Duration = Duration::from_secs(60);
/// Doublings that reach it from the shortest first wait.
const MOST_DOUBLINGS: u32 = 32;

/// A subflow that will be opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rejoin {
    at: Instant,
    path: PathIndex,
    backup: bool,
    failures: u32,
}

impl Connection {
    /// A subflow failed: another one is opened on its path after a while, unless the peer has said that it will not do
    /// (RFC 8684, section 3.6).
    pub(super) fn plan_rejoin(&mut self, now: Instant, index: usize) {
        let Some(first) = self.setup.rejoin() else { return };
        let subflow = &self.subflows[index];
        let refused = subflow.refused || subflow.reset.is_some_and(|(transient, _)| !transient);
        if !self.is_client || self.mode != Mode::Multipath || self.joinable_since.is_none() || refused {
            return;
        }
        let wait = first
            .doubled(subflow.failures.min(MOST_DOUBLINGS))
            .min(LONGEST.max(first));
        self.rejoins.push(Rejoin {
            at: now + wait,
            path: subflow.path,
            backup: subflow.backup,
            failures: subflow.failures + 1,
        });
    }

    /// When the next one is due.
    pub(super) fn next_rejoin(&self) -> Instant {
        let times = self.rejoins.iter().map(|rejoin| rejoin.at);
        times.min().unwrap_or(Instant::MAX)
    }

    pub(super) fn open_due_rejoins(&mut self, now: Instant) {
        let mut index = 0;
        while let Some(&rejoin) = self.rejoins.get(index) {
            if rejoin.at > now {
                index += 1;
                continue;
            }
            self.rejoins.remove(index);
            let join = Join {
                backup: rejoin.backup,
                ..Join::immediately(rejoin.path)
            };
            if !self.outgoing.fin_acknowledged() && self.join(now, join) {
                let last = self.subflows.last_mut().expect("it was opened");
                last.failures = rejoin.failures;
            }
        }
    }
}
