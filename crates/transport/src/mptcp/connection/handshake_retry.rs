//! Handshake retries on other paths: a lost SYN then costs about one round trip instead of the initial RTO of a second or more.
//!
//! The earlier attempt is aborted, as by an application that closes its socket and connects from another address: a late
//! SYN/ACK is answered by a reset.

use foundation::Instant;
use rand::Rng as _;

use super::subflow::{Role, Subflow};
use super::{Connection, Mode};
use crate::mptcp::config::MOST_SUBFLOWS;
use crate::mptcp::policy::HandshakeAttempt;
use crate::mptcp::segment::{MptcpOption, PathIndex, Segment};
use crate::tcp::{self, Flags};

/// Further attempts of a handshake, absent where the policy plans none.
#[derive(Debug)]
pub(super) struct HandshakeRetry {
    /// The attempts, the next one last.
    attempts: Vec<HandshakeAttempt>,
    /// When the next one starts.
    pub due_at: Instant,
}

impl HandshakeRetry {
    /// The first attempt starts `now`.
    pub fn new(now: Instant, mut attempts: Vec<HandshakeAttempt>) -> Option<Self> {
        attempts.reverse();
        let due_at = now + attempts.last()?.after;
        Some(Self { attempts, due_at })
    }

    /// Restarts the timer for the next attempt, if there is one.
    fn restarted(mut self, now: Instant) -> Option<Self> {
        self.due_at = now + self.attempts.last()?.after;
        Some(self)
    }
}

impl Connection {
    /// Starts the next attempt because no SYN/ACK arrived in time.
    pub(super) fn on_handshake_retry(&mut self, now: Instant) {
        let Some(mut retry) = self.retry.take() else {
            return;
        };
        let possible = self.mode == Mode::Handshake && !self.over;
        let Some(next) = retry.attempts.pop().filter(|_| possible) else {
            return;
        };
        let id = self.subflows.len();
        if id >= MOST_SUBFLOWS as usize {
            return;
        }
        let from = self.subflows[0].path;
        self.exchange(from, next.path);
        let number = self.random.next_u32();
        let tcp = tcp::Connection::open_reserving(now, self.setup.subflow(), number, self.setup.reserved());
        self.add(Subflow::new(id as u8, next.path, tcp, Role::Initial));
        self.subflows.swap(0, id);
        let abandoned = &mut self.subflows[id];
        abandoned.gone = true;
        abandoned.tcp.abort(now);
        self.dirty |= 1;
        self.retry = retry.restarted(now);
    }

    /// Exchanges the plans for two paths.
    fn exchange(&mut self, one: PathIndex, other: PathIndex) {
        let exchanged = |path: &mut PathIndex| {
            if *path == one {
                *path = other;
            } else if *path == other {
                *path = one;
            }
        };
        self.paths.iter_mut().for_each(exchanged);
        self.joins
            .iter_mut()
            .map(|join| &mut join.path)
            .for_each(exchanged);
        self.expected.iter_mut().map(|(path, _)| path).for_each(exchanged);
    }

    /// Returns whether only attempts at the first subflow were ever opened.
    pub(super) fn has_not_joined(&self) -> bool {
        self.subflows.iter().all(|subflow| subflow.role == Role::Initial)
    }

    /// Returns whether a listener must replace this half-open connection by a new one for `segment`: the SYN of a client that
    /// received no SYN/ACK and retries. A late SYN that is older than the accepted one does not count, since its client has
    /// abandoned it. A listener forgets a connection that was abandoned before it was established (RFC 9293, section
    /// 3.10.7.4).
    #[inline]
    #[must_use]
    pub fn is_replaced_by(&self, segment: &Segment) -> bool {
        let opens = segment.tcp.has(Flags::SYN) && !segment.tcp.has(Flags::ACK | Flags::RST);
        self.is_half_open()
            && opens
            && !matches!(segment.option, MptcpOption::JoinSyn { .. })
            && self.subflows.iter().all(|subflow| subflow.id < segment.subflow)
    }

    /// Returns whether this is a server's connection whose client has not acknowledged the SYN/ACK yet.
    #[must_use]
    pub const fn is_half_open(&self) -> bool {
        !self.is_client && !self.established
    }

    /// Returns whether the handshake of the first subflow is complete at this end.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.established
    }
}
