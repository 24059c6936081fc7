//! The opener's side of set-up: `Open` until the listener's token and first frame arrive.

use foundation::{Duration, Instant};

use super::{Connection, Phase};
use crate::arq::frame::{Frame, FrameType, Handshake, Payload, StreamRange};
use crate::arq::sender::wire_clock;
use crate::rtt::INITIAL_TIMEOUT;

impl<P: Payload> Connection<P> {
    pub(super) fn handle_challenge(&mut self, now: Instant, frame: &Frame<P>) {
        let Some(handshake) = frame.handshake.as_deref() else {
            return;
        };
        match self.phase {
            Phase::Opening => {}
            // The `Open` was delayed until its token had expired; this token is fresh.
            Phase::Open { confirmed: None } => {
                self.token = handshake.token;
                return;
            }
            _ => return,
        }
        self.token = handshake.token;
        let rtt = wire_clock(now).wrapping_sub(frame.echo);
        if rtt < 1 << 31 {
            self.sender.sample_rtt(now, Duration::from_micros(u64::from(rtt)));
        }
        self.sender.set_room(frame.window);
        self.phase = Phase::Open { confirmed: None };
        self.events.connected = true;
        self.open_at = Some(now);
        self.opens = 0;
    }

    pub(super) fn poll_open(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        self.open_at.filter(|&at| at <= now)?;
        self.opens += 1;
        self.probed_at = now;
        let timeout = self.sender.timer().timeout();
        // Before the first sample, RFC 6298's initial timeout applies, unless the timer is fixed.
        self.open_at = Some(now + timeout.doubled(self.opens - 1).min(INITIAL_TIMEOUT * 2));
        let mut frame = self.frame(now, FrameType::Open);
        frame.sequence = self.first;
        frame.handshake = Some(Box::new(Handshake {
            token: self.token,
            parameters: self.parameters,
        }));
        Some(frame)
    }
}
