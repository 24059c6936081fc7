//! The data sender: reads the peer's reports of marks (RFC 9768, sections 3.2.2.5 and 3.2.3.2, appendix A).

use super::byte_counters::{ByteCounters, Field, MODULUS};
use super::received::{ACE_MASK, INITIAL_ACE};
use crate::tcp::sender::MarkReport;

/// Weight of the last ACK in the average number of segments per ACK: 2^-6 (Linux).
const AVERAGE_SHIFT: u32 = 6;
/// Average segments per ACK above which ACKs seem to be thinned out, so that a large one does not suggest lost ones
/// (Linux).
const THINNED: u32 = 4;
/// Sent bytes after which the first option comes too late, since counters may have wrapped.
const LATE_OPTION: u64 = (MODULUS as u64 >> 1) - 1;

/// What the peer's options have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub enum Options {
    /// None has arrived.
    #[default]
    Unseen,
    /// Only empty ones.
    Empty,
    /// Counters.
    Counters,
    /// A counter with an impossible initial value: something on the path rewrites options.
    Mangled,
}

/// Marks that an ACK reports for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewMarks {
    /// Segments marked CE.
    pub packets: u64,
    /// Payload bytes of such segments.
    pub bytes: u64,
}

/// The delivery that an ACK reports.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Newly delivered segments and bytes.
    pub packets: u64,
    pub bytes: u64,
    /// Payload of a full segment.
    pub segment: u32,
    /// Whether `packets` is exact: SACK is in use, or nothing is missing.
    pub is_exact: bool,
    /// Whether the ACK acknowledges anything new, a FIN included.
    pub progresses: bool,
    /// Bytes sent on the connection.
    pub sent: u64,
}

/// The peer's counters as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Delivered {
    /// Segments of this end that the peer received with CE: s.cep without its initial value.
    pub ce_packets: u32,
    /// Their bytes by code point, without the initial values: s.e1b, s.ceb, s.e0b.
    pub bytes: [u32; 3],
    /// The code point to which bytes belong that no option reports.
    assumed: Option<Field>,
    pub options: Options,
    /// The ACE field is unusable, because it was cleared (section 3.2.2.4).
    pub is_unreadable: bool,
    /// Segments per ACK, times 2^[`AVERAGE_SHIFT`].
    per_ack: u32,
}

impl Delivered {
    /// Looks at the first option, which shows whether the path rewrites options (section 3.2.3.2.4).
    pub fn check_first_option(&mut self, option: &ByteCounters) {
        if self.options >= Options::Counters {
            return;
        }
        let values = option.values();
        let is_cleared = |at: usize| values.get(at) == Some(&0);
        self.options = match values.len() {
            0 => Options::Empty,
            _ if is_cleared(0) || is_cleared(2) => Options::Mangled,
            _ => Options::Counters,
        };
    }

    /// Reads the report of an ACK.
    pub fn on_ack(&mut self, report: &MarkReport, delivery: &Delivery) -> NewMarks {
        if !delivery.progresses && !report.is_newer {
            // An earlier ACK that arrives late, or one that cannot be distinguished from it.
            return NewMarks::default();
        }
        let before = self.bytes[Field::Ce as usize];
        let bytes_known = self.read_option(report.counters.as_ref(), delivery);
        let marked_bytes = u64::from(self.bytes[Field::Ce as usize].wrapping_sub(before));
        self.average(delivery.packets);
        if report.acknowledges_syn || self.is_unreadable {
            return NewMarks::default();
        }
        let packets = self.read_ace(report.ace, delivery, bytes_known.then_some(marked_bytes));
        self.ce_packets = self.ce_packets.wrapping_add(packets as u32);
        let bytes = if bytes_known {
            marked_bytes
        } else {
            packets * u64::from(delivery.segment)
        };
        NewMarks {
            packets,
            bytes: if packets == 0 {
                0
            } else {
                bytes.min(delivery.bytes)
            },
        }
    }

