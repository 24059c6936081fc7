//! Segments that leave: TCP's, with the option that belongs on them.

use foundation::Instant;
use rand::Rng as _;

use super::subflow::Role;
use super::{Connection, Level};
use crate::machine::Machine as _;
use crate::mptcp::segment::{Mapping, Option, Outgoing, PathIndex, Segment};
use crate::tcp::wire::MAX_OPTIONS;
use crate::tcp::{self, Flags};

impl Connection {
    #[inline]
    pub(super) fn next_segment(&mut self, now: Instant) -> std::option::Option<(PathIndex, Outgoing)> {
        loop {
            while self.dirty != 0 {
                let place = self.dirty.trailing_zeros() as usize;
                let Some(subflow) = self.subflows.get_mut(place) else {
                    self.dirty = 0;
                    break;
                };
                if self.setup.shared_window() && self.level != Level::Plain {
                    subflow.tcp.give_window(self.incoming.offer());
                }
                if let Some(outgoing) = subflow.tcp.poll_transmit(now) {
                    let path = self.path_of(place, &outgoing);
                    return Some((path, self.dress(now, place, &outgoing)));
                }
                let subflow = &mut self.subflows[place];
                subflow.wake = subflow
                    .tcp
                    .poll_timeout()
                    .unwrap_or(Instant::MAX)
                    .min(subflow.third_at);
                self.dirty &= !(1 << place);
            }
            if !self.schedule(now) && !self.ask_for_fin(now) {
                return None;
            }
        }
    }

    /// The path of a segment: that of its subflow, unless the subflow is scattered.
    #[inline]
    fn path_of(&mut self, place: usize, outgoing: &tcp::Outgoing) -> PathIndex {
        if let Some(scatter) = &self.scatter
            && place == 0
            && outgoing.segment.length > 0
        {
            let count = scatter.paths.len() as u64;
            return scatter.paths[(self.random.next_u64() % count) as usize];
        }
        self.subflows[place].path
    }

    /// The option that belongs on a segment.
    #[inline]
    fn dress(&mut self, now: Instant, place: usize, outgoing: &tcp::Outgoing) -> Outgoing {
        let mut tcp = outgoing.segment;
        let mut offset = outgoing.offset;
        let mut again = outgoing.retransmission;
        let option = if self.level == Level::Plain {
            Option::None
        } else if tcp.has(Flags::RST) {
            self.reset_option(place)
        } else if tcp.has(Flags::SYN) {
            self.syn_option(place)
        } else if tcp.length > 0 {
            let (option, data) = self.mapped(place, outgoing);
            again |= self.outgoing.leaves(data, data + u64::from(tcp.length));
            offset = data - 1;
            if self.subflows[place].tells_priority {
                // It has no room beside the mapping, and leaves behind.
                self.subflows[place].tcp.demand_acknowledgement();
            }
            option
        } else {
            self.bare_option(place)
        };
        // What does not fit beside it is told by the next segment (RFC 2018, section 3).
        let room = MAX_OPTIONS.saturating_sub(option.encoded_length());
        while tcp.options.encoded_length() > room && !tcp.options.sack.is_empty() {
            let fewer = tcp.options.sack.len() - 1;
            tcp.options.sack = tcp.options.sack.as_slice()[..fewer].iter().copied().collect();
        }
        let statistics = &mut self.statistics;
        if tcp.length > 0 {
            statistics.packets_sent += 1;
            statistics.bytes_sent += u64::from(tcp.length);
            if again {
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
                subflow: self.subflows[place].id,
            },
            offset,
            retransmission: again,
        }
    }

    /// A reset is of the whole connection, or of the subflow alone, for a reason (RFC 8684, sections 3.5 and 3.6).
    fn reset_option(&self, place: usize) -> Option {
        match (self.peer_key, self.subflows[place].reset) {
            (Some(receiver), _) if self.fast_closing => Option::FastClose { receiver },
            (_, Some((transient, reason))) => Option::Reset { transient, reason },
            _ => Option::None,
        }
    }

