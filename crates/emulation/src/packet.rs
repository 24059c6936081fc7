//! IP packets as the bodies of a network's packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use experiment::acknowledgement::acknowledgement;
use foundation::{Ecn, Instant, checksum};
use network::{Body, Connection, HostId, TcpAck};
use transport::tcp::wire;

use crate::address::from_ipv6;

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
/// The header of TCP (RFC 9293, section 3.1), and kinds of options (RFC 2018, section 3; RFC 7323, section 3.2).
mod tcp {
    /// Byte offset of the flags.
    pub const FLAGS: usize = 13;
    pub const SYN: u8 = 2;
    pub const ACK: u8 = 16;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}
/// ICMP: protocol numbers, bytes before the quoted packet, and types of errors (RFC 792; RFC 1122, section 3.2.2; RFC 4443,
/// section 2.1).
mod icmp {
    pub const V4: u8 = 1;
    pub const V6: u8 = 58;
    pub const HEADER: usize = 8;
    /// Destination unreachable, source quench, redirect, time exceeded and parameter problem.
    pub const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
    /// The first type of ICMPv6 that is not an error.
    pub const FIRST_V6_MESSAGE: u8 = 128;
}
/// The header of IPv6 (RFC 8200, section 3).
pub(crate) mod ip6 {
    /// Bytes of the header without extensions.
    pub const HEADER: usize = 40;
    /// Length of everything after the header.
    pub const LENGTH: usize = 4;
    pub const NEXT: usize = 6;
    pub const HOP_LIMIT: usize = 7;
    pub const SOURCE: usize = 8;
    pub const DESTINATION: usize = 24;
    /// Extension headers that a payload may follow (section 4): hop-by-hop, routing and destination options, fragment.
    pub const OPTIONS: [u8; 3] = [0, 43, 60];
    pub const FRAGMENT: u8 = 44;
    /// The most extension headers that are read.
    pub const MOST: usize = 8;
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

/// The payload of a packet: a segment, datagram or message, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Payload {
    protocol: u8,
    /// Where it starts.
    start: usize,
    /// Whether it is a fragment other than the first, which has no ports.
    is_later_fragment: bool,
}

/// An IPv4 or IPv6 packet, from the first byte of its header to the last of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket {
    bytes: Vec<u8>,
    /// The version when it was sent: its bytes may be damaged later.
    is_ipv6: bool,
    /// The sending host and the time of sending, set by the emulator.
    pub(crate) sent: Option<(HostId, Instant)>,
    /// The packet's way, from 0, set by the emulator.
    pub(crate) way: u8,
    /// Whether the emulator computed the checksum of its payload and it is still correct.
    pub(crate) has_valid_checksum: bool,
}

