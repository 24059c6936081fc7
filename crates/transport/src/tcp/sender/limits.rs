//! The time in which the receive window or the send buffer, not the congestion window, limits a sender: `tcpi_rwnd_limited` and
//! `tcpi_sndbuf_limited` of Linux's `TCP_INFO` (`tcp_chrono_start` and its callers in `net/ipv4/tcp_output.c`).

use foundation::{Duration, Instant};

use crate::statistics::Statistics;

/// What limits a sender, other than the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Limit {
    #[default]
    None,
    ReceiveWindow,
    SendBuffer,
}

/// The current limit of a sender, and until when its time is counted; without a limit, that time has no meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitClock {
    limit: Limit,
    counted_until: Instant,
}

impl LimitClock {
    /// Sets whether the receive window withholds data, after the sender sent all it may. A limit by the send buffer has
    /// precedence and lasts until the writer is woken.
    #[inline]
    pub fn set_window_limited(&mut self, now: Instant, limited: bool, statistics: &mut Statistics) {
        if limited || self.limit != Limit::None {
            let limit = match (self.limit, limited) {
                (Limit::SendBuffer, _) => Limit::SendBuffer,
                (_, true) => Limit::ReceiveWindow,
                (_, false) => Limit::None,
            };
            self.set(now, limit, statistics);
        }
    }

    /// Starts a limit by the send buffer.
    pub fn set_buffer_limited(&mut self, now: Instant, statistics: &mut Statistics) {
        self.set(now, Limit::SendBuffer, statistics);
    }

    /// Ends a limit by the send buffer.
    #[inline]
    pub fn wake_writer(&mut self, now: Instant, statistics: &mut Statistics) {
        if self.limit == Limit::SendBuffer {
            self.set(now, Limit::None, statistics);
        }
    }

    /// Returns the times with a limit by the receive window and by the send buffer until `now`; `statistics` has those until
    /// the last change.
    pub fn times(&self, now: Instant, statistics: &Statistics) -> (Duration, Duration) {
        let span = now.saturating_since(self.counted_until);
        let current = |limit| if self.limit == limit { span } else { Duration::ZERO };
        (
            statistics.receiver_limited + current(Limit::ReceiveWindow),
            statistics.buffer_limited + current(Limit::SendBuffer),
        )
    }

    /// Counts the time until now, and starts a limit.
    fn set(&mut self, now: Instant, limit: Limit, statistics: &mut Statistics) {
        let span = now.saturating_since(self.counted_until);
        match self.limit {
            Limit::None => {}
            Limit::ReceiveWindow => statistics.receiver_limited += span,
            Limit::SendBuffer => statistics.buffer_limited += span,
        }
        self.limit = limit;
        self.counted_until = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(at: u64) -> Instant {
        Instant::from_nanos(at * 1_000_000)
    }

    #[test]
    fn the_send_buffer_has_precedence_over_the_receive_window() {
        let (mut clock, mut counted) = (LimitClock::default(), Statistics::default());
        clock.set_window_limited(ms(0), false, &mut counted);
        clock.set_window_limited(ms(10), true, &mut counted);
        clock.set_window_limited(ms(15), true, &mut counted);
        clock.set_buffer_limited(ms(30), &mut counted);
        clock.set_window_limited(ms(35), false, &mut counted);
        clock.set_window_limited(ms(40), true, &mut counted);
        clock.wake_writer(ms(50), &mut counted);
        clock.wake_writer(ms(60), &mut counted);
        clock.set_window_limited(ms(70), true, &mut counted);
        clock.set_window_limited(ms(75), false, &mut counted);
        clock.set_window_limited(ms(80), false, &mut counted);
        assert_eq!(counted.receiver_limited, Duration::from_millis(20 + 5));
        assert_eq!(counted.buffer_limited, Duration::from_millis(20));
    }
}
