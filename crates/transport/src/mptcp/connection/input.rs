//! Processing of arriving segments: first the MPTCP option, then the TCP segment.

use foundation::Instant;

use super::subflow::Role;
use super::{Connection, Mode};
use crate::congestion::Siblings;
use crate::machine::Machine as _;
use crate::mptcp::keys::Nonces;
use crate::mptcp::segment::{Checksum, JoinHmac, Mapping, MptcpOption, PathIndex, Segment, Signal, reason};
use crate::tcp::{Event, Flags};

/// Verified bytes of the HMACs in the SYN/ACK and in the third segment of a join (RFC 8684, figures 6 and 7).
const ANSWER_HMAC: usize = 8;
const THIRD_HMAC: usize = 20;

impl Connection {
    /// Handles a segment that arrived on a path, as [`Machine::handle_frame`](crate::Machine::handle_frame) without a copy.
    #[inline]
    pub fn handle_segment(&mut self, now: Instant, path: PathIndex, segment: &Segment) {
        let Some(index) = self.index_of(segment.subflow) else {
            self.accept_join(now, path, segment);
            return;
        };
        if let MptcpOption::FastClose { receiver } = segment.option
            && receiver == self.key
        {
            return self.on_fast_close(now, index, segment);
        }
        if !self.process_option(now, index, segment) {
            return;
        }
        if segment.signal != Signal::None {
            self.process_signal(now, index, segment.signal);
        }
        // The controller of an idle subflow processes no ACK.
        if self.coupled && !self.subflows[index].tcp.is_idle() {
            self.update_siblings(index);
        }
        let received = {
            let tcp = &mut self.subflows[index].tcp;
            let before = tcp.statistics().packets_received;
            tcp.handle_segment(now, &segment.tcp);
            tcp.statistics().packets_received - before
        };
        self.statistics.packets_received += received;
        self.process_events(now, index);
        self.process_data_fin(now, index, segment);
    }

    /// Passes the sibling subflows' windows to the controller before it processes an ACK or a timeout.
    pub(super) fn update_siblings(&mut self, index: usize) {
        self.siblings.clear();
        let mut own_index = None;
        for (other, subflow) in self.subflows.iter().enumerate() {
            if other == index {
                own_index = Some(self.siblings.len());
            } else if !subflow.usable {
                continue;
            }
            self.siblings.push(subflow.sibling());
        }
        if let Some(own_index) = own_index {
            let siblings = Siblings {
                all: &self.siblings,
                own_index,
            };
            self.subflows[index].tcp.update_siblings(&siblings);
        }
    }

    /// Processes the option. Returns whether TCP may process the segment.
    #[inline]
    fn process_option(&mut self, now: Instant, index: usize, segment: &Segment) -> bool {
        self.dirty |= 1 << index;
        let is_syn = segment.tcp.has(Flags::SYN);
        match segment.option {
            MptcpOption::Dss {
                acknowledgement,
                mapping,
                widths,
                checksum,
                ..
            } if !is_syn && self.mode == Mode::Multipath => {
                if let Some(mapping) = mapping
                    && mapping.subflow > 0
                {
                    self.process_mapping(now, index, (mapping, checksum, widths.data), segment);
                }
                self.confirm(now, index);
                self.process_data_ack(now, index, acknowledgement, segment);
            }
            MptcpOption::Dss { .. } => {}
            MptcpOption::Capable {
                sender,
                receiver,
                length,
                checksums,
                checksum,
            } => {
                if is_syn && self.is_client && self.mode == Mode::Handshake {
                    self.checksums |= checksums;
                }
                self.process_capable(now, index, (sender, receiver, length), checksum, segment);
            }
            MptcpOption::JoinAnswer {
                hmac,
                nonce,
                backup,
                address,
            } => return self.process_join_answer(index, &hmac, nonce, (backup, address)),
            MptcpOption::JoinThird { hmac } => return self.process_join_third(now, index, &hmac),
            MptcpOption::Fail { data } => self.on_failed(now, index, data, segment),
            MptcpOption::Reset { transient, .. } if segment.tcp.has(Flags::RST) => {
                self.subflows[index].refused |= !transient;
            }
            // Without a reset, it has no effect.
            MptcpOption::Reset { .. } => {}
            // A FASTCLOSE with another key belongs to another connection.
            MptcpOption::FastClose { .. } => {}
            MptcpOption::None | MptcpOption::JoinSyn { .. } => self.process_missing_option(index, segment),
        }
        true
    }

