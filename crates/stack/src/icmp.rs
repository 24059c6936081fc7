//! What routers say about packets of a stack (RFC 792), and answers to pings.

use std::net::{Ipv4Addr, SocketAddr};

use foundation::checksum;
use transport::tcp::SequenceNumber;
use transport::tcp::wire::Endpoints;

/// The shortest IPv4 header (RFC 791, section 3.1).
const HEADER: usize = 20;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO: u8 = 8;
/// "Fragmentation needed and DF set" (RFC 792).
const TOO_BIG: u8 = 4;

/// What a packet with ICMP says to a TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A segment was too large for a link (RFC 1191, section 4).
    TooBig {
        /// From the sender of the segment to its receiver.
        endpoints: Endpoints,
        /// The segment's first number.
        sequence: SequenceNumber,
        /// The MTU of that link; 0 from a router that does not tell.
        mtu: u16,
    },
    /// Somebody asks whether this host is there.
    Echo,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// The ICMP part of a whole IPv4 packet whose checksums hold.
fn body(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let fits = packet[0] >> 4 == 4 && header >= HEADER && packet.len() >= header;
    if !fits || packet[9] != ICMP || word(packet, 6) & 0x3fff != 0 {
        return None;
    }
    let body = packet.get(header..usize::from(word(packet, 2)))?;
    let holds = checksum::of(&packet[..header]) == 0 && checksum::of(body) == 0;
    (holds && body.len() >= 8).then_some(body)
}

/// What an IPv4 packet says; `None` where it says nothing to a TCP.
pub(crate) fn read(packet: &[u8]) -> Option<Message> {
    let body = body(packet)?;
    match (body[0], body[1]) {
        (ECHO, 0) => Some(Message::Echo),
        (UNREACHABLE, TOO_BIG) => {
            let quoted = &body[8..];
            let header = usize::from(quoted.first()? & 0xf) * 4;
            // RFC 792: the header and 64 bits of what follows, for TCP the ports and the sequence number.
            if header < HEADER || quoted.len() < header + 8 || quoted[9] != TCP {
                return None;
            }
            let end =
                |at: usize, port: usize| SocketAddr::from((address(quoted, at), word(quoted, header + port)));
            let high = u32::from(word(quoted, header + 4));
            Some(Message::TooBig {
                endpoints: Endpoints {
                    source: end(12, 0),
                    destination: end(16, 2),
                },
                sequence: SequenceNumber(high << 16 | u32::from(word(quoted, header + 6))),
                mtu: word(body, 6),
            })
        }
        _ => None,
    }
}

/// The answer to a whole IPv4 packet that is an echo request; `None` to all others.
#[must_use]
pub fn echo_reply(packet: &[u8]) -> Option<Vec<u8>> {
    (read(packet) == Some(Message::Echo)).then(|| answer(packet))
}

/// The answer to an echo request: the same bytes the other way round (RFC 792; RFC 1122, section 3.2.2.6).
fn answer(request: &[u8]) -> Vec<u8> {
    let mut bytes = request.to_vec();
    let header = usize::from(bytes[0] & 0xf) * 4;
    bytes.truncate(usize::from(word(&bytes, 2)));
    for at in 12..16 {
        bytes.swap(at, at + 4);
    }
    bytes[8] = transport::tcp::wire::HOP_LIMIT;
    bytes[10..12].fill(0);
    let sum = checksum::of(&bytes[..header]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes[header] = ECHO_REPLY;
    bytes[header + 2..header + 4].fill(0);
    let sum = checksum::of(&bytes[header..]);
    bytes[header + 2..header + 4].copy_from_slice(&sum.to_be_bytes());
    bytes
}
