//! Fragmentation of packets that are too large for a link (RFC 791, section 2.3 and page 26; RFC 1812, section 5.2.6).

use foundation::checksum;

use crate::packet::{HEADER, IpPacket, ip, put_u16, u16_at};

/// Flags, and the bits of the offset (RFC 791, section 3.1).
const DONT: u16 = 0x4000;
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Fragment offsets count units of 8 bytes.
const UNIT: usize = 8;

impl IpPacket {
    /// Returns fragments of at most `mtu` bytes, in order; `None` if the packet has DF set or is one of IPv6, or if the MTU is too
    /// small.
    pub(crate) fn fragments(&self, mtu: usize) -> Option<Vec<Self>> {
        // Routers do not fragment IPv6 packets (RFC 8200, section 4.5).
        if self.is_ipv6() {
            return None;
        }
        let bytes = self.bytes();
        let (length, start) = (usize::from(u16_at(bytes, ip::LENGTH)), self.header_len());
        let flags = u16_at(bytes, ip::FLAGS);
        if flags & DONT != 0 || start < HEADER || !(start..=bytes.len()).contains(&length) {
            return None;
        }
        let later = later_header(&bytes[..start]);
        let (mut parts, mut at) = (Vec::new(), start);
        while at < length {
            let header = if parts.is_empty() {
                &bytes[..start]
            } else {
                &later[..]
            };
            let room = mtu.checked_sub(header.len())?;
            let rest = length - at;
            let size = if rest <= room { rest } else { room / UNIT * UNIT };
            if size == 0 {
                return None;
            }
            let is_last = size == rest;
            let more = if is_last { flags & MORE } else { MORE };
            let offset = (flags & OFFSET).checked_add(((at - start) / UNIT) as u16)?;
            let mut part = header.to_vec();
            let length = (header.len() + size) as u16;
            for (at, value) in [
                (ip::LENGTH, length),
                (ip::FLAGS, more | offset),
                (ip::CHECKSUM, 0),
            ] {
                put_u16(&mut part, at, value);
            }
            let sum = checksum::of(&part);
            put_u16(&mut part, ip::CHECKSUM, sum);
            part.extend_from_slice(&bytes[at..at + size]);
            parts.push(self.with_bytes(part));
            at += size;
        }
        Some(parts)
    }
}

/// The header of all fragments but the first. It has only the options with the copied flag (RFC 791, page 15).
fn later_header(header: &[u8]) -> Vec<u8> {
    let mut kept = header[..HEADER].to_vec();
    let mut options = &header[HEADER..];
    while let Some(&kind) = options.first() {
        let length = match kind {
            // End of option list, and no operation.
            0 => break,
            1 => 1,
            _ => options.get(1).map_or(0, |&length| usize::from(length)),
        };
        if length == 0 || length > options.len() {
            break;
        }
        if kind & 0x80 != 0 {
            kept.extend_from_slice(&options[..length]);
        }
        options = &options[length..];
    }
    kept.resize(kept.len().next_multiple_of(4), 0);
    kept[0] = 0x40 | (kept.len() / 4) as u8;
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet with these options and flags and `payload` bytes.
    fn packet(options: &[u8], flags: u16, payload: usize) -> IpPacket {
        let header = HEADER + options.len();
        let mut bytes = vec![0x40 | (header / 4) as u8, 0, 0, 0, 0x12, 0x34];
        bytes[2..4].copy_from_slice(&((header + payload) as u16).to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend([64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
        bytes.extend(options);
        let sum = checksum::of(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend((0..payload).map(|at| (at * 7 % 251) as u8));
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn packets_with_df_are_not_fragmented() {
        assert_eq!(packet(&[], DONT, 1000).fragments(576), None);
        assert_eq!(packet(&[], 0, 1000).fragments(27), None);
    }

    #[test]
    fn later_fragments_have_only_copied_options() {
        // Loose source route (131) is copied, record route (7) is not.
        let options = [7, 3, 4, 131, 7, 4, 10, 0, 0, 1, 1, 0];
        let parts = packet(&options, 0, 200).fragments(132).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].header_len(), 32);
        assert_eq!(parts[1].bytes()[HEADER..28], [131, 7, 4, 10, 0, 0, 1, 0]);
        assert!(parts.iter().all(IpPacket::has_right_header));
    }

    proptest! {
        #[test]
        fn fragments_fit_the_mtu_and_make_up_the_packet(payload in 0_usize..4000, mtu in 28_usize..1600, flags in prop_oneof![Just(0), Just(MORE), Just(MORE | 90)]) {
            // The payload of a fragment with successors is a multiple of 8 bytes.
            let payload = if flags == 0 { payload } else { payload / 8 * 8 };
            let whole = packet(&[], flags, payload);
            let parts = whole.fragments(mtu).unwrap();
            let mut joined = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                prop_assert!(part.bytes().len() <= mtu && part.has_right_header());
                prop_assert_eq!(usize::from(u16_at(part.bytes(), 2)), part.bytes().len());
                prop_assert_eq!(usize::from(u16_at(part.bytes(), 6) & OFFSET), usize::from(flags & OFFSET) + joined.len() / 8);
                let is_last = number + 1 == parts.len();
                prop_assert_eq!(u16_at(part.bytes(), 6) & MORE != 0, !is_last || flags & MORE != 0);
                joined.extend_from_slice(&part.bytes()[HEADER..]);
            }
            prop_assert_eq!(&joined[..], &whole.bytes()[HEADER..]);
        }
    }
}
