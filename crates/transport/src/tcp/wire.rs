//! Encoding and decoding of segments: IPv4 (RFC 791) or IPv6 (RFC 8200) and TCP headers (RFC 9293, section 3.1) with
//! checksums and options.
//!
//! As with path MTU discovery, Don't Fragment is set. The identification of such an atomic datagram is 0 (RFC 6864,
//! section 4.1).

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IpEcn, IpNumber, IpSlice, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, TcpHeaderSlice,
};
use thiserror::Error;

use super::accurate_ecn::{ByteCounters, option_room};
use super::fast_open::FastOpen;
use super::options::{OpeningOptions, Options, SackBlocks, Timestamps};
use super::segment::{Ecn, Flags, Segment};
use super::sequence::SequenceNumber;
use super::ttcp::Count;

/// Hop limit of packets: the recommended default (RFC 1700, "IP time to live parameter").
pub const HOP_LIMIT: u8 = 64;
/// Maximum bytes of options in a TCP header: 60 bytes less the 20 of the fixed part.
pub const MAX_OPTIONS: u32 = 40;

// Option kinds: RFC 9293 section 3.2, RFC 7323 sections 2.2 and 3.2, RFC 2018 sections 2 and 3.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
// RFC 1644, section 3.1, and RFC 7413, section 2.
const CC: u8 = 11;
const CC_NEW: u8 = 12;
const CC_ECHO: u8 = 13;
const FAST_OPEN: u8 = 34;
// RFC 7413, appendix A, with the magic number of RFC 6994.
const EXPERIMENT: u8 = 254;
const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];
// RFC 9768, section 3.2.3: ECT(0) first, ECT(1) first.
const ACCECN0: u8 = 172;
const ACCECN1: u8 = 174;

/// Source and destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoints {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver, of the same IP version.
    pub destination: SocketAddr,
}

impl Endpoints {
    /// Returns the endpoints of the opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// A decoded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Addresses and ports.
    pub endpoints: Endpoints,
    /// Header fields and the length of the payload.
    pub segment: Segment,
    /// Range of the options in the decoded bytes.
    pub options: Range<usize>,
    /// Range of the payload in the decoded bytes.
    pub payload: Range<usize>,
}

/// Error of [`encode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// IPv4 and IPv6 addresses are mixed.
    #[error("source and destination have different IP versions")]
    Versions,
    /// The options exceed the header.
    #[error("{0} bytes of TCP options: at most {MAX_OPTIONS} fit into the header")]
    Options(u32),
    /// The payload exceeds an IP packet.
    #[error("{0} bytes of payload: too long for an IP packet")]
    Payload(u32),
}

/// Error of [`decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not a complete IPv4 or IPv6 packet.
    #[error("incomplete or invalid IP packet")]
    Ip,
    /// A fragment of a packet.
    #[error("IP fragment")]
    Fragment,
    /// A protocol other than TCP.
    #[error("IP protocol {0} instead of TCP (6)")]
    Protocol(u8),
    /// Wrong checksum of the IPv4 header.
    #[error("wrong checksum of the IPv4 header")]
    HeaderChecksum,
    /// The TCP header is incomplete, or its data offset is invalid.
    #[error("incomplete or invalid TCP header")]
    Header,
    /// Wrong TCP checksum.
    #[error("wrong TCP checksum")]
    Checksum,
}

/// Appends a packet to `out`. `fill` writes the payload into a zeroed slice of `segment.length` bytes.
///
/// # Errors
/// If the IP versions differ, or the packet is too large for its headers. `out` is then unchanged.
pub fn encode(
    segment: &Segment,
    endpoints: Endpoints,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut [u8]),
) -> Result<(), EncodeError> {
    encode_with_options(segment, &[], endpoints, out, fill)
}