    /// Returns the newly marked segments. More than seven may have been marked since the last ACK that arrived; then the
    /// largest number with the same remainder is assumed, unless the bytes say otherwise (section 3.2.2.5.2, appendix A.2).
    fn read_ace(&self, ace: u8, delivery: &Delivery, marked_bytes: Option<u64>) -> u64 {
        let (mask, packets) = (u64::from(ACE_MASK), delivery.packets);
        let distance = u32::from(ace)
            .wrapping_sub(INITIAL_ACE)
            .wrapping_sub(self.ce_packets);
        let least = u64::from(distance & ACE_MASK);
        if packets <= mask {
            return least;
        }
        let most = packets - (packets.wrapping_sub(least) & mask);
        let segment = u64::from(delivery.segment);
        match marked_bytes {
            Some(0) => least,
            Some(bytes) if packets >= 2 * (mask + 1) && delivery.is_exact => {
                if delivery.bytes <= bytes {
                    return most;
                }
                let estimate = (bytes * packets).div_ceil(delivery.bytes);
                most.min(least + (estimate & !mask))
            }
            Some(bytes) if bytes > least * segment => most,
            Some(bytes) if bytes < most * segment / 2 => least,
            None if self.per_ack > THINNED << AVERAGE_SHIFT => least,
            _ => most,
        }
    }

    /// Takes the counters over. Returns whether the bytes that this ACK reports are known by code point.
    fn read_option(&mut self, option: Option<&ByteCounters>, delivery: &Delivery) -> bool {
        if self.options == Options::Mangled {
            return false;
        }
        let Some(option) = option else {
            if self.options == Options::Unseen {
                if delivery.sent >= LATE_OPTION {
                    self.options = Options::Mangled;
                }
                return false;
            }
            let Some(field) = self.assumed else { return false };
            let counter = &mut self.bytes[field as usize];
            *counter = counter.wrapping_add(delivery.bytes as u32);
            return true;
        };
        self.check_first_option(option);
        if self.options == Options::Mangled {
            return false;
        }
        let assumed = self.assumed;
        let (mut is_known, mut is_ambiguous, mut changed) = (assumed.is_some(), false, false);
        for (field, value) in option.iter() {
            let step = self.update(field, value);
            if step < 0 {
                (is_known, is_ambiguous) = (false, true);
            }
            if step == 0 || assumed == Some(field) {
                continue;
            }
            if changed {
                (is_known, is_ambiguous) = (false, true);
            } else {
                (self.assumed, changed) = (Some(field), true);
            }
        }
        if is_ambiguous {
            self.assumed = None;
        }
        // `is_known`: the bytes counted for the code point of the ACKs before, which no field contradicts. Otherwise the option
        // must attribute the bytes itself: exactly one counter advanced, and none went back.
        is_known || !is_ambiguous && changed
    }

    /// Advances a counter to the value in an option and returns the step, which is negative if it was assumed too large.
    fn update(&mut self, field: Field, value: u32) -> i32 {
        let counter = &mut self.bytes[field as usize];
        let reported = value.wrapping_sub(field.initial());
        let distance = reported.wrapping_sub(*counter) % MODULUS;
        // Sign extension of 24 bits.
        let step = ((distance << 8) as i32) >> 8;
        *counter = counter.wrapping_add_signed(step);
        step
    }

    fn average(&mut self, packets: u64) {
        if packets == 0 {
            return;
        }
        let sample = u32::try_from(packets)
            .unwrap_or(u32::MAX)
            .min(u32::from(u16::MAX) >> AVERAGE_SHIFT);
        self.per_ack = match self.per_ack {
            0 => sample << AVERAGE_SHIFT,
            old => (old * ((1 << AVERAGE_SHIFT) - 1) + (sample << AVERAGE_SHIFT)) >> AVERAGE_SHIFT,
        };
    }
}
