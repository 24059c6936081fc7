//! The packet headers that measurements use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    /// Remaining hop limit.
    pub hop_limit: u8,
    /// Whether it is a fragment, including the first one.
    pub is_fragment: bool,
    /// The transport header.
    pub transport: Transport,
}

/// The headers below the transport.
struct Below {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    length: u32,
    hop_limit: u8,
    /// Position of the transport header.
    header: usize,
    /// Fragment offset, if it is a fragment.
    fragment: Option<u16>,
}

fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// RFC 791, section 3.1.
fn ipv4(bytes: &[u8]) -> Option<Below> {
    let header = usize::from(u8_at(bytes, 0)? & 0xf) * 4;
    if header < 20 {
        return None;
    }
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets).into())
    };
    // More fragments, or an offset.
    let place = u16_at(bytes, 6)? & 0x3fff;
    Some(Below {
        source: address(12)?,
        destination: address(16)?,
        protocol: u8_at(bytes, 9)?,
        length: u16_at(bytes, 2)?.into(),
        hop_limit: u8_at(bytes, 8)?,
        header,
        fragment: (place != 0).then_some(place & 0x1fff),
    })
}

/// RFC 8200, sections 3 and 4.
fn ipv6(bytes: &[u8]) -> Option<Below> {
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(octets).into())
    };
    let (mut protocol, mut header, mut fragment) = (u8_at(bytes, 6)?, 40, None);
    loop {
        let length = match protocol {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => (usize::from(u8_at(bytes, header + 1)?) + 1) * 8,
            44 => {
                fragment = Some(u16_at(bytes, header + 2)? >> 3);
                8
            }
            _ => break,
        };
        protocol = u8_at(bytes, header)?;
        header += length;
        if fragment.is_some_and(|offset| offset > 0) {
            break;
        }
    }
    Some(Below {
        source: address(8)?,
        destination: address(24)?,
        protocol,
        length: u32::from(u16_at(bytes, 4)?) + 40,
        hop_limit: u8_at(bytes, 7)?,
        header,
        fragment,
    })
}

fn transport(below: &Below, bytes: &[u8]) -> Option<Transport> {
    let rest = bytes.get(below.header..)?;
    Some(match (below.protocol, u8_at(rest, 0)?) {
        (6, _) => {
            let headers = below.header as u32 + u32::from(u8_at(rest, 12)? >> 4) * 4;
            Transport::Tcp {
                source: u16_at(rest, 0)?,
                destination: u16_at(rest, 2)?,
                sequence: u32_at(rest, 4)?,
                acknowledgement: u32_at(rest, 8)?,
                flags: Flags::from_bits(u8_at(rest, 13)?),
                payload: below.length.saturating_sub(headers),
            }
        }
        (17, _) => Transport::Udp {
            source: u16_at(rest, 0)?,
            destination: u16_at(rest, 2)?,
            payload: u32::from(u16_at(rest, 4)?).saturating_sub(8),
        },
        (1, kind @ (0 | 8)) | (58, kind @ (128 | 129)) => Transport::Echo {
            request: matches!(kind, 8 | 128),
            identifier: u16_at(rest, 4)?,
            sequence: u16_at(rest, 6)?,
        },
        _ => return None,
    })
}

impl Packet {
    /// Parses the headers of a packet, which may be truncated; `None` without an IP header.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let below = match u8_at(bytes, 0)? >> 4 {
            4 => ipv4(bytes)?,
            6 => ipv6(bytes)?,
            _ => return None,
        };
        let is_first = below.fragment.is_none_or(|offset| offset == 0);
        let above = is_first.then(|| transport(&below, bytes)).flatten();
        Some(Self {
            source: below.source,
            destination: below.destination,
            protocol: below.protocol,
            length: below.length,
            hop_limit: below.hop_limit,
            is_fragment: below.fragment.is_some(),
            transport: above.unwrap_or(Transport::Other),
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
        assert_eq!((packet.length, packet.hop_limit), (60, 64));
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
