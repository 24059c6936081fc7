//! The Internet checksum (RFC 1071).

/// The ones' complement sum of several parts, of which only the last may have an odd length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Returns the sum with `bytes` added.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        // The sum does not depend on the byte order (RFC 1071, section 2), and wider words are faster.
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            self.0 += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
        let mut last = [0; 4];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_ne_bytes(last));
        self
    }

    /// Returns the sum folded to 16 bits, without the complement.
    #[must_use]
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::from_be(sum as u16)
    }

    /// Returns the checksum: the complement of the folded sum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Returns the checksum of `bytes`; 0 for bytes that include a valid checksum.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::default().with(bytes).checksum()
}

/// Returns the sum of the pseudo-header of a TCP segment or UDP datagram over IPv4: addresses, protocol, and `length` of
/// the transport header and payload (RFC 9293, section 3.1; RFC 768).
#[must_use]
pub fn pseudo_header(source: [u8; 4], destination: [u8; 4], protocol: u8, length: u16) -> Sum {
    let [high, low] = length.to_be_bytes();
    Sum::default()
        .with(&source)
        .with(&destination)
        .with(&[0, protocol, high, low])
}

/// Returns the checksum after a change of one 16-bit field (RFC 1624, section 3, equation 3).
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let words = [!checksum, !old, new];
    Sum(words.iter().map(|word| u64::from(word.to_be())).sum()).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn matches_the_examples_of_the_rfcs() {
        // RFC 1071, section 3: the sum of these bytes is 0xddf2.
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        // RFC 1624, section 4.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_pseudo_header_is_addresses_protocol_and_length() {
        let bytes = [10, 77, 0, 1, 10, 77, 0, 2, 0, 17, 0x12, 0x34];
        let sum = pseudo_header([10, 77, 0, 1], [10, 77, 0, 2], 17, 0x1234);
        assert_eq!(sum.checksum(), of(&bytes));
    }

    proptest! {
        #[test]
        fn equals_the_sum_of_big_endian_words(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..75) {
            let mut sum = 0_u32;
            for pair in bytes.chunks(2) {
                sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            }
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(of(&bytes), !(sum as u16));
            let (first, second) = bytes.split_at((at * 2).min(bytes.len() / 2 * 2));
            prop_assert_eq!(Sum::default().with(first).with(second).checksum(), of(&bytes));
        }
    }
}
