//! Replacement of failed subflows.
//!
//! RFC 8684 leaves the timing open. Linux's in-kernel path manager never replaces a subflow; the first MPTCP for
//! Linux did after a delay (fullmesh). Here the delay doubles with each failure on the path until data arrives over
//! it again.

use foundation::{Duration, Instant};

use super::{Connection, Mode};
use crate::mptcp::policy::Join;
use crate::mptcp::segment::PathIndex;

/// Upper limit of the delay, unless the first delay is longer.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Doublings after which the shortest first delay reaches the limit.
const MAX_DOUBLINGS: u32 = 32;

/// A planned replacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rejoin {
    at: Instant,
    path: PathIndex,
    backup: bool,
    failures: u32,
}

impl Connection {
    /// Plans a replacement of a failed subflow, unless the peer refused it for an error that is not transient (RFC
    /// 8684, section 3.6).
    pub(super) fn plan_rejoin(&mut self, now: Instant, index: usize) {
        let Some(first) = self.setup.rejoin() else { return };
        let subflow = &self.subflows[index];
        let refused = subflow.refused || subflow.reset.is_some_and(|(transient, _)| !transient);
        if !self.is_client || self.mode != Mode::Multipath || self.joinable_since.is_none() || refused {
            return;
        }
        let delay = first
            .doubled(subflow.failures.min(MAX_DOUBLINGS))
            .min(MAX_DELAY.max(first));
        self.rejoins.push(Rejoin {
            at: now + delay,
            path: subflow.path,
            backup: subflow.backup,
            failures: subflow.failures + 1,
        });
    }

    /// Returns when the next replacement is due.
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
                let last = self.subflows.last_mut().expect("join added a subflow");
                last.failures = rejoin.failures;
            }
        }
    }
}
