//! The retransmission timer of a connection: adaptive with back-off, or fixed.

use foundation::{Duration, Instant};

use super::config::Timeout;
use crate::rtt::RttEstimator;

/// Back-off makes no more of an adaptive timeout than this part of the time after which a silent peer
/// is given up, so that there are tries enough before that.
pub const BACK_OFF_SHARE: u64 = 16;

/// How long a packet may be unacknowledged before it is sent again.
#[derive(Clone, Debug)]
pub struct RetransmissionTimer {
    rtt: RttEstimator,
    fixed: Option<Duration>,
    /// The longest that back-off makes of an adaptive timeout.
    ceiling: Duration,
    backoff: u32,
    /// Transmissions from this one on left after the last back-off. Timers that run out for older
    /// ones belong to the same silence and do not double the timeout again.
    backed_off_at: u64,
}

impl RetransmissionTimer {
    /// A timer of this kind; an adaptive one never falls below `floor`, and backs off to no more than
    /// its [`BACK_OFF_SHARE`] of `give_up`. (RFC 6298, section 2.5, asks for 60 s or more, for connections that
    /// may take minutes to give up; here that would leave a lossy path a handful of tries.)
    #[must_use]
    pub fn new(timeout: Timeout, floor: Duration, give_up: Duration) -> Self {
        let fixed = match timeout {
            Timeout::Adaptive => None,
            Timeout::Fixed(fixed) => Some(fixed),
        };
        Self {
            rtt: RttEstimator::new(floor),
            fixed,
            ceiling: give_up / BACK_OFF_SHARE,
            backoff: 0,
            backed_off_at: 0,
        }
    }

    /// The round-trip times behind it.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The timeout now.
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

    /// The echo of a timestamp gave a round-trip time, which no retransmission can blur
    /// (RFC 7323, section 4.1). With it the back-off ends, as Karn's rule asks (RFC 6298, section 5).
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(now, rtt);
        self.backoff = 0;
    }

    /// The timer of transmission `order` ran out, when the next one will be `next_order`
    /// (RFC 6298, section 5.5).
    pub fn back_off(&mut self, order: u64, next_order: u64) {
        if order >= self.backed_off_at {
            self.backoff = (self.backoff + 1).min(16);
            self.backed_off_at = next_order;
        }
    }
}
