//! The data receiver: counts marks and reports them (RFC 9768, sections 3.2.2 and 3.2.3).

use foundation::{Duration, Instant};

use super::byte_counters::{ByteCounters, Field};
use crate::tcp::options::SACK_BLOCK_LENGTH;
use crate::tcp::segment::Ecn;

/// First value of the ACE field (RFC 9768, section 3.2.1): its first bit is set, so that a cleared field is noticed.
pub(super) const INITIAL_ACE: u32 = 5;
/// The ACE field is modulo 8.
pub(super) const ACE_MASK: u32 = 7;
/// CE marks after which an ACK leaves at once (section 3.2.2.5.1: at most 7; the value of Linux).
const URGENT_MARKS: u32 = 6;
/// ACKs with an option after a change of the code point (Linux).
const REPORTS_OF_CHANGE: u8 = 2;
/// Bytes of a counter after which the option is sent, whatever the rules save (section 3.2.3.3).
const REPORTED_BYTES: u32 = 1 << 22;
/// Options per round trip that the rules send at least (the value of Linux; section 3.2.3.3 leaves it to the implementation).
const REPORTS_PER_ROUND_TRIP: u64 = 3;

/// Marks of the segments that arrived, and which of them were reported.
#[derive(Clone, Debug)]
pub struct Received {
    /// Segments marked CE, r.cep without its initial value.
    pub ce_packets: u32,
    /// Payload bytes by code point, without the initial values: r.e1b, r.ceb, r.e0b.
    bytes: [u32; 3],
    /// CE marks since the last segment to the peer.
    unreported: u32,
    last: Ecn,
    /// Number of options that are due.
    demand: u8,
    /// Fields that the next option needs to report what changed.
    needed: u8,
    /// The last option left with the report of a duplicate.
    sent_with_duplicate: bool,
    /// First position of the last duplicate.
    duplicate: Option<u64>,
    sent_at: Instant,
    /// The peer sends the option, so that the path has let it pass.
    pub peer_sends: bool,
    /// The path or the peer drops segments with the option.
    pub is_blocked: bool,
}

impl Received {
    /// Returns the state after a SYN or SYN-ACK with code point `syn`.
    pub const fn after_syn(now: Instant, syn: Ecn) -> Self {
        Self {
            ce_packets: 0,
            bytes: [0; 3],
            unreported: 0,
            last: syn,
            demand: 0,
            needed: 0,
            sent_with_duplicate: false,
            duplicate: None,
            sent_at: now,
            peer_sends: false,
            is_blocked: false,
        }
    }

    /// Counts a segment. Returns whether an ACK must leave at once: the code point changed, or many marks are unreported
    /// (section 3.2.2.5.1).
    pub fn on_segment(&mut self, ecn: Ecn, length: u32) -> bool {
        let is_marked = ecn == Ecn::Ce;
        if is_marked {
            self.count_mark();
        }
        if let Some(field) = Field::of(ecn).filter(|_| length > 0) {
            let counter = &mut self.bytes[field as usize];
            let before = *counter;
            *counter = counter.wrapping_add(length);
            self.needed = self.needed.max(field as u8 + 1);
            if before / REPORTED_BYTES != *counter / REPORTED_BYTES {
                self.demand = self.demand.max(1);
            }
        }
        let changed = ecn != self.last;
        self.last = ecn;
        if changed || is_marked {
            self.demand = REPORTS_OF_CHANGE;
        }
        changed || self.unreported >= URGENT_MARKS
    }

    /// Counts the mark of a segment without payload.
    pub const fn count_mark(&mut self) {
        self.ce_packets = self.ce_packets.wrapping_add(1);
        self.unreported += 1;
    }

    /// Demands that the next segments carry the option.
    pub const fn demand_options(&mut self) {
        self.demand = REPORTS_OF_CHANGE;
    }

    /// Returns the ACE field of a segment that leaves now.
    pub const fn report_marks(&mut self) -> u8 {
        self.unreported = 0;
        (self.ce_packets.wrapping_add(INITIAL_ACE) & ACE_MASK) as u8
    }

    /// Whether something changed that only an option can report, or none was sent for a third of a round trip.
    pub fn is_option_due(&self, now: Instant, round_trip: Duration) -> bool {
        self.demand > 0 || (now - self.sent_at) * REPORTS_PER_ROUND_TRIP >= round_trip
    }

    /// Returns how many fields and how many of `blocks` SACK blocks fit into `room` bytes of options, which does not
    /// include those blocks; `None` if the option does not fit. The third and the fourth block make way for an option
    /// that has something to report (`tcp_options_fit_accecn` of Linux's `net/ipv4/tcp_output.c`).
    pub fn fit(&self, room: u32, blocks: usize) -> Option<(usize, usize)> {
        let needed = usize::from(self.needed);
        let fitting = |room: u32| {
            (needed..=3)
                .rev()
                .find(|&fields| room >= option_room(fields, blocks > 0))
        };
        let least = if needed == 0 { blocks } else { blocks.min(2) };
        (least..=blocks).rev().find_map(|kept| {
            let removed = (blocks - kept) as u32;
            fitting(room + removed * SACK_BLOCK_LENGTH).map(|fields| (fields, kept))
        })
    }

