//! Outgoing segments: selection and headers.

use foundation::Instant;

use super::Connection;
use crate::tcp::options::{Timestamps, timestamps_room};
use crate::tcp::segment::{Ecn, Flags, Outgoing, Segment};
use crate::tcp::sender::DataSegment;
use crate::tcp::state::State;
use crate::tcp::wire::MAX_OPTIONS;

impl Connection {
    #[inline]
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Outgoing> {
        if self.has_nothing_to_send() {
            return None;
        }
        self.select_segment(now)
    }

    /// Whether nothing is due.
    #[inline]
    fn has_nothing_to_send(&self) -> bool {
        self.sender.has_nothing_to_send()
            && !self.receiver.acks.is_due()
            && self.urgent.is_none()
            && self.handshake.is_none()
            && self.keep_alive.is_none()
    }

    fn select_segment(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(urgent) = self.urgent.take() {
            return Some(Outgoing::without_payload(*urgent));
        }
        if self.handshake.is_some() {
            let syn = self.poll_handshake(now);
            if syn.is_some() || !self.may_send_early() {
                return syn.or_else(|| self.challenge_in_handshake(now));
            }
        }
        match self.state {
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                let sack_bytes = self.sack_bytes();
                if let Some(data) = self.sender.poll(now, sack_bytes, &mut self.statistics) {
                    return Some(self.data(now, &data));
                }
            }
            State::Closed => return None,
            _ => {}
        }
        if self
            .keep_alive
            .as_mut()
            .is_some_and(|keep_alive| keep_alive.take_pending())
        {
            // RFC 9293, section 3.8.4: an acknowledged sequence number triggers an ACK.
            let position = self.sender.una() - 1;
            return Some(self.acknowledgement(now, position));
        }
        if self.receiver.acks.is_due() {
            let position = self.sender.next();
            return Some(self.acknowledgement(now, position));
        }
        None
    }

    /// Returns the ACK that answers an invalid segment in SYN-RECEIVED (RFC 9293, section 3.10.7.4).
    fn challenge_in_handshake(&mut self, now: Instant) -> Option<Outgoing> {
        let is_due = self.state == State::SynReceived && self.receiver.acks.is_due();
        is_due.then(|| self.acknowledgement(now, self.sender.next()))
    }

    /// Returns how many SACK blocks fit next to the other options (RFC 2018, section 3).
    #[inline]
    fn sack_room(&self, carries: bool) -> usize {
        if !self.sack {
            return 0;
        }
        let reserved = self.parameters.reserved;
        let others = if carries { reserved.data } else { reserved.bare } + timestamps_room(self.timestamps);
        (MAX_OPTIONS.saturating_sub(others + 4) / 8).min(4) as usize
    }

    #[inline]
    fn sack_bytes(&self) -> u32 {
        let count = self.receiver.sack_count();
        if count == 0 {
            return 0;
        }
        match count.min(self.sack_room(true)) {
            0 => 0,
            blocks => 4 + 8 * blocks as u32,
        }
    }

    #[inline]
    pub(super) fn timestamps_option(&self, now: Instant) -> Option<Timestamps> {
        self.timestamps.then(|| Timestamps {
            value: self.sender.clock(now),
            echo: self.recent_timestamp,
        })
    }

    /// Returns the header of a segment after the handshake, without the options of [`with_reports`](Self::with_reports).
    #[inline(always)]
    fn header(&mut self, now: Instant, position: u64, length: u32) -> Segment {
        let (flags, code) = self.header_marks();
        let mut segment = Segment::bare(
            self.initial.at(position),
            self.peer_initial.at(self.receiver.next()),
            Flags::ACK | flags,
        );
        segment.ecn = code;
        segment.window = self.receiver.on_ack_sent(now, length > 0);
        segment.options.timestamps = self.timestamps_option(now);
        segment.options.count = self.early.as_ref().and_then(|early| early.own_count());
        segment
    }

    /// Adds the SACK blocks and the AccECN option to a segment with the other options. `owed`: an ACK was due.
    ///
    /// The last step, so that most segments are written once, in their final place.
    #[inline]
    fn with_reports(&mut self, now: Instant, outgoing: Outgoing, owed: bool) -> Outgoing {
        let has_blocks = self.receiver.sack_count() > 0 && self.sack;
        if has_blocks || self.accurate.is_some() {
            return self.add_reports(now, outgoing, owed && has_blocks);
        }
        outgoing
    }

    #[cold]
    fn add_reports(&mut self, now: Instant, mut outgoing: Outgoing, owed: bool) -> Outgoing {
        let (others, length) = (outgoing.segment.options.encoded_length(), outgoing.segment.length);
        // A retransmission keeps its length, which may leave no room for blocks.
        let room = (self.sender.segment().saturating_sub(length + 4) / 8) as usize;
        let room = room
            .min(self.sack_room(length > 0))
            .min(self.receiver.sack_count());
        let (fields, room) = self.fit_counters(now, others, length, room);
        let blocks = &mut outgoing.segment.options.sack;
        if room > 0 {
            let initial = self.peer_initial;
            self.receiver.sack_blocks(room, |start, end| {
                blocks.push((initial.at(start), initial.at(end)));
            });
        } else if owed && length > 0 {
            // A segment without payload has room, if any has.
            self.receiver.acks.demand();
        }
        if let Some(fields) = fields {
            self.add_counters(now, blocks, fields, room > 0);
        }
        if room > 0 {
            self.receiver.on_sack_sent();
        }
        outgoing
    }

    pub(super) fn acknowledgement(&mut self, now: Instant, position: u64) -> Outgoing {
        self.statistics.acknowledgements_sent += 1;
        let owed = self.receiver.acks.is_due();
        let outgoing = Outgoing::without_payload(self.header(now, position, 0));
        self.with_reports(now, outgoing, owed)
    }

    #[inline]
    fn data(&mut self, now: Instant, data: &DataSegment) -> Outgoing {
        if data.length == 0 && !data.fin {
            return self.acknowledgement(now, data.start);
        }
        let owed = self.receiver.acks.is_due();
        let mut segment = self.header(now, data.start, data.length);
        segment.length = data.length;
        segment.flags |= Flags::FIN.when(data.fin)
            | Flags::PSH.when(data.push && data.length > 0)
            | Flags::CWR.when(data.reduced);
        if data.ecn_capable {
            segment.ecn = Ecn::Ect0;
        }
        self.count_sent(now, data);
        let outgoing = Outgoing {
            segment,
            offset: data.start - 1,
            retransmission: data.retransmission,
        };
        self.with_reports(now, outgoing, owed)
    }

    #[inline]
    pub(super) fn count_sent(&mut self, now: Instant, data: &DataSegment) {
        if data.length > 0 {
            let statistics = &mut self.statistics;
            statistics.packets_sent += 1;
            statistics.bytes_sent += u64::from(data.length);
            if data.retransmission {
                statistics.retransmissions += 1;
                statistics.bytes_retransmitted += u64::from(data.length);
            }
            statistics.first_data_at.get_or_insert(now);
        }
    }
}
