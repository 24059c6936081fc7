//! The TCP packet in a frame.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpHeaderSlice, TcpOptionElement, TcpOptionsIterator,
};
use foundation::Instant;
use pcap_file::DataLink;

use crate::file::Frame;
use crate::multipath::{Multipath, OPTION};
use crate::quic::UdpPacket;

/// Bytes of a TCP header without options, and the place of the data offset.
const FIXED_HEADER: usize = 20;
const OFFSET: usize = 12;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;
/// SACK blocks that fit into a header.
const MOST_BLOCKS: usize = 4;

/// What a frame contains.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// A TCP packet.
    Tcp(TcpPacket),
    /// A UDP packet.
    Udp(UdpPacket),
    /// Another protocol, or a later fragment of a packet.
    Other,
    /// A frame that cannot be read: an unknown type of link, or a header that was not captured.
    Unreadable,
}

/// Header fields of a captured TCP packet, and the length of its payload.
#[derive(Clone, Debug)]
pub struct TcpPacket {
    /// Number of its frame.
    pub number: u64,
    /// Time of its capture.
    pub time: Instant,
    /// Interface that captured it.
    pub interface: u32,
    /// Address and port of its sender.
    pub source: SocketAddr,
    /// Address and port of its receiver.
    pub destination: SocketAddr,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number, if the flag ACK is set.
    pub acknowledgement: Option<u32>,
    /// Flags SYN, FIN, RST and PSH.
    pub is_syn: bool,
    /// FIN.
    pub is_fin: bool,
    /// RST.
    pub is_rst: bool,
    /// PSH.
    pub is_push: bool,
    /// Window field, not scaled.
    pub window: u16,
    /// Bytes of payload on the wire, or of several packets with segmentation offload.
    pub length: u32,
    /// Option: maximum segment size.
    pub mss: Option<u16>,
    /// Option: shift of the window.
    pub scale: Option<u8>,
    /// Option: SACK permitted.
    pub permits_sack: bool,
    /// Option: timestamps, own value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Option: keys or token of Multipath TCP.
    pub multipath: Option<Multipath>,
    /// Whether the IP header has the mark Congestion Experienced.
    pub is_marked: bool,
    blocks: [(u32, u32); MOST_BLOCKS],
    block_count: usize,
}

impl TcpPacket {
    /// Returns the blocks of the SACK option.
    #[must_use]
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..self.block_count]
    }
}

/// Reads a frame.
#[must_use]
pub fn parse(frame: &Frame<'_>) -> Parsed {
    let Some((protocol, header)) = link_header(frame.link, frame.data) else {
        return Parsed::Unreadable;
    };
    let network = &frame.data[header..];
    let packet = match protocol {
        Some(protocol) => LaxSlicedPacket::from_ether_type(protocol, network),
        None => match LaxSlicedPacket::from_ip(network) {
            Ok(packet) => packet,
            Err(_) => return Parsed::Unreadable,
        },
    };
    let Some(net) = &packet.net else {
        let is_ip = matches!(protocol, Some(EtherType::IPV4 | EtherType::IPV6) | None);
        return if is_ip { Parsed::Unreadable } else { Parsed::Other };
    };
    let (addresses, payload, stated, is_marked) = match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let start = header.slice().as_ptr() as usize - frame.data.as_ptr() as usize;
            let addresses: (IpAddr, IpAddr) = (header.source_addr().into(), header.destination_addr().into());
            // Segmentation offload can leave the length 0; then the frame's length counts.
            let end = (header.total_len() != 0).then(|| start + usize::from(header.total_len()));
            if header.fragments_offset().value() != 0 {
                return Parsed::Other;
            }
            (addresses, ip.payload(), end, header.ecn().value() == 3)
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let start = header.slice().as_ptr() as usize - frame.data.as_ptr() as usize;
            let addresses = (header.source_addr().into(), header.destination_addr().into());
            let end = (header.payload_length() != 0)
                .then(|| start + header.slice().len() + usize::from(header.payload_length()));
            (addresses, ip.payload(), end, (header.traffic_class() & 3) == 3)
        }
        LaxNetSlice::Arp(_) => return Parsed::Other,
    };
    let end = stated.unwrap_or(frame.length as usize).min(frame.length as usize);
    let offset = payload.payload.as_ptr() as usize - frame.data.as_ptr() as usize;
    let on_wire = end.saturating_sub(offset);
    match payload.ip_number {
        IpNumber::TCP => tcp(frame, addresses, payload.payload, on_wire, is_marked),
        IpNumber::UDP => match payload.payload {
            [a, b, c, d, rest @ ..] => Parsed::Udp(UdpPacket {
                time: frame.time,
                source: SocketAddr::new(addresses.0, u16::from_be_bytes([*a, *b])),
                destination: SocketAddr::new(addresses.1, u16::from_be_bytes([*c, *d])),
                length: on_wire.saturating_sub(UDP_HEADER) as u32,
                start: rest.get(4..9).map(|bytes| {
                    let version = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
                    (bytes[0], version)
                }),
            }),
            _ => Parsed::Unreadable,
        },
        _ => Parsed::Other,
    }
}