/// As [`encode`], with `more` options after those of the segment, in multiples of four bytes.
///
/// # Errors
/// As [`encode`].
pub fn encode_with_options(
    segment: &Segment,
    more: &[u8],
    endpoints: Endpoints,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut [u8]),
) -> Result<(), EncodeError> {
    let too_large = || EncodeError::Payload(segment.length);
    let mut header = tcp_header(segment, more, endpoints)?;
    let ip = ip_header(segment, more.len(), endpoints)?;
    out.reserve(ip.len() + header.header_len() + segment.length as usize);
    let start = out.len();
    out.extend_from_slice(ip.as_slice());
    let tcp = out.len();
    let data = tcp + header.header_len();
    out.resize(data + segment.length as usize, 0);
    fill(&mut out[data..]);
    let checksum = match (endpoints.source.ip(), endpoints.destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.calc_checksum_ipv4_raw(from.octets(), to.octets(), &out[data..])
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            header.calc_checksum_ipv6_raw(from.octets(), to.octets(), &out[data..])
        }
        _ => unreachable!("ip_header rejects mixed versions"),
    };
    header.checksum = checksum.map_err(|_| {
        out.truncate(start);
        too_large()
    })?;
    out[tcp..data].copy_from_slice(&header.to_bytes());
    Ok(())
}

/// Encoded IP header.
enum IpBytes {
    V4([u8; Ipv4Header::MIN_LEN]),
    V6([u8; Ipv6Header::LEN]),
}

impl IpBytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }

    fn len(&self) -> usize {
        self.as_slice().len()
    }
}

fn ip_header(segment: &Segment, more: usize, endpoints: Endpoints) -> Result<IpBytes, EncodeError> {
    let too_large = EncodeError::Payload(segment.length);
    let length = u64::from(segment.header_length()) + more as u64 + u64::from(segment.length);
    let length = u16::try_from(length).map_err(|_| too_large)?;
    let ecn = ip_ecn(segment.ecn);
    match (endpoints.source.ip(), endpoints.destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = Ipv4Header::new(length, HOP_LIMIT, IpNumber::TCP, from.octets(), to.octets())
                .map_err(|_| too_large)?;
            header.dont_fragment = true;
            header.ecn = ecn;
            header.header_checksum = header.calc_header_checksum();
            let mut bytes = [0; Ipv4Header::MIN_LEN];
            bytes.copy_from_slice(&header.to_bytes());
            Ok(IpBytes::V4(bytes))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: length,
                next_header: IpNumber::TCP,
                hop_limit: HOP_LIMIT,
                source: from.octets(),
                destination: to.octets(),
            };
            header.set_ecn(ecn);
            Ok(IpBytes::V6(header.to_bytes()))
        }
        _ => Err(EncodeError::Versions),
    }
}

fn tcp_header(segment: &Segment, more: &[u8], endpoints: Endpoints) -> Result<TcpHeader, EncodeError> {
    let has = |flag| segment.flags.contains(flag);
    let mut header = TcpHeader::new(
        endpoints.source.port(),
        endpoints.destination.port(),
        segment.sequence.0,
        segment.window,
    );
    header.acknowledgment_number = segment.acknowledgement.0;
    header.fin = has(Flags::FIN);
    header.syn = has(Flags::SYN);
    header.rst = has(Flags::RST);
    header.psh = has(Flags::PSH);
    header.ack = has(Flags::ACK);
    header.urg = has(Flags::URG);
    header.ece = has(Flags::ECE);
    header.cwr = has(Flags::CWR);
    // The bit of the historic ECN-nonce (RFC 9768, section 3.1).
    header.ns = has(Flags::AE);
    let (mut bytes, mut length) = option_bytes(&segment.options)?;
    if !more.is_empty() {
        let all = length + more.len();
        let room = bytes
            .get_mut(length..all)
            .ok_or(EncodeError::Options(all as u32))?;
        room.copy_from_slice(more);
        length = all;
    }
    header
        .set_options_raw(&bytes[..length])
        .expect("options of at most 40 bytes fit");
    Ok(header)
}

