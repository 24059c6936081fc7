//! Limit of connections that a server opens early at a time (`PendingFastOpenRequests` of RFC 7413, section 4.2).

use std::collections::VecDeque;

use foundation::{Duration, Instant};

/// Default limit, a usual backlog of Fast Open requests in Linux (`TCP_FASTOPEN`).
const LIMIT: usize = 256;
/// Time for which a reset connection counts. Otherwise the limit would not stop an attacker with forged addresses whose real
/// hosts answer with resets (RFC 7413, section 5.1; value of Linux).
const RESET_LIFE: Duration = Duration::from_secs(60);

/// Connections that opened early and whose handshake is not complete.
#[derive(Clone, Debug)]
pub struct PendingOpens {
    limit: usize,
    open: usize,
    /// When each reset connection stops counting.
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
    /// Sets the limit; 0 disables early opens but keeps the cookies.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds a connection; returns false if the limit is reached.
    pub fn start(&mut self, now: Instant) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        let has_room = self.open + self.resets.len() < self.limit;
        self.open += usize::from(has_room);
        has_room
    }

    /// Removes a connection after its handshake or failure; `reset`: the client reset it.
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
    fn reset_connections_count_for_a_minute() {
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
