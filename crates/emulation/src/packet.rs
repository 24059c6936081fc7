//! IPv4 packets as bodies of a network's packets.

use std::net::Ipv4Addr;

use foundation::{Instant, checksum};
use network::{Body, HostId};

/// The shortest IPv4 header (RFC 791, section 3.1).
pub(crate) const HEADER: usize = 20;
/// Where the time to live stands.
const TIME_TO_LIVE: usize = 8;
/// Where the header's checksum stands.
const CHECKSUM: std::ops::Range<usize> = 10..12;
/// Both bits of the ECN field: congestion experienced (RFC 3168, section 5).
const CE: u8 = 0b11;

/// An IPv4 packet, from the first byte of its header to the last of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket {
    bytes: Vec<u8>,
    /// The host that has sent it, and when: for an emulator, which sets both.
    pub(crate) sent: Option<(HostId, Instant)>,
    /// The way that it takes, from 0, likewise.
    pub(crate) way: u8,
}

impl IpPacket {
    /// The packet of these bytes; `None` if they do not begin with a whole IPv4 header.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= HEADER && bytes[0] >> 4 == 4).then_some(Self {
            bytes,
            sent: None,
            way: 0,
        })
    }

    /// A packet of other bytes, which begin with a whole header, sent by the same host on the same way.
    pub(crate) fn with_bytes(&self, bytes: Vec<u8>) -> Self {
        Self { bytes, ..*self }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its buffer, to be used again.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.bytes[12], self.bytes[13], self.bytes[14], self.bytes[15])
    }

    /// Where it goes.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.bytes[16], self.bytes[17], self.bytes[18], self.bytes[19])
    }

    /// The protocol of its payload: 1 for ICMP, 6 for TCP, 17 for UDP.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    /// The hops that it may still take, the last one included (RFC 791, section 3.1, "time to live").
    #[must_use]
    pub fn time_to_live(&self) -> u8 {
        self.bytes[TIME_TO_LIVE]
    }

    /// Does to its header what so many routers do that pass it on (RFC 1812, section 5.3.1): its time to live falls, and
    /// the checksum follows, so that one that was wrong stays so.
    pub(crate) fn pass_routers(&mut self, routers: u8) {
        let protocol = self.bytes[TIME_TO_LIVE + 1];
        let word = |live: u8| u16::from_be_bytes([live, protocol]);
        let (old, new) = (self.time_to_live(), self.time_to_live().saturating_sub(routers));
        self.bytes[TIME_TO_LIVE] = new;
        self.replace_sum(word(old), word(new));
    }

    /// Whether its header is whole and its header's checksum right: routers look at no more (RFC 1812, section 5.2.2).
    pub(crate) fn has_right_header(&self) -> bool {
        let length = self.header_len();
        (HEADER..=self.bytes.len()).contains(&length) && checksum::of(&self.bytes[..length]) == 0
    }

    /// The header's checksum, after one of its words has changed.
    fn replace_sum(&mut self, old: u16, new: u16) {
        let sum = u16::from_be_bytes([self.bytes[CHECKSUM.start], self.bytes[CHECKSUM.start + 1]]);
        self.bytes[CHECKSUM].copy_from_slice(&checksum::update(sum, old, new).to_be_bytes());
    }

    /// Source and destination port, if it is TCP and has them.
    pub(crate) fn tcp_ports(&self) -> Option<(u16, u16)> {
        let start = self.header_len();
        let has_ports = self.protocol() == 6 && !self.is_later_fragment();
        let ports = self.bytes.get(start..start + 4).filter(|_| has_ports)?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        Some((port(0), port(2)))
    }

    /// Bytes of its header, as it says.
    pub(crate) fn header_len(&self) -> usize {
        usize::from(self.bytes[0] & 0xf) * 4
    }

    /// Whether it is a fragment other than the first (RFC 791, section 3.1): it has no ports.
    pub(crate) fn is_later_fragment(&self) -> bool {
        u16::from_be_bytes([self.bytes[6], self.bytes[7]]) & 0x1fff != 0
    }
}

