//! Arriving segments (RFC 9293, section 3.10.7.4; RFC 5961; RFC 7323, section 5).

use foundation::{Duration, Instant};

use super::{Connection, Error, Events};
use crate::tcp::receiver::TimestampEcho;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::{AckInfo, AckValidity};
use crate::tcp::state::State;

/// Age at which TS.Recent becomes invalid: 24 days (RFC 7323, section 5.5).
const TIMESTAMP_LIFE: Duration = Duration::from_secs(24 * 24 * 3600);

impl Connection {
    /// Handles a segment that arrived, as [`Machine::handle_frame`](crate::Machine::handle_frame) without a copy.
    #[inline]
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        self.took_payload = false;
        if let Some(keep_alive) = &mut self.keep_alive {
            keep_alive.on_received(now);
        }
        match self.state {
            State::Closed => self.answer_with_reset(segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment_in_connection(now, segment),
        }
    }

    fn on_segment_in_connection(&mut self, now: Instant, segment: &Segment) {
        if segment.has(Flags::SYN) && self.handshake.is_some() && segment.sequence == self.peer_initial {
            self.on_repeated_syn(now, segment);
        } else {
            self.on_later_segment(now, segment);
        }
    }

    #[cold]
    fn on_repeated_syn(&mut self, now: Instant, segment: &Segment) {
        if !segment.has(Flags::ACK) {
            if !segment.has(Flags::RST) {
                self.on_repeated_syn_ecn(segment);
                self.repeat_syn();
            }
            return;
        }
        // Simultaneous open: the SYN of this SYN-ACK is a duplicate, its acknowledgement is new.
        let acknowledgement = Segment {
            sequence: segment.sequence + 1,
            flags: segment.flags.without(Flags::SYN),
            window: u16::try_from(u64::from(segment.window) >> self.peer_scale).unwrap_or(u16::MAX),
            ..*segment
        };
        self.on_later_segment(now, &acknowledgement);
        if self.parameters.is_linux() && self.is_synchronized() {
            // Linux reports the duplicate SYN (RFC 2883).
            self.receiver.on_duplicate(0, 1);
            self.receiver.acks.demand();
        }
    }

    /// Handles a segment that is no repeated SYN.
    #[inline]
    fn on_later_segment(&mut self, now: Instant, segment: &Segment) {
        if self.has_other_count(segment) {
            self.challenge(now);
            return;
        }
        let next = self.receiver.next();
        let Some(start) = segment.sequence.expand(self.peer_initial, next) else {
            self.challenge(now);
            return;
        };
        let end = start + u64::from(segment.sequence_length());
        if self.is_stale(now, segment) || !self.is_acceptable(start, end, segment) {
            self.on_unacceptable(now, segment, start, end);
            return;
        }
        if segment.has(Flags::RST) {
            self.on_reset(now, start);
            return;
        }
        if segment.has(Flags::SYN) {
            // RFC 5961, section 4.2: challenge a SYN with any sequence number.
            self.on_repeated_syn_ack_ecn(segment);
            self.challenge(now);
            return;
        }
        if !segment.has(Flags::ACK) {
            return;
        }
        let una = self.sender.una();
        let acknowledged = segment.acknowledgement.expand(self.initial, una);
        if self.handshake.is_some() {
            // RFC 9293, section 3.10.7.4: answer with a reset unless SND.UNA < SEG.ACK =< SND.NXT.
            let Some(acknowledged) = acknowledged.filter(|&it| self.covers_syn(it)) else {
                self.answer_with_reset(segment);
                return;
            };
            self.on_final_ack_ecn(segment);
            self.establish(now, segment, acknowledged);
            self.deliver_buffered_syn_data(now, segment);
        }
        let Some(acknowledged) = acknowledged else {
            // A number from before the stream (RFC 5961, section 5.2).
            self.challenge(now);
            return;
        };
        self.count_mark(segment);
        if self.repeats_acknowledgement(segment, acknowledged) {
            self.sender.on_repeated_ack(start);
        } else if !self.on_acknowledgement(now, segment, start, acknowledged) {
            return;
        }
        self.note_timestamp(now, segment, start);
        if segment.length > 0 || segment.has(Flags::FIN) {
            self.on_data(now, segment, start, end);
        }
    }