impl IpPacket {
    /// A packet from its bytes; `None` unless they start with a complete header of IPv4 or IPv6.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let is_ipv6 = match bytes.first()? >> 4 {
            4 if bytes.len() >= HEADER => false,
            6 if bytes.len() >= ip6::HEADER => true,
            _ => return None,
        };
        Some(Self {
            bytes,
            is_ipv6,
            sent: None,
            way: 0,
            has_valid_checksum: false,
        })
    }

    /// Whether it is an IPv6 packet.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.is_ipv6
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
    pub fn source_address(&self) -> IpAddr {
        self.address(ip::SOURCE, ip6::SOURCE)
    }

    /// Its destination address.
    #[must_use]
    pub fn destination_address(&self) -> IpAddr {
        self.address(ip::DESTINATION, ip6::DESTINATION)
    }

    /// The IPv4 address of its sender, also of an IPv6 packet; unspecified for one from outside.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        as_ipv4(self.source_address())
    }

    /// The IPv4 address of its destination, also of an IPv6 packet; unspecified for one outside.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        as_ipv4(self.destination_address())
    }

    fn address(&self, v4: usize, v6: usize) -> IpAddr {
        let bytes = &self.bytes;
        if self.is_ipv6 {
            let mut address = [0; 16];
            address.copy_from_slice(&bytes[v6..v6 + 16]);
            return Ipv6Addr::from(address).into();
        }
        Ipv4Addr::new(bytes[v4], bytes[v4 + 1], bytes[v4 + 2], bytes[v4 + 3]).into()
    }

    /// The protocol of its payload: 1 for ICMP, 6 for TCP, 17 for UDP, 58 for ICMPv6.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.payload().protocol
    }

    /// Its time to live, or hop limit: the hops left, including the last one (RFC 791, section 3.1).
    #[must_use]
    pub fn time_to_live(&self) -> u8 {
        self.bytes[if self.is_ipv6 {
            ip6::HOP_LIMIT
        } else {
            ip::TIME_TO_LIVE
        }]
    }

    /// Changes the header as `routers` forwarding routers do (RFC 1812, section 5.3.1): decrements the time to live and
    /// updates the checksum, so that a wrong checksum stays wrong.
    pub(crate) fn pass_routers(&mut self, routers: u8) {
        let (old, new) = (self.time_to_live(), self.time_to_live().saturating_sub(routers));
        if self.is_ipv6 {
            self.bytes[ip6::HOP_LIMIT] = new;
            return;
        }
        let protocol = self.bytes[ip::PROTOCOL];
        let field = |live: u8| u16::from_be_bytes([live, protocol]);
        self.bytes[ip::TIME_TO_LIVE] = new;
        self.replace_sum(field(old), field(new));
    }

    /// Whether the header is complete and its checksum correct, the checks of a router (RFC 1812, section 5.2.2).
    pub(crate) fn has_right_header(&self) -> bool {
        if self.is_ipv6 {
            let length = usize::from(u16_at(&self.bytes, ip6::LENGTH)) + ip6::HEADER;
            return self.bytes[0] >> 4 == 6 && length <= self.bytes.len();
        }
        let length = self.header_len();
        (HEADER..=self.bytes.len()).contains(&length) && checksum::of(&self.bytes[..length]) == 0
    }

    /// Both bits of the ECN field in the second byte (RFC 3168, section 5; RFC 8200, section 7).
    const fn ecn_bits(&self) -> u8 {
        if self.is_ipv6 { CE << 4 } else { CE }
    }

    /// Updates the header checksum for one changed 16-bit field.
    fn replace_sum(&mut self, old: u16, new: u16) {
        let sum = u16_at(&self.bytes, ip::CHECKSUM);
        put_u16(&mut self.bytes, ip::CHECKSUM, checksum::update(sum, old, new));
    }

    /// Source and destination port of a TCP segment.
    pub(crate) fn tcp_ports(&self) -> Option<(u16, u16)> {
        let payload = self.payload();
        let has_ports = payload.protocol == 6 && !payload.is_later_fragment;
        let ports = self
            .bytes
            .get(payload.start..payload.start + 4)
            .filter(|_| has_ports)?;
        Some((u16_at(ports, 0), u16_at(ports, 2)))
    }

    /// Length of its headers in bytes, from the headers.
    pub(crate) fn header_len(&self) -> usize {
        self.payload().start
    }

    /// Whether it is a fragment other than the first, which has no ports (RFC 791, section 3.1).
    pub(crate) fn is_later_fragment(&self) -> bool {
        self.payload().is_later_fragment
    }

    #[inline]
    fn payload(&self) -> Payload {
        if self.is_ipv6 {
            return self.payload_after_extensions();
        }
        Payload {
            protocol: self.bytes[ip::PROTOCOL],
            start: usize::from(self.bytes[0] & 0xf) * 4,
            is_later_fragment: u16_at(&self.bytes, ip::FLAGS) & 0x1fff != 0,
        }
    }

    /// Follows the extension headers of an IPv6 packet.
    fn payload_after_extensions(&self) -> Payload {
        let mut payload = Payload {
            protocol: self.bytes[ip6::NEXT],
            start: ip6::HEADER,
            is_later_fragment: false,
        };
        for _ in 0..ip6::MOST {
            let Some(&[next, length, high, low]) = self
                .bytes
                .get(payload.start..)
                .and_then(|rest| rest.first_chunk())
            else {
                break;
            };
            if ip6::OPTIONS.contains(&payload.protocol) {
                payload.start += (usize::from(length) + 1) * 8;
            } else if payload.protocol == ip6::FRAGMENT {
                payload.start += 8;
                payload.is_later_fragment |= u16::from_be_bytes([high, low]) >> 3 != 0;
            } else {
                break;
            }
            payload.protocol = next;
        }
        payload
    }
}

