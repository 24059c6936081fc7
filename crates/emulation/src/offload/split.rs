//! Splits what a host passes at a time into complete packets, as a network card does.

use foundation::checksum::Sum;

use super::header::{Header, PartialChecksum, SegmentKind, Segmentation};
use super::{ip, ip6, pseudo_header, put_u16, set_length, tcp, u16_at, u32_at, udp};
use crate::packet::HEADER;

/// The packets in one read of a device.
#[derive(Debug)]
pub enum Packets<'a> {
    /// One packet.
    Single {
        /// Its bytes; `None` once it was taken.
        bytes: Option<&'a [u8]>,
        /// Whether its checksum was completed here.
        is_completed: bool,
    },
    /// Several segments.
    Segments(Segments<'a>),
}

impl<'a> Packets<'a> {
    /// Returns the packets in `bytes`, after completing a checksum; `None` for segments that are not IP or are
    /// inconsistent.
    pub fn of(header: Header, bytes: &'a mut [u8]) -> Option<Self> {
        if let Some(segmentation) = header.segmentation {
            return Segments::new(segmentation, bytes).map(Self::Segments);
        }
        let is_completed = header
            .checksum
            .is_some_and(|checksum| complete(checksum, bytes).is_some());
        Some(Self::Single {
            bytes: Some(bytes),
            is_completed,
        })
    }

    /// Appends the next packet to `packet`; returns whether there was one.
    pub fn next_into(&mut self, packet: &mut Vec<u8>) -> bool {
        match self {
            Self::Single { bytes, .. } => match bytes.take() {
                Some(bytes) => {
                    packet.extend_from_slice(bytes);
                    true
                }
                None => false,
            },
            Self::Segments(segments) => segments.next_into(packet),
        }
    }

    /// Whether the checksums of the packets were computed here.
    pub fn have_valid_checksums(&self) -> bool {
        match self {
            Self::Single { is_completed, .. } => *is_completed,
            Self::Segments(_) => true,
        }
    }
}

/// Completes a checksum; `None` if its place is outside the packet.
fn complete(checksum: PartialChecksum, packet: &mut [u8]) -> Option<()> {
    let (start, offset) = (usize::from(checksum.start), usize::from(checksum.offset));
    let covered = packet.get_mut(start..)?;
    // The place holds the sum of the pseudo-header.
    let sum = Sum::default().with(covered).checksum();
    covered
        .get_mut(offset..offset + 2)?
        .copy_from_slice(&nonzero(sum).to_be_bytes());
    Some(())
}

/// A UDP checksum of 0 means none (RFC 768); for TCP both zeros are equal.
const fn nonzero(sum: u16) -> u16 {
    if sum == 0 { 0xffff } else { sum }
}

/// The segments of a TCP segment or UDP datagram that is larger than a packet.
#[derive(Debug)]
pub struct Segments<'a> {
    headers: &'a [u8],
    /// Length of the IP header.
    start: usize,
    payload: &'a [u8],
    is_tcp: bool,
    size: usize,
    /// Bytes of the payload in earlier segments, and their number.
    done: usize,
    number: u16,
}

impl<'a> Segments<'a> {
    fn new(segmentation: Segmentation, packet: &'a [u8]) -> Option<Self> {
        let is_ipv6 = match packet.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let shortest_ip = if is_ipv6 { ip6::HEADER } else { HEADER };
        if packet.len() < shortest_ip || packet.len() > usize::from(u16::MAX) + shortest_ip {
            return None;
        }
        // Hosts pass packets with extension headers one by one.
        let (start, found) = match is_ipv6 {
            true => (ip6::HEADER, packet[ip6::NEXT]),
            false => (usize::from(packet[0] & 0xf) * 4, packet[ip::PROTOCOL]),
        };
        let (is_tcp, protocol, shortest) = match segmentation.kind {
            SegmentKind::Tcp { .. } => (true, tcp::PROTOCOL, tcp::HEADER),
            SegmentKind::Udp => (false, udp::PROTOCOL, udp::HEADER),
        };
        if start < HEADER || packet.len() < start + shortest || found != protocol {
            return None;
        }
        let length = match is_tcp {
            true => usize::from(packet[start + tcp::OFFSET] >> 4) * 4,
            false => shortest,
        };
        let headers = start + length;
        if length < shortest || packet.len() <= headers || segmentation.size == 0 {
            return None;
        }
        Some(Self {
            headers: &packet[..headers],
            start,
            payload: &packet[headers..],
            is_tcp,
            size: segmentation.size.into(),
            done: 0,
            number: 0,
        })
    }

    fn next_into(&mut self, packet: &mut Vec<u8>) -> bool {
        let size = self.size.min(self.payload.len() - self.done);
        if size == 0 {
            return false;
        }
        let at = packet.len();
        packet.extend_from_slice(self.headers);
        packet.extend_from_slice(&self.payload[self.done..self.done + size]);
        let packet = &mut packet[at..];
        let length = packet.len();
        let id = u16_at(packet, ip::ID).wrapping_add(self.number);
        set_length(&mut packet[..self.start], length, id);
        let pseudo = pseudo_header(packet, length - self.start);
        let is_last = self.done + size == self.payload.len();
        let segment = &mut packet[self.start..];
        let place = match self.is_tcp {
            true => {
                self.set_tcp_fields(segment, is_last);
                tcp::CHECKSUM
            }
            false => {
                let length = segment.len() as u16;
                put_u16(segment, udp::LENGTH, length);
                udp::CHECKSUM
            }
        };
        put_u16(segment, place, 0);
        put_u16(segment, place, nonzero(pseudo.with(segment).checksum()));
        self.done += size;
        self.number = self.number.wrapping_add(1);
        true
    }

