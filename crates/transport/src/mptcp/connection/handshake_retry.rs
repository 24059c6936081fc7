//! A handshake whose answer is late begins again on another path: a lost SYN costs as long as the path's round trip and not
//! the first timeout, of a second or more.
//!
//! The attempt before it is given up, as by an application that closes its socket and connects from another address: its
//! answer, if one comes, is reset.

use foundation::Instant;
use rand::Rng as _;

use super::open::RESERVED;
use super::subflow::{Role, Subflow};
use super::{Connection, Mode};
use crate::mptcp::config::MOST_SUBFLOWS;
use crate::mptcp::segment::{MptcpOption, PathIndex, Segment};
use crate::tcp::{self, Flags};

impl Connection {
    /// The handshake has just begun on a path: when it goes on to the next one.
    pub(super) fn watch_handshake(&mut self, now: Instant) {
        self.attempt_at = self.attempts.last().map_or(Instant::MAX, |next| now + next.after);
    }

    /// The answer is late.
    pub(super) fn on_late_handshake(&mut self, now: Instant) {
        self.attempt_at = Instant::MAX;
        let possible = self.mode == Mode::Handshake && !self.over;
        let Some(next) = self.attempts.pop().filter(|_| possible) else {
            return;
        };
        let id = self.subflows.len();
        if id >= MOST_SUBFLOWS as usize {
            return;
        }
        let from = self.subflows[0].path;
        self.exchange(from, next.path);
        let number = self.random.next_u32();
        let tcp = tcp::Connection::open_reserving(now, self.setup.subflow(), number, RESERVED);
        self.add(Subflow::new(id as u8, next.path, tcp, Role::Initial));
        self.subflows.swap(0, id);
        let left = &mut self.subflows[id];
        left.gone = true;
        left.tcp.abort(now);
        self.dirty |= 1;
        self.watch_handshake(now);
    }

    /// What was planned for either path is planned for the other.
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

    /// Whether nothing but attempts at the first subflow was ever opened.
    pub(super) fn has_not_joined(&self) -> bool {
        self.subflows.iter().all(|subflow| subflow.role == Role::Initial)
    }

    /// Whether the listener that has this connection half open is to accept another one in its index: that is what the SYN
    /// of an opener asks for that heard no answer. A SYN that is older than the one accepted, and late, does not: its opener
    /// has left it. What was given up before it was established is nothing to a listener (RFC 9293, section 3.10.7.4).
    #[must_use]
    pub fn is_replaced_by(&self, segment: &Segment) -> bool {
        let opens = segment.tcp.has(Flags::SYN) && !segment.tcp.has(Flags::ACK | Flags::RST);
        let joins = matches!(segment.option, MptcpOption::JoinSyn { .. });
        let is_newer = self.subflows.iter().all(|subflow| subflow.id < segment.subflow);
        self.is_half_open() && opens && !joins && is_newer
    }

    /// Whether a listener has it, whose opener has not yet answered.
    #[must_use]
    pub const fn is_half_open(&self) -> bool {
        !self.is_client && !self.established
    }

    /// Whether this end has seen the handshake of the first subflow through.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.established
    }
}
