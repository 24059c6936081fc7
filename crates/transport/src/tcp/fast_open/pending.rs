//! How many connections a server lets open early at a time (`PendingFastOpenRequests` of RFC 7413, section 4.2).

use std::collections::VecDeque;

use foundation::{Duration, Instant};

/// As with Linux's usual backlog of Fast Open requests (`TCP_FASTOPEN`) for a server that asks for no more.
const LIMIT: usize = 256;
/// A request that was reset counts so long, or an attacker who can have the owners of forged addresses reset them would
/// not be limited (RFC 7413, section 5.1; the time is Linux's).
const RESET_LIFE: Duration = Duration::from_secs(60);

/// The connections whose SYN was answered before the client had shown that it hears.
#[derive(Clone, Debug)]
pub struct PendingOpens {
    limit: usize,
    open: usize,
    /// When those that were reset count no longer.
    resets: VecDeque<Instant>,
}

impl Default for PendingOpens {
    fn default() -> Self {
        Self {
            limit: LIMIT,
            open: 0,
            resets: VecDeque::new(),
        }
    }
}

impl PendingOpens {
    /// At most so many at a time; 0 turns Fast Open off without forgetting cookies.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// One more begins; false where there are too many.
    pub fn start(&mut self, now: Instant) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        let has_room = self.open + self.resets.len() < self.limit;
        self.open += usize::from(has_room);
        has_room
    }

    /// One has ended: its handshake is done, or it failed; `reset` by the client.
    pub fn finish(&mut self, now: Instant, reset: bool) {
        self.open = self.open.saturating_sub(1);
        if reset {
            self.resets.push_back(now + RESET_LIFE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_reset_count_for_a_while() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut pending = PendingOpens::default();
        pending.set_limit(2);
        assert!(pending.start(at(0)) && pending.start(at(0)));
        assert!(!pending.start(at(0)));
        pending.finish(at(1), false);
        assert!(pending.start(at(1)));
        pending.finish(at(2), true);
        assert!(!pending.start(at(61)));
        assert!(pending.start(at(62)));
    }
}
