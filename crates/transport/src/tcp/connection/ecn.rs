//! Explicit congestion notification of a connection: negotiation, echo, and header bits (RFC 3168, RFC 8257 section 3.2,
//! RFC 9768).

use foundation::Instant;

use super::Connection;
use crate::tcp::accurate_ecn::{
    AccurateEcn, Feedback, REQUEST, accepted, option_room, reflection, requested,
};
use crate::tcp::ecn_mode::{EcnMode, EcnOption};
use crate::tcp::options::{SACK_BLOCK_LENGTH, SackBlocks, timestamps_room};
use crate::tcp::parameters::ReservedOptions;
use crate::tcp::segment::{Ecn, Flags, Segment};
use crate::tcp::sender::MarkReport;
use crate::tcp::state::State;
use crate::tcp::wire::MAX_OPTIONS;

/// SYNs and SYN-ACKs that ask for, or accept, accurate feedback: the later ones assume that the path drops them (RFC 9768,
/// sections 3.1.4.1 and 3.2.3.2.2).
const ACCURATE_ATTEMPTS: u32 = 2;
/// Code point of SYNs and SYN-ACKs (RFC 3168, section 6.1.1).
const HANDSHAKE_CODE: Ecn = Ecn::NotEct;

impl Connection {
    /// Negotiates the feedback with the peer's SYN or SYN-ACK.
    pub(super) fn negotiate_ecn(&mut self, now: Instant, syn: &Segment) {
        let ace = syn.flags.ace();
        let is_syn_ack = syn.has(Flags::ACK);
        let feedback = if is_syn_ack {
            match self.parameters.ecn_request {
                EcnMode::Off => Feedback::None,
                EcnMode::Accurate => accepted(ace),
                // RFC 3168, section 6.1.1: ECE alone accepts.
                _ if syn.has(Flags::ECE) && !syn.has(Flags::CWR) => Feedback::Classic,
                _ => Feedback::None,
            }
        } else {
            match self.parameters.ecn_accept {
                EcnMode::Off => Feedback::None,
                EcnMode::Accurate => requested(ace),
                _ if syn.flags.contains(Flags::ECE | Flags::CWR) => Feedback::Classic,
                _ => Feedback::None,
            }
        };
        self.ecn = feedback == Feedback::Classic;
        self.accurate = (feedback == Feedback::Accurate).then(|| {
            let mut accurate = AccurateEcn::after_syn(now, syn, self.parameters.ect);
            if is_syn_ack {
                accurate.on_syn_ack(syn, HANDSHAKE_CODE, self.parameters.ecn_fallback);
            }
            Box::new(accurate)
        });
    }

    /// Handles the repetition of the peer's SYN. If it no longer asks for ECN, the path drops such packets, so that no
    /// ECN-capable ones may follow (RFC 9768, section 3.1.5).
    pub(super) fn on_repeated_syn_ecn(&mut self, syn: &Segment) {
        if let Some(accurate) = &mut self.accurate {
            accurate.syn = syn.ecn;
            if syn.flags.ace() == 0 {
                accurate.code = Ecn::NotEct;
            }
        }
    }

    /// Handles a repeated SYN-ACK: the answer reflects its code point (RFC 9768, section 3.2.2.1).
    pub(super) fn on_repeated_syn_ack_ecn(&mut self, syn_ack: &Segment) {
        if let Some(accurate) = self.accurate.as_mut().filter(|_| syn_ack.has(Flags::ACK)) {
            accurate.reflection = Some(reflection(syn_ack.ecn));
        }
    }

    /// Handles the segment that completes the handshake of a server.
    pub(super) fn on_final_ack_ecn(&mut self, segment: &Segment) {
        let fallback = self.parameters.ecn_fallback;
        if let Some(accurate) = &mut self.accurate {
            if let Some(option) = segment.options.sack.counters() {
                accurate.see_option(&option);
            }
            accurate.on_final_ack(segment, HANDSHAKE_CODE, fallback);
        }
    }

