//! IPv4 packets as the bodies of a network's packets.

use std::net::Ipv4Addr;

use foundation::{Instant, checksum};
use network::{Body, HostId};

/// The shortest IPv4 header (RFC 791, section 3.1).
pub(crate) const HEADER: usize = 20;
/// Byte offsets of the IPv4 header (RFC 791, section 3.1).
pub(crate) mod ip {
    pub const LENGTH: usize = 2;
    pub const ID: usize = 4;
    /// Flags and fragment offset.
    pub const FLAGS: usize = 6;
    pub const TIME_TO_LIVE: usize = 8;
    pub const PROTOCOL: usize = 9;
    pub const CHECKSUM: usize = 10;
    pub const SOURCE: usize = 12;
    pub const DESTINATION: usize = 16;
}
/// Both bits of the ECN field: congestion experienced (RFC 3168, section 5).
const CE: u8 = 0b11;

/// Returns the big-endian number at an offset.
pub(crate) const fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes a big-endian number at an offset.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// An IPv4 packet, from the first byte of its header to the last of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket {
    bytes: Vec<u8>,
    /// The sending host and the time of sending, set by the emulator.
    pub(crate) sent: Option<(HostId, Instant)>,
    /// The packet's way, from 0, set by the emulator.
    pub(crate) way: u8,
    /// Whether the emulator computed the checksum of its payload and it is still correct.
    pub(crate) has_valid_checksum: bool,
}

impl IpPacket {
    /// A packet from its bytes; `None` unless they start with a complete IPv4 header.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= HEADER && bytes[0] >> 4 == 4).then_some(Self {
            bytes,
            sent: None,
            way: 0,
            has_valid_checksum: false,
        })
    }

    /// A packet with other bytes and the same sender and way. The bytes start with a complete header.
    pub(crate) fn with_bytes(&self, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            has_valid_checksum: false,
            ..*self
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its buffer, for reuse.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its source address.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        self.address(ip::SOURCE)
    }

    /// Its destination address.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        self.address(ip::DESTINATION)
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let bytes = &self.bytes;
        Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
    }

    /// The protocol of its payload: 1 for ICMP, 6 for TCP, 17 for UDP.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.bytes[ip::PROTOCOL]
    }

    /// Its time to live: the hops left, including the last one (RFC 791, section 3.1).
    #[must_use]
    pub fn time_to_live(&self) -> u8 {
        self.bytes[ip::TIME_TO_LIVE]
    }

    /// Changes the header as `routers` forwarding routers do (RFC 1812, section 5.3.1): decrements the time to live and
    /// updates the checksum, so that a wrong checksum stays wrong.
    pub(crate) fn pass_routers(&mut self, routers: u8) {
        let protocol = self.bytes[ip::PROTOCOL];
        let field = |live: u8| u16::from_be_bytes([live, protocol]);
        let (old, new) = (self.time_to_live(), self.time_to_live().saturating_sub(routers));
        self.bytes[ip::TIME_TO_LIVE] = new;
        self.replace_sum(field(old), field(new));
    }

    /// Whether the header is complete and its checksum correct, the checks of a router (RFC 1812, section 5.2.2).
    pub(crate) fn has_right_header(&self) -> bool {
        let length = self.header_len();
        (HEADER..=self.bytes.len()).contains(&length) && checksum::of(&self.bytes[..length]) == 0
    }

    /// Updates the header checksum for one changed 16-bit field.
    fn replace_sum(&mut self, old: u16, new: u16) {
        let sum = u16_at(&self.bytes, ip::CHECKSUM);
        put_u16(&mut self.bytes, ip::CHECKSUM, checksum::update(sum, old, new));
    }

    /// Source and destination port of a TCP segment.
    pub(crate) fn tcp_ports(&self) -> Option<(u16, u16)> {
        let start = self.header_len();
        let has_ports = self.protocol() == 6 && !self.is_later_fragment();
        let ports = self.bytes.get(start..start + 4).filter(|_| has_ports)?;
        Some((u16_at(ports, 0), u16_at(ports, 2)))
    }

    /// Length of its header in bytes, from the header.
    pub(crate) fn header_len(&self) -> usize {
        usize::from(self.bytes[0] & 0xf) * 4
    }

    /// Whether it is a fragment other than the first, which has no ports (RFC 791, section 3.1).
    pub(crate) fn is_later_fragment(&self) -> bool {
        u16_at(&self.bytes, ip::FLAGS) & 0x1fff != 0
    }
}

/// A flow is identified by addresses, protocol and ports. Later fragments and other protocols have no ports.
impl Body for IpPacket {
    fn flip_bit(&mut self, choice: u64) {
        self.bytes.flip_bit(choice);
        self.has_valid_checksum = false;
    }

    fn is_ecn_capable(&self) -> bool {
        self.bytes[1] & CE != 0
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
        let u32_at = |at: usize| {
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
            true => u32_at(start),
            false => 0,
        };
        // The multipliers differ, so that a flow with swapped addresses or ports is another one.
        let addresses =
            u32_at(12).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u32_at(16).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        (addresses ^ ports.wrapping_mul(0x1656_67b1_9e37_79f9)).rotate_left(29) ^ u64::from(self.protocol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP header with this type-of-service byte and a correct checksum.
    fn packet(service: u8, ports: [u8; 4]) -> IpPacket {
        let mut bytes = vec![
            0x45, service, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let sum = checksum::of(&bytes);
        put_u16(&mut bytes, ip::CHECKSUM, sum);
        bytes.extend(ports);
        bytes.extend([0, 8, 0, 0]);
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn marks_only_ecn_capable_packets_and_updates_the_checksum() {
        for service in 0..=255_u8 {
            let mut marked = packet(service, [0; 4]);
            let capable = service & CE != 0;
            assert_eq!(marked.is_ecn_capable(), capable, "{service:#x}");
            assert_eq!(marked.mark_congestion_experienced(), capable, "{service:#x}");
            let expected = if capable { service | CE } else { service };
            assert_eq!(marked.bytes()[1], expected);
            assert_eq!(checksum::of(&marked.bytes()[..HEADER]), 0, "{service:#x}");
        }
    }

    #[test]
    fn routers_decrement_the_time_to_live_and_keep_a_wrong_checksum_wrong() {
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
        // These bytes are payload, not ports.
        let flow = |bytes: Vec<u8>| IpPacket::new(bytes).unwrap().flow();
        assert_eq!(flow(fragment), flow(other));
    }

    #[test]
    fn rejects_bytes_that_are_not_ipv4() {
        assert_eq!(IpPacket::new(vec![0x60; 40]), None);
        assert_eq!(IpPacket::new(vec![0x45; HEADER - 1]), None);
        let packet = packet(0, [0; 4]);
        assert_eq!(packet.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(packet.destination(), Ipv4Addr::new(10, 0, 0, 2));
    }
}