    /// Adds the mapping of a segment to those of its subflow.
    #[inline]
    fn process_mapping(
        &mut self,
        now: Instant,
        index: usize,
        (mapping, checksum, is_wide): (Mapping, Checksum, bool),
        segment: &Segment,
    ) {
        let has_payload = segment.tcp.length > 0;
        if mapping.length == 0 && !has_payload {
            return;
        }
        if has_payload {
            self.peer_is_wide = is_wide;
        }
        let offset = self.subflows[index].tcp.receive_offset(segment.tcp.sequence);
        // The mapping has 32 bits of the position; the segment starts at or after the mapping.
        let expected = u64::from(mapping.subflow - 1);
        let near = offset.max(0) as u64;
        let back = (near as u32).wrapping_sub(expected as u32);
        if back >= 1 << 31 || near < u64::from(back) {
            return;
        }
        let start = near - u64::from(back);
        if !has_payload || self.checks_mapping(now, index, (mapping, checksum), start) {
            self.subflows[index]
                .received
                .add(start, mapping.data, u64::from(mapping.length));
        }
    }

    /// Processes MP_CAPABLE (RFC 8684, section 3.1).
    fn process_capable(
        &mut self,
        now: Instant,
        index: usize,
        (sender, receiver, length): (Option<u64>, Option<u64>, u32),
        checksum: Checksum,
        segment: &Segment,
    ) {
        if self.subflows[index].role != Role::Initial || self.subflows[index].gone {
            return;
        }
        let is_answer = segment.tcp.has(Flags::SYN) && segment.tcp.has(Flags::ACK);
        if self.is_client && is_answer && self.mode == Mode::Handshake && sender.is_some() {
            self.peer_key = sender;
            self.mode = Mode::Multipath;
            self.retry = None;
            return;
        }
        // Once both keys are known, later copies do not change them (as in Linux).
        let known = self.confirmed || receiver == Some(self.key);
        if self.is_client || self.mode != Mode::Multipath || !known {
            return;
        }
        if !self.confirmed {
            self.peer_key = sender;
        }
        if length > 0 {
            self.peer_is_wide = true;
            let mapping = Mapping {
                data: 1,
                subflow: 1,
                length,
            };
            if segment.tcp.length == 0 || self.checks_mapping(now, index, (mapping, checksum), 0) {
                self.subflows[index].received.add(0, 1, u64::from(length));
            }
        }
        self.confirm(now, index);
        // It replaces a DSS option, whose DATA_ACK would be the initial position.
        self.process_data_ack(now, index, 1, segment);
    }

    /// Falls back to plain TCP (RFC 8684, sections 3.1 and 3.7): a SYN/ACK without option means that the peer does not support
    /// MPTCP; any other segment without option, before one with an option, means that a middlebox removed it or that the peer fell back.
    fn process_missing_option(&mut self, index: usize, segment: &Segment) {
        let subflow = &self.subflows[index];
        if subflow.role != Role::Initial || subflow.gone || segment.tcp.has(Flags::RST) {
            return;
        }
        let is_answer = segment.tcp.has(Flags::SYN) && segment.tcp.has(Flags::ACK);
        let first = !self.confirmed && !segment.tcp.has(Flags::SYN) && !segment.is_multipath();
        if self.is_client && is_answer && self.mode == Mode::Handshake
            || self.mode == Mode::Multipath && first && self.has_not_joined()
        {
            self.fall_back();
        }
    }

