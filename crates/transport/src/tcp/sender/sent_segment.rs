//! What the sender keeps about each segment that is not yet acknowledged.

use foundation::Instant;

use crate::congestion::Snapshot;

/// One segment in flight. Segments are contiguous: each starts where the one before ends.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// Stream position of its first byte.
    pub start: u64,
    /// When it left last.
    pub sent_at: Instant,
    /// The delivery-rate estimator when it left last.
    pub snapshot: Snapshot,
    /// Payload bytes.
    pub length: u32,
    /// What happened to it.
    pub marks: Marks,
}

/// What happened to a segment: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// Selectively acknowledged.
    pub const SACKED: Self = Self(1);
    /// Taken for lost.
    pub const LOST: Self = Self(2);
    /// Sent again, and that retransmission is not known to be lost.
    pub const RETRANSMITTED: Self = Self(4);
    /// Sent more than once: its ACK is ambiguous (Karn).
    pub const EVER_RETRANSMITTED: Self = Self(8);
    /// It carries the FIN.
    pub const FIN: Self = Self(16);
    /// It carries PSH.
    pub const PUSH: Self = Self(32);

    /// Whether any bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets the bits of `other`.
    #[inline]
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears the bits of `other`.
    #[inline]
    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

impl SentSegment {
    /// The position after its last, the FIN counted.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start + self.length as u64 + self.marks.has(Marks::FIN) as u64
    }

    /// Whether it left later than a segment that left at `sent_at` and ends at `end`: segments that left at one
    /// instant left in the order of the stream (RFC 8985, section 6.2, step 2).
    #[inline]
    #[must_use]
    pub const fn left_after(&self, sent_at: Instant, end: u64) -> bool {
        let (own, other) = (self.sent_at.as_nanos(), sent_at.as_nanos());
        own > other || (own == other && self.end() > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small() {
        // A long fat network has hundreds of thousands of them.
        assert!(size_of::<SentSegment>() <= 56, "{}", size_of::<SentSegment>());
    }
}