    /// Returns the flags of a SYN or SYN-ACK, the `number`th of this connection, from 1.
    pub(super) fn syn_ecn_flags(&self, is_syn_ack: bool, number: u32) -> Flags {
        let tries = number <= ACCURATE_ATTEMPTS;
        if is_syn_ack {
            return match &self.accurate {
                Some(accurate) if tries => Flags::from_ace(reflection(accurate.syn)),
                _ => Flags::ECE.when(self.ecn),
            };
        }
        match self.parameters.ecn_request {
            EcnMode::Off => Flags::NONE,
            EcnMode::Accurate => Flags::from_ace(REQUEST).when(tries),
            EcnMode::Classic | EcnMode::Dctcp => Flags::ECE | Flags::CWR,
        }
    }

    /// Adds the counters of received bytes to the first SYN-ACK (RFC 9768, sections 3.2.3.2.1 and 3.2.3.2.2), unless the caller adds
    /// options of its own, as multipath TCP does.
    pub(super) fn add_syn_ack_counters(&mut self, now: Instant, segment: &mut Segment, number: u32) {
        if let Some(accurate) = &mut self.accurate
            && number == 1
            && self.parameters.reserved == ReservedOptions::default()
            && self.parameters.ecn_option != EcnOption::Off
            && segment.options.encoded_length() + option_room(3, true) <= MAX_OPTIONS
        {
            let counters = accurate.received.report_bytes(now, 3, false);
            segment.options.sack.set_counters(counters);
        }
    }

    /// Keeps room for the AccECN option in each segment, if it will have one.
    pub(super) fn reserve_counters(&mut self) {
        let sends = self.sends_counters();
        if let Some(accurate) = &mut self.accurate {
            accurate.reserve = if sends { option_room(3, false) } else { 0 };
        }
    }

    /// Returns the bytes of the options of each segment, without those that the caller adds: timestamps with padding, and the room
    /// for the AccECN option.
    pub(super) fn segment_options(&self) -> u32 {
        let counters = self.accurate.as_deref().map_or(0, |accurate| accurate.reserve);
        counters + timestamps_room(self.timestamps)
    }

    fn sends_counters(&self) -> bool {
        let may_send = |accurate: &AccurateEcn| accurate.received.peer_sends && !accurate.received.is_blocked;
        self.parameters.ecn_option != EcnOption::Off && self.accurate.as_deref().is_some_and(may_send)
    }

    /// Returns the flags and the code point of a segment after the handshake.
    #[inline]
    pub(super) fn header_marks(&mut self) -> (Flags, Ecn) {
        if self.accurate.is_some() {
            return self.accurate_marks();
        }
        (Flags::ECE.when(self.echo_congestion), Ecn::NotEct)
    }

    #[cold]
    fn accurate_marks(&mut self) -> (Flags, Ecn) {
        let Some(accurate) = &mut self.accurate else {
            return (Flags::NONE, Ecn::NotEct);
        };
        // In TIME-WAIT Linux keeps no counter.
        let is_discarded = self.state == State::TimeWait && self.parameters.is_linux();
        let ace = Flags::from_ace(accurate.next_ace()).when(!is_discarded);
        (ace, accurate.code)
    }

    /// Returns how many counters a segment with `length` bytes of payload carries, if any, and how many of `blocks` SACK
    /// blocks. The other options have `others` bytes.
    pub(super) fn fit_counters(
        &self,
        now: Instant,
        others: u32,
        length: u32,
        blocks: usize,
    ) -> (Option<usize>, usize) {
        let none = (None, blocks);
        let Some(accurate) = self.accurate.as_deref().filter(|_| self.sends_counters()) else {
            return none;
        };
        let rtt = self.sender.rtt().smoothed();
        if self.parameters.ecn_option == EcnOption::Minimum && !accurate.received.is_option_due(now, rtt) {
            return none;
        }
        let sack = if blocks > 0 {
            4 + SACK_BLOCK_LENGTH * blocks as u32
        } else {
            0
        };
        let reserved = self.parameters.reserved;
        let others = others + if length > 0 { reserved.data } else { reserved.bare };
        let mut room = MAX_OPTIONS.saturating_sub(others + sack);
        if length > 0 {
            room = room.min((self.sender.segment() + accurate.reserve).saturating_sub(length + sack));
        }
        match accurate.received.fit(room, blocks) {
            Some((fields, blocks)) => (Some(fields), blocks),
            None => none,
        }
    }

