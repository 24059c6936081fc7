//! The packet headers that measurements use.

use std::net::IpAddr;

use etherparse::{IpNumber, Ipv6ExtensionSlice, LaxIpSlice, TcpHeaderSlice, UdpHeaderSlice, ip_number};
use transport::tcp::Flags;

/// The transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp {
        /// The sender's port.
        source: u16,
        /// The receiver's port.
        destination: u16,
        /// Number of its first byte.
        sequence: u32,
        /// Number of the next byte that the sender expects.
        acknowledgement: u32,
        /// Its flags.
        flags: Flags,
        /// Bytes of payload.
        payload: u32,
    },
    /// A UDP datagram, or the first fragment of one.
    Udp {
        /// The sender's port.
        source: u16,
        /// The receiver's port.
        destination: u16,
        /// Bytes of payload according to its header.
        payload: u32,
    },
    /// An ICMP or ICMPv6 echo message.
    Echo {
        /// Whether it is a request.
        request: bool,
        /// Identifier of the sender's socket.
        identifier: u16,
        /// Sequence number.
        sequence: u16,
    },
    /// Any other protocol, and later fragments, which have no transport header.
    Other,
}

/// The headers of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The IP protocol number of the payload.
    pub protocol: u8,
    /// Length with the IP header according to that header.
    pub length: u32,
    /// Whether it is a fragment, including the first one.
    pub is_fragment: bool,
    /// The transport header.
    pub transport: Transport,
}

/// Parses the transport header that `bytes` begin with; `length` is that of the whole packet's payload.
fn transport(protocol: IpNumber, bytes: &[u8], length: u32) -> Option<Transport> {
    Some(match (protocol, *bytes.first()?) {
        (ip_number::TCP, _) => {
            let header = TcpHeaderSlice::from_slice(bytes).ok()?;
            Transport::Tcp {
                source: header.source_port(),
                destination: header.destination_port(),
                sequence: header.sequence_number(),
                acknowledgement: header.acknowledgment_number(),
                flags: Flags::from_bits(u16::from_be_bytes([header.slice()[12], header.slice()[13]])),
                payload: length.saturating_sub(header.slice().len() as u32),
            }
        }
        (ip_number::UDP, _) => {
            let header = UdpHeaderSlice::from_slice(bytes).ok()?;
            Transport::Udp {
                source: header.source_port(),
                destination: header.destination_port(),
                payload: u32::from(header.length()).saturating_sub(8),
            }
        }
        (ip_number::ICMP, kind @ (0 | 8)) | (ip_number::IPV6_ICMP, kind @ (128 | 129)) => {
            let &[_, _, _, _, a, b, c, d] = bytes.first_chunk()?;
            Transport::Echo {
                request: matches!(kind, 8 | 128),
                identifier: u16::from_be_bytes([a, b]),
                sequence: u16::from_be_bytes([c, d]),
            }
        }
        _ => return None,
    })
}