    /// Whether a segment with data repeats the last acknowledgement while nothing is in flight, as all segments of a one-way
    /// transfer do.
    #[inline(always)]
    fn repeats_acknowledgement(&self, segment: &Segment, acknowledged: u64) -> bool {
        segment.length > 0
            && !segment.has(Flags::ECE)
            && self.accurate.is_none()
            && segment.options.sack.is_empty()
            && !self.sender.is_write_blocked()
            && self
                .sender
                .is_unaffected_by_ack(acknowledged, self.window_of(segment))
    }

    /// Whether the segment overlaps the receive window (RFC 9293, section 3.4).
    #[inline]
    fn is_acceptable(&self, start: u64, end: u64, segment: &Segment) -> bool {
        let edge = self.receiver.edge();
        end >= self.receiver.acknowledged()
            && start <= edge
            && (end <= edge || !self.receiver.rejects_excess(end, segment.has(Flags::FIN)))
    }

    /// Whether the sequence numbers and the timestamp of a segment are acceptable (RFC 9293, section 3.10.7.4).
    #[must_use]
    pub fn accepts(&self, now: Instant, segment: &Segment) -> bool {
        let next = self.receiver.next();
        segment
            .sequence
            .expand(self.peer_initial, next)
            .is_some_and(|start| {
                let end = start + u64::from(segment.sequence_length());
                !self.is_stale(now, segment) && self.is_acceptable(start, end, segment)
            })
    }

    /// Whether the timestamp is older than TS.Recent (PAWS; RFC 7323, section 5.3).
    #[inline]
    fn is_stale(&self, now: Instant, segment: &Segment) -> bool {
        let Some(timestamps) = segment.options.timestamps.filter(|_| self.timestamps) else {
            return false;
        };
        (timestamps.value.wrapping_sub(self.recent_timestamp) as i32) < 0
            && !segment.has(Flags::RST)
            && now - self.recent_at < TIMESTAMP_LIFE
    }

    /// Updates TS.Recent, the timestamp to echo (RFC 7323, section 4.3).
    #[inline]
    fn note_timestamp(&mut self, now: Instant, segment: &Segment, start: u64) {
        if let Some(timestamps) = segment.options.timestamps.filter(|_| self.timestamps)
            && start <= self.receiver.acknowledged()
            && timestamps.value.wrapping_sub(self.recent_timestamp) as i32 >= 0
        {
            self.recent_timestamp = timestamps.value;
            self.recent_at = now;
        }
    }

    fn on_unacceptable(&mut self, now: Instant, segment: &Segment, start: u64, end: u64) {
        if segment.has(Flags::RST) {
            return;
        }
        if segment.length > 0 || segment.has(Flags::FIN) {
            self.statistics.packets_received += 1;
            self.statistics.duplicates_received += 1;
            if self.state == State::TimeWait {
                // RFC 9293, section 3.10.7.4: the last ACK was lost; restart the timer.
                self.lingers_until = now + self.time_wait(now);
            }
            if start < self.receiver.next() {
                self.on_duplicate_ecn(start);
                self.receiver.on_duplicate(start, end);
            }
            self.receiver.acks.demand();
            return;
        }
        self.challenge(now);
    }

    /// Sends a rate-limited challenge ACK (RFC 5961): a legitimate peer learns the expected number, and a blind attacker
    /// gains nothing.
    fn challenge(&mut self, now: Instant) {
        if now >= self.next_challenge {
            self.next_challenge = now + self.parameters.challenge_interval;
            self.receiver.acks.demand();
        }
    }