    /// Adds the first `fields` counters to a segment. `has_blocks`: it has SACK blocks.
    pub(super) fn add_counters(
        &mut self,
        now: Instant,
        sack: &mut SackBlocks,
        fields: usize,
        has_blocks: bool,
    ) {
        let reports_duplicate = has_blocks && self.receiver.reports_duplicate();
        if let Some(accurate) = &mut self.accurate {
            let counters = accurate.received.report_bytes(now, fields, reports_duplicate);
            sack.set_counters(counters);
        }
    }

    /// Counts the mark of a segment that arrived.
    #[inline]
    pub(super) fn count_mark(&mut self, segment: &Segment) {
        if self.accurate.is_some() {
            self.count_accurate_mark(segment);
        }
    }

    #[cold]
    fn count_accurate_mark(&mut self, segment: &Segment) {
        let Some(accurate) = &mut self.accurate else {
            return;
        };
        let is_urgent = accurate.received.on_segment(segment.ecn, segment.length);
        if is_urgent && segment.length > 0 {
            self.receiver.acks.demand();
        }
    }

    /// Handles the duplicate of data from position `start` on.
    pub(super) fn on_duplicate_ecn(&mut self, start: u64) {
        if let Some(accurate) = &mut self.accurate {
            accurate.received.on_duplicate(start);
        }
    }

    /// Returns the peer's report of marks in a segment.
    #[inline]
    pub(super) fn mark_report(&mut self, segment: &Segment) -> Option<MarkReport> {
        self.accurate.as_ref()?;
        self.accurate_report(segment)
    }

    #[cold]
    fn accurate_report(&mut self, segment: &Segment) -> Option<MarkReport> {
        let accurate = self.accurate.as_mut()?;
        let counters = segment.options.sack.counters();
        if let Some(counters) = &counters {
            accurate.see_option(counters);
        }
        let is_newer = segment.options.timestamps.is_some_and(|timestamps| {
            self.timestamps && (timestamps.value.wrapping_sub(self.recent_timestamp) as i32) > 0
        });
        Some(MarkReport {
            ace: segment.flags.ace(),
            counters,
            is_newer,
            acknowledges_syn: std::mem::take(&mut accurate.is_final_ack) || segment.has(Flags::SYN),
        })
    }

    /// Echoes the mark of a segment, or its absence.
    pub(super) fn on_congestion_mark(&mut self, now: Instant, segment: &Segment) {
        let is_marked = segment.ecn == Ecn::Ce;
        if self.parameters.exact_echo {
            if is_marked != self.echo_congestion {
                self.change_echo(now, is_marked);
            }
            return;
        }
        // RFC 3168, section 6.1.3: echo congestion until the peer reports a reduced window.
        if segment.has(Flags::CWR) {
            self.echo_congestion = false;
        }
        if is_marked {
            if !self.echo_congestion {
                self.receiver.acks.demand_undelayed();
            }
            self.echo_congestion = true;
        }
    }

    /// Changes the state DCTCP.CE (RFC 8257, section 3.2): a delayed ACK leaves with the previous state before the segment
    /// that changed it is acknowledged at once, so that each ACK covers segments of one state (`dctcp_ece_ack_update` of
    /// Linux's `net/ipv4/tcp_dctcp.h`).
    fn change_echo(&mut self, now: Instant, is_marked: bool) {
        if self.receiver.acks.is_pending() {
            let earlier = self.acknowledgement(now, self.sender.next());
            self.urgent = Some(Box::new(earlier.segment));
        }
        self.echo_congestion = is_marked;
        self.receiver.acks.demand();
    }
}
