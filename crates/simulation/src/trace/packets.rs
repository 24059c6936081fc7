//! The bytes of a simulated packet, from its IP header on. Simulated packets have no payload; zeros replace it.

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

/// Writes the bytes of a packet to `out`, replacing its content. `keys` are the keys of a multipath connection. A corrupt
/// packet gets a wrong checksum, because the simulation does not record which bit flipped.
///
/// # Errors
/// If the packet exceeds the length fields of its headers.
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
            mptcp::wire::encode(segment, keys, None, endpoints, out, |_| {})
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
        Content::Quic(datagram) => datagram_of(&datagram.bytes, endpoints, corrupt, out),
        Content::Datagram(datagram) => {
            datagram_of(&vec![0; datagram.length as usize], endpoints, corrupt, out)
        }
        Content::Message(message) => write_message(message, endpoints, corrupt, out),
        Content::TooBig { mtu } => too_big(*mtu, endpoints, out),
    }
}

/// Corrupts the checksum of a packet whose TCP header and payload have `length` bytes.
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

/// Writes a UDP datagram; the checksum of a corrupt one is wrong.
fn datagram_of(payload: &[u8], endpoints: Endpoints, corrupt: bool, out: &mut Vec<u8>) -> Result<()> {
    udp(endpoints, payload, out)?;
    if corrupt {
        // The checksum's place in a UDP header (RFC 768).
        let checksum = out.len() - payload.len() - 1;
        out[checksum] ^= 1;
    }
    Ok(())
}

/// Writes a request or a response, or a fragment of one. The first fragment has the header of UDP or ICMP.
fn write_message(message: &Message, endpoints: Endpoints, corrupt: bool, out: &mut Vec<u8>) -> Result<()> {
    const HEADER: usize = 8;
    let other = |error: &dyn std::fmt::Display| Error::other(error.to_string());
    let mut whole = Vec::new();
    let payload = vec![0; message.whole as usize - HEADER];
    match message.protocol {
        MessageProtocol::Udp => udp(endpoints, &payload, &mut whole)?,
        MessageProtocol::Icmp => {
            let client = if message.is_request {
                endpoints.source
            } else {
                endpoints.destination
            };
            let echo = IcmpEchoHeader {
                id: client.port(),
                seq: message.number as u16,
            };
            let (v4, v6) = if message.is_request {
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
    // IPv4 has an identification and fragments; the simulation has none of the other options.
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

/// Writes a router's ICMP error, which quotes the start of the dropped packet. The sequence number of that packet is unknown
/// here, so the quotation has 0.
fn too_big(mtu: u32, endpoints: Endpoints, out: &mut Vec<u8>) -> Result<()> {
    let dropped = Segment::bare(SequenceNumber(0), SequenceNumber(0), Flags::ACK);
    let mut quoted = Vec::new();
    wire::encode(&dropped, endpoints.reversed(), &mut quoted, |_| {})
        .map_err(|error| Error::other(error.to_string()))?;
    let step = ip(endpoints);
    let written = if endpoints.source.is_ipv4() {
        // The IPv4 header and 8 bytes (RFC 792), with the MTU of the next hop (RFC 1191).
        let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        let needed = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
        step.icmpv4(Icmpv4Type::DestinationUnreachable(needed))
            .write(out, &quoted[..28])
    } else {
        // RFC 4443, section 3.2.
        step.icmpv6(Icmpv6Type::PacketTooBig { mtu }).write(out, &quoted)
    };
    written.map_err(|error| Error::other(error.to_string()))
}
