//! Per-segment state of the sender, until the cumulative acknowledgement.

use foundation::Instant;

use crate::congestion::Snapshot;

/// A sent segment. Segments are contiguous: each starts at the end of the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentSegment {
    /// Stream position of its first byte.
    pub start: u64,
    /// Time of its last transmission.
    pub sent_at: Instant,
    /// State of the delivery-rate estimator at its last transmission.
    pub snapshot: Snapshot,
    /// Payload bytes.
    pub length: u32,
    pub marks: Marks,
}

/// State of a segment, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// Selectively acknowledged.
    pub const SACKED: Self = Self(1);
    /// Considered lost.
    pub const LOST: Self = Self(2);
    /// Retransmitted; the retransmission is not considered lost.
    pub const RETRANSMITTED: Self = Self(4);
    /// Sent more than once, so that its ACK is ambiguous (Karn's algorithm).
    pub const EVER_RETRANSMITTED: Self = Self(8);
    /// Carries the FIN.
    pub const FIN: Self = Self(16);
    /// Carries PSH.
    pub const PUSH: Self = Self(32);

    /// Any of the marks of loss detection and recovery.
    pub const RECOVERY: Self = Self(1 | 2 | 4 | 8);

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
    /// Returns the position after its last one, FIN included.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start + self.length as u64 + self.marks.has(Marks::FIN) as u64
    }

    /// Whether it is lost and not retransmitted since.
    #[inline]
    #[must_use]
    pub const fn awaits_retransmission(&self) -> bool {
        self.marks.has(Marks::LOST) && !self.marks.has(Marks::RETRANSMITTED)
    }

    /// Whether it was sent after a segment that was sent at `sent_at` and ends at `end`. Segments sent at the same time are
    /// ordered by position (RFC 8985, section 6.2, step 2).
    #[inline]
    #[must_use]
    pub const fn was_sent_after(&self, sent_at: Instant, end: u64) -> bool {
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
