//! ICMP errors from the routers of an emulated network (RFC 792, RFC 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foundation::checksum::{self, Sum};
use foundation::icmp::{self, PROTOCOL, TIME_EXCEEDED, TOO_BIG, UNREACHABLE};

use crate::address::to_ipv6;
use crate::packet::{HEADER, IpPacket, ip6};

/// IP's number of ICMPv6.
pub const PROTOCOL_V6: u8 = 58;
/// Bytes of an ICMPv6 error with all headers: the smallest MTU of IPv6 (RFC 4443, section 2.4).
const MOST_V6: usize = 1280;

/// Bytes of the original packet that an error quotes: as many as fit a message of 576 bytes (RFC 1812, section
/// 4.3.2.3).
const MOST: usize = 576 - HEADER - icmp::HEADER;

/// The reason why a packet cannot be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No route to the destination network.
    Net,
    /// No route to the destination.
    Host,
    /// The destination does not support the protocol.
    Protocol,
    /// No listener at the destination port.
    Port,
    /// DF is set, and the packet exceeds the next link's MTU (RFC 1191, section 4).
    TooBig {
        /// The MTU of the link.
        mtu: u16,
    },
    /// The time to live expired.
    TimeExceeded,
}

impl Fault {
    /// Type and code of the error, and its MTU field (RFC 792; RFC 1191).
    const fn numbers(self) -> (u8, u8, u16) {
        match self {
            Self::Net => (UNREACHABLE, 0, 0),
            Self::Host => (UNREACHABLE, 1, 0),
            Self::Protocol => (UNREACHABLE, 2, 0),
            Self::Port => (UNREACHABLE, 3, 0),
            Self::TooBig { mtu } => (UNREACHABLE, TOO_BIG, mtu),
            Self::TimeExceeded => (TIME_EXCEEDED, 0, 0),
        }
    }

    /// The error about `packet` from the address `router`; `None` for packets that must not cause one (RFC 1812,
    /// section 4.3.2.7: ICMP errors, fragments other than the first, packets from or to a group of hosts).
    #[must_use]
    pub fn message(self, packet: &IpPacket, router: Ipv4Addr) -> Option<IpPacket> {
        let is_single = |address: IpAddr| {
            let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            !(address.is_multicast() || is_broadcast || address.is_unspecified())
        };
        let singles = is_single(packet.source_address()) && is_single(packet.destination_address());
        if !singles || packet.is_later_fragment() || is_error(packet) {
            return None;
        }
        if let IpAddr::V6(sender) = packet.source_address() {
            return self.message_v6(packet, to_ipv6(router), sender);
        }
        let quoted = &packet.bytes()[..packet.bytes().len().min(MOST)];
        let (kind, code, mtu) = self.numbers();
        let length = (HEADER + icmp::HEADER + quoted.len()) as u16;
        let mut bytes = Vec::with_capacity(usize::from(length));
        // Precedence "internetwork control" (RFC 1812, section 4.3.2.5).
        bytes.extend([0x45, 0xc0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, PROTOCOL, 0, 0]);
        bytes.extend(router.octets());
        bytes.extend(packet.source().octets());
        let sum = checksum::of(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend([kind, code, 0, 0, 0, 0]);
        bytes.extend(mtu.to_be_bytes());
        bytes.extend(quoted);
        icmp::seal(&mut bytes[HEADER..]);
        IpPacket::new(bytes)
    }
}

impl Fault {
    /// Type and code of the ICMPv6 error, and its field of 32 bits (RFC 4443, section 3).
    const fn numbers_v6(self) -> (u8, u8, u32) {
        match self {
            Self::Net => (1, 0, 0),
            Self::Host => (1, 3, 0),
            Self::Port => (1, 4, 0),
            Self::TooBig { mtu } => (2, 0, mtu as u32),
            Self::TimeExceeded => (3, 0, 0),
            // The pointer leads to the next header.
            Self::Protocol => (4, 1, ip6::NEXT as u32),
        }
    }

