//! Replies of a router to packets for itself (RFC 1812, sections 4.2 to 4.4).

use std::net::IpAddr;

use foundation::icmp::{self, PROTOCOL as ICMP};
use transport::tcp::reset_for;
use transport::tcp::wire;

use crate::icmp::{Fault, PROTOCOL_V6, message_to};
use crate::packet::{IpPacket, ip6, u16_at};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The reply to a packet whose destination is the router's address: an echo reply, a reset, or an ICMP error. `None`
/// for later fragments (routers do not reassemble), other ICMP messages and damaged packets.
pub fn answer(packet: &IpPacket) -> Option<IpPacket> {
    if packet.is_ipv6() {
        return answer_v6(packet);
    }
    let own = packet.destination();
    match packet.protocol() {
        ICMP => IpPacket::new(stack::echo_reply(packet.bytes())?),
        TCP => {
            let decoded = wire::decode(packet.bytes()).ok()?;
            let reset = reset_for(&decoded.segment)?;
            let mut bytes = Vec::new();
            wire::encode(&reset, decoded.endpoints.reversed(), &mut bytes, |_| {}).ok()?;
            IpPacket::new(bytes)
        }
        UDP => Fault::Port.message(packet, own),
        _ => Fault::Protocol.message(packet, own),
    }
}

/// The reply to an IPv6 packet: an echo reply (RFC 4443, section 4.2), or an ICMPv6 error.
fn answer_v6(packet: &IpPacket) -> Option<IpPacket> {
    const ECHO_REQUEST: u8 = 128;
    const ECHO_REPLY: u8 = 129;
    let (IpAddr::V6(sender), IpAddr::V6(own)) = (packet.source_address(), packet.destination_address())
    else {
        return None;
    };
    if packet.is_later_fragment() {
        return None;
    }
    match packet.protocol() {
        PROTOCOL_V6 => {
            let end = ip6::HEADER + usize::from(u16_at(packet.bytes(), ip6::LENGTH));
            let message = packet.bytes().get(packet.header_len()..end)?;
            if message.len() < icmp::HEADER || message[0] != ECHO_REQUEST {
                return None;
            }
            let mut reply = message.to_vec();
            reply[0] = ECHO_REPLY;
            message_to(sender, own, reply)
        }
        // Sockets report a closed port of TCP like one of UDP.
        TCP | UDP => Fault::Port.message(packet, packet.destination()),
        _ => Fault::Protocol.message(packet, packet.destination()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::HEADER;
    use foundation::checksum;
    use proptest::prelude::*;

    /// A packet from 10.77.0.1 to 10.77.252.1 with correct checksums, except those of UDP and ICMP.
    fn packet(protocol: u8, payload: &[u8]) -> IpPacket {
        let mut bytes = vec![
            0x45, 0, 0, 0, 0, 7, 0x40, 0, 9, protocol, 0, 0, 10, 77, 0, 1, 10, 77, 252, 1,
        ];
        bytes.extend(payload);
        let length = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = checksum::of(&bytes[..HEADER]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn replies_to_echo_requests_with_their_payload() {
        let mut echo = vec![8, 0, 0, 0, 0x12, 0x34, 0, 5];
        echo.extend([0xa5; 1001]);
        let sum = checksum::of(&echo);
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        let request = packet(ICMP, &echo);
        let reply = answer(&request).unwrap();
        assert_eq!(
            (reply.source(), reply.destination()),
            (request.destination(), request.source())
        );
        assert!(reply.has_right_header());
        assert_eq!(reply.time_to_live(), 64);
        let body = &reply.bytes()[HEADER..];
        assert_eq!((body[0], &body[4..]), (0, &echo[4..]));
        assert_eq!(checksum::of(body), 0);
        echo[9] ^= 1;
        assert_eq!(answer(&packet(ICMP, &echo)), None, "a damaged request");
    }

    #[test]
    fn udp_ports_are_unreachable() {
        let reply = answer(&packet(UDP, &[0, 9, 130, 155, 0, 8, 0, 0])).unwrap();
        assert_eq!(reply.bytes()[HEADER..HEADER + 2], [3, 3]);
        let reply = answer(&packet(47, &[0; 8])).unwrap();
        assert_eq!(reply.bytes()[HEADER..HEADER + 2], [3, 2]);
    }

    #[test]
    fn connections_are_refused() {
        use transport::tcp::wire::Endpoints;
        use transport::tcp::{Flags, Segment, SequenceNumber};
        let syn = Segment::bare(SequenceNumber(700), SequenceNumber(0), Flags::SYN);
        let endpoints = Endpoints {
            source: ([10, 77, 0, 1], 40_000).into(),
            destination: ([10, 77, 252, 1], 80).into(),
        };
        let mut bytes = Vec::new();
        wire::encode(&syn, endpoints, &mut bytes, |_| {}).unwrap();
        let reply = answer(&IpPacket::new(bytes).unwrap()).unwrap();
        let reset = wire::decode(reply.bytes()).unwrap();
        assert_eq!(reset.endpoints, endpoints.reversed());
        assert!(reset.segment.flags.contains(Flags::RST));
        assert_eq!(reset.segment.acknowledgement, SequenceNumber(701));
        assert_eq!(answer(&reply), None, "a reset is not answered");
    }

    proptest! {
        #[test]
        fn replies_to_any_bytes_are_complete_packets_to_the_source(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            first in 0x45_u8..0x4f,
            protocol in prop_oneof![Just(ICMP), Just(TCP), Just(UDP), any::<u8>()],
        ) {
            let mut bytes = bytes;
            if bytes.len() >= HEADER {
                bytes[0] = first;
                bytes[9] = protocol;
            }
            let Some(packet) = IpPacket::new(bytes) else { return Ok(()) };
            if let Some(reply) = answer(&packet) {
                prop_assert!(reply.has_right_header());
                prop_assert_eq!(reply.destination(), packet.source());
            }
        }
    }
}