    /// Returns the first `fields` counters for the SYN-ACK or a later segment that leaves now. `reports_duplicate`: it
    /// also carries a DSACK block.
    pub fn report_bytes(&mut self, now: Instant, fields: usize, reports_duplicate: bool) -> ByteCounters {
        self.demand = self.demand.saturating_sub(1);
        self.needed = 0;
        self.sent_at = now;
        self.sent_with_duplicate = reports_duplicate;
        let value = |field: Field| self.bytes[field as usize].wrapping_add(field.initial());
        ByteCounters::new(false, &Field::ALL.map(value)[..fields])
    }

    /// Handles duplicate data from position `start` on. If it arrives again although an option left with its report, the
    /// peer has not received that ACK, and options stop (section 3.2.3.2.2).
    pub fn on_duplicate(&mut self, start: u64) {
        self.is_blocked |= self.duplicate == Some(start) && self.sent_with_duplicate;
        self.duplicate = Some(start);
    }
}

/// Returns the bytes that an option takes. Two of the bytes that align SACK blocks to four can be part of it.
pub fn option_room(fields: usize, has_blocks: bool) -> u32 {
    let length = 2 + 3 * fields as u32;
    let alignment = if has_blocks { 2 } else { 0 };
    if length % 4 > alignment {
        length.next_multiple_of(4)
    } else {
        length / 4 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(segments: &[(Ecn, u32)]) -> Received {
        let mut received = Received::after_syn(Instant::ZERO, Ecn::NotEct);
        for &(ecn, length) in segments {
            received.on_segment(ecn, length);
        }
        received
    }

    #[test]
    fn marks_of_all_segments_and_bytes_of_payload_are_counted() {
        let mut received = after(&[(Ecn::Ect0, 1000), (Ecn::Ce, 400), (Ecn::Ce, 0), (Ecn::Ect1, 7)]);
        assert_eq!(received.report_marks(), 7);
        let option = received.report_bytes(Instant::ZERO, 3, false);
        assert_eq!(option.values(), [8, 400, 1001], "initial values 1, 0, 1");
    }

    #[test]
    fn ace_wraps_after_three_marks() {
        let mut received = after(&[(Ecn::Ce, 1); 3]);
        assert_eq!(received.report_marks(), 0);
        assert_eq!(after(&[(Ecn::Ce, 1); 11]).report_marks(), 0);
    }

    #[test]
    fn changes_and_many_marks_need_an_ack_at_once() {
        let mut received = after(&[]);
        assert!(received.on_segment(Ecn::Ect0, 1));
        assert!(!received.on_segment(Ecn::Ect0, 1));
        assert!(received.on_segment(Ecn::Ce, 1));
        let urgent: Vec<bool> = (0..6).map(|_| received.on_segment(Ecn::Ce, 1)).collect();
        assert_eq!(urgent, [false, false, false, false, true, true]);
        received.report_marks();
        assert!(!received.on_segment(Ecn::Ce, 1));
    }

    /// 40 bytes without timestamps: three blocks (28) leave 12. With timestamps (12) they leave none.
    #[test]
    fn blocks_make_way_for_an_option_with_something_to_report() {
        assert_eq!(after(&[]).fit(12, 3), Some((3, 3)));
        assert_eq!(after(&[(Ecn::Ect1, 1)]).fit(8, 2), Some((2, 2)));
        assert_eq!(after(&[(Ecn::Ce, 1)]).fit(0, 3), Some((2, 2)));
        assert_eq!(after(&[(Ecn::Ect0, 1)]).fit(4, 4), Some((3, 3)));
        assert_eq!(after(&[(Ecn::Ect0, 1)]).fit(0, 3), None);
        assert_eq!(
            after(&[]).fit(0, 3),
            Some((0, 3)),
            "two bytes of the blocks' alignment"
        );
        assert_eq!(after(&[]).fit(0, 0), None);
    }

    #[test]
    fn options_stop_if_the_report_of_a_duplicate_was_lost() {
        let mut received = after(&[(Ecn::Ect0, 1)]);
        received.on_duplicate(1);
        received.on_duplicate(1);
        assert!(!received.is_blocked, "no option was sent");
        received.report_bytes(Instant::ZERO, 3, true);
        received.on_duplicate(7);
        assert!(!received.is_blocked, "other data");
        received.on_duplicate(7);
        assert!(received.is_blocked);
    }
}
