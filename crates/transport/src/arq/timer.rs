//! The retransmission timer of a connection: adaptive with back-off, or fixed.

use foundation::{Duration, Instant};

use super::config::Timeout;
use crate::rtt::RttEstimator;

/// An adaptive timeout backs off to at most this fraction of the time after which a silent peer is given up, so that
/// there are enough retransmissions before.
pub const BACK_OFF_SHARE: u64 = 16;

/// The retransmission timeout.
#[derive(Clone, Debug)]
pub struct RetransmissionTimer {
    rtt: RttEstimator,
    fixed: Option<Duration>,
    /// Upper limit of back-off.
    ceiling: Duration,
    backoff: u32,
    /// Transmissions from this one on were sent after the last back-off. Expiries of older ones belong to the same
    /// silence and do not double the timeout again.
    backed_off_at: u64,
}

impl RetransmissionTimer {
    /// Creates a timer. An adaptive one never falls below `floor` and backs off to at most `give_up` /
    /// [`BACK_OFF_SHARE`]. (RFC 6298, section 2.5, requires at least 60 s, for connections that may take minutes to
    /// give up; here that would leave a lossy path a handful of retransmissions.)
    #[must_use]
    pub fn new(timeout: Timeout, floor: Duration, give_up: Duration) -> Self {
        Self {
            rtt: RttEstimator::new(floor),
            fixed: timeout.fixed(),
            ceiling: give_up / BACK_OFF_SHARE,
            backoff: 0,
            backed_off_at: 0,
        }
    }

    /// Sets the timeout and the lower limit of an adaptive one, also for packets in flight. Another kind of timeout starts
    /// without back-off.
    pub fn set_timeout(&mut self, timeout: Timeout, floor: Duration) {
        let fixed = timeout.fixed();
        if fixed.is_some() != self.fixed.is_some() {
            self.backoff = 0;
        }
        self.fixed = fixed;
        self.rtt.set_floor(floor);
    }

    /// Returns the RTT estimate.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the current timeout.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        match self.fixed {
            Some(fixed) => fixed,
            None => {
                let timeout = self.rtt.timeout();
                timeout.doubled(self.backoff).min(self.ceiling.max(timeout))
            }
        }
    }

    /// Records a round-trip time from an echoed timestamp, which is unambiguous under retransmission (RFC 7323,
    /// section 4.1). It resets the back-off, as Karn's algorithm requires (RFC 6298, section 5).
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(now, rtt);
        self.backoff = 0;
    }

    /// Backs off after the timer of transmission `order` expired; `next_order` is the next transmission (RFC 6298,
    /// section 5.5).
    pub fn back_off(&mut self, order: u64, next_order: u64) {
        if order >= self.backed_off_at {
            self.backoff = (self.backoff + 1).min(16);
            self.backed_off_at = next_order;
        }
    }
}
