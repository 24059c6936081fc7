//! Closing of the data stream and of subflows (RFC 8684, sections 3.3.3, 3.4 and 3.5).

use foundation::Instant;

use super::{Connection, Mode};
use crate::machine::Machine as _;
use crate::mptcp::segment::{MptcpOption, Segment, reason};
use crate::tcp::{self, Error, Event};

impl Connection {
    /// Closes the sending direction: a DATA_FIN follows the written data.
    pub fn finish(&mut self, _now: Instant) {
        if self.over {
            return;
        }
        self.outgoing.finishing = true;
        self.dirty |= 1;
    }

    /// Closes both directions: sends a DATA_FIN and discards the peer's further data.
    pub fn close(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        self.closed = true;
        if self.alone_until != Instant::MAX {
            self.stop();
            self.push_event(Event::Closed);
        } else if self.mode == Mode::Handshake || self.incoming.readable() > 0 {
            self.abort(now);
        } else {
            self.finish(now);
        }
    }

    /// Aborts the connection: resets every subflow. Each reset carries MP_FASTCLOSE (RFC 8684, section 3.5), so that
    /// a single one that arrives is sufficient.
    pub fn abort(&mut self, now: Instant) {
        self.fast_closing = self.mode == Mode::Multipath;
        self.stop();
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            subflow.tcp.abort(now);
            self.dirty |= 1 << index;
        }
        self.push_event(Event::Closed);
    }

    /// Handles MP_FASTCLOSE with the correct key (RFC 8684, section 3.5). It has no effect on a segment that TCP does not accept. A
    /// reset requires no answer; an ACK with the option is answered by a reset, on every subflow.
    pub(super) fn on_fast_close(&mut self, now: Instant, index: usize, segment: &Segment) {
        let resets = segment.tcp.has(tcp::Flags::RST);
        let subflow = &mut self.subflows[index];
        if resets || !subflow.tcp.accepts(now, &segment.tcp) {
            subflow.tcp.handle_frame(now, segment.tcp);
            let is_closed = subflow.tcp.state() == tcp::State::Closed;
            self.process_events(now, index);
            if !resets || !is_closed {
                return;
            }
        }
        if self.over {
            return;
        }
        for subflow in self.subflows.iter_mut().filter(|subflow| !subflow.gone) {
            subflow.reset.get_or_insert((false, reason::UNSPECIFIED));
        }
        self.fail(now, Error::Reset);
    }

    /// Handles the DATA_FIN of a segment.
    #[inline]
    pub(super) fn process_data_fin(&mut self, now: Instant, index: usize, segment: &Segment) {
        let MptcpOption::Dss {
            mapping: Some(mapping),
            fin: true,
            ..
        } = segment.option
        else {
            return;
        };
        if self.mode != Mode::Multipath {
            return;
        }
        // Every DATA_FIN is acknowledged, since an earlier acknowledgement may have been lost.
        self.subflows[index].tcp.demand_acknowledgement();
        if self.setup.linux() {
            self.acknowledge_everywhere();
        }
        if self.incoming.on_fin(mapping.data + u64::from(mapping.length)) {
            self.check_peer_finished(now);
        }
    }

    /// Reports the end of the peer's data once all of it has arrived.
    pub(super) fn check_peer_finished(&mut self, now: Instant) {
        if self.incoming.is_finished() && !self.peer_finished {
            self.peer_finished = true;
            self.push_event(Event::PeerFinished);
            self.check_finished(now);
        }
    }

    /// Closes the subflows once both data streams are closed and acknowledged.
    pub(super) fn check_finished(&mut self, now: Instant) {
        if self.over || self.mode != Mode::Multipath {
            return;
        }
        if self.outgoing.fin_acknowledged() && self.incoming.is_finished() {
            self.stop();
            for (index, subflow) in self.subflows.iter_mut().enumerate() {
                subflow.usable = false;
                // Copies of data may still arrive. A closed TCP would answer them with a reset before the DATA_ACK
                // reaches the peer.
                if subflow.tcp.state() == tcp::State::SynSent {
                    subflow.tcp.close(now);
                } else if !self.setup.linux() {
                    subflow.tcp.finish(now);
                }
                self.dirty |= 1 << index;
            }
            self.finish_due = self.setup.linux();
            self.unreported = u64::MAX;
            self.push_event(Event::Finished);
        }
    }

    /// Handles the FIN of a subflow (RFC 8684, section 3.4).
    pub(super) fn on_subflow_fin(&mut self, now: Instant, index: usize) {
        if self.mode == Mode::Plain {
            let end = self.subflows[index].read + self.subflows[index].tcp.readable();
            let end = self
                .failure
                .incoming_position(end)
                .unwrap_or(self.incoming.next());
            if self.incoming.on_fin(end) {
                self.deliver_rest(now, index);
                self.check_peer_finished(now);
            }
            return;
        }
        if self.incoming.is_finished() && !self.over {
            // The peer has nothing more to send; this end may still send on the subflow.
            return;
        }
        let subflow = &mut self.subflows[index];
        subflow.usable = false;
        subflow.tcp.finish(now);
        self.return_queue(index);
    }

    fn deliver_rest(&mut self, now: Instant, index: usize) {
        if self.subflows[index].tcp.readable() > 0 {
            self.deliver_payload(now, index);
        }
    }

    /// Returns the queue of a subflow to the connection, for other subflows.
    pub(super) fn return_queue(&mut self, index: usize) {
        let subflow = &mut self.subflows[index];
        let id = subflow.id;
        for (start, end) in subflow.queue.take() {
            self.outgoing.reinject(start, end, id);
        }
        self.changed |= 1 << index;
    }

    /// Handles the end of a subflow: its unacknowledged data goes to other subflows.
    pub(super) fn on_subflow_closed(&mut self, now: Instant, index: usize, error: Option<Error>) {
        let subflow = &mut self.subflows[index];
        if subflow.gone {
            return;
        }
        subflow.gone = true;
        subflow.usable = false;
        subflow.third_at = Instant::MAX;
        if self.over {
            if self.subflows.iter().all(|subflow| subflow.gone) {
                self.push_event(Event::Closed);
            }
            return;
        }
        self.reinject(index);
        self.return_queue(index);
        let opening =
            self.mode == Mode::Handshake || index == 0 && self.has_not_joined() && self.joins.is_empty();
        let none_left = self.subflows.iter().all(|subflow| subflow.gone);
        if self.mode == Mode::Plain && error.is_none() {
            self.over = true;
            self.push_event(Event::Closed);
        } else if opening || none_left {
            if !none_left || !self.waits_alone(now) {
                self.fail(now, error.unwrap_or(Error::Reset));
            }
        } else if error.is_some() {
            self.plan_rejoin(now, index);
        }
    }

    /// Reinjects the unacknowledged data of a subflow.
    pub(super) fn reinject(&mut self, index: usize) {
        if self.mode != Mode::Multipath {
            return;
        }
        let Self {
            subflows, outgoing, ..
        } = self;
        let subflow = &mut subflows[index];
        let id = subflow.id;
        for run in subflow.sent.reinject() {
            outgoing.reinject(run.data, run.data + run.length, id);
        }
    }

    /// Stops transmission and all timers of the connection.
    fn stop(&mut self) {
        self.over = true;
        self.joins.clear();
        self.rejoins.clear();
        self.retry = None;
        self.resend_at = Instant::MAX;
        self.alone_until = Instant::MAX;
        self.addresses.clear();
        self.tail = None;
    }

    /// Fails the connection and resets its subflows.
    pub(super) fn fail(&mut self, now: Instant, error: Error) {
        self.stop();
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if !subflow.gone {
                subflow.tcp.abort(now);
                self.dirty |= 1 << index;
            }
        }
        self.push_event(Event::Failed(error));
    }
}
