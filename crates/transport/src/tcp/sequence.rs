//! Sequence numbers modulo 2^32 (RFC 9293, section 3.4) and stream positions.
//!
//! A position is a `u64` that never wraps: 0 is the SYN, 1 the first byte, and the FIN is one past the last byte. Only
//! segments carry 32-bit numbers.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};

/// A sequence or acknowledgement number of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// Returns the number `position` after this one.
    #[must_use]
    pub const fn at(self, position: u64) -> Self {
        Self(self.0.wrapping_add(position as u32))
    }

    /// Returns the position of this number nearest to `near`, in a stream that starts at `initial`; `None` before its
    /// start. It is unambiguous because windows are below 2^30 bytes (RFC 7323, section 2.3).
    #[must_use]
    pub const fn expand(self, initial: Self, near: u64) -> Option<u64> {
        let offset = self.0.wrapping_sub(initial.0).wrapping_sub(near as u32) as i32;
        near.checked_add_signed(offset as i64)
    }
}

/// Order modulo 2^32: `a < b` if `b` is less than 2^31 above `a`. Numbers exactly 2^31 apart are unordered.
impl PartialOrd for SequenceNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.0.wrapping_sub(other.0) as i32 {
            0 => Some(Ordering::Equal),
            i32::MIN => None,
            difference if difference < 0 => Some(Ordering::Less),
            _ => Some(Ordering::Greater),
        }
    }
}

impl Add<u32> for SequenceNumber {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl Sub for SequenceNumber {
    type Output = u32;
    /// Returns `self - other` modulo 2^32.
    fn sub(self, other: Self) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_wraps() {
        let high = SequenceNumber(u32::MAX - 10);
        assert!(high < high + 20, "RFC 9293, section 3.4: modulo 2^32");
        assert_eq!(high + 20, SequenceNumber(9));
        assert_eq!((high + 20) - high, 20);
        assert_eq!(SequenceNumber(0).partial_cmp(&SequenceNumber(1 << 31)), None);
    }

    #[test]
    fn no_position_precedes_the_start() {
        let initial = SequenceNumber(100);
        assert_eq!(SequenceNumber(99).expand(initial, 0), None);
        assert_eq!(SequenceNumber(99).expand(initial, 1 << 32), Some((1 << 32) - 1));
    }

    proptest! {
        #[test]
        fn expand_inverts_at(
            initial: u32,
            position in 0_u64..1 << 40,
            off in -0x7fff_ffff_i64..0x7fff_ffff,
        ) {
            let near = position.saturating_add_signed(off);
            let initial = SequenceNumber(initial);
            prop_assert_eq!(initial.at(position).expand(initial, near), Some(position));
        }
    }
}