    /// RFC 5961, section 3.2: a reset is valid only with the next expected sequence number.
    fn on_reset(&mut self, now: Instant, start: u64) {
        if start != self.receiver.next() {
            self.challenge(now);
            return;
        }
        self.release_pending(true);
        match self.state {
            State::SynReceived => self.fail(Error::Refused),
            State::Closing | State::LastAck | State::TimeWait => self.become_closed(),
            _ => self.fail(Error::Reset),
        }
    }

    /// Processes the acknowledgement of a segment at position `start`. Returns whether the acknowledgement is valid.
    #[inline(always)]
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment,
        start: u64,
        acknowledged: u64,
    ) -> bool {
        let echo = segment
            .options
            .timestamps
            .filter(|_| self.timestamps)
            .map(|t| t.echo);
        let info = AckInfo {
            acknowledgement: acknowledged,
            sequence: start,
            window: self.window_of(segment),
            sack: &[],
            ece: segment.has(Flags::ECE),
            marks: self.mark_report(segment),
            echo,
            carries: segment.length > 0 || segment.has(Flags::FIN),
        };
        let validity = if segment.options.sack.is_empty() {
            let marks = self.accurate.as_deref_mut();
            self.sender.on_ack(now, &info, marks, &mut self.statistics)
        } else {
            self.on_selective_acknowledgement(now, segment, &info)
        };
        match validity {
            AckValidity::Valid { advanced } => {
                if self.sender.wakes_writer(now, &mut self.statistics) {
                    self.emit(Events::WRITABLE);
                }
                if advanced && self.sender.is_finishing() && self.sender.fin_acknowledged() {
                    self.on_fin_acknowledged(now);
                }
                true
            }
            AckValidity::TooOld | AckValidity::Unsent => {
                // RFC 5961, section 5.2.
                self.challenge(now);
                false
            }
        }
    }

    /// Processes an acknowledgement with SACK blocks.
    fn on_selective_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment,
        info: &AckInfo<'_>,
    ) -> AckValidity {
        let una = self.sender.una();
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for &(low, high) in segment.options.sack.as_slice() {
            let positions = (low.expand(self.initial, una), high.expand(self.initial, una));
            if let (Some(low), Some(high)) = positions {
                blocks[count] = (low, high);
                count += 1;
            }
        }
        let info = AckInfo {
            sack: &blocks[..count],
            ..*info
        };
        let marks = self.accurate.as_deref_mut();
        self.sender.on_ack(now, &info, marks, &mut self.statistics)
    }

    /// Processes the payload and the FIN of a segment at positions `start..end`.
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Instant, segment: &Segment, start: u64, end: u64) {
        if segment.length > 0 {
            self.statistics.packets_received += 1;
        }
        if self.ecn {
            self.on_congestion_mark(now, segment);
        }
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            // The peer's stream is complete, so this data is a duplicate.
            self.statistics.duplicates_received += u64::from(segment.length > 0);
            if self.state == State::TimeWait && segment.has(Flags::FIN) {
                self.lingers_until = now + self.time_wait(now);
            }
            self.receiver.acks.demand();
            return;
        }
        let fin = segment.has(Flags::FIN);
        let data_end = end - u64::from(fin);
        if self.closed && segment.length > 0 && data_end > self.receiver.next() {
            // RFC 9293, section 3.6.1 and RFC 2525, section 2.17: answer data for a closed reader with a reset.
            self.answer_with_reset(segment);
            self.become_closed();
            return;
        }
        let echo = self
            .timestamps
            .then_some(segment.options.timestamps)
            .flatten()
            .filter(|_| self.receiver.is_autotuning())
            .map(|t| TimestampEcho {
                value: t.echo,
                clock: self.sender.clock(now),
            });
        let rtt = self.sender.rtt();
        let arrival = self.receiver.on_data(now, start, segment.length, fin, rtt, echo);
        self.took_payload = segment.length > 0;
        if arrival.duplicate {
            self.statistics.duplicates_received += u64::from(segment.length > 0);
            self.on_duplicate_ecn(start);
        }
        if arrival.readable {
            self.emit(Events::READABLE);
        }
        if arrival.finished {
            self.on_peer_finished(now);
        }
    }
}