/// Returns the protocol after the header of a link, or none if it is IP of any version, and the header's length.
fn link_header(link: DataLink, data: &[u8]) -> Option<(Option<EtherType>, usize)> {
    let big_endian = |at: usize| {
        let bytes = data.get(at..at + 2)?;
        Some(EtherType(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let found = match link {
        DataLink::ETHERNET => (Some(big_endian(12)?), 14),
        DataLink::LINUX_SLL => (Some(big_endian(14)?), 16),
        DataLink::LINUX_SLL2 => (Some(big_endian(0)?), 20),
        // The family of the loopback interface differs between systems; the version field of IP does not.
        DataLink::NULL | DataLink::LOOP => (None, 4),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 | DataLink::Unknown(12 | 14) => (None, 0),
        _ => return None,
    };
    (data.len() > found.1).then_some(found)
}

fn tcp(
    frame: &Frame<'_>,
    (source, destination): (IpAddr, IpAddr),
    bytes: &[u8],
    on_wire: usize,
    is_marked: bool,
) -> Parsed {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_HEADER>() else {
        return Parsed::Unreadable;
    };
    let header_length = usize::from(fixed[OFFSET] >> 4) * 4;
    let Some(options) = header_length.checked_sub(FIXED_HEADER) else {
        return Parsed::Unreadable;
    };
    // The options may be truncated; then those before the cut are read.
    let options = &rest[..options.min(rest.len())];
    let mut fixed = *fixed;
    fixed[OFFSET] = (FIXED_HEADER as u8 / 4) << 4;
    let Ok(header) = TcpHeaderSlice::from_slice(&fixed) else {
        return Parsed::Unreadable;
    };
    let length = on_wire.saturating_sub(header_length);
    let mut packet = TcpPacket {
        number: frame.number,
        time: frame.time,
        interface: frame.interface,
        source: SocketAddr::new(source, header.source_port()),
        destination: SocketAddr::new(destination, header.destination_port()),
        sequence: header.sequence_number(),
        acknowledgement: header.ack().then(|| header.acknowledgment_number()),
        is_syn: header.syn(),
        is_fin: header.fin(),
        is_rst: header.rst(),
        is_push: header.psh(),
        window: header.window_size(),
        length: length as u32,
        mss: None,
        scale: None,
        permits_sack: false,
        timestamps: None,
        multipath: None,
        is_marked,
        blocks: [(0, 0); MOST_BLOCKS],
        block_count: 0,
    };
    for bytes in each_option(options) {
        if bytes[0] == OPTION {
            packet.multipath = packet.multipath.or(Multipath::read(bytes, packet.is_syn));
            continue;
        }
        let Some(Ok(option)) = TcpOptionsIterator::from_slice(bytes).next() else {
            continue;
        };
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => packet.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => packet.scale = Some(scale.min(14)),
            TcpOptionElement::SelectiveAcknowledgementPermitted => packet.permits_sack = true,
            TcpOptionElement::Timestamp(value, echo) => packet.timestamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                let all = std::iter::once(first).chain(rest.into_iter().flatten());
                for (place, block) in packet.blocks.iter_mut().zip(all) {
                    *place = block;
                    packet.block_count += 1;
                }
            }
            TcpOptionElement::Noop => {}
        }
    }
    Parsed::Tcp(packet)
}

/// Returns each option with its kind and length; one with an invalid length ends them.
fn each_option(mut options: &[u8]) -> impl Iterator<Item = &[u8]> {
    const END: u8 = 0;
    const PADDING: u8 = 1;
    std::iter::from_fn(move || {
        while let [PADDING, rest @ ..] = options {
            options = rest;
        }
        let length = match options {
            [] | [END, ..] | [_] => return None,
            [_, length, ..] => usize::from(*length),
        };
        if length < 2 || length > options.len() {
            return None;
        }
        let (option, rest) = options.split_at(length);
        options = rest;
        Some(option)
    })
}