/// Encodes the options in the order of Linux, with their numbers aligned to four bytes (RFC 7323, appendix A).
fn option_bytes(options: &Options) -> Result<([u8; MAX_OPTIONS as usize], usize), EncodeError> {
    let total = options.encoded_length();
    if total > MAX_OPTIONS {
        return Err(EncodeError::Options(total));
    }
    let mut bytes = [0; MAX_OPTIONS as usize];
    let mut length = 0;
    let mut put = |part: &[u8]| {
        bytes[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    };
    if let Some(mss) = options.mss {
        put(&[MSS, 4]);
        put(&mss.to_be_bytes());
    }
    if let Some(timestamps) = options.timestamps {
        put(if options.sack_permitted {
            &[SACK_PERMITTED, 2]
        } else {
            &[NOP, NOP]
        });
        put(&[TIMESTAMPS, 10]);
        put(&timestamps.value.to_be_bytes());
        put(&timestamps.echo.to_be_bytes());
    }
    // Bytes that align SACK blocks or SACK-permitted.
    let mut alignment: &[u8] = &[NOP; 2];
    if let Some(counters) = options.sack.counters() {
        put(&[
            if counters.ect0_first { ACCECN0 } else { ACCECN1 },
            counters.encoded_length() as u8,
        ]);
        for value in counters.values() {
            put(&value.to_be_bytes()[1..]);
        }
        let room = option_room(counters.values().len(), options.has_alignment());
        let padding = |whole: u32| &[NOP; 3][..(whole - counters.encoded_length()) as usize];
        if options.has_alignment() {
            alignment = padding(room + 2);
        } else {
            put(padding(room));
        }
    }
    if options.sack_permitted && options.timestamps.is_none() {
        put(std::mem::replace(&mut alignment, &[NOP; 2]));
        put(&[SACK_PERMITTED, 2]);
    }
    if let Some(shift) = options.window_scale {
        put(&[NOP, WINDOW_SCALE, 3, shift]);
    }
    if !options.sack.is_empty() {
        put(alignment);
        put(&[SACK, 2 + 8 * options.sack.len() as u8]);
        for (start, end) in options.sack.as_slice() {
            put(&start.0.to_be_bytes());
            put(&end.0.to_be_bytes());
        }
    }
    let opening = options.opening();
    if let Some(count) = options.count {
        put(&[NOP, NOP, if opening.count_is_new { CC_NEW } else { CC }, 6]);
        put(&count.get().to_be_bytes());
    }
    if let Some(echo) = opening.count_echo {
        put(&[NOP, NOP, CC_ECHO, 6]);
        put(&echo.get().to_be_bytes());
    }
    if let Some(fast_open) = &opening.fast_open {
        let cookie = fast_open.cookie_bytes();
        if opening.experimental {
            put(&[EXPERIMENT, 4 + cookie.len() as u8]);
            put(&FAST_OPEN_MAGIC);
        } else {
            put(&[FAST_OPEN, 2 + cookie.len() as u8]);
        }
        put(cookie);
        if cookie.len().is_multiple_of(4) != opening.experimental {
            put(&[NOP, NOP]);
        }
    }
    debug_assert_eq!(length, total as usize);
    Ok((bytes, length))
}

/// Decodes a packet that starts with its IP header and verifies both checksums. Bytes after the length in the IP header,
/// such as a link's padding, are ignored.
///
/// Unknown options and options of a wrong length are skipped (RFC 9293, section 3.2, MUST-6). Decoding of options stops at a
/// truncated one.
///
/// # Errors
/// If the bytes are no valid TCP packet.
pub fn decode(bytes: &[u8]) -> Result<Packet, DecodeError> {
    let ip = IpSlice::from_slice(bytes).map_err(|_| DecodeError::Ip)?;
    let (ecn, header_checksum_holds) = match &ip {
        IpSlice::Ipv4(packet) => {
            let header = packet.header();
            // Over the original bytes, because parsing drops the reserved bit.
            let sum = Sum16BitWords::new().add_slice(header.slice());
            (header.ecn(), sum.ones_complement() == 0)
        }
        IpSlice::Ipv6(packet) => (packet.header().ecn(), true),
    };
    if !header_checksum_holds {
        return Err(DecodeError::HeaderChecksum);
    }
    if ip.is_fragmenting_payload() {
        return Err(DecodeError::Fragment);
    }
    let payload = ip.payload();
    if payload.ip_number != IpNumber::TCP {
        return Err(DecodeError::Protocol(payload.ip_number.0));
    }
    let header = TcpHeaderSlice::from_slice(payload.payload).map_err(|_| DecodeError::Header)?;
    let data = &payload.payload[header.slice().len()..];
    let (from, to) = (ip.source_addr(), ip.destination_addr());
    let computed = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => header.calc_checksum_ipv4_raw(from.octets(), to.octets(), data),
        (IpAddr::V6(from), IpAddr::V6(to)) => header.calc_checksum_ipv6_raw(from.octets(), to.octets(), data),
        _ => unreachable!("a header has addresses of one version"),
    };
    if computed != Ok(header.checksum()) {
        return Err(DecodeError::Checksum);
    }
    let start = data.as_ptr() as usize - bytes.as_ptr() as usize;
    let segment = Segment {
        sequence: SequenceNumber(header.sequence_number()),
        acknowledgement: SequenceNumber(header.acknowledgment_number()),
        flags: Flags::from_bits(u16::from_be_bytes([header.slice()[12], header.slice()[13]])),
        ecn: from_ip_ecn(ecn),
        window: header.window_size(),
        length: data.len() as u32,
        options: read_options(header.options()),
    };
    Ok(Packet {
        endpoints: Endpoints {
            source: SocketAddr::new(from, header.source_port()),
            destination: SocketAddr::new(to, header.destination_port()),
        },
        segment,
        options: start - header.options().len()..start,
        payload: start..start + data.len(),
    })
}

