//! What a router of an emulated network answers to packets for itself (RFC 1812, sections 4.2 to 4.4).

use foundation::icmp::PROTOCOL as ICMP;
use transport::tcp::reset_for;
use transport::tcp::wire;

use crate::icmp::Fault;
use crate::packet::IpPacket;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The answer to a packet for a router itself, whose address is its destination: an echo reply, that no port is open, or
/// that it does not speak the protocol. `None` for what is not answered: later fragments (it puts nothing together), other
/// ICMP, and what is damaged.
pub fn answer(packet: &IpPacket) -> Option<IpPacket> {
    let own = packet.destination();
    match packet.protocol() {
        ICMP => IpPacket::new(stack::echo_reply(packet.bytes())?),
        TCP => {
            let stranger = wire::decode(packet.bytes()).ok()?;
            let reset = reset_for(&stranger.segment)?;
            let mut bytes = Vec::new();
            wire::encode(&reset, stranger.endpoints.reversed(), &mut bytes, |_| {}).ok()?;
            IpPacket::new(bytes)
        }
        UDP => Fault::Port.message(packet, own),
        _ => Fault::Protocol.message(packet, own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::HEADER;
    use foundation::checksum;
    use proptest::prelude::*;

    /// A packet from 10.77.0.1 to 10.77.252.1 with right checksums, but for those of UDP and ICMP.
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
    fn an_echo_comes_back_with_its_number_and_all_its_bytes() {
        let mut echo = vec![8, 0, 0, 0, 0x12, 0x34, 0, 5];
        echo.extend([0xa5; 1001]);
        let sum = checksum::of(&echo);
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        let asked = packet(ICMP, &echo);
        let told = answer(&asked).unwrap();
        assert_eq!(
            (told.source(), told.destination()),
            (asked.destination(), asked.source())
        );
        assert!(told.has_right_header());
        assert_eq!(told.time_to_live(), 64);
        let body = &told.bytes()[HEADER..];
        assert_eq!((body[0], &body[4..]), (0, &echo[4..]));
        assert_eq!(checksum::of(body), 0);
        echo[9] ^= 1;
        assert_eq!(answer(&packet(ICMP, &echo)), None, "it is damaged");
    }

    #[test]
    fn no_port_is_open() {
        let told = answer(&packet(UDP, &[0, 9, 130, 155, 0, 8, 0, 0])).unwrap();
        assert_eq!(told.bytes()[HEADER..HEADER + 2], [3, 3]);
        let told = answer(&packet(47, &[0; 8])).unwrap();
        assert_eq!(told.bytes()[HEADER..HEADER + 2], [3, 2]);
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
        let told = answer(&IpPacket::new(bytes).unwrap()).unwrap();
        let reset = wire::decode(told.bytes()).unwrap();
        assert_eq!(reset.endpoints, endpoints.reversed());
        assert!(reset.segment.flags.contains(Flags::RST));
        assert_eq!(reset.segment.acknowledgement, SequenceNumber(701));
        assert_eq!(answer(&told), None, "a reset is not answered");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_with_a_whole_packet_to_their_source_or_not_at_all(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            first in 0x45_u8..0x4f,
            protocol in prop_oneof![Just(ICMP), Just(TCP), Just(UDP), any::<u8>()],
        ) {
            let mut bytes = bytes;
            if bytes.len() >= HEADER {
                bytes[0] = first;
                bytes[9] = protocol;
            }
            let Some(asked) = IpPacket::new(bytes) else { return Ok(()) };
            if let Some(told) = answer(&asked) {
                prop_assert!(told.has_right_header());
                prop_assert_eq!(told.destination(), asked.source());
            }
        }
    }
}
