//! Transmission: TCP segments with their MPTCP options.

use foundation::Instant;
use rand::Rng as _;

use super::subflow::Role;
use super::{Connection, Mode};
use crate::machine::Machine as _;
use crate::mptcp::segment::{Checksum, Mapping, MptcpOption, Outgoing, PathIndex, Segment, Signal, Token};
use crate::tcp::wire::MAX_OPTIONS;
use crate::tcp::{self, Flags};

impl Connection {
    #[inline]
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<(PathIndex, Outgoing)> {
        let shares = self.setup.shared_window() && self.mode != Mode::Plain;
        // An offer moves the right edge, so there is one only if a subflow may send.
        let mut window = None;
        loop {
            while self.dirty != 0 {
                let index = self.dirty.trailing_zeros() as usize;
                self.changed |= 1 << index;
                let Some(subflow) = self.subflows.get_mut(index) else {
                    self.dirty = 0;
                    break;
                };
                if shares {
                    let window = *window.get_or_insert_with(|| self.incoming.offer());
                    subflow.tcp.set_window(window);
                }
                if let Some(outgoing) = subflow.tcp.poll_transmit(now) {
                    let path = self.path_of(index, &outgoing);
                    return Some((path, self.with_option(now, index, &outgoing)));
                }
                let subflow = &mut self.subflows[index];
                subflow.wake = subflow
                    .tcp
                    .poll_timeout()
                    .unwrap_or(Instant::MAX)
                    .min(subflow.third_at);
                self.dirty &= !(1 << index);
            }
            if !self.schedule(now) && !self.request_fin(now) && !self.finish_subflows(now) {
                return None;
            }
        }
    }

    /// Returns the path of a segment: the subflow's, or a random one if it is scattered.
    #[inline]
    fn path_of(&mut self, index: usize, outgoing: &tcp::Outgoing) -> PathIndex {
        if let Some(scatter) = &self.scatter
            && index == 0
            && outgoing.segment.length > 0
        {
            let count = scatter.paths.len() as u64;
            return scatter.paths[(self.random.next_u64() % count) as usize];
        }
        self.subflows[index].path
    }

    /// Adds the MPTCP option to a segment.
    #[inline]
    fn with_option(&mut self, now: Instant, index: usize, outgoing: &tcp::Outgoing) -> Outgoing {
        let mut tcp = outgoing.segment;
        let mut offset = outgoing.offset;
        let mut retransmission = outgoing.retransmission;
        let mut signal = Signal::None;
        let option = if self.mode == Mode::Plain {
            if tcp.length > 0 && self.failure.has_outgoing() {
                let data = self.failure.outgoing_position(outgoing.offset);
                offset = data - 1;
                retransmission |= self.outgoing.mark_sent(data, data + u64::from(tcp.length));
            }
            self.option_after_failure(outgoing)
        } else if self.is_bare_in_time_wait(index, &tcp) {
            MptcpOption::None
        } else if tcp.has(Flags::RST) {
            self.reset_option(index)
        } else if tcp.has(Flags::SYN) {
            self.syn_option(index)
        } else if tcp.length > 0 {
            let (option, data) = self.mapped(index, outgoing);
            retransmission |= self.outgoing.mark_sent(data, data + u64::from(tcp.length));
            offset = data - 1;
            if self.subflows[index].priority_pending {
                // MP_PRIO does not fit with the mapping: it follows in an ACK.
                self.subflows[index].tcp.demand_acknowledgement();
            }
            option
        } else {
            let (option, chosen) = self.bare_option(index, &tcp);
            signal = chosen;
            option
        };
        // SACK blocks that do not fit are left to later segments (RFC 2018, section 3).
        if !tcp.options.sack.is_empty() {
            limit_blocks(
                &mut tcp.options,
                option.encoded_length() + signal.encoded_length(),
            );
        }
        let statistics = &mut self.statistics;
        if tcp.length > 0 {
            statistics.packets_sent += 1;
            statistics.bytes_sent += u64::from(tcp.length);
            if retransmission {
                statistics.retransmissions += 1;
                statistics.bytes_retransmitted += u64::from(tcp.length);
            }
            statistics.first_data_at.get_or_insert(now);
        } else if !tcp.has(Flags::SYN | Flags::RST | Flags::FIN) {
            statistics.acknowledgements_sent += 1;
        }
        Outgoing {
            segment: Segment {
                tcp,
                option,
                signal,
                subflow: self.subflows[index].id,
            },
            offset,
            retransmission,
        }
    }

