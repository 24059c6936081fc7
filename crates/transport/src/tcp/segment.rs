//! Segments as typed values: the header fields and the length of the payload.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

pub use foundation::Ecn;

use super::options::Options;
use super::sequence::SequenceNumber;

/// The control bits of a TCP header (RFC 9293, section 3.1; ECE and CWR: RFC 3168, section 6.1; AE: RFC 9768, section 3.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push what was received to the application.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// Echo of congestion experienced.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);
    /// Accurate ECN.
    pub const AE: Self = Self(0x100);

    /// The bits of the ACE field.
    const ACE: u32 = 6;

    /// Returns the flags of a header's low nine bits of flags.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x1ff)
    }

    /// Returns the header's low nine bits of flags.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the flags that represent a value of the ACE field, 0 to 7 (RFC 9768, section 3.1).
    #[must_use]
    pub const fn from_ace(ace: u8) -> Self {
        Self((ace as u16 & 7) << Self::ACE)
    }

    /// Returns the value of the ACE field: AE, CWR and ECE.
    #[must_use]
    pub const fn ace(self) -> u8 {
        (self.0 >> Self::ACE) as u8 & 7
    }

    /// Returns these flags without those of `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns these flags if `is_set`, else none.
    #[inline]
    #[must_use]
    pub const fn when(self, is_set: bool) -> Self {
        Self(self.0 * is_set as u16)
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        let mut set = f.debug_set();
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & (1 << bit) != 0 {
                set.entry(&format_args!("{name}"));
            }
        }
        set.finish()
    }
}

/// TCP segment without its payload bytes, which the caller stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: SequenceNumber,
    /// Next sequence number that the sender of this segment expects; valid with [`Flags::ACK`].
    pub acknowledgement: SequenceNumber,
    /// Control bits.
    pub flags: Flags,
    /// Codepoint of the IP header.
    pub ecn: Ecn,
    /// Window field as on the wire: scaled except in a SYN (RFC 7323, section 2.2).
    pub window: u16,
    /// Payload bytes.
    pub length: u32,
    /// Header options.
    pub options: Options,
}

impl Segment {
    /// Returns a segment without payload, window or options.
    #[must_use]
    pub const fn bare(sequence: SequenceNumber, acknowledgement: SequenceNumber, flags: Flags) -> Self {
        Self {
            sequence,
            acknowledgement,
            flags,
            ecn: Ecn::NotEct,
            window: 0,
            length: 0,
            options: Options {
                mss: None,
                window_scale: None,
                sack_permitted: false,
                timestamps: None,
                sack: super::options::SackBlocks::EMPTY,
                count: None,
            },
        }
    }

    /// Returns the bytes of the TCP header: 20 and the padded options.
    #[inline]
    #[must_use]
    pub fn header_length(&self) -> u32 {
        20 + self.options.encoded_length()
    }

    /// Returns the segment's length in sequence numbers: payload, SYN and FIN (RFC 9293, section 3.4).
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        let syn = u32::from(self.flags.contains(Flags::SYN));
        let fin = u32::from(self.flags.contains(Flags::FIN));
        self.length + syn + fin
    }

    /// Returns the sequence number after the segment's last.
    #[must_use]
    pub fn end(&self) -> SequenceNumber {
        self.sequence + self.sequence_length()
    }

    /// Whether any of `flags` is set.
    #[must_use]
    pub const fn has(&self, flags: Flags) -> bool {
        self.flags.intersects(flags)
    }
}

/// Segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The segment.
    pub segment: Segment,
    /// Stream offset of its first payload byte: 0 is the first byte written.
    pub offset: u64,
    /// Whether any of its payload was sent earlier.
    pub retransmission: bool,
}

impl Outgoing {
    pub(super) const fn without_payload(segment: Segment) -> Self {
        Self {
            segment,
            offset: 0,
            retransmission: false,
        }
    }
}

/// Returns the reset that answers a segment of no known connection (RFC 9293, section 3.10.7.1); `None` for a reset.
#[must_use]
pub fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.has(Flags::RST) {
        return None;
    }
    Some(if segment.has(Flags::ACK) {
        Segment::bare(segment.acknowledgement, SequenceNumber(0), Flags::RST)
    } else {
        Segment::bare(SequenceNumber(0), segment.end(), Flags::RST | Flags::ACK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_small() {
        assert!(size_of::<Segment>() <= 80, "{}", size_of::<Segment>());
        assert!(size_of::<Outgoing>() <= 96, "{}", size_of::<Outgoing>());
    }

    #[test]
    fn resets_segments_of_unknown_connections() {
        // RFC 9293, section 3.10.7.1: <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK> without an ACK...
        let syn = Segment::bare(SequenceNumber(u32::MAX), SequenceNumber(0), Flags::SYN);
        let reset = reset_for(&syn).unwrap();
        assert_eq!((reset.sequence.0, reset.acknowledgement.0), (0, 0));
        assert_eq!(reset.flags, Flags::RST | Flags::ACK);
        // ... and <SEQ=SEG.ACK><CTL=RST> with one.
        let ack = Segment::bare(SequenceNumber(5), SequenceNumber(77), Flags::ACK);
        let reset = reset_for(&ack).unwrap();
        assert_eq!((reset.sequence.0, reset.flags), (77, Flags::RST));
        assert_eq!(reset_for(&reset), None);
    }

    #[test]
    fn ace_is_three_flags() {
        assert_eq!(Flags::from_ace(0b110), Flags::AE | Flags::CWR);
        for ace in 0..8 {
            assert_eq!((Flags::from_ace(ace) | Flags::ACK).ace(), ace);
        }
    }

    #[test]
    fn flags_are_readable() {
        assert_eq!(format!("{:?}", Flags::SYN | Flags::ACK), "{SYN, ACK}");
    }
}