/// The IPv4 address of the same host or router.
fn as_ipv4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => from_ipv6(address).unwrap_or(Ipv4Addr::UNSPECIFIED),
    }
}

impl IpPacket {
    /// Returns the packet that an ICMP error quotes: its header and at least 8 bytes after it (RFC 792; RFC 4443, section 3).
    fn quoted(&self) -> Option<Self> {
        let payload = self.payload();
        let kind = *self.bytes.get(payload.start)?;
        let is_error = match payload.protocol {
            icmp::V4 => icmp::ERRORS.contains(&kind),
            icmp::V6 => kind < icmp::FIRST_V6_MESSAGE,
            _ => false,
        };
        let quote = self.bytes.get(payload.start + icmp::HEADER..)?;
        let is_error = is_error && !payload.is_later_fragment;
        is_error.then(|| Self::new(quote.to_vec())).flatten()
    }

    /// Returns the connection by the headers of the packet: addresses and ports without their order. TCP identifies connections
    /// by them; datagrams of UDP and ICMP have no connection that the header shows. `None` for fragments after the first.
    fn direct_connection(&self) -> Option<Connection> {
        let payload = self.payload();
        if payload.is_later_fragment {
            return None;
        }
        let at = |offset: usize| self.bytes.get(payload.start + offset).copied().unwrap_or(0);
        let is_tcp = payload.protocol == 6;
        let flags = if is_tcp { at(tcp::FLAGS) } else { 0 };
        let has_ports = matches!(payload.protocol, 6 | 17);
        let port = |offset: usize| u64::from(u16::from_be_bytes([at(offset), at(offset + 1)]));
        let ends = [(self.source(), 0), (self.destination(), 2)].map(|(address, offset)| {
            u64::from(u32::from(address)) << 16 | if has_ports { port(offset) } else { 0 }
        });
        Some(Connection {
            number: ends[0].wrapping_add(ends[1]).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                ^ (ends[0] ^ ends[1]).rotate_left(17)
                ^ u64::from(payload.protocol),
            opens: flags & (tcp::SYN | tcp::ACK) == tcp::SYN,
            is_bound: is_tcp,
            is_error: false,
        })
    }
}

/// A flow is identified by addresses, protocol and ports. Later fragments and other protocols have no ports.
impl Body for IpPacket {
    fn flip_bit(&mut self, choice: u64) {
        self.bytes.flip_bit(choice);
        self.has_valid_checksum = false;
    }

    fn ecn(&self) -> Ecn {
        Ecn::from_bits(if self.is_ipv6 {
            self.bytes[1] >> 4
        } else {
            self.bytes[1]
        })
    }

    /// The class selector of the DSCP, which are its first three bits (RFC 2474, section 4.2.2).
    fn priority(&self) -> u8 {
        if self.is_ipv6 {
            (self.bytes[0] & 0x0f) >> 1
        } else {
            self.bytes[1] >> 5
        }
    }

    fn mark_congestion_experienced(&mut self) -> bool {
        let (service, both) = (self.bytes[1], self.ecn_bits());
        if service & both == 0 {
            return false;
        }
        self.bytes[1] = service | both;
        if !self.is_ipv6 && service & both != both {
            let field = |service| u16::from_be_bytes([self.bytes[0], service]);
            let (old, new) = (field(service), field(service | both));
            self.replace_sum(old, new);
        }
        true
    }

