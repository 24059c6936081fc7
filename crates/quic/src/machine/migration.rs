//! Migration by the client (RFC 9000, section 9): when it moves, and its address then.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use foundation::{Duration, Instant};

use super::setup::CLIENT;
use crate::{MigrationTarget, QuicConfig};

/// The moves of a client.
#[derive(Debug)]
pub(super) struct Migration {
    opened_at: Instant,
    /// Times of the moves since the opening.
    times: VecDeque<Duration>,
    target: MigrationTarget,
    /// Number of paths between the hosts.
    ways: u8,
    /// Whether the handshake is confirmed: a client must not move before (RFC 9000, section 9).
    is_confirmed: bool,
    /// Moves so far.
    moves: u16,
}

impl Migration {
    /// Returns the moves of a client; `None` if the settings have none.
    pub(super) fn new(now: Instant, config: &QuicConfig) -> Option<Self> {
        let times = config.migrate.clone()?;
        Some(Self {
            opened_at: now,
            times: times.into(),
            target: config.migrate_to.unwrap_or_default(),
            ways: 1,
            is_confirmed: false,
            moves: 0,
        })
    }

    /// Sets the number of paths between the hosts.
    pub(super) fn set_ways(&mut self, ways: u8) {
        self.ways = ways.max(1);
    }

    /// Notes that the handshake is confirmed.
    pub(super) const fn confirm(&mut self) {
        self.is_confirmed = true;
    }

    /// Returns the time of the next move.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let next = *self.times.front().filter(|_| self.is_confirmed)?;
        Some(self.opened_at + next)
    }

    /// Moves the client if that is due. Returns whether it was.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let is_due = self.due_at().is_some_and(|at| at <= now);
        if is_due {
            self.times.pop_front();
            self.moves += 1;
        }
        is_due
    }

    /// Returns the number of the path between the hosts.
    pub(super) fn way(&self) -> u8 {
        match self.target {
            MigrationTarget::Path => (self.moves % u16::from(self.ways)) as u8,
            MigrationTarget::Port | MigrationTarget::Address => 0,
        }
    }

    /// Returns the address.
    pub(super) fn address(&self) -> SocketAddr {
        let [move_high, move_low] = self.moves.to_be_bytes();
        let (host, port) = match self.target {
            MigrationTarget::Port => (0, self.moves),
            MigrationTarget::Address => (move_low, u16::from(move_high)),
            MigrationTarget::Path => (0, 0),
        };
        client_address(host, self.way(), port)
    }
}

/// Returns a client's address as the machine knows it: its first one if all numbers are 0. Two with the same `host` and `way`
/// differ by the port only. The third byte is the path between the hosts.
#[must_use]
pub fn client_address(host: u8, way: u8, port: u16) -> SocketAddr {
    let address = Ipv4Addr::new(10, host, way, 1);
    SocketAddr::new(IpAddr::V4(address), CLIENT.port().wrapping_add(port))
}