    fn set_tcp_fields(&self, segment: &mut [u8], is_last: bool) {
        let sequence = u32_at(segment, tcp::SEQUENCE).wrapping_add(self.done as u32);
        segment[tcp::SEQUENCE..tcp::SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        if !is_last {
            segment[tcp::FLAGS] &= !(tcp::FIN | tcp::PSH);
        }
        if self.number > 0 {
            segment[tcp::FLAGS] &= !tcp::CWR;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample::{Sample, sample, split};
    use super::*;
    use foundation::checksum;

    fn is_valid(packet: &[u8]) -> bool {
        if packet[0] >> 4 == 6 {
            let length = packet.len() - ip6::HEADER;
            let sum = pseudo_header(packet, length);
            return usize::from(u16_at(packet, ip6::LENGTH)) == length
                && sum.with(&packet[ip6::HEADER..]).checksum() == 0;
        }
        let start = usize::from(packet[0] & 0xf) * 4;
        let sum = pseudo_header(packet, packet.len() - start);
        checksum::of(&packet[..start]) == 0
            && usize::from(u16_at(packet, ip::LENGTH)) == packet.len()
            && sum.with(&packet[start..]).checksum() == 0
    }

    #[test]
    fn completes_the_checksum_of_a_single_packet() {
        let sample = Sample::tcp(100, 1000);
        let header = Header {
            segmentation: None,
            ..sample.header()
        };
        let mut bytes = sample.bytes();
        assert!(!is_valid(&bytes));
        let mut packets = Packets::of(header, &mut bytes).unwrap();
        assert!(packets.have_valid_checksums());
        let mut packet = Vec::new();
        assert!(packets.next_into(&mut packet));
        assert!(is_valid(&packet));
        assert!(!packets.next_into(&mut packet));
    }

    #[test]
    fn a_packet_with_a_complete_checksum_stays_as_it_is() {
        let original: Vec<u8> = (0..200).collect();
        let mut bytes = original.clone();
        let mut packets = Packets::of(Header::default(), &mut bytes).unwrap();
        assert!(!packets.have_valid_checksums());
        let mut packet = Vec::new();
        assert!(packets.next_into(&mut packet));
        assert_eq!(packet, original);
    }

    proptest! {
        #[test]
        fn segments_are_valid_and_make_up_the_payload(sample in sample()) {
            let parts = split(&sample);
            let (start, headers) = (sample.ip_header(), sample.headers());
            let whole = sample.bytes();
            prop_assert_eq!(parts.len(), sample.payload.div_ceil(sample.size));
            let mut joined: Vec<u8> = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                prop_assert!(is_valid(part));
                prop_assert!(sample.is_ipv6 || u16_at(part, ip::ID) == u16_at(&whole, ip::ID).wrapping_add(number as u16));
                let is_last = number + 1 == parts.len();
                prop_assert!(is_last || part.len() == headers + sample.size);
                if sample.is_tcp {
                    let sequence = u32_at(&whole[start..], tcp::SEQUENCE).wrapping_add(joined.len() as u32);
                    prop_assert_eq!(u32_at(&part[start..], tcp::SEQUENCE), sequence);
                    let mut kept = 0xff;
                    if !is_last {
                        kept &= !(tcp::FIN | tcp::PSH);
                    }
                    if number > 0 {
                        kept &= !tcp::CWR;
                    }
                    prop_assert_eq!(part[start + tcp::FLAGS], whole[start + tcp::FLAGS] & kept);
                } else {
                    prop_assert_eq!(usize::from(u16_at(&part[start..], udp::LENGTH)), part.len() - start);
                }
                joined.extend_from_slice(&part[headers..]);
            }
            prop_assert_eq!(&joined[..], &whole[headers..]);
        }

        #[test]
        fn any_bytes_are_split_without_a_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            is_ipv6 in any::<bool>(),
            first in 0_u8..16,
            is_tcp in any::<bool>(),
            size in any::<u16>(),
            partial in proptest::option::of((any::<u16>(), any::<u16>())),
        ) {
            if bytes.len() >= HEADER {
                bytes[0] = first | if is_ipv6 { 0x60 } else { 0x40 };
                let at = if is_ipv6 { ip6::NEXT } else { ip::PROTOCOL };
                bytes[at] = if is_tcp { tcp::PROTOCOL } else { udp::PROTOCOL };
            }
            let kind = if is_tcp { SegmentKind::Tcp { has_cwr: false, is_ipv6 } } else { SegmentKind::Udp };
            let checksum = partial.map(|(start, offset)| PartialChecksum { start: start % 400, offset: offset % 400 });
            for segmentation in [None, Some(Segmentation { kind, headers: 40, size })] {
                let mut bytes = bytes.clone();
                let mut packet = Vec::new();
                if let Some(mut packets) = Packets::of(Header { checksum, segmentation }, &mut bytes) {
                    while packets.next_into(&mut packet) {
                        packet.clear();
                    }
                }
            }
        }
    }
}