    fn message_v6(self, packet: &IpPacket, router: Ipv6Addr, sender: Ipv6Addr) -> Option<IpPacket> {
        let most = MOST_V6 - ip6::HEADER - icmp::HEADER;
        let quoted = &packet.bytes()[..packet.bytes().len().min(most)];
        let (kind, code, field) = self.numbers_v6();
        let mut message = vec![kind, code, 0, 0];
        message.extend(field.to_be_bytes());
        message.extend(quoted);
        message_to(sender, router, message)
    }
}

/// A packet with an ICMPv6 message, whose checksum is computed here (RFC 4443, section 2.3).
pub fn message_to(destination: Ipv6Addr, source: Ipv6Addr, mut message: Vec<u8>) -> Option<IpPacket> {
    let length = message.len() as u16;
    let sum = Sum::default()
        .with(&source.octets())
        .with(&destination.octets())
        .with(&u32::from(length).to_be_bytes())
        .with(&[0, 0, 0, PROTOCOL_V6]);
    message[2..4].fill(0);
    let sum = sum.with(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([PROTOCOL_V6, 64]);
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    bytes.extend(message);
    IpPacket::new(bytes)
}

/// The packet that an ICMP error quotes; `None` for any other packet.
#[must_use]
pub fn quoted(packet: &IpPacket) -> Option<IpPacket> {
    let start = packet.header_len() + icmp::HEADER;
    let is_one = is_error(packet) && packet.bytes().len() > start;
    is_one
        .then(|| packet.bytes()[start..].to_vec())
        .and_then(IpPacket::new)
}

/// Whether it is an ICMP message other than an echo, timestamp or information request or reply.
fn is_error(packet: &IpPacket) -> bool {
    let kind = packet.bytes().get(packet.header_len());
    if packet.is_ipv6() {
        // Types of errors are below 128 (RFC 4443, section 2.1).
        return packet.protocol() == PROTOCOL_V6 && kind.is_some_and(|&kind| kind < 128);
    }
    packet.protocol() == PROTOCOL && !kind.is_some_and(|kind| matches!(kind, 0 | 8 | 13..=18))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 254);

    fn udp(length: usize) -> IpPacket {
        let mut bytes = vec![0; length];
        bytes[..HEADER].copy_from_slice(&[
            0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2,
        ]);
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn too_big_has_the_mtu_and_quotes_the_packet() {
        let packet = udp(1400);
        let error = Fault::TooBig { mtu: 1300 }.message(&packet, ROUTER).unwrap();
        let bytes = error.bytes();
        assert_eq!((error.source(), error.destination()), (ROUTER, packet.source()));
        assert_eq!(bytes.len(), 576);
        assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), bytes.len());
        assert_eq!(bytes[HEADER..HEADER + 2], [3, 4]);
        assert_eq!(bytes[HEADER + 6..HEADER + 8], 1300_u16.to_be_bytes());
        assert_eq!(bytes[HEADER + 8..], packet.bytes()[..576 - 28]);
        assert_eq!(checksum::of(&bytes[..HEADER]), 0);
        assert_eq!(checksum::of(&bytes[HEADER..]), 0);
    }

    /// A UDP datagram of `length` bytes over IPv6.
    fn udp6(length: usize) -> IpPacket {
        let mut bytes = vec![0; length];
        bytes[0] = 0x60;
        bytes[ip6::NEXT] = 17;
        bytes[ip6::SOURCE..ip6::SOURCE + 16].copy_from_slice(&to_ipv6(Ipv4Addr::new(10, 77, 0, 1)).octets());
        bytes[ip6::DESTINATION..ip6::DESTINATION + 16]
            .copy_from_slice(&to_ipv6(Ipv4Addr::new(10, 77, 0, 2)).octets());
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn ipv6_errors_have_their_numbers_and_a_checksum() {
        for (fault, numbers) in [
            (Fault::Net, [1, 0, 0, 0, 0, 0]),
            (Fault::Host, [1, 3, 0, 0, 0, 0]),
            (Fault::Port, [1, 4, 0, 0, 0, 0]),
            (Fault::TooBig { mtu: 1300 }, [2, 0, 0, 0, 5, 20]),
            (Fault::TimeExceeded, [3, 0, 0, 0, 0, 0]),
            (Fault::Protocol, [4, 1, 0, 0, 0, 6]),
        ] {
            let packet = udp6(1400);
            let error = fault.message(&packet, ROUTER).unwrap();
            assert_eq!(error.bytes().len(), 1280);
            assert_eq!(error.source_address(), IpAddr::V6(to_ipv6(ROUTER)));
            assert_eq!(error.destination_address(), packet.source_address());
            let message = &error.bytes()[ip6::HEADER..];
            assert_eq!([&message[..2], &message[4..8]].concat(), numbers);
            assert_eq!(message[8..], packet.bytes()[..1280 - 48]);
            let sum = Sum::default()
                .with(&error.bytes()[ip6::SOURCE..ip6::HEADER])
                .with(&[
                    0,
                    0,
                    1240_u16.to_be_bytes()[0],
                    1240_u16.to_be_bytes()[1],
                    0,
                    0,
                    0,
                    PROTOCOL_V6,
                ]);
            assert_eq!(sum.with(message).checksum(), 0);
            assert_eq!(
                Fault::Net.message(&error, ROUTER),
                None,
                "no error about an error"
            );
        }
    }

    #[test]
    fn each_fault_has_its_numbers() {
        let faults = [
            (Fault::Net, [3, 0]),
            (Fault::Host, [3, 1]),
            (Fault::Protocol, [3, 2]),
            (Fault::Port, [3, 3]),
            (Fault::TimeExceeded, [11, 0]),
        ];
        for (fault, numbers) in faults {
            let error = fault.message(&udp(100), ROUTER).unwrap();
            assert_eq!(error.bytes()[HEADER..HEADER + 2], numbers);
            assert_eq!(error.bytes()[HEADER + 8..], *udp(100).bytes());
            assert_eq!(checksum::of(&error.bytes()[HEADER..]), 0);
        }
    }

    #[test]
    fn errors_and_later_fragments_cause_no_error() {
        let mut error = udp(100).into_bytes();
        error[9] = PROTOCOL;
        error[HEADER] = UNREACHABLE;
        let mut echo = error.clone();
        echo[HEADER] = 8;
        let mut fragment = udp(100).into_bytes();
        fragment[7] = 1;
        let mut to_many = udp(100).into_bytes();
        to_many[16] = 224;
        let message = |bytes| Fault::Host.message(&IpPacket::new(bytes).unwrap(), ROUTER);
        assert_eq!(message(to_many), None);
        assert_eq!(message(error), None);
        assert_eq!(message(fragment), None);
        assert!(message(echo).is_some());
    }
}
