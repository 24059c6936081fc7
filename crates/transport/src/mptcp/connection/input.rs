//! Arriving segments: what their options say, then what TCP makes of them.

use foundation::Instant;

use super::subflow::Role;
use super::{Connection, Level};
use crate::congestion::Siblings;
use crate::machine::Machine as _;
use crate::mptcp::segment::{Option, PathIndex, Segment, reason};
use crate::tcp::{Event, Flags};

/// Bytes of a proof in the answer and in the third segment of a join (RFC 8684, figures 6 and 7).
const ANSWER_PROOF: usize = 8;
const THIRD_PROOF: usize = 20;

impl Connection {
    #[inline]
    pub(super) fn on_segment(&mut self, now: Instant, path: PathIndex, segment: &Segment) {
        let Some(place) = self.place(segment.subflow) else {
            self.on_stranger(now, path, segment);
            return;
        };
        if let Option::FastClose { receiver } = segment.option
            && receiver == self.key
        {
            return self.on_fast_close(now, place, segment);
        }
        if !self.take_option(now, place, segment) {
            return;
        }
        if self.coupled {
            self.tell_siblings(place);
        }
        let received = {
            let tcp = &mut self.subflows[place].tcp;
            let before = tcp.statistics().packets_received;
            tcp.handle_frame(now, segment.tcp);
            tcp.statistics().packets_received - before
        };
        self.statistics.packets_received += received;
        self.after(now, place);
        self.on_data_end(now, place, segment);
    }

    /// The controller of a subflow that is about to hear of an ACK hears of the windows first.
    pub(super) fn tell_siblings(&mut self, place: usize) {
        self.siblings.clear();
        let mut me = None;
        for (other, subflow) in self.subflows.iter().enumerate() {
            if other == place {
                me = Some(self.siblings.len());
            } else if !subflow.usable {
                continue;
            }
            self.siblings.push(subflow.sibling());
        }
        if let Some(me) = me {
            let siblings = Siblings {
                all: &self.siblings,
                me,
            };
            self.subflows[place].tcp.tell_siblings(&siblings);
        }
    }

    /// What the option says, before TCP sees the segment. Gives whether TCP may see it.
    #[inline]
    fn take_option(&mut self, now: Instant, place: usize, segment: &Segment) -> bool {
        self.dirty |= 1 << place;
        let is_syn = segment.tcp.has(Flags::SYN);
        match segment.option {
            Option::Dss {
                acknowledgement,
                mapping,
                ..
            } if !is_syn && self.level == Level::Multipath => {
                if let Some(mapping) = mapping
                    && mapping.length > 0
                    && mapping.subflow > 0
                {
                    let subflow = &mut self.subflows[place];
                    let offset = subflow.tcp.receive_offset(segment.tcp.sequence);
                    // The position in the subflow has 32 bits; the segment lies in or right behind the mapping's start.
                    let told = u64::from(mapping.subflow - 1);
                    let near = offset.max(0) as u64;
                    let back = (near as u32).wrapping_sub(told as u32);
                    if back < 1 << 31 && near >= u64::from(back) {
                        let start = near - u64::from(back);
                        subflow
                            .received
                            .learn(start, mapping.data, u64::from(mapping.length));
                    }
                }
                self.confirm(now, place);
                self.take_data_ack(now, place, acknowledgement, segment);
            }
            Option::Dss { .. } => {}
            Option::Capable {
                sender,
                receiver,
                length,
            } => self.take_capable(now, place, (sender, receiver, length), segment),
            Option::JoinAnswer {
                proof, nonce, backup, ..
            } => {
                return self.take_join_answer(place, &proof, nonce, backup);
            }
            Option::JoinThird { proof } => return self.take_join_third(now, place, &proof),
            Option::Priority { backup } => self.subflows[place].peer_backup = backup,
            Option::Reset { transient, .. } => self.subflows[place].refused |= !transient,
            // One with another key is none of this connection's.
            Option::FastClose { .. } => {}
            Option::None | Option::JoinSyn { .. } => self.take_nothing(place, segment),
        }
        true
    }

