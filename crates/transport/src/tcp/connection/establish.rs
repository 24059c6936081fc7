//! End of the handshake (RFC 9293, section 3.10.7.3).

use foundation::{Duration, Instant};

use super::handshake::build;
use super::{Connection, Error, Events};
use crate::tcp::config::TcpConfig;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::HandshakeResult;
use crate::tcp::state::State;

/// RTO after a handshake with retransmissions (RFC 6298, section 5.7).
const TIMEOUT_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);

impl Connection {
    /// Handles a segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        // Position 1 for the SYN alone, more for data that it carried.
        let acknowledged = segment
            .has(Flags::ACK)
            .then(|| segment.acknowledgement.expand(self.initial, 1))
            .flatten()
            .filter(|&it| self.covers_syn(it) && self.has_sent_syn());
        if segment.has(Flags::ACK) && acknowledged.is_none() {
            self.answer_with_reset(segment);
            return;
        }
        if segment.has(Flags::RST) {
            if acknowledged.is_some() {
                self.fail(Error::Refused);
            }
            return;
        }
        if !segment.has(Flags::SYN) {
            return;
        }
        if acknowledged.is_some()
            && ((self.timestamps && !self.echoes_this_handshake(now, segment)) || !self.echoes_count(segment))
        {
            self.answer_with_reset(segment);
            return;
        }
        self.on_syn_options(now, segment);
        let Some(acknowledged) = acknowledged else {
            // Simultaneous open (RFC 9293, section 3.5, figure 7).
            self.state = State::SynReceived;
            if let Some(handshake) = &mut self.handshake {
                handshake.pending = true;
            }
            return;
        };
        if self
            .handshake
            .as_ref()
            .is_some_and(|handshake| handshake.writer_waits)
        {
            let (window, segment) = (self.receiver.window(), self.sender.segment());
            self.receiver.acks.wait_for_writer(now, window, segment);
        } else {
            self.receiver.acks.demand();
        }
        let again = self
            .handshake
            .as_ref()
            .is_some_and(|handshake| handshake.sent > 1);
        self.learn_from_syn_ack(segment, again, acknowledged);
        self.establish(now, segment, acknowledged);
        if acknowledged > 1 {
            if !self.on_acknowledgement(now, segment, 0, acknowledged) {
                return;
            }
            if self.sender.next() > acknowledged {
                self.reject_syn_data();
            }
        }
        self.deliver_syn_data(now, segment, segment.length, segment.has(Flags::FIN));
    }

    /// Whether an acknowledgement up to this position covers this end's SYN and nothing unsent.
    pub(super) fn covers_syn(&self, position: u64) -> bool {
        (1..=self.sender.next()).contains(&position)
    }

    pub(super) fn has_sent_syn(&self) -> bool {
        self.handshake
            .as_ref()
            .is_some_and(|handshake| handshake.sent > 0)
    }

    /// RFC 7323, section 5.3 by analogy: a SYN-ACK that echoes a time before the SYN answers an earlier one.
    fn echoes_this_handshake(&self, now: Instant, segment: &Segment) -> bool {
        let Some(timestamps) = segment.options.timestamps else {
            return true;
        };
        let age = self.sender.clock(now).wrapping_sub(timestamps.echo);
        timestamps.echo == 0 || age < 1 << 31
    }

    /// Establishes the connection: the peer acknowledged the SYN and the stream up to `acknowledged`.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment, acknowledged: u64) {
        let is_early = self.is_half_synchronized();
        if self.state != State::SynSent {
            self.confirm_early_open();
        }
        if !is_early {
            let reduced = self.reduces_initial_window(segment);
            self.start_sender(now, self.window_of(segment), 1, reduced);
        }
        let Some(handshake) = self.handshake.take() else {
            return;
        };
        if handshake.sent == 1 {
            // Data acknowledged as a whole with the SYN provides its own sample.
            if acknowledged == 1 || acknowledged < self.sender.next() {
                self.sender
                    .sample_rtt(now, now - handshake.sent_at, &mut self.statistics);
            }
        } else if let (true, Some(timestamps)) = (self.timestamps, segment.options.timestamps) {
            let age = self.sender.clock(now).wrapping_sub(timestamps.echo);
            if age < 1 << 24 {
                self.sender.sample_rtt(
                    now,
                    Duration::from_millis(u64::from(age.max(1))),
                    &mut self.statistics,
                );
            }
        } else {
            self.sender.set_initial_timeout(TIMEOUT_AFTER_SYN_LOSS);
        }
        let is_kept = self.peer_buffers_syn_data() && self.sender.syn_data_fits();
        if acknowledged == 1 && self.sender.next() > 1 && !is_early && !is_kept {
            self.reject_syn_data();
        }
        self.sender.start_timer_after_syn(now);
        if is_early {
            return;
        }
        self.state = State::Established;
        if self.sender.is_finishing() {
            self.state = State::FinWait1;
        }
        self.emit(Events::CONNECTED);
    }

    /// Sends the data of the SYN again that the peer did not accept. Linux counts it as retransmitted.
    fn reject_syn_data(&mut self) {
        if self.parameters.is_linux() {
            self.sender.lose_syn_data();
        } else {
            self.sender.retract_syn_data();
        }
    }

    /// Starts the sender with the negotiated options and the peer's window from the segment at `window_from`. `reduced`: with an
    /// initial window of one segment.
    pub(super) fn start_sender(&mut self, now: Instant, window: u64, window_from: u64, reduced: bool) {
        self.reserve_counters();
        let options = self.segment_options();
        let Some(handshake) = &self.handshake else { return };
        let start = HandshakeResult {
            segment: Self::payload_size(&self.parameters, handshake.peer_mss.min(self.path_mss), options),
            sack: self.sack,
            timestamps: self.timestamps,
            ecn: self.ecn,
            clock_offset: self.initial.0,
            window,
            window_from,
        };
        let initial_window = if reduced {
            Some(1)
        } else {
            handshake.initial_window
        };
        let controller = (reduced || start.segment != self.sender.segment()).then(|| {
            let congestion = handshake.congestion.as_ref();
            let default = TcpConfig::new(self.parameters.profile);
            build(
                congestion.unwrap_or_else(|| default.congestion()),
                self.parameters.profile,
                initial_window,
                start.segment,
            )
        });
        self.sender.establish(now, start, controller);
    }
}