    /// Returns the option of a reset: MP_FASTCLOSE for the whole connection, MP_FAIL or MP_TCPRST for the subflow (RFC
    /// 8684, sections 3.5 to 3.7).
    fn reset_option(&mut self, index: usize) -> MptcpOption {
        let subflow = &mut self.subflows[index];
        match (self.peer_key, subflow.failed.take(), subflow.reset) {
            (Some(receiver), ..) if self.fast_closing => MptcpOption::FastClose { receiver },
            (_, Some(data), _) => MptcpOption::Fail { data },
            (_, _, Some((transient, reason))) => MptcpOption::Reset { transient, reason },
            _ => MptcpOption::None,
        }
    }

    fn syn_option(&self, index: usize) -> MptcpOption {
        let subflow = &self.subflows[index];
        match subflow.role {
            Role::Initial => MptcpOption::Capable {
                sender: (!self.is_client).then_some(self.key),
                receiver: None,
                length: 0,
                checksums: self.checksums,
                checksum: Checksum::Absent,
            },
            Role::Joined { nonces, .. } if self.is_client => MptcpOption::JoinSyn {
                token: Token::Derived(self.peer_key.unwrap_or(0)),
                nonce: nonces.sender,
                address: subflow.address,
                backup: subflow.backup,
            },
            Role::Joined { nonces, .. } => MptcpOption::JoinAnswer {
                hmac: self.own_hmac(nonces),
                nonce: nonces.sender,
                address: subflow.address,
                backup: subflow.backup || self.setup.linux() && subflow.peer_backup,
            },
        }
    }

    /// Returns MP_CAPABLE with both keys, which the client sends until the peer confirms them (RFC 8684, section
    /// 3.1).
    const fn checksum(&self) -> Checksum {
        if self.checksums {
            Checksum::Correct
        } else {
            Checksum::Absent
        }
    }

    /// Returns the option of a segment of plain TCP: none, unless a checksum failed.
    fn option_after_failure(&mut self, outgoing: &tcp::Outgoing) -> MptcpOption {
        let (acknowledgement, widths) = (self.incoming.next(), self.widths());
        let segment = &outgoing.segment;
        if segment.has(Flags::SYN | Flags::RST) {
            return MptcpOption::None;
        }
        self.failure
            .take_option(outgoing.offset, segment.length, |mapping| MptcpOption::Dss {
                acknowledgement,
                mapping: Some(mapping),
                fin: false,
                widths,
                checksum: Checksum::Absent,
            })
    }

    const fn capable(&self, length: u32) -> MptcpOption {
        MptcpOption::Capable {
            sender: Some(self.key),
            receiver: self.peer_key,
            length,
            checksums: self.checksums,
            checksum: if length > 0 {
                self.checksum()
            } else {
                Checksum::Absent
            },
        }
    }

    /// Returns the option of a segment with payload, and the payload's data position.
    #[inline]
    fn mapped(&mut self, index: usize, outgoing: &tcp::Outgoing) -> (MptcpOption, u64) {
        let subflow = &self.subflows[index];
        let length = outgoing.segment.length;
        let (data, rest) = subflow
            .sent
            .find(outgoing.offset)
            .expect("what TCP sends was written, and is kept until it is acknowledged");
        debug_assert!(rest >= u64::from(length), "a segment has one mapping");
        let first = outgoing.offset == 0 && subflow.role == Role::Initial;
        // Once the peer has sent a DSS option, it knows both keys.
        if first && self.is_client && !self.confirmed && self.peer_key.is_some() {
            return (self.capable(length), data);
        }
        let fin = self.outgoing.finishing && data + u64::from(length) == self.outgoing.written;
        self.fin_sent |= fin;
        let option = MptcpOption::Dss {
            acknowledgement: self.incoming.next(),
            mapping: Some(Mapping {
                data,
                subflow: (outgoing.offset as u32).wrapping_add(1),
                length,
            }),
            fin,
            widths: self.widths(),
            checksum: self.checksum(),
        };
        (option, data)
    }

    /// Whether a segment belongs to a subflow in TIME-WAIT, whose ACKs have no option in Linux.
    fn is_bare_in_time_wait(&self, index: usize, segment: &tcp::Segment) -> bool {
        self.setup.linux()
            && self.subflows[index].tcp.state() == tcp::State::TimeWait
            && !segment.has(Flags::RST | Flags::FIN)
    }

