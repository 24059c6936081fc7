//! Arbitrary bytes as packets.

use emulation::IpPacket;
use network::Body;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    /// Arbitrary bytes are not a packet, or a packet whose methods do not panic.
    #[test]
    fn any_bytes_are_a_packet_or_none(mut bytes in vec(any::<u8>(), 0..200), version in any::<bool>(), choice in any::<u64>()) {
        if let Some(first) = bytes.first_mut().filter(|_| version) {
            *first = *first & 0xf | if choice % 2 == 0 { 0x40 } else { 0x60 };
        }
        let is_ipv4 = bytes.len() >= 20 && bytes[0] >> 4 == 4;
        let is_packet = is_ipv4 || bytes.len() >= 40 && bytes[0] >> 4 == 6;
        let packet = IpPacket::new(bytes.clone());
        prop_assert_eq!(packet.is_some(), is_packet);
        let Some(mut packet) = packet else { return Ok(()) };
        prop_assert_eq!(packet.flow(), packet.clone().flow());

        let mut marked = packet.clone();
        let capable = bytes[1] & if is_ipv4 { 3 } else { 0x30 } != 0;
        prop_assert_eq!(marked.mark_congestion_experienced(), capable);
        // Only the field and the checksum change; the sum over both is the same (RFC 1624).
        let sum = |bytes: &[u8]| {
            let total: u64 = bytes[..20].chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            total % 0xffff
        };
        // IPv6 has no checksum of the header.
        prop_assert!(!is_ipv4 || sum(marked.bytes()) == sum(&bytes));
        prop_assert_eq!(&marked.bytes()[2..10], &bytes[2..10]);
        prop_assert_eq!(&marked.bytes()[12..], &bytes[12..]);

        packet.flip_bit(choice);
        let flipped: u32 = packet.bytes().iter().zip(&bytes).map(|(one, other)| (one ^ other).count_ones()).sum();
        prop_assert_eq!(flipped, 1);
    }
}
