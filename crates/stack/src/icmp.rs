//! ICMP at a stack (RFC 792): errors about its segments, and replies to echo requests.

use std::net::{Ipv4Addr, SocketAddr};

use foundation::checksum;
use foundation::icmp::{self, Echo, PROTOCOL, TOO_BIG, UNREACHABLE};
use transport::tcp::SequenceNumber;
use transport::tcp::wire::Endpoints;

/// The shortest IPv4 header (RFC 791, section 3.1).
const HEADER: usize = 20;
const TCP: u8 = 6;

/// A router's report that a segment exceeded the MTU of a link (RFC 1191, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooBig {
    /// From the sender of the segment to its receiver.
    pub(crate) endpoints: Endpoints,
    /// The segment's first sequence number.
    pub(crate) sequence: SequenceNumber,
    /// The MTU of the link; 0 from a router without RFC 1191.
    pub(crate) mtu: u16,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// Returns the ICMP message in an IPv4 packet whose checksums are correct.
fn message(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let fits = packet[0] >> 4 == 4 && header >= HEADER && packet.len() >= header;
    if !fits || packet[9] != PROTOCOL || u16_at(packet, 6) & 0x3fff != 0 {
        return None;
    }
    let message = packet.get(header..usize::from(u16_at(packet, 2)))?;
    let is_right = checksum::of(&packet[..header]) == 0 && checksum::of(message) == 0;
    (is_right && message.len() >= icmp::HEADER).then_some(message)
}

/// Reads an error about a TCP segment from an IPv4 packet; `None` for any other packet.
pub(crate) fn read_too_big(packet: &[u8]) -> Option<TooBig> {
    let message = message(packet)?;
    if message[..2] != [UNREACHABLE, TOO_BIG] {
        return None;
    }
    let quoted = &message[icmp::HEADER..];
    let header = usize::from(quoted.first()? & 0xf) * 4;
    // RFC 792: an error quotes the header and 64 bits more, for TCP the ports and the sequence number.
    if header < HEADER || quoted.len() < header + 8 || quoted[9] != TCP {
        return None;
    }
    let end = |at: usize, port: usize| SocketAddr::from((address(quoted, at), u16_at(quoted, header + port)));
    let high = u32::from(u16_at(quoted, header + 4));
    Some(TooBig {
        endpoints: Endpoints {
            source: end(12, 0),
            destination: end(16, 2),
        },
        sequence: SequenceNumber(high << 16 | u32::from(u16_at(quoted, header + 6))),
        mtu: u16_at(message, 6),
    })
}

/// Returns the reply to an IPv4 packet that is an echo request, with the same payload (RFC 792; RFC 1122, section 3.2.2.6);
/// `None` for any other packet.
#[must_use]
pub fn echo_reply(packet: &[u8]) -> Option<Vec<u8>> {
    let request = Echo::read(true, message(packet)?).filter(|echo| !echo.is_reply)?;
    let mut bytes = packet.to_vec();
    let header = usize::from(bytes[0] & 0xf) * 4;
    bytes.truncate(usize::from(u16_at(&bytes, 2)));
    for at in 12..16 {
        bytes.swap(at, at + 4);
    }
    bytes[8] = transport::tcp::wire::HOP_LIMIT;
    bytes[10..12].fill(0);
    let sum = checksum::of(&bytes[..header]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let reply = Echo {
        is_reply: true,
        ..request
    };
    reply.write(&mut bytes[header..]);
    icmp::seal(&mut bytes[header..]);
    Some(bytes)
}
