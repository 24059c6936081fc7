//! Segmentation offload: hosts pass several segments of one flow as one packet, in either direction. The network
//! handles single packets: [`split`] makes them as a network card would, and [`merge`] joins them again at their
//! destination.

pub mod burst;
pub mod header;
pub mod merge;
pub mod split;

#[cfg(test)]
pub mod sample;

use crate::packet::{ip, ip6, put_u16, u16_at};

/// Byte offsets and flags of the TCP header (RFC 9293, section 3.1).
mod tcp {
    pub const PROTOCOL: u8 = 6;
    /// The shortest header.
    pub const HEADER: usize = 20;
    pub const SEQUENCE: usize = 4;
    /// Length of the header in its upper half.
    pub const OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const CHECKSUM: usize = 16;
    pub const FIN: u8 = 0x01;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const ECE: u8 = 0x40;
    pub const CWR: u8 = 0x80;
}

/// Byte offsets of the UDP header (RFC 768).
mod udp {
    pub const PROTOCOL: u8 = 17;
    pub const HEADER: usize = 8;
    pub const LENGTH: usize = 4;
    pub const CHECKSUM: usize = 6;
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The sum of the pseudo-header of the packet with this IP header, for `length` bytes of transport header and payload.
fn pseudo_header(packet: &[u8], length: usize) -> foundation::checksum::Sum {
    if is_ipv6(packet) {
        // RFC 8200, section 8.1.
        return foundation::checksum::Sum::default()
            .with(&packet[ip6::SOURCE..ip6::HEADER])
            .with(&(length as u32).to_be_bytes())
            .with(&[0, 0, 0, packet[ip6::NEXT]]);
    }
    let address = |at: usize| [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
    let (source, destination) = (address(ip::SOURCE), address(ip::DESTINATION));
    foundation::checksum::pseudo_header(source, destination, packet[ip::PROTOCOL], length as u16)
}

/// Whether an IP header is one of IPv6.
fn is_ipv6(header: &[u8]) -> bool {
    header[0] >> 4 == 6
}

/// Sets the length of an IP header for a packet of `length` bytes. An IPv4 header also gets this identification and its
/// checksum.
fn set_length(header: &mut [u8], length: usize, id: u16) {
    if is_ipv6(header) {
        put_u16(header, ip6::LENGTH, (length - ip6::HEADER) as u16);
    } else {
        set_length_and_id(header, length, id);
    }
}

/// Sets the total length of an IPv4 header and its identification, and updates its checksum.
fn set_length_and_id(header: &mut [u8], length: usize, id: u16) {
    put_u16(header, ip::LENGTH, length as u16);
    put_u16(header, ip::ID, id);
    put_u16(header, ip::CHECKSUM, 0);
    let sum = foundation::checksum::of(header);
    put_u16(header, ip::CHECKSUM, sum);
}
