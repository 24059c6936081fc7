//! Keep-alive probes to an idle peer (RFC 9293, section 3.8.4).

use foundation::{Duration, Instant};

use super::{Connection, Error};

/// Interval between probes (default of Linux).
const INTERVAL: Duration = Duration::from_secs(75);
/// Unanswered probes after which the connection fails (default of Linux).
const MAX_PROBES: u32 = 9;

/// State of keep-alive probing.
#[derive(Debug)]
pub struct KeepAlive {
    idle: Duration,
    received_at: Instant,
    at: Instant,
    probes: u32,
    pending: bool,
}

impl KeepAlive {
    pub fn new(now: Instant, idle: Duration) -> Self {
        Self {
            idle,
            received_at: now,
            at: now + idle,
            probes: 0,
            pending: false,
        }
    }

    /// Notes a segment of the peer. The timer stays as it is and compares the times when it fires.
    #[inline]
    pub fn on_received(&mut self, now: Instant) {
        self.received_at = now;
        self.probes = 0;
    }

    pub const fn timeout(&self) -> Instant {
        self.at
    }

    /// Returns whether a probe is due, once.
    #[inline]
    pub fn take_pending(&mut self) -> bool {
        std::mem::take(&mut self.pending)
    }
}

impl Connection {
    pub(super) fn on_keep_alive_timeout(&mut self, now: Instant) {
        let busy = !self.is_synchronized() || self.sender.next() > self.sender.una();
        let Some(keep_alive) = self.keep_alive.as_mut().filter(|k| k.at <= now) else {
            return;
        };
        let due = keep_alive.received_at + keep_alive.idle;
        if busy {
            // Data in flight probes the peer already.
            keep_alive.at = now + keep_alive.idle;
            return;
        }
        if keep_alive.probes == 0 && due > now {
            keep_alive.at = due;
            return;
        }
        if keep_alive.probes >= MAX_PROBES {
            self.fail(Error::TimedOut);
            return;
        }
        keep_alive.probes += 1;
        keep_alive.pending = true;
        keep_alive.at = now + INTERVAL;
    }
}
