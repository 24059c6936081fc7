//! Segments that leave: which is next, and its header.

use foundation::Instant;

use super::{Connection, State};
use crate::tcp::options::{SackBlocks, Timestamps};
use crate::tcp::segment::{Ecn, Flags, Outgoing, Segment};
use crate::tcp::sender::DataSegment;
use crate::tcp::wire::MAX_OPTIONS;

impl Connection {
    #[inline]
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(reset) = self.reset.take() {
            return Some(self.control(reset));
        }
        if self.handshake.is_some() {
            let syn = self.poll_handshake(now);
            if syn.is_some() || !self.may_send_early() {
                return syn;
            }
        }
        match self.state {
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                if let Some(departure) = self.sender.poll(now, self.sack_bytes()) {
                    return Some(self.data(now, &departure));
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
            // RFC 9293, section 3.8.4: a number that the peer has acknowledged makes it answer.
            let position = self.sender.una() - 1;
            return Some(self.acknowledgement(now, position));
        }
        if self.receiver.owes_ack() {
            let position = self.sender.next();
            return Some(self.acknowledgement(now, position));
        }
        None
    }

    pub(super) fn control(&mut self, segment: Segment) -> Outgoing {
        Outgoing {
            segment,
            offset: 0,
            retransmission: false,
        }
    }

    /// SACK blocks that fit beside the other options (RFC 2018, section 3).
    #[inline]
    fn sack_room(&self, carries: bool) -> usize {
        if !self.sack {
            return 0;
        }
        let reserved = self.parameters.reserved;
        let others =
            if carries { reserved.data } else { reserved.bare } + if self.timestamps { 12 } else { 0 };
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

    /// The header of every segment after the handshake.
    #[inline]
    fn header(&mut self, now: Instant, position: u64, length: u32) -> Segment {
        let mut flags = Flags::ACK;
        if self.echo_congestion {
            flags |= Flags::ECE;
        }
        let mut segment = Segment::bare(
            self.initial.at(position),
            self.peer_initial.at(self.receiver.next()),
            flags,
        );
        let owed = self.receiver.owes_ack();
        segment.window = self.receiver.on_ack_sent(now, length > 0);
        segment.options.timestamps = self.timestamps_option(now);
        segment.options.count = self.count;
        if self.receiver.sack_count() > 0 && self.sack {
            // A segment that was cut before there were blocks, and leaves again, has no room for them.
            let room = (self.sender.segment().saturating_sub(length + 4) / 8) as usize;
            let room = room.min(self.sack_room(length > 0));
            if room == 0 {
                // One without payload would have no more room.
                if owed && length > 0 {
                    self.receiver.demand_ack();
                }
                return segment;
            }
            let mut blocks = SackBlocks::EMPTY;
            let initial = self.peer_initial;
            self.receiver.sack_blocks(room, |start, end| {
                blocks.push((initial.at(start), initial.at(end)));
            });
            segment.options.sack = blocks;
            self.receiver.on_sack_sent();
        }
        segment
    }

    fn acknowledgement(&mut self, now: Instant, position: u64) -> Outgoing {
        self.statistics.acknowledgements_sent += 1;
        let segment = self.header(now, position, 0);
        self.control(segment)
    }

    #[inline]
    fn data(&mut self, now: Instant, departure: &DataSegment) -> Outgoing {
        if departure.length == 0 && !departure.fin {
            return self.acknowledgement(now, departure.start);
        }
        let mut segment = self.header(now, departure.start, departure.length);
        segment.length = departure.length;
        for (set, flag) in [
            (departure.fin, Flags::FIN),
            (departure.push && departure.length > 0, Flags::PSH),
            (departure.reduced, Flags::CWR),
        ] {
            if set {
                segment.flags |= flag;
            }
        }
        if departure.ecn_capable {
            segment.ecn = Ecn::Ect0;
        }
        self.count_departure(now, departure);
        Outgoing {
            segment,
            offset: departure.start - 1,
            retransmission: departure.retransmission,
        }
    }

    #[inline]
    pub(super) fn count_departure(&mut self, now: Instant, departure: &DataSegment) {
        if departure.length > 0 {
            let statistics = &mut self.statistics;
            statistics.packets_sent += 1;
            statistics.bytes_sent += u64::from(departure.length);
            if departure.retransmission {
                statistics.retransmissions += 1;
                statistics.bytes_retransmitted += u64::from(departure.length);
            }
            statistics.first_data_at.get_or_insert(now);
        }
    }
}
