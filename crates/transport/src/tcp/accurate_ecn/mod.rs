//! Accurate ECN feedback (AccECN, RFC 9768): the peer reports how many segments and bytes were marked, by a counter in
//! the header's flags and by an option.
//!
//! The flags AE, CWR and ECE form the ACE field. In a SYN it asks for this feedback, in the two segments that answer it
//! reflects the code point of the segment before, and later it counts the segments that arrived with CE, modulo 8.

mod byte_counters;
mod codes;
mod delivered;
mod received;

use foundation::Instant;

pub use byte_counters::{ByteCounters, Field};
pub use codes::{Feedback, REQUEST, accepted, reflection, requested};
pub use delivered::{Delivered, Delivery};
pub use received::{Received, option_room};

use super::info::AccurateEcnInfo;
use super::segment::{Ecn, Segment};

/// State of a connection with accurate feedback.
#[derive(Clone, Debug)]
pub struct AccurateEcn {
    /// Code point of this end's segments.
    pub code: Ecn,
    /// Code point of the peer's last SYN or SYN-ACK.
    pub syn: Ecn,
    /// ACE of the segment that completes the handshake, until it leaves.
    pub reflection: Option<u8>,
    /// The segment that arrives completes the handshake: its ACE field is no counter.
    pub is_final_ack: bool,
    /// Bytes of each segment that are kept for the option.
    pub reserve: u32,
    /// What this end reports to the peer.
    pub received: Received,
    /// What the peer reports to this end.
    pub delivered: Delivered,
}

impl AccurateEcn {
    /// Returns the state of a server that got `syn`, or of a client that got the SYN-ACK `syn`. `code`: ECT(0) or ECT(1).
    pub fn after_syn(now: Instant, syn: &Segment, code: Ecn) -> Self {
        let mut accurate = Self {
            code,
            syn: syn.ecn,
            reflection: None,
            is_final_ack: false,
            reserve: 0,
            received: Received::after_syn(now, syn.ecn),
            delivered: Delivered::default(),
        };
        if let Some(option) = syn.options.sack.counters() {
            accurate.see_option(&option);
        }
        accurate
    }

    /// Handles the SYN-ACK, which reflects the code point of the SYN. `checks`: after a reflection that no correct path
    /// explains, no ECN-capable segments leave. The marks of both directions still count (section 3.2.2.3).
    pub fn on_syn_ack(&mut self, syn_ack: &Segment, sent: Ecn, checks: bool) {
        self.reflection = Some(reflection(syn_ack.ecn));
        self.check_reflection(syn_ack.flags.ace(), sent, checks);
        if syn_ack.ecn == Ecn::Ce {
            self.received.count_mark();
        }
    }

    /// Handles the segment that completes the handshake of a server, which reflects the code point of the SYN-ACK
    /// (section 3.2.2.1).
    pub fn on_final_ack(&mut self, segment: &Segment, sent: Ecn, checks: bool) {
        self.is_final_ack = true;
        let ace = segment.flags.ace();
        if ace == 0 {
            // Section 3.2.2.1, note 1 of table 4, and section 3.2.2.4 for a segment with data: the field was cleared.
            self.distrust();
            return;
        }
        // Later data segments may arrive first; they have a counter.
        if segment.length == 0 && segment.options.sack.is_empty() {
            let reported = self.check_reflection(ace, sent, checks);
            if reported == Some(Ecn::Ce) {
                self.delivered.ce_packets = self.delivered.ce_packets.max(1);
            }
        }
    }

    /// Returns the ACE field of a segment that leaves now.
    pub const fn next_ace(&mut self) -> u8 {
        match self.reflection.take() {
            Some(ace) => ace,
            None => self.received.report_marks(),
        }
    }

    /// Notes that the peer sends the option, and checks it.
    pub fn see_option(&mut self, option: &ByteCounters) {
        self.delivered.check_first_option(option);
        if !self.received.peer_sends {
            self.received.peer_sends = true;
            self.received.demand_options();
        }
    }

    /// Returns what the peer has reported.
    pub const fn info(&self) -> AccurateEcnInfo {
        let delivered = &self.delivered;
        AccurateEcnInfo {
            ce_packets: delivered.ce_packets,
            ce_bytes: delivered.bytes[Field::Ce as usize],
            ect0_bytes: delivered.bytes[Field::Ect0 as usize],
            ect1_bytes: delivered.bytes[Field::Ect1 as usize],
        }
    }

    /// Compares the code point that the peer reports with the one that was `sent`, and returns it.
    ///
    /// After a change that no correct path makes, segments are not ECN-capable any more. Marks are still read: a mangled
    /// segment can be marked by a queue behind (section 3.2.2.3).
    fn check_reflection(&mut self, ace: u8, sent: Ecn, checks: bool) -> Option<Ecn> {
        let reported = codes::reflected(ace)?;
        if checks && !codes::is_valid_change(sent, reported) {
            self.code = Ecn::NotEct;
        }
        Some(reported)
    }

    /// Ignores the peer's reports of marks from now on, and sends no more ECN-capable segments (section 3.2.2.4).
    const fn distrust(&mut self) {
        self.delivered.is_unreadable = true;
        self.code = Ecn::NotEct;
    }
}
