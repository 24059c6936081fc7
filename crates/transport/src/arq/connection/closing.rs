//! The end of a connection: both streams delivered, a reset by the peer, and the time afterwards.

use foundation::Instant;

use super::{Connection, Error, Phase};
use crate::arq::frame::{Payload, ResetReason};
use crate::arq::sender::wire_clock;
use crate::arq::timer::BACK_OFF_SHARE;

impl<P: Payload> Connection<P> {
    pub(super) fn handle_reset(&mut self, reason: ResetReason, echo: u32) {
        let all_but_the_end = self.receiver.is_finished() && self.sender.awaits_only_fin();
        // Data that overtook the `Open` reached a peer without this connection. Only a frame sent after the peer's
        // confirmation can show that the peer has lost it.
        let is_stale = match self.phase {
            Phase::Open { confirmed: Some(at) } => (echo.wrapping_sub(wire_clock(at)) as i32) <= 0,
            Phase::Open { confirmed: None } | Phase::Opening => true,
            Phase::Lingering { .. } | Phase::Closed => false,
        };
        match (self.phase, reason) {
            (Phase::Closed, _) => {}
            (_, ResetReason::Unknown) if is_stale => {}
            // Everything has arrived; a late reset from before the confirmation changes nothing.
            (Phase::Lingering { .. }, _) => {}
            (Phase::Open { .. }, _) if all_but_the_end => {
                self.events.finished = true;
                self.close();
            }
            (_, ResetReason::Unknown) => self.fail(Error::Forgotten),
            (_, ResetReason::Aborted) => self.fail(Error::Aborted),
            (_, ResetReason::Busy) => self.fail(Error::Busy),
            (_, ResetReason::Refused) => self.fail(Error::Refused),
            (_, ResetReason::Protected) => self.fail(Error::Protected),
        }
    }

    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        self.events.closed = true;
    }

    pub(super) fn check_finished(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Lingering { .. }) {
            self.linger(now);
            return;
        }
        if self.receiver.is_finished() && self.sender.is_finished() {
            self.events.finished = true;
            if self.closed_first {
                self.linger(now);
            } else {
                // This end's FIN also acknowledged the peer's FIN and has been acknowledged.
                self.close();
            }
        }
    }

    /// The end that closes first lingers until the peer has been silent for a while, to answer a repeated FIN, as TCP
    /// does in TIME-WAIT (RFC 9293, section 3.6.1). The time covers eight retransmissions of a peer whose timer is
    /// fully backed off (see [`super::timer::BACK_OFF_SHARE`]).
    pub(super) fn linger(&mut self, now: Instant) {
        self.phase = Phase::Lingering {
            until: now + self.give_up / BACK_OFF_SHARE * 8,
        };
    }
}