    pub(super) fn fall_back(&mut self) {
        self.mode = Mode::Plain;
        self.retry = None;
        self.joins.clear();
        self.outgoing.right_edge = u64::MAX;
        self.subflows[0].tcp.release_options();
        // The FIN of the subflow replaces the DATA_FIN.
        self.fin_sent = false;
    }

    /// Records an option that only an established peer sends.
    #[inline]
    fn confirm(&mut self, now: Instant, index: usize) {
        if !self.confirmed {
            self.confirmed = true;
            self.check_joinable(now);
        }
        let subflow = &mut self.subflows[index];
        // This is the fourth segment (RFC 8684, section 3.2), after which data may leave.
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
            self.on_usable_subflow(now);
        }
    }

    #[inline]
    fn process_data_ack(&mut self, now: Instant, index: usize, position: u64, segment: &Segment) {
        if !segment.tcp.has(Flags::ACK) || segment.tcp.has(Flags::RST) {
            return;
        }
        let window = if self.setup.shared_window() {
            self.subflows[index].tcp.window_of(&segment.tcp)
        } else {
            u64::MAX / 2
        };
        let (bytes, is_new) = self.outgoing.on_data_ack(position, window);
        if is_new {
            self.on_acknowledged(now, bytes);
        }
    }

    /// Handles a DATA_ACK of `bytes` new bytes or of the DATA_FIN.
    pub(super) fn on_acknowledged(&mut self, now: Instant, bytes: u64) {
        self.backoff = 0;
        if bytes > 0 {
            self.statistics.bytes_acknowledged += bytes;
            self.statistics.last_acknowledged_at = Some(now);
            if self.write_blocked && self.outgoing.room() > 0 {
                self.write_blocked = false;
                self.push_event(Event::Writable);
            }
            if !self.joins.is_empty() {
                self.open_due_joins(now);
            }
            self.restart_tail_timer(now);
        }
        self.check_finished(now);
    }

    fn process_join_answer(
        &mut self,
        index: usize,
        hmac: &JoinHmac,
        nonce: u32,
        (backup, address): (bool, u8),
    ) -> bool {
        let Role::Joined { nonces, .. } = self.subflows[index].role else {
            return false;
        };
        if !self.is_client {
            return false;
        }
        let nonces = Nonces {
            receiver: nonce,
            ..nonces
        };
        if !self.verifies(hmac, nonces, ANSWER_HMAC) {
            return false;
        }
        let subflow = &mut self.subflows[index];
        subflow.peer_backup = backup;
        subflow.peer_address = address;
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

    fn process_join_third(&mut self, now: Instant, index: usize, hmac: &JoinHmac) -> bool {
        let Role::Joined { nonces, .. } = self.subflows[index].role else {
            return false;
        };
        if self.is_client {
            return false;
        }
        if !self.verifies(hmac, nonces, THIRD_HMAC) {
            // RFC 8684, section 3.2: a peer with a wrong HMAC is reset.
            self.subflows[index].reset_for(now, false, reason::ERROR);
            return false;
        }
        let subflow = &mut self.subflows[index];
        if let Role::Joined { verified, .. } = &mut subflow.role {
            *verified = true;
        }
        // The fourth segment is retransmitted with each retransmission of the third.
        subflow.tcp.demand_acknowledgement();
        true
    }

    /// Processes the events of a subflow after a segment or a timeout.
    #[inline]
    pub(super) fn process_events(&mut self, now: Instant, index: usize) {
        self.dirty |= 1 << index;
        self.unreported |= 1 << index;
        while let Some(event) = self.subflows[index].tcp.poll_event() {
            match event {
                Event::Connected => self.on_subflow_connected(now, index),
                Event::PeerFinished => self.on_subflow_fin(now, index),
                Event::Failed(error) => self.on_subflow_closed(now, index, Some(error)),
                Event::Closed => self.on_subflow_closed(now, index, None),
                Event::Finished if self.mode == Mode::Plain => self.push_event(Event::Finished),
                Event::Readable | Event::Writable | Event::Finished => {}
            }
        }
        if self.subflows[index].tcp.readable() > 0 {
            self.deliver_payload(now, index);
        }
        let new = self.subflows[index].note_progress();
        if new > 0 && self.mode == Mode::Plain {
            let position = self.failure.outgoing_position(self.subflows[index].acknowledged);
            let (bytes, _) = self.outgoing.on_data_ack(position, u64::MAX / 2);
            self.on_acknowledged(now, bytes);
        }
        let subflow = &mut self.subflows[index];
        let rtt = subflow.tcp.round_trips();
        if rtt.sampled_at() != subflow.sampled_at {
            subflow.sampled_at = rtt.sampled_at();
            let latest = rtt.latest();
            self.statistics.record_rtt(latest);
        }
    }

    fn on_subflow_connected(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        match subflow.role {
            Role::Initial => {
                subflow.usable = true;
                self.established = true;
                if !self.setup.shared_window() || self.mode == Mode::Plain {
                    self.outgoing.right_edge = u64::MAX / 2;
                } else {
                    // The window of the handshake is relative to the first byte of data (RFC 8684, section 3.3.1).
                    let window = subflow.tcp.info().send_window;
                    self.outgoing.right_edge = self.outgoing.right_edge.max(1 + window);
                }
                self.push_event(Event::Connected);
                self.check_joinable(now);
                self.on_usable_subflow(now);
            }
            Role::Joined { verified, .. } if self.is_client => {
                // A peer without a verified HMAC gets no data.
                if !verified {
                    subflow.reset_for(now, false, reason::ERROR);
                    return;
                }
                subflow.third_at = now + subflow.tcp.retransmission_timeout();
            }
            Role::Joined { verified, .. } => {
                if verified {
                    subflow.usable = true;
                    // Sends the fourth segment (RFC 8684, section 3.2).
                    subflow.tcp.demand_acknowledgement();
                    self.on_usable_subflow(now);
                } else {
                    subflow.reset_for(now, false, reason::ERROR);
                }
            }
        }
    }

    /// Returns the bytes that arrived above a gap of the data or of their subflow.
    #[must_use]
    pub fn early_bytes(&self) -> u64 {
        let mut early = self.incoming.early().clone();
        for subflow in self.subflows.iter().filter(|subflow| !subflow.gone) {
            for (mut offset, end) in subflow.tcp.early() {
                while offset < end {
                    let (data, length) = match self.mode {
                        Mode::Plain => match self.failure.incoming_position(offset) {
                            Some(data) => (data, end - offset),
                            None => break,
                        },
                        _ => match subflow.received.find(offset) {
                            Some((data, length)) => (data, length.min(end - offset)),
                            None => break,
                        },
                    };
                    early.insert(data.max(self.incoming.next()), data + length, |_, _| {});
                    offset += length;
                }
            }
        }
        early.total()
    }

    /// Moves the payload of a subflow to its place in the data.
    pub(super) fn deliver_payload(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        let bytes = subflow.tcp.readable();
        subflow.tcp.read(now, bytes);
        let end = subflow.read + bytes;
        let mut readable = false;
        while subflow.read < end {
            let rest = end - subflow.read;
            let (data, length) = match self.mode {
                Mode::Plain => match self.failure.incoming_position(subflow.read) {
                    Some(data) => (data, rest),
                    None => {
                        let start = self.failure.incoming_start().unwrap_or(end);
                        subflow.read = start.min(end);
                        continue;
                    }
                },
                _ => match subflow.received.find(subflow.read) {
                    Some((data, length)) => (data, length.min(rest)),
                    None if self.failure.discards() => {
                        subflow.read = end;
                        break;
                    }
                    None => {
                        // Payload without a mapping resets the subflow (RFC 8684, section 3.3.1).
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
            self.push_event(Event::Readable);
            self.check_peer_finished(now);
        }
    }
}
