//! Packets of the emulated path: TCP segments and datagrams of UDP in IPv4.

use std::net::Ipv4Addr;

use foundation::{Ecn, Instant, checksum};
use network::Body;

/// Address of the server.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// First addresses of the clients of TCP and of UDP.
pub(crate) const TCP_CLIENTS: u32 = u32::from_be_bytes([10, 1, 0, 0]);
pub(crate) const UDP_CLIENTS: u32 = u32::from_be_bytes([10, 2, 0, 0]);

// Byte offsets of the IPv4 header (RFC 791, section 3.1) and of the ports behind it.
const SERVICE: usize = 1;
const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
const SOURCE_PORT: usize = 20;
const DESTINATION_PORT: usize = 22;
/// Both bits of the ECN field: congestion experienced (RFC 3168, section 5).
const CE: u8 = 0b11;

/// A packet on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// The IPv4 packet, which has ports.
    pub(crate) bytes: Vec<u8>,
    /// When it was sent.
    pub(crate) sent: Instant,
}

impl Datagram {
    fn number<const N: usize>(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at..at + N).unwrap_or_default();
        bytes
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// Returns address and port of the client, which sends the packet if `is_forward`.
    pub(crate) fn client(&self, is_forward: bool) -> u64 {
        let (address, port) = match is_forward {
            true => (SOURCE, SOURCE_PORT),
            false => (DESTINATION, DESTINATION_PORT),
        };
        self.number::<4>(address) << 16 | self.number::<2>(port)
    }
}

impl Body for Datagram {
    fn flip_bit(&mut self, choice: u64) {
        self.bytes.flip_bit(choice);
    }

    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bytes[SERVICE])
    }

    fn mark_congestion_experienced(&mut self) -> bool {
        if !self.ecn().is_capable() {
            return false;
        }
        let field = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[SERVICE]]);
        let old = field(&self.bytes);
        self.bytes[SERVICE] |= CE;
        let sum = u16::from_be_bytes([self.bytes[CHECKSUM], self.bytes[CHECKSUM + 1]]);
        let sum = checksum::update(sum, old, field(&self.bytes));
        self.bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        true
    }

    /// Returns a hash of both addresses and ports, the same for all packets of a connection in one direction.
    fn flow(&self) -> u64 {
        let ports = self.number::<4>(SOURCE_PORT);
        let addresses = self.number::<8>(SOURCE);
        addresses.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ports.wrapping_mul(0x1656_67b1_9e37_79f9)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use transport::tcp::wire::{Endpoints, decode, encode};
    use transport::tcp::{Flags, Segment};

    use super::*;

    fn datagram(ecn: Ecn) -> Datagram {
        let at = |last, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), port));
        let endpoints = Endpoints {
            source: at(1, 5000),
            destination: at(2, 80),
        };
        let mut segment = Segment::bare(Default::default(), Default::default(), Flags::SYN);
        segment.ecn = ecn;
        let mut bytes = Vec::new();
        encode(&segment, endpoints, &mut bytes, |_| {}).unwrap();
        Datagram {
            bytes,
            sent: Instant::ZERO,
        }
    }

    #[test]
    fn finds_the_client_in_both_directions() {
        let client = u64::from(u32::from(Ipv4Addr::new(10, 0, 0, 1))) << 16 | 5000;
        assert_eq!(datagram(Ecn::NotEct).client(true), client);
        let server = u64::from(u32::from(Ipv4Addr::new(10, 0, 0, 2))) << 16 | 80;
        assert_eq!(datagram(Ecn::NotEct).client(false), server);
    }

    #[test]
    fn marks_ect_and_keeps_the_checksum_valid() {
        let mut plain = datagram(Ecn::NotEct);
        assert!(!plain.mark_congestion_experienced());
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let mut marked = datagram(ecn);
            assert!(marked.mark_congestion_experienced());
            assert_eq!(marked.ecn(), Ecn::Ce);
            assert_eq!(decode(&marked.bytes).unwrap().segment.ecn, Ecn::Ce);
        }
    }
}
