//! Large packets for tests, as the kernel passes them.

use proptest::prelude::*;

use super::header::{Header, PartialChecksum, SegmentKind, Segmentation};
use super::split::Packets;
use super::{ip6, pseudo_header, put_u16, set_length, tcp, udp};

/// A large packet of `payload` bytes for segments of `size` bytes.
#[derive(Clone, Debug)]
pub struct Sample {
    pub is_ipv6: bool,
    pub is_tcp: bool,
    pub payload: usize,
    pub size: usize,
    pub id: u16,
    pub sequence: u32,
    /// TCP flags.
    pub flags: u8,
    /// TCP options, a multiple of 4 bytes.
    pub options: usize,
    pub service: u8,
}

impl Sample {
    pub fn tcp(payload: usize, size: usize) -> Self {
        Self {
            is_ipv6: false,
            is_tcp: true,
            payload,
            size,
            id: 7,
            sequence: 1000,
            flags: tcp::ACK,
            options: 12,
            service: 0,
        }
    }

    pub fn udp(payload: usize, size: usize) -> Self {
        Self {
            is_tcp: false,
            ..Self::tcp(payload, size)
        }
    }

    pub const fn ip_header(&self) -> usize {
        if self.is_ipv6 { ip6::HEADER } else { 20 }
    }

    pub const fn headers(&self) -> usize {
        self.ip_header()
            + if self.is_tcp {
                tcp::HEADER + self.options
            } else {
                udp::HEADER
            }
    }

    pub fn header(&self) -> Header {
        let (kind, offset) = match self.is_tcp {
            true => {
                let has_cwr = self.flags & tcp::CWR != 0;
                let is_ipv6 = self.is_ipv6;
                (SegmentKind::Tcp { has_cwr, is_ipv6 }, tcp::CHECKSUM)
            }
            false => (SegmentKind::Udp, udp::CHECKSUM),
        };
        Header {
            checksum: Some(PartialChecksum {
                start: self.ip_header() as u16,
                offset: offset as u16,
            }),
            segmentation: Some(Segmentation {
                kind,
                headers: self.headers() as u16,
                size: self.size as u16,
            }),
        }
    }

    /// Its bytes, with the sum of the pseudo-header in the place of the checksum.
    pub fn bytes(&self) -> Vec<u8> {
        let (start, headers) = (self.ip_header(), self.headers());
        let protocol = if self.is_tcp { tcp::PROTOCOL } else { udp::PROTOCOL };
        let mut bytes = vec![
            0x45,
            self.service,
            0,
            0,
            0,
            0,
            0x40,
            0,
            64,
            protocol,
            0,
            0,
            10,
            77,
            0,
            1,
            10,
            77,
            0,
            2,
        ];
        if self.is_ipv6 {
            bytes = vec![
                0x60 | self.service >> 4,
                self.service << 4,
                0,
                1,
                0,
                0,
                protocol,
                64,
            ];
            for last in [1, 2] {
                bytes.extend([0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, last]);
            }
        }
        bytes.resize(headers, 0);
        bytes.extend((0..self.payload).map(|at| (at * 31 % 251) as u8));
        let length = bytes.len();
        set_length(&mut bytes[..start], length, self.id);
        let sum = pseudo_header(&bytes, length - start).folded();
        let segment = &mut bytes[start..];
        segment[..4].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
        if self.is_tcp {
            segment[tcp::SEQUENCE..tcp::SEQUENCE + 4].copy_from_slice(&self.sequence.to_be_bytes());
            segment[tcp::OFFSET] = ((tcp::HEADER + self.options) / 4 * 16) as u8;
            segment[tcp::FLAGS] = self.flags;
            // No operation (RFC 9293, section 3.1).
            segment[tcp::HEADER..tcp::HEADER + self.options].fill(1);
            put_u16(segment, tcp::CHECKSUM, sum);
        } else {
            put_u16(segment, udp::LENGTH, (length - start) as u16);
            put_u16(segment, udp::CHECKSUM, sum);
        }
        bytes
    }
}

/// The segments of a large packet.
pub fn split(sample: &Sample) -> Vec<Vec<u8>> {
    let mut bytes = sample.bytes();
    let mut packets = Packets::of(sample.header(), &mut bytes).unwrap();
    let mut parts = Vec::new();
    loop {
        let mut part = Vec::new();
        if !packets.next_into(&mut part) {
            return parts;
        }
        parts.push(part);
    }
}

/// Large packets of at least two segments.
pub fn sample() -> impl Strategy<Value = Sample> {
    let flags = proptest::sample::select(vec![
        0,
        tcp::PSH,
        tcp::FIN | tcp::PSH,
        tcp::CWR,
        tcp::ECE | tcp::PSH,
    ]);
    (
        any::<bool>(),
        1_usize..1500,
        1_usize..40,
        1_usize..1500,
        any::<u16>(),
        any::<u32>(),
        flags,
        0_usize..=10,
        any::<u8>(),
        any::<bool>(),
    )
        .prop_map(
            |(is_tcp, size, full, rest, id, sequence, flags, options, service, is_ipv6)| Sample {
                is_ipv6,
                is_tcp,
                payload: size * full + rest.min(size),
                size,
                id,
                sequence,
                flags: flags | tcp::ACK,
                options: options * 4,
                service,
            },
        )
}
