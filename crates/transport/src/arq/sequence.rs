//! Sequence numbers are 32 bits on the wire and 64 bits inside.

/// Returns the 64-bit number nearest to `reference` whose low 32 bits are `wire` (serial number arithmetic, RFC 1982).
/// Correct if the two are less than 2^31 apart.
#[must_use]
#[inline]
pub fn expand(reference: u64, wire: u32) -> u64 {
    let ahead = wire.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(ahead))
}

/// Returns the low 32 bits of a sequence number.
#[must_use]
#[inline]
pub const fn truncate(sequence: u64) -> u32 {
    sequence as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_around_the_wrap() {
        let wrap = 1_u64 << 32;
        assert_eq!(expand(wrap - 2, 1), wrap + 1);
        assert_eq!(expand(wrap + 1, u32::MAX), wrap - 1);
        assert_eq!(expand(5, 3), 3);
    }

    proptest::proptest! {
        #[test]
        fn recovers_nearby_numbers(reference in 1_u64 << 33..1 << 50, offset in -(1_i64 << 31) + 1..1_i64 << 31) {
            let sequence = reference.wrapping_add_signed(offset);
            proptest::prop_assert_eq!(expand(reference, truncate(sequence)), sequence);
        }
    }
}
