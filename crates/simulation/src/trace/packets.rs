//! The bytes of a simulated packet, from its IP header on. Payload does not exist in simulation; zeros stand
//! for it.

use std::convert::Infallible;
use std::io::{Error, Result};
use std::net::IpAddr;

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{
    IcmpEchoHeader, Icmpv4Type, Icmpv6Type, IpFragOffset, IpHeaders, Ipv4Header, PacketBuilder,
    PacketBuilderStep,
};
use experiment::trace::content::{Message, MessageProtocol};
use transport::arq::codec;
use transport::mptcp;
use transport::mptcp::keys::Keys;
use transport::tcp::wire::{self, Endpoints, HOP_LIMIT};
use transport::tcp::{Flags, Segment, SequenceNumber};

use crate::body::Content;

/// Puts the bytes of a packet into `out`, in place of what is there. `keys` are those of a multipath connection. A corrupt one gets a wrong checksum:
/// which of its bits flipped is not known.
///
/// # Errors
/// Where the packet is larger than its headers can tell.
pub fn write(
    content: &Content,
    keys: Keys,
    endpoints: Endpoints,
    corrupt: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    match content {
        Content::Tcp(segment) => {
            wire::encode(segment, endpoints, out, |_| {}).map_err(|error| Error::other(error.to_string()))?;
            if corrupt {
                spoil(out, segment.header_length() + segment.length);
            }
            Ok(())
        }
        Content::Mptcp(segment) => {
            mptcp::wire::encode(segment, keys, endpoints, out, |_| {})
                .map_err(|error| Error::other(error.to_string()))?;
            if corrupt {
                spoil(out, segment.header_length() + segment.tcp.length);
            }
            Ok(())
        }
        Content::Arq(frame) => {
            let mut bytes = Vec::with_capacity(frame.length());
            let Ok(()) = codec::encode(frame, &mut bytes, |_, _| Ok::<(), Infallible>(()));
            if corrupt && let Some(last) = bytes.last_mut() {
                // Fails the frame's own checksum.
                *last ^= 1;
            }
            udp(endpoints, &bytes, out)
        }
        Content::Datagram(length) => {
            udp(endpoints, &vec![0; *length as usize], out)?;
            if corrupt {
                // The checksum's place in a UDP header (RFC 768).
                let checksum = out.len() - *length as usize - 1;
                out[checksum] ^= 1;
            }
            Ok(())
        }
        Content::Message(message) => write_message(message, endpoints, corrupt, out),
        Content::TooBig { mtu } => too_big(*mtu, endpoints, out),
    }
}

/// A wrong checksum for a packet whose TCP header and payload have so many bytes.
fn spoil(out: &mut [u8], length: u32) {
    let tcp = out.len() - length as usize;
    // The checksum's place in a TCP header (RFC 9293, section 3.1).
    out[tcp + 17] ^= 1;
}

fn ip(endpoints: Endpoints) -> PacketBuilderStep<IpHeaders> {
    match (endpoints.source.ip(), endpoints.destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), HOP_LIMIT),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), HOP_LIMIT),
        _ => unreachable!("an address plan has addresses of one version"),
    }
}

fn udp(endpoints: Endpoints, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    ip(endpoints)
        .udp(endpoints.source.port(), endpoints.destination.port())
        .write(out, payload)
        .map_err(|error| Error::other(error.to_string()))
}

/// A request or a response: a packet of its own, or a fragment of it, whose first has the header of UDP or ICMP.
fn write_message(message: &Message, endpoints: Endpoints, corrupt: bool, out: &mut Vec<u8>) -> Result<()> {
    const HEADER: usize = 8;
    let other = |error: &dyn std::fmt::Display| Error::other(error.to_string());
    let mut whole = Vec::new();
    let payload = vec![0; message.whole as usize - HEADER];
    match message.protocol {
        MessageProtocol::Udp => udp(endpoints, &payload, &mut whole)?,
        MessageProtocol::Icmp => {
            let asker = if message.asks {
                endpoints.source
            } else {
                endpoints.destination
            };
            let echo = IcmpEchoHeader {
                id: asker.port(),
                seq: message.number as u16,
            };
            let (v4, v6) = if message.asks {
                (Icmpv4Type::EchoRequest(echo), Icmpv6Type::EchoRequest(echo))
            } else {
                (Icmpv4Type::EchoReply(echo), Icmpv6Type::EchoReply(echo))
            };
            let step = ip(endpoints);
            let written = if endpoints.source.is_ipv4() {
                step.icmpv4(v4).write(&mut whole, &payload)
            } else {
                step.icmpv6(v6).write(&mut whole, &payload)
            };
            written.map_err(|error| other(&error))?;
        }
    }
    // Version 4 has an identification and fragments; what is simulated has no more.
    let header = whole.len() - message.whole as usize;
    let start = header + message.offset as usize;
    let part = &whole[start..start + message.length as usize];
    if !message.is_fragment() || endpoints.source.is_ipv6() {
        out.extend_from_slice(&whole);
    } else {
        let (mut ipv4, _) = Ipv4Header::from_slice(&whole).map_err(|error| other(&error))?;
        ipv4.set_payload_len(part.len()).map_err(|error| other(&error))?;
        ipv4.dont_fragment = false;
        ipv4.identification = message.number as u16;
        ipv4.more_fragments = message.offset + message.length < message.whole;
        ipv4.fragment_offset =
            IpFragOffset::try_new((message.offset / 8) as u16).map_err(|error| other(&error))?;
        ipv4.header_checksum = ipv4.calc_header_checksum();
        ipv4.write(out)?;
        out.extend_from_slice(part);
    }
    if corrupt && let Some(last) = out.last_mut() {
        *last ^= 1;
    }
    Ok(())
}

/// A router's word, which cites the beginning of the packet that it dropped. Whose sequence number that had
/// is not known here; the citation has 0.
fn too_big(mtu: u32, endpoints: Endpoints, out: &mut Vec<u8>) -> Result<()> {
    let dropped = Segment::bare(SequenceNumber(0), SequenceNumber(0), Flags::ACK);
    let mut cited = Vec::new();
    wire::encode(&dropped, endpoints.reversed(), &mut cited, |_| {})
        .map_err(|error| Error::other(error.to_string()))?;
    let step = ip(endpoints);
    let written = if endpoints.source.is_ipv4() {
        // The IPv4 header and 8 bytes (RFC 792), with the MTU of the next hop (RFC 1191).
        let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        let needed = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
        step.icmpv4(Icmpv4Type::DestinationUnreachable(needed))
            .write(out, &cited[..28])
    } else {
        // RFC 4443, section 3.2.
        step.icmpv6(Icmpv6Type::PacketTooBig { mtu }).write(out, &cited)
    };
    written.map_err(|error| Error::other(error.to_string()))
}
