//! The Internet checksum (RFC 1071).

/// Returns the checksum of `bytes`; 0 for bytes that include a valid checksum.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    !fold(sum)
}

/// Returns the checksum after a change of one 16-bit field (RFC 1624, section 3, equation 3).
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new))
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_examples_of_the_rfcs() {
        // RFC 1071, section 3: the sum of these bytes is 0xddf2.
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        // RFC 1624, section 4.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}
