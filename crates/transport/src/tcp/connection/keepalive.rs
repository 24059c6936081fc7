//! Keep-alives (RFC 9293, section 3.8.4): is a peer that says nothing still there?

use foundation::{Duration, Instant};

use super::{Connection, Error};

/// Pause between probes, and probes before the peer is given up: Linux's defaults.
const INTERVAL: Duration = Duration::from_secs(75);
const MOST_PROBES: u32 = 9;

/// When the peer was heard last, and what was asked since.
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

    /// The timer is not moved for each segment: it looks when it fires.
    #[inline]
    pub fn on_received(&mut self, now: Instant) {
        self.received_at = now;
        self.probes = 0;
    }

    pub const fn timeout(&self) -> Instant {
        self.at
    }

    /// Whether a probe leaves now.
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
            // Data in flight asks by itself.
            keep_alive.at = now + keep_alive.idle;
            return;
        }
        if keep_alive.probes == 0 && due > now {
            keep_alive.at = due;
            return;
        }
        if keep_alive.probes >= MOST_PROBES {
            self.fail(Error::TimedOut);
            return;
        }
        keep_alive.probes += 1;
        keep_alive.pending = true;
        keep_alive.at = now + INTERVAL;
    }
}