    /// MP_CAPABLE (RFC 8684, section 3.1).
    fn take_capable(
        &mut self,
        now: Instant,
        place: usize,
        (sender, receiver, length): (std::option::Option<u64>, std::option::Option<u64>, u32),
        segment: &Segment,
    ) {
        if self.subflows[place].role != Role::Initial || self.subflows[place].gone {
            return;
        }
        let is_answer = segment.tcp.has(Flags::SYN) && segment.tcp.has(Flags::ACK);
        if self.opener && is_answer && self.level == Level::Opening && sender.is_some() {
            self.peer_key = sender;
            self.level = Level::Multipath;
            self.attempt_at = Instant::MAX;
            return;
        }
        let known = receiver == Some(self.key);
        if self.opener || self.level != Level::Multipath || !known {
            return;
        }
        self.peer_key = sender;
        if length > 0 {
            self.subflows[place].received.learn(0, 1, u64::from(length));
        }
        self.confirm(now, place);
        // It stands for a DSS option, whose DATA_ACK would be that of the beginning.
        self.take_data_ack(now, place, 1, segment);
    }

    /// No option of multipath TCP (RFC 8684, section 3.7): in an answer the peer does not know it; beside the first data
    /// something between took it out.
    fn take_nothing(&mut self, place: usize, segment: &Segment) {
        let subflow = &self.subflows[place];
        if subflow.role != Role::Initial || subflow.gone || segment.tcp.has(Flags::RST) {
            return;
        }
        let is_answer = segment.tcp.has(Flags::SYN) && segment.tcp.has(Flags::ACK);
        let first_data = segment.tcp.length > 0 && !self.confirmed;
        if self.opener && is_answer && self.level == Level::Opening
            || self.level == Level::Multipath && first_data && self.has_not_joined()
        {
            self.become_plain();
        }
    }

    pub(super) fn become_plain(&mut self) {
        self.level = Level::Plain;
        self.attempt_at = Instant::MAX;
        self.joins.clear();
        self.outgoing.edge = u64::MAX;
    }

    /// An option that only an established peer sends has come.
    fn confirm(&mut self, now: Instant, place: usize) {
        if !self.confirmed {
            self.confirmed = true;
            self.check_joinable(now);
        }
        let subflow = &mut self.subflows[place];
        // RFC 8684, section 3.2: the fourth segment; only now may data leave.
        if let Role::Joined {
            verified: true,
            confirmed: confirmed @ false,
            ..
        } = &mut subflow.role
        {
            *confirmed = true;
            subflow.usable = !subflow.gone;
            subflow.third_at = Instant::MAX;
            self.on_further_subflow(now);
        }
    }

    #[inline]
    fn take_data_ack(&mut self, now: Instant, place: usize, position: u64, segment: &Segment) {
        if !segment.tcp.has(Flags::ACK) || segment.tcp.has(Flags::RST) {
            return;
        }
        let window = if self.setup.shared_window() {
            self.subflows[place].tcp.window_of(&segment.tcp)
        } else {
            u64::MAX / 2
        };
        let (bytes, news) = self.outgoing.on_data_ack(position, window);
        if news {
            self.on_acknowledged(now, bytes);
        }
    }

    /// `bytes` of data are newly acknowledged, or the DATA_FIN is.
    pub(super) fn on_acknowledged(&mut self, now: Instant, bytes: u64) {
        self.backoff = 0;
        if bytes > 0 {
            self.statistics.bytes_acknowledged += bytes;
            self.statistics.last_acknowledged_at = Some(now);
            if self.write_blocked && self.outgoing.room() > 0 {
                self.write_blocked = false;
                self.tell(Event::Writable);
            }
            if !self.joins.is_empty() {
                self.open_due_joins(now);
            }
            self.watch_tail(now);
        }
        self.check_finished(now);
    }

    fn take_join_answer(
        &mut self,
        place: usize,
        proof: &crate::mptcp::segment::Proof,
        nonce: u32,
        backup: bool,
    ) -> bool {
        let Role::Joined { nonces, .. } = self.subflows[place].role else {
            return false;
        };
        if !self.opener {
            return false;
        }
        let nonces = (nonces.0, nonce);
        if !self.is_proven(proof, nonces, ANSWER_PROOF) {
            return false;
        }
        let subflow = &mut self.subflows[place];
        subflow.peer_backup = backup;
        if let Role::Joined {
            nonces: known,
            verified,
            ..
        } = &mut subflow.role
        {
            *known = nonces;
            *verified = true;
        }
        true
    }