impl Packet {
    /// Parses the headers of a packet, which may be truncated; `None` without an IP header.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
        // The offset is known only of fragments.
        let (length, headers, fragment) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                let offset = header.fragments_offset();
                let fragment = header.is_fragmenting_payload().then_some(offset);
                (u32::from(header.total_len()), header.slice().len(), fragment)
            }
            LaxIpSlice::Ipv6(ip) => {
                let (header, extensions) = (ip.header(), ip.extensions());
                let fragment = extensions
                    .clone()
                    .into_iter()
                    .find_map(|extension| match extension {
                        Ipv6ExtensionSlice::Fragment(header) => Some(header.fragment_offset()),
                        _ => None,
                    });
                let length = u32::from(header.payload_length()) + 40;
                (length, 40 + extensions.slice().len(), fragment)
            }
        };
        let (protocol, payload) = (ip.payload_ip_number(), ip.payload().payload);
        let is_first = fragment.is_none_or(|offset| offset.value() == 0);
        let above = is_first.then(|| transport(protocol, payload, length.saturating_sub(headers as u32)));
        Some(Self {
            source: ip.source_addr(),
            destination: ip.destination_addr(),
            protocol: protocol.0,
            length,
            is_fragment: fragment.is_some(),
            transport: above.flatten().unwrap_or(Transport::Other),
        })
    }

    /// Returns the ports of a segment or datagram, source first.
    #[must_use]
    pub const fn ports(&self) -> Option<(u16, u16)> {
        match self.transport {
            Transport::Tcp {
                source, destination, ..
            }
            | Transport::Udp {
                source, destination, ..
            } => Some((source, destination)),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds an IPv4 packet of TCP or UDP.
    pub fn v4(protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16), place: u16) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 60, 0, 1, 0, 0, 64, protocol, 0, 0];
        bytes[6..8].copy_from_slice(&place.to_be_bytes());
        bytes.extend(from.0);
        bytes.extend(to.0);
        bytes.extend(from.1.to_be_bytes());
        bytes.extend(to.1.to_be_bytes());
        // Sequence and acknowledgement, a header of 20 bytes, SYN; for UDP, a length of 28.
        bytes.extend([0, 28, 0, 0, 0, 0, 0, 9, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    /// Builds an IPv6 packet of UDP, with a fragment header if `fragment` gives its offset and flag.
    pub fn v6(from: ([u8; 16], u16), to: ([u8; 16], u16), fragment: Option<u16>) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 40, 17, 63];
        bytes.extend(from.0);
        bytes.extend(to.0);
        if let Some(place) = fragment {
            bytes[6] = 44;
            bytes.extend([17, 0]);
            bytes.extend(place.to_be_bytes());
            bytes.extend([0, 0, 0, 7]);
        }
        bytes.extend(from.1.to_be_bytes());
        bytes.extend(to.1.to_be_bytes());
        bytes.extend([0, 20, 0, 0]);
        bytes
    }

    #[test]
    fn parses_a_syn() {
        let bytes = v4(6, ([10, 0, 0, 1], 4000), ([10, 0, 0, 2], 80), 0);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet.source.to_string(), "10.0.0.1");
        assert_eq!(packet.length, 60);
        assert_eq!(packet.ports(), Some((4000, 80)));
        let Transport::Tcp {
            flags,
            payload,
            sequence,
            acknowledgement,
            ..
        } = packet.transport
        else {
            panic!("{packet:?}");
        };
        assert_eq!(flags, Flags::SYN);
        assert_eq!((payload, sequence, acknowledgement), (20, 28 << 16, 9));
    }

    #[test]
    fn only_the_first_fragment_has_ports() {
        let first = Packet::parse(&v4(17, ([1; 4], 5), ([2; 4], 6), 0x2000)).unwrap();
        assert!(first.is_fragment);
        assert_eq!(first.ports(), Some((5, 6)));
        let later = Packet::parse(&v4(17, ([1; 4], 5), ([2; 4], 6), 0x00b9)).unwrap();
        assert_eq!((later.transport, later.is_fragment), (Transport::Other, true));
        let first = Packet::parse(&v6(([1; 16], 5), ([2; 16], 6), Some(1))).unwrap();
        assert_eq!((first.protocol, first.ports()), (17, Some((5, 6))));
        let later = Packet::parse(&v6(([1; 16], 5), ([2; 16], 6), Some(8))).unwrap();
        assert_eq!(
            (later.protocol, later.ports(), later.is_fragment),
            (17, None, true)
        );
    }

    #[test]
    fn distinguishes_echoes_from_other_icmp() {
        let mut bytes = v4(1, ([1; 4], 0x0800), ([2; 4], 0), 0);
        bytes[24..28].copy_from_slice(&[0, 3, 0, 9]);
        let echo = Packet::parse(&bytes).unwrap().transport;
        let request = Transport::Echo {
            request: true,
            identifier: 3,
            sequence: 9,
        };
        assert_eq!(echo, request);
        bytes[20] = 3;
        assert_eq!(Packet::parse(&bytes).unwrap().transport, Transport::Other);
    }

    proptest! {
        #[test]
        fn parses_any_bytes_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Packet::parse(&bytes);
        }

        #[test]
        fn parses_truncated_packets_without_harm(mut bytes in proptest::collection::vec(any::<u8>(), 1..120), six: bool) {
            bytes[0] = if six { 0x60 } else { 0x45 };
            if let Some(next) = bytes.get_mut(6).filter(|_| six) {
                *next = [0, 43, 44, 60][usize::from(*next) % 4];
            }
            let _ = Packet::parse(&bytes);
        }
    }
}
