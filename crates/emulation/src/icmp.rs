//! ICMP errors from the routers of an emulated network (RFC 792).

use std::net::Ipv4Addr;

use foundation::checksum;
use foundation::icmp::{self, PROTOCOL, TIME_EXCEEDED, TOO_BIG, UNREACHABLE};

use crate::packet::{HEADER, IpPacket};

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
        let is_single = |address: Ipv4Addr| {
            !(address.is_multicast() || address.is_broadcast() || address.is_unspecified())
        };
        let singles = is_single(packet.source()) && is_single(packet.destination());
        if !singles || packet.is_later_fragment() || is_error(packet) {
            return None;
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