/// Iterates over the options of a header, without padding and up to a truncated option. Each slice starts with the option's
/// kind and length.
pub fn options(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        while let Some((&NOP, after)) = rest.split_first() {
            rest = after;
        }
        let (_, after) = rest.split_first().filter(|&(&kind, _)| kind != END)?;
        let length = usize::from(*after.first()?);
        if length < 2 || length > rest.len() {
            return None;
        }
        let (option, after) = rest.split_at(length);
        rest = after;
        Some(option)
    })
}

fn read_options(bytes: &[u8]) -> Options {
    let mut read = Options::default();
    let mut opening = OpeningOptions::default();
    let mut counters = None;
    for option in options(bytes) {
        read_option(option[0], &option[2..], &mut read, &mut opening);
        counters = counters.or_else(|| read_counters(option[0], &option[2..]));
    }
    if let Some(counters) = counters {
        read.sack.set_counters(counters);
    }
    // A SYN has no SACK blocks, and no other segment has opening options.
    if opening != OpeningOptions::default() && read.sack.is_empty() {
        read.set_opening(opening);
    }
    read
}

fn read_option(kind: u8, data: &[u8], options: &mut Options, opening: &mut OpeningOptions) {
    let number = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    match (kind, data.len()) {
        (MSS, 2) => options.mss = Some(u16::from_be_bytes([data[0], data[1]])),
        (WINDOW_SCALE, 1) => options.window_scale = Some(data[0]),
        (SACK_PERMITTED, 0) => options.sack_permitted = true,
        (TIMESTAMPS, 8) => {
            options.timestamps = Some(Timestamps {
                value: number(0),
                echo: number(4),
            });
        }
        (SACK, 8 | 16 | 24 | 32) => {
            options.sack = (0..data.len())
                .step_by(8)
                .map(|at| (SequenceNumber(number(at)), SequenceNumber(number(at + 4))))
                .collect::<SackBlocks>();
        }
        (CC | CC_NEW, 4) => {
            options.count = Count::new(number(0));
            opening.count_is_new = kind == CC_NEW && options.count.is_some();
        }
        (CC_ECHO, 4) => opening.count_echo = Count::new(number(0)),
        (FAST_OPEN, _) => {
            opening.fast_open = FastOpen::from_cookie_bytes(data);
            opening.experimental = false;
        }
        (EXPERIMENT, 2..) if data[..2] == FAST_OPEN_MAGIC && opening.fast_open.is_none() => {
            opening.fast_open = FastOpen::from_cookie_bytes(&data[2..]);
            opening.experimental = opening.fast_open.is_some();
        }
        _ => {}
    }
}

/// Reads an AccECN option of whole counters. A longer one is for a future version: its first three are read (RFC 9768, section
/// 3.2.3).
fn read_counters(kind: u8, data: &[u8]) -> Option<ByteCounters> {
    if !matches!(kind, ACCECN0 | ACCECN1) {
        return None;
    }
    let values: Vec<u32> = data
        .chunks_exact(3)
        .map(|bytes| u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]))
        .collect();
    Some(ByteCounters::new(kind == ACCECN0, &values))
}

const fn ip_ecn(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect0 => IpEcn::Ect0,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ce => IpEcn::CongestionExperienced,
    }
}

const fn from_ip_ecn(ecn: IpEcn) -> Ecn {
    match ecn {
        IpEcn::NotEct => Ecn::NotEct,
        IpEcn::Ect0 => Ecn::Ect0,
        IpEcn::Ect1 => Ecn::Ect1,
        IpEcn::CongestionExperienced => Ecn::Ce,
    }
}