    /// Returns the options of a segment without payload.
    fn bare_option(&mut self, index: usize, tcp: &tcp::Segment) -> (MptcpOption, Signal) {
        let fin = self.fin_due >> index & 1 == 1
            && self.outgoing.has_sent_all()
            && !self.outgoing.fin_acknowledged();
        let subflow = &self.subflows[index];
        match subflow.role {
            Role::Joined {
                nonces,
                confirmed: false,
                ..
            } => {
                let hmac = self.own_hmac(nonces);
                return (MptcpOption::JoinThird { hmac }, Signal::None);
            }
            Role::Initial if self.is_client && !self.confirmed && !(fin && self.keys_sent) => {
                self.keys_sent = true;
                return (self.capable(0), Signal::None);
            }
            _ => {}
        }
        if self.subflows[index].priority_pending {
            let subflow = &mut self.subflows[index];
            subflow.priority_pending = false;
            if fin {
                subflow.tcp.demand_acknowledgement();
            }
            let backup = subflow.backup;
            return (MptcpOption::None, Signal::Priority { backup });
        }
        if let fail @ MptcpOption::Fail { .. } = self.failure.take_due(0) {
            if fin {
                self.subflows[index].tcp.demand_acknowledgement();
            }
            return (fail, Signal::None);
        }
        self.fin_due &= !(1 << index);
        let option = MptcpOption::Dss {
            acknowledgement: self.incoming.next(),
            // Without payload the mapping covers the DATA_FIN only (RFC 8684, section 3.3.3).
            mapping: fin.then_some(Mapping {
                data: self.outgoing.written,
                subflow: 0,
                length: 0,
            }),
            fin,
            widths: self.widths(),
            checksum: if fin { self.checksum() } else { Checksum::Absent },
        };
        let mut options = tcp.options;
        options.sack = tcp::SackBlocks::default();
        self.next_signal(index, option, options.encoded_length())
    }

    /// Closes the subflows of a finished connection, once nothing else waits to leave. Returns whether a segment may leave.
    fn finish_subflows(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.finish_due) {
            return false;
        }
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            subflow.tcp.finish(now);
            self.dirty |= 1 << index;
        }
        true
    }

    /// Requests a segment that carries the DATA_FIN if all data was scheduled and no segment carried it. Returns
    /// whether a segment may leave.
    #[inline]
    fn request_fin(&mut self, now: Instant) -> bool {
        self.outgoing.has_sent_all() && !self.over && self.request_unsent_fin(now)
    }

    #[cold]
    fn request_unsent_fin(&mut self, now: Instant) -> bool {
        if self.mode == Mode::Plain {
            let subflow = &mut self.subflows[0];
            if !std::mem::replace(&mut self.fin_sent, true) {
                subflow.tcp.finish(now);
                self.dirty |= 1;
                return true;
            }
            return false;
        }
        if self.fin_sent || self.outgoing.fin_acknowledged() {
            return false;
        }
        // On the fastest usable subflow, or on all after a timeout, since a path may have failed silently. Without a
        // usable subflow the next completed handshake requests it retransmission.
        let usable = (0..self.subflows.len()).filter(|&index| self.subflows[index].usable);
        let targets: u64 = if self.backoff > 0 || self.setup.linux() {
            usable.fold(0, |all, index| all | 1 << index)
        } else {
            usable
                .min_by_key(|&index| self.subflows[index].sibling().rtt)
                .map_or(0, |index| 1 << index)
        };
        if targets == 0 {
            return false;
        }
        self.fin_sent = true;
        self.fin_due = targets;
        self.dirty |= targets;
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if targets >> index & 1 == 1 {
                subflow.tcp.demand_acknowledgement();
            }
        }
        self.arm_resend(now);
        true
    }
}

/// Removes the last SACK blocks that do not fit next to `others` bytes of MPTCP options.
#[cold]
fn limit_blocks(options: &mut tcp::Options, others: u32) {
    let room = MAX_OPTIONS.saturating_sub(others);
    while !options.sack.is_empty() && options.encoded_length() > room {
        let fewer = options.sack.len() - 1;
        options.sack = options.sack.as_slice()[..fewer].iter().copied().collect();
    }
}