    fn syn_option(&self, place: usize) -> Option {
        let subflow = &self.subflows[place];
        match subflow.role {
            Role::Initial => Option::Capable {
                sender: (!self.opener).then_some(self.key),
                receiver: None,
                length: 0,
            },
            Role::Joined { nonces, .. } if self.opener => Option::JoinSyn {
                token: crate::mptcp::segment::Token::Of(self.peer_key.unwrap_or(0)),
                nonce: nonces.0,
                address: subflow.path.0,
                backup: subflow.backup,
            },
            Role::Joined { nonces, .. } => Option::JoinAnswer {
                proof: self.own_proof(nonces),
                nonce: nonces.0,
                address: subflow.path.0,
                backup: subflow.backup,
            },
        }
    }

    /// Both keys, as the opener tells them until it knows that the peer has them (RFC 8684, section 3.1).
    const fn keys(&self, length: u32) -> Option {
        Option::Capable {
            sender: Some(self.key),
            receiver: self.peer_key,
            length,
        }
    }

    /// The option of a segment with payload, and the position of that in the data.
    #[inline]
    fn mapped(&mut self, place: usize, outgoing: &tcp::Outgoing) -> (Option, u64) {
        let subflow = &self.subflows[place];
        let length = outgoing.segment.length;
        let (data, rest) = subflow
            .sent
            .find(outgoing.offset)
            .expect("what TCP sends was written, and is kept until it is acknowledged");
        debug_assert!(rest >= u64::from(length), "a segment has one mapping");
        let first = outgoing.offset == 0 && subflow.role == Role::Initial;
        if first && self.opener && self.peer_key.is_some() {
            return (self.keys(length), data);
        }
        let fin = self.outgoing.finishing && data + u64::from(length) == self.outgoing.written;
        self.fin_told |= fin;
        let option = Option::Dss {
            acknowledgement: self.incoming.next(),
            mapping: Some(Mapping {
                data,
                subflow: (outgoing.offset as u32).wrapping_add(1),
                length,
            }),
            fin,
        };
        (option, data)
    }

    fn bare_option(&mut self, place: usize) -> Option {
        let fin = self.fin_due >> place & 1 == 1
            && self.outgoing.has_sent_all()
            && !self.outgoing.fin_acknowledged();
        let subflow = &self.subflows[place];
        match subflow.role {
            Role::Joined {
                nonces,
                confirmed: false,
                ..
            } => {
                return Option::JoinThird {
                    proof: self.own_proof(nonces),
                };
            }
            Role::Initial if self.opener && !self.confirmed && !(fin && self.keys_told) => {
                self.keys_told = true;
                return self.keys(0);
            }
            _ => {}
        }
        if self.subflows[place].tells_priority {
            let subflow = &mut self.subflows[place];
            subflow.tells_priority = false;
            if fin {
                subflow.tcp.demand_acknowledgement();
            }
            return Option::Priority {
                backup: subflow.backup,
            };
        }
        self.fin_due &= !(1 << place);
        Option::Dss {
            acknowledgement: self.incoming.next(),
            // RFC 8684, section 3.3.3: without payload the mapping is of the DATA_FIN alone.
            mapping: fin.then_some(Mapping {
                data: self.outgoing.written,
                subflow: 0,
                length: 0,
            }),
            fin,
        }
    }

    /// All data is with subflows and no segment has said that it ends: one without payload will.
    fn ask_for_fin(&mut self, now: Instant) -> bool {
        if !self.outgoing.has_sent_all() || self.over {
            return false;
        }
        if self.level == Level::Plain {
            let subflow = &mut self.subflows[0];
            if !std::mem::replace(&mut self.fin_told, true) {
                subflow.tcp.finish(now);
                self.dirty |= 1;
                return true;
            }
            return false;
        }
        if self.fin_told || self.outgoing.fin_acknowledged() {
            return false;
        }
        // On the fastest of those that can tell, and where no answer came on all: a path may have died in silence. Where
        // none can tell yet, the next handshake asks again.
        let usable = (0..self.subflows.len()).filter(|&place| self.subflows[place].usable);
        let told: u64 = if self.backoff > 0 {
            usable.fold(0, |all, place| all | 1 << place)
        } else {
            usable
                .min_by_key(|&place| self.subflows[place].sibling().rtt)
                .map_or(0, |place| 1 << place)
        };
        if told == 0 {
            return false;
        }
        self.fin_told = true;
        self.fin_due = told;
        self.dirty |= told;
        for (place, subflow) in self.subflows.iter_mut().enumerate() {
            if told >> place & 1 == 1 {
                subflow.tcp.demand_acknowledgement();
            }
        }
        self.arm_resend(now);
        true
    }
}
