//! The probe timer: when ACKs stop, one packet is retransmitted early (RFC 8985, section 7).
//!
//! Later packets show a loss, but nothing follows the last ones, or a request that waits for its answer. Without probes
//! their loss lasts for the retransmission timeout.

use foundation::{Duration, Instant};

/// Shortest time without ACKs. On a busy machine, threads wake up late, and a shorter one would be spurious.
const FLOOR: Duration = Duration::from_millis(10);

/// When to probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailProbe {
    /// The last transmission or progress.
    active_at: Instant,
    /// Probes since the last progress.
    sent: u32,
}

impl TailProbe {
    /// Records a transmission.
    pub const fn on_sent(&mut self, now: Instant) {
        self.active_at = now;
    }

    /// Records newly acknowledged packets.
    pub const fn on_progress(&mut self, now: Instant) {
        self.active_at = now;
        self.sent = 0;
    }

    /// Records a probe. The time to the next one doubles.
    pub const fn on_probe(&mut self, now: Instant) {
        self.active_at = now;
        self.sent += 1;
    }

    /// Returns when a probe is due, for a smoothed round-trip time of `rtt` and ACKs that are delayed by at most `delay`.
    #[must_use]
    pub fn due(&self, rtt: Duration, delay: Duration) -> Instant {
        self.active_at + (rtt * 2 + delay).max(FLOOR).doubled(self.sent.min(16))
    }
}
