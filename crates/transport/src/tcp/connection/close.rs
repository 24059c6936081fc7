//! Closing (RFC 9293, sections 3.6 and 3.10.4).

use foundation::Instant;

use super::{Connection, Error, Events};
use crate::tcp::segment::{Flags, Segment, reset_for};
use crate::tcp::state::State;

impl Connection {
    /// Closes this end's stream: a FIN follows the written data (half-close; `shutdown(SHUT_WR)`).
    pub fn finish(&mut self, _now: Instant) {
        match self.state {
            _ if self.sender.is_finishing() => return,
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent | State::SynReceived => {}
            _ => return,
        }
        self.sender.finish();
    }

    /// Closes this end's stream and stops reading the peer's. Unread data, and data that arrives later, is answered with a
    /// reset (RFC 9293, section 3.6.1; RFC 2525, section 2.17).
    pub fn close(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        self.closed = true;
        match self.state {
            // RFC 9293, section 3.10.4: an unanswered SYN is abandoned.
            State::SynSent => self.become_closed(),
            State::Closed => {}
            _ if self.receiver.readable() > 0 && self.state != State::TimeWait => self.abort(now),
            _ => {
                self.finish(now);
                self.linger_in_fin_wait_2(now);
            }
        }
    }

    /// Closes the connection at once and sends a reset (RFC 9293, section 3.10.5).
    pub fn abort(&mut self, now: Instant) {
        if !matches!(self.state, State::Closed | State::SynSent | State::TimeWait) {
            let mut reset = Segment::bare(
                self.initial.at(self.sender.next()),
                self.peer_initial.at(self.receiver.next()),
                Flags::RST | Flags::ACK,
            );
            reset.options.timestamps = self.timestamps_option(now);
            self.urgent = Some(Box::new(reset));
        }
        if self.state != State::Closed {
            self.become_closed();
        }
    }

    /// Answers a segment with a reset.
    pub(super) fn answer_with_reset(&mut self, segment: &Segment) {
        self.urgent = reset_for(segment).map(Box::new);
    }

    /// Handles the acknowledgement of this end's FIN.
    pub(super) fn on_fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.linger_in_fin_wait_2(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => {
                self.emit(Events::FINISHED);
                self.become_closed();
            }
            _ => {}
        }
    }

    /// Handles the in-order arrival of the peer's FIN.
    pub(super) fn on_peer_finished(&mut self, now: Instant) {
        self.emit(Events::PEER_FINISHED);
        self.receiver.on_fin(now, self.state == State::Established);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// Limits the wait for the FIN of the peer after the application closed the connection.
    fn linger_in_fin_wait_2(&mut self, now: Instant) {
        if self.closed
            && self.state == State::FinWait2
            && let Some(timeout) = self.parameters.fin_timeout
        {
            self.lingers_until = now + timeout;
        }
    }

    /// RFC 9293, section 3.10.7.4: twice the maximum segment lifetime.
    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.lingers_until = now + self.time_wait(now);
        self.keep_alive = None;
        self.emit(Events::FINISHED);
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.events.error = Some(error);
        self.emit(Events::FAILED);
        self.become_closed();
        self.events.pending &= !Events::CLOSED;
    }

    pub(super) fn become_closed(&mut self) {
        self.release_pending(false);
        self.state = State::Closed;
        self.lingers_until = Instant::MAX;
        self.handshake = None;
        self.keep_alive = None;
        self.sender.stop();
        self.receiver.acks.cancel();
        self.emit(Events::CLOSED);
    }
}