/// A packet of no flow in particular has its addresses and protocol alone: other protocols and later fragments.
impl Body for IpPacket {
    fn flip_bit(&mut self, choice: u64) {
        self.bytes.flip_bit(choice);
    }

    fn mark_congestion_experienced(&mut self) -> bool {
        let service = self.bytes[1];
        match service & CE {
            0 => return false,
            CE => return true,
            _ => {}
        }
        let old = u16::from_be_bytes([self.bytes[0], service]);
        self.bytes[1] = service | CE;
        let new = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
        self.replace_sum(old, new);
        true
    }

    fn flow(&self) -> u64 {
        let word = |at: usize| {
            u64::from(u32::from_be_bytes([
                self.bytes[at],
                self.bytes[at + 1],
                self.bytes[at + 2],
                self.bytes[at + 3],
            ]))
        };
        let start = self.header_len();
        let has_ports = matches!(self.protocol(), 6 | 17) && !self.is_later_fragment();
        let ports = match has_ports && self.bytes.len() >= start + 4 {
            true => word(start),
            false => 0,
        };
        // Different multipliers for each part, so that swapped addresses or ports are another flow.
        let addresses =
            word(12).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word(16).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        (addresses ^ ports.wrapping_mul(0x1656_67b1_9e37_79f9)).rotate_left(29) ^ u64::from(self.protocol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP packet's header with this type-of-service byte and a right checksum.
    fn packet(service: u8, ports: [u8; 4]) -> IpPacket {
        let mut bytes = vec![
            0x45, service, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let sum = checksum::of(&bytes);
        bytes[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(ports);
        bytes.extend([0, 8, 0, 0]);
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn only_capable_packets_are_marked_and_their_header_stays_right() {
        for service in 0..=255_u8 {
            let mut marked = packet(service, [0; 4]);
            let capable = service & CE != 0;
            assert_eq!(marked.mark_congestion_experienced(), capable, "{service:#x}");
            let expected = if capable { service | CE } else { service };
            assert_eq!(marked.bytes()[1], expected);
            assert_eq!(checksum::of(&marked.bytes()[..HEADER]), 0, "{service:#x}");
        }
    }

    #[test]
    fn routers_lower_the_time_to_live_and_keep_the_checksum_as_it_was() {
        for routers in [0, 1, 7, 63, 64, 255] {
            let mut right = packet(0, [0; 4]);
            let mut wrong = packet(0, [0; 4]);
            wrong.bytes[4] ^= 1;
            for packet in [&mut right, &mut wrong] {
                packet.pass_routers(routers);
                assert_eq!(packet.time_to_live(), 64_u8.saturating_sub(routers));
            }
            assert!(right.has_right_header(), "{routers}");
            assert!(!wrong.has_right_header(), "{routers}");
        }
    }

    #[test]
    fn a_flow_is_addresses_ports_and_protocol() {
        let flow = |ports| packet(0, ports).flow();
        assert_eq!(flow([0, 1, 0, 2]), flow([0, 1, 0, 2]));
        assert_ne!(flow([0, 1, 0, 2]), flow([0, 2, 0, 1]));
        let mut fragment = packet(0, [0, 1, 0, 2]).into_bytes();
        fragment[7] = 100;
        let mut other = fragment.clone();
        other[HEADER] = 9;
        // What stands where ports would be is payload.
        let flow = |bytes: Vec<u8>| IpPacket::new(bytes).unwrap().flow();
        assert_eq!(flow(fragment), flow(other));
    }

    #[test]
    fn what_is_not_ipv4_is_no_packet() {
        assert_eq!(IpPacket::new(vec![0x60; 40]), None);
        assert_eq!(IpPacket::new(vec![0x45; HEADER - 1]), None);
        let packet = packet(0, [0; 4]);
        assert_eq!(packet.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(packet.destination(), Ipv4Addr::new(10, 0, 0, 2));
    }
}
