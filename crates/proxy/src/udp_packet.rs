//! Datagrams of UDP in IPv4 packets on the path (RFC 768).

use std::net::Ipv4Addr;

use etherparse::{IpNumber, IpSlice, PacketBuilder, UdpSlice};
use foundation::checksum;
use transport::tcp::wire::HOP_LIMIT;

use crate::datagram::{SERVER, UDP_CLIENTS};
use crate::lanes::Direction;

const SERVER_PORT: u16 = 9;
/// Largest payload: 65,535 bytes less both headers.
pub(crate) const MOST_BYTES: usize = 65_507;

/// A client of UDP: its number among all clients so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpClient(pub(crate) u32);

impl UdpClient {
    fn address(self) -> Ipv4Addr {
        Ipv4Addr::from(UDP_CLIENTS + (self.0 & 0xffff))
    }

    const fn port(self) -> u16 {
        (self.0 >> 16) as u16
    }

    fn at(address: [u8; 4], port: u16) -> Option<Self> {
        let low = u32::from_be_bytes(address).checked_sub(UDP_CLIENTS)?;
        (low <= 0xffff).then_some(Self(u32::from(port) << 16 | low))
    }

    /// Returns its address and port as a number, like [`Datagram::client`](crate::datagram::Datagram::client).
    pub(crate) fn key(self) -> u64 {
        u64::from(u32::from(self.address())) << 16 | u64::from(self.port())
    }
}

/// Appends the packet of a datagram to `out`. The payload has at most [`MOST_BYTES`] bytes.
pub(crate) fn encode(client: UdpClient, direction: Direction, payload: &[u8], out: &mut Vec<u8>) {
    let (near, far) = ((client.address(), client.port()), (SERVER, SERVER_PORT));
    let (from, to) = match direction {
        Direction::Forward => (near, far),
        Direction::Reverse => (far, near),
    };
    let packet = PacketBuilder::ipv4(from.0.octets(), to.0.octets(), HOP_LIMIT).udp(from.1, to.1);
    // A vector takes all bytes, and the payload is not too long.
    let _ = packet.write(out, payload);
}

/// Returns whether a packet has a datagram of UDP.
pub(crate) fn is_udp(packet: &[u8]) -> bool {
    packet.get(9) == Some(&IpNumber::UDP.0)
}

/// Returns client and payload of a packet; `None` if a checksum fails.
pub(crate) fn decode(packet: &[u8], direction: Direction) -> Option<(UdpClient, &[u8])> {
    let IpSlice::Ipv4(ip) = IpSlice::from_slice(packet).ok()? else {
        return None;
    };
    let header = ip.header();
    if checksum::of(header.slice()) != 0 {
        return None;
    }
    let udp = UdpSlice::from_slice(ip.payload().payload).ok()?;
    let (from, to) = (header.source(), header.destination());
    let pseudo_header = checksum::pseudo_header(from, to, IpNumber::UDP.0, udp.length());
    if pseudo_header.with(udp.slice()).checksum() != 0 {
        return None;
    }
    let client = match direction {
        Direction::Forward => UdpClient::at(from, udp.source_port()),
        Direction::Reverse => UdpClient::at(to, udp.destination_port()),
    };
    Some((client?, udp.payload()))
}

#[cfg(test)]
mod tests {
    use foundation::Instant;

    use super::*;
    use crate::datagram::Datagram;

    #[test]
    fn packets_carry_client_and_payload_and_reject_single_bit_errors() {
        for (number, payload) in [(0, vec![]), (65_535, b"a".to_vec()), (0x1234_5678, vec![7; 1200])] {
            for direction in Direction::ALL {
                let client = UdpClient(number);
                let mut bytes = Vec::new();
                encode(client, direction, &payload, &mut bytes);
                assert!(is_udp(&bytes));
                assert_eq!(bytes.len(), 28 + payload.len());
                assert_eq!(decode(&bytes, direction), Some((client, &payload[..])));
                let datagram = Datagram {
                    bytes: bytes.clone(),
                    sent: Instant::ZERO,
                };
                assert_eq!(datagram.client(direction == Direction::Forward), client.key());
                for bit in 0..8 * bytes.len().min(64) {
                    let mut damaged = bytes.clone();
                    damaged[bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(decode(&damaged, direction), None, "bit {bit}");
                }
            }
        }
    }
}