    /// Fragments after the first have no ports. An ICMP error belongs to the connection of the packet that it quotes.
    fn connection(&self) -> Option<Connection> {
        match self.quoted() {
            Some(quoted) => Some(Connection {
                opens: false,
                is_error: true,
                ..quoted.direct_connection()?
            }),
            None => self.direct_connection(),
        }
    }

    /// Options that [`wire`] does not decode, such as those of multipath TCP, keep a segment from being a pure ACK.
    fn acknowledgement(&self) -> Option<TcpAck> {
        let payload = self.payload();
        if payload.protocol != 6 || payload.is_later_fragment {
            return None;
        }
        let decoded = wire::decode(&self.bytes).ok()?;
        let mut ack = acknowledgement(&decoded.segment)?;
        let is_known = |option: &[u8]| matches!(option[0], tcp::SACK | tcp::TIMESTAMPS);
        ack.is_pure &= wire::options(&self.bytes[decoded.options]).all(is_known);
        Some(ack)
    }

    fn flow(&self) -> u64 {
        let bytes = &self.bytes;
        let u32_at = |at: usize| {
            u64::from(u32::from_be_bytes([
                bytes[at],
                bytes[at + 1],
                bytes[at + 2],
                bytes[at + 3],
            ]))
        };
        let payload = self.payload();
        let has_ports = matches!(payload.protocol, 6 | 17) && !payload.is_later_fragment;
        let ports = match has_ports && bytes.len() >= payload.start + 4 {
            true => u32_at(payload.start),
            false => 0,
        };
        // Hosts of an emulated network differ in the last 32 bits of their IPv6 addresses.
        let (source, destination) = match self.is_ipv6 {
            true => (ip6::SOURCE + 12, ip6::DESTINATION + 12),
            false => (ip::SOURCE, ip::DESTINATION),
        };
        // The multipliers differ, so that a flow with swapped addresses or ports is another one.
        let addresses = u32_at(source).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ u32_at(destination).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        (addresses ^ ports.wrapping_mul(0x1656_67b1_9e37_79f9)).rotate_left(29) ^ u64::from(payload.protocol)
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
            assert_eq!(marked.ecn(), Ecn::from_bits(service), "{service:#x}");
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

    /// RFC 5508, section 4: an error belongs to the connection of the packet that it quotes, in either direction.
    #[test]
    fn icmp_errors_have_the_connection_of_the_quoted_packet() {
        let quoted = packet(0, [0, 1, 0, 2]);
        let connection = quoted.connection().unwrap();
        assert!(!connection.is_error);
        for (kind, is_error) in [(3, true), (11, true), (0, false), (8, false)] {
            let mut bytes = packet(0, [kind, 4, 0, 0]).into_bytes();
            bytes[ip::PROTOCOL] = icmp::V4;
            bytes.extend(&quoted.bytes()[..HEADER + 8]);
            let found = IpPacket::new(bytes).unwrap().connection().unwrap();
            assert_eq!(found.is_error, is_error, "{kind}");
            assert_eq!(found.number == connection.number, is_error, "{kind}");
        }
        let quoted = packet6(&[], 17);
        let mut bytes = packet6(&[], icmp::V6).into_bytes();
        bytes.truncate(ip6::HEADER);
        bytes.extend([1, 4, 0, 0, 0, 0, 0, 0]);
        bytes.extend(quoted.bytes());
        let found = IpPacket::new(bytes).unwrap().connection().unwrap();
        assert!(found.is_error);
        assert_eq!(found.number, quoted.connection().unwrap().number);
    }

    /// An error with a quoted SYN does not start a connection.
    #[test]
    fn only_a_syn_starts_a_connection_and_later_fragments_have_none() {
        let mut bytes = packet(0, [0, 1, 0, 2]).into_bytes();
        bytes[ip::PROTOCOL] = 6;
        bytes.resize(HEADER + 20, 0);
        bytes[HEADER + tcp::FLAGS] = tcp::SYN;
        let start = IpPacket::new(bytes.clone()).unwrap().connection().unwrap();
        assert!(start.opens && start.is_bound && !start.is_error);
        let mut error = packet(0, [3, 4, 0, 0]).into_bytes();
        error[ip::PROTOCOL] = icmp::V4;
        error.extend(&bytes);
        let error = IpPacket::new(error).unwrap().connection().unwrap();
        assert!(!error.opens && error.is_bound && error.is_error);
        assert_eq!(error.number, start.number);
        bytes[ip::FLAGS + 1] = 100;
        assert_eq!(IpPacket::new(bytes).unwrap().connection(), None);
    }

    /// A UDP datagram over IPv6 behind extension headers (RFC 8200, sections 3 and 4).
    fn packet6(extensions: &[u8], next: u8) -> IpPacket {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        for last in [1, 2] {
            bytes.extend([0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, last]);
        }
        bytes.extend(extensions);
        bytes.extend([0, 1, 0, 2, 0, 8, 0, 0]);
        bytes[5] = bytes.len() as u8 - 40;
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn reads_ipv6_headers_with_extensions() {
        let plain = packet6(&[], 17);
        assert_eq!(
            (plain.protocol(), plain.header_len(), plain.time_to_live()),
            (17, 40, 64)
        );
        assert_eq!(plain.source(), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(plain.destination_address().to_string(), "fd77::a4d:2");
        assert!(plain.has_right_header());
        // Destination options of 16 bytes, then a fragment header: the first fragment, and a later one.
        let options = [44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (offset, is_later) in [(1, false), (8, true)] {
            let fragment = [17, 0, 0, offset, 0, 0, 0, 7];
            let packet = packet6(&[&options[..], &fragment].concat(), 60);
            assert_eq!((packet.protocol(), packet.header_len()), (17, 64));
            assert_eq!(packet.is_later_fragment(), is_later);
            assert_eq!(packet.flow() == plain.flow(), !is_later);
        }
        let mut passed = plain;
        passed.pass_routers(3);
        assert_eq!(passed.time_to_live(), 61);
    }

    /// RFC 2474, section 4.2.2: the class selector CS5 is 0b101000, and expedited forwarding (46, 0b101110) has its precedence.
    #[test]
    fn the_class_selector_is_the_priority() {
        for (dscp, priority) in [(0, 0), (8, 1), (40, 5), (46, 5), (56, 7)] {
            assert_eq!(packet(dscp << 2 | 1, [0; 4]).priority(), priority);
            let mut long = packet6(&[], 17);
            let class = dscp << 2 | 1;
            long.bytes[0] = 0x60 | class >> 4;
            long.bytes[1] = class << 4;
            assert_eq!(long.priority(), priority);
        }
    }

    #[test]
    fn marks_ecn_capable_ipv6_packets() {
        for ecn in 0..4 {
            let mut packet = packet6(&[], 17);
            packet.bytes[1] = 0x0f | ecn << 4;
            assert_eq!(packet.ecn(), Ecn::from_bits(ecn));
            assert_eq!(packet.mark_congestion_experienced(), ecn != 0);
            assert_eq!(packet.bytes()[1], if ecn == 0 { 0x0f } else { 0x3f });
        }
    }

    #[test]
    fn a_damaged_version_keeps_the_packet_readable() {
        let mut damaged = packet(0, [0; 4]);
        damaged.bytes[0] ^= 0x20;
        assert_eq!(damaged.bytes[0] >> 4, 6);
        let _ = (
            damaged.flow(),
            damaged.source(),
            damaged.tcp_ports(),
            damaged.has_right_header(),
        );
    }

    #[test]
    fn rejects_bytes_that_are_not_ip() {
        assert_eq!(IpPacket::new(vec![0x60; 39]), None);
        assert_eq!(IpPacket::new(vec![0x50; 40]), None);
        assert_eq!(IpPacket::new(Vec::new()), None);
        assert_eq!(IpPacket::new(vec![0x45; HEADER - 1]), None);
        let packet = packet(0, [0; 4]);
        assert_eq!(packet.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(packet.destination(), Ipv4Addr::new(10, 0, 0, 2));
    }
}