    fn take_join_third(&mut self, now: Instant, place: usize, proof: &crate::mptcp::segment::Proof) -> bool {
        let Role::Joined { nonces, .. } = self.subflows[place].role else {
            return false;
        };
        if self.opener {
            return false;
        }
        if !self.is_proven(proof, nonces, THIRD_PROOF) {
            // RFC 8684, section 3.2: whoever does not know the keys is sent away.
            self.subflows[place].reset_for(now, false, reason::ERROR);
            return false;
        }
        let subflow = &mut self.subflows[place];
        if let Role::Joined { verified, .. } = &mut subflow.role {
            *verified = true;
        }
        // The fourth segment is sent again where the third one is.
        subflow.tcp.demand_acknowledgement();
        true
    }

    /// What has become of a subflow by a segment or a timeout.
    #[inline]
    pub(super) fn after(&mut self, now: Instant, place: usize) {
        self.dirty |= 1 << place;
        self.untold |= 1 << place;
        while let Some(event) = self.subflows[place].tcp.poll_event() {
            match event {
                Event::Connected => self.on_subflow_connected(now, place),
                Event::PeerFinished => self.on_subflow_ended(now, place),
                Event::Failed(error) => self.on_subflow_gone(now, place, Some(error)),
                Event::Closed => self.on_subflow_gone(now, place, None),
                Event::Finished if self.level == Level::Plain => self.tell(Event::Finished),
                Event::Readable | Event::Writable | Event::Finished => {}
            }
        }
        if self.subflows[place].tcp.readable() > 0 {
            self.take_payload(now, place);
        }
        let new = self.subflows[place].note_progress();
        if new > 0 && self.level == Level::Plain {
            let position = self.subflows[place].acknowledged + 1;
            let (bytes, _) = self.outgoing.on_data_ack(position, u64::MAX / 2);
            self.on_acknowledged(now, bytes);
        }
        let subflow = &mut self.subflows[place];
        let rtt = subflow.tcp.round_trips();
        if rtt.sampled_at() != subflow.sampled_at {
            subflow.sampled_at = rtt.sampled_at();
            let latest = rtt.latest();
            self.statistics.record_rtt(latest);
        }
    }

    fn on_subflow_connected(&mut self, now: Instant, place: usize) {
        let subflow = &mut self.subflows[place];
        match subflow.role {
            Role::Initial => {
                subflow.usable = true;
                self.established = true;
                if !self.setup.shared_window() || self.level == Level::Plain {
                    self.outgoing.edge = u64::MAX / 2;
                } else {
                    // RFC 8684, section 3.3.1: the window of the handshake counts from the first byte of data.
                    let window = subflow.tcp.info().send_window;
                    self.outgoing.edge = self.outgoing.edge.max(1 + window);
                }
                self.tell(Event::Connected);
                self.check_joinable(now);
            }
            Role::Joined { verified, .. } if self.opener => {
                // A peer that does not know the keys, or not the option, gets no data.
                if !verified {
                    subflow.reset_for(now, false, reason::ERROR);
                    return;
                }
                subflow.third_at = now + subflow.tcp.retransmission_timeout();
            }
            Role::Joined { verified, .. } => {
                if verified {
                    subflow.usable = true;
                    // The fourth segment (RFC 8684, section 3.2).
                    subflow.tcp.demand_acknowledgement();
                } else {
                    subflow.reset_for(now, false, reason::ERROR);
                }
            }
        }
    }

    /// Payload in the order of the subflow: where it belongs in the data.
    pub(super) fn take_payload(&mut self, now: Instant, place: usize) {
        let subflow = &mut self.subflows[place];
        let bytes = subflow.tcp.readable();
        subflow.tcp.read(now, bytes);
        let end = subflow.read + bytes;
        let mut readable = false;
        while subflow.read < end {
            let rest = end - subflow.read;
            let (data, length) = match self.level {
                Level::Plain => (subflow.read + 1, rest),
                _ => match subflow.received.find(subflow.read) {
                    Some((data, length)) => (data, length.min(rest)),
                    None => {
                        // RFC 8684, section 3.3.1: payload without a mapping ends the subflow.
                        subflow.reset_for(now, false, reason::INTERFERENCE);
                        break;
                    }
                },
            };
            readable |= self.incoming.on_data(data, length);
            subflow.read += length;
        }
        subflow.received.release(subflow.read);
        self.statistics.duplicates_received =
            self.incoming.duplicates().min(self.statistics.packets_received);
        if readable {
            self.tell(Event::Readable);
            self.check_peer_finished(now);
        }
    }
}
