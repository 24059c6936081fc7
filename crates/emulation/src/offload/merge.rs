//! Joins consecutive packets of one flow for one write, as a network card does for its host.

use super::header::{Header, PartialChecksum, SegmentKind, Segmentation};
use super::{ip, ip6, pseudo_header, put_u16, set_length, tcp, u16_at, u32_at, udp};
use crate::packet::{HEADER, IpPacket};

/// Packets in a run: Linux divides larger packets of UDP datagrams only up to this number (`UDP_MAX_SEGMENTS`), and one
/// write has at most 1024 parts (`UIO_MAXIOV`).
const MOST_PACKETS: usize = 64;
/// More fragments, and the offset of this one (RFC 791, section 3.1).
const FRAGMENT: u16 = 0x3fff;
const DONT_FRAGMENT: u16 = 0x4000;

/// What a device accepts in one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeLimits {
    /// Bytes with headers; 0 if each packet is written by itself.
    pub bytes: usize,
    /// Whether datagrams of UDP are joined, too.
    pub datagrams: bool,
}

/// Packets for one write: any packet, or several that make up one large segment or datagram.
#[derive(Debug, Default)]
pub struct Run {
    packets: Vec<IpPacket>,
    /// Properties of the first packet, if others may follow it.
    shape: Option<Shape>,
    /// Bytes of the joined packet.
    bytes: usize,
    /// Whether the last packet has a full payload and no flag that ends a segment.
    is_open: bool,
    /// Whether all packets have the same identification.
    has_fixed_id: bool,
}

/// Where headers and payload of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    is_ipv6: bool,
    is_tcp: bool,
    /// Bytes of the IP header.
    start: usize,
    /// Bytes of all headers.
    headers: usize,
    /// Bytes of payload.
    size: usize,
}

impl Shape {
    /// The shape of a packet that may be joined with others: a segment or datagram with payload, a right checksum, no IP
    /// options and no flags of a connection's start or abort.
    fn of(packet: &IpPacket, limits: MergeLimits) -> Option<Self> {
        let bytes = packet.bytes();
        let is_ipv6 = packet.is_ipv6();
        let (start, is_complete) = match is_ipv6 {
            true => (
                ip6::HEADER,
                usize::from(u16_at(bytes, ip6::LENGTH)) + ip6::HEADER == bytes.len(),
            ),
            false => (
                HEADER,
                usize::from(u16_at(bytes, ip::LENGTH)) == bytes.len()
                    && u16_at(bytes, ip::FLAGS) & FRAGMENT == 0,
            ),
        };
        let is_whole = packet.has_valid_checksum && packet.header_len() == start && is_complete;
        if !is_whole || limits.bytes == 0 {
            return None;
        }
        let is_tcp = match packet.protocol() {
            tcp::PROTOCOL => true,
            udp::PROTOCOL if limits.datagrams => false,
            _ => return None,
        };
        let transport = if is_tcp { tcp::HEADER } else { udp::HEADER };
        let segment = bytes.get(start..).filter(|segment| segment.len() >= transport)?;
        let transport = match is_tcp {
            true => usize::from(segment[tcp::OFFSET] >> 4) * 4,
            false => udp::HEADER,
        };
        if is_tcp {
            let allowed = tcp::FIN | tcp::PSH | tcp::ACK | tcp::ECE | tcp::CWR;
            let flags = segment[tcp::FLAGS];
            if flags & !allowed != 0 || flags & tcp::ACK == 0 || transport < tcp::HEADER {
                return None;
            }
        }
        let size = segment.len().checked_sub(transport).filter(|&size| size > 0)?;
        Some(Self {
            is_ipv6,
            is_tcp,
            start,
            headers: start + transport,
            size,
        })
    }
}

impl Run {
    /// Adds a packet that may be written together with those before; otherwise returns it.
    ///
    /// # Errors
    /// The packet, for the next run.
    pub fn push(&mut self, packet: IpPacket, limits: MergeLimits) -> Result<(), IpPacket> {
        let Some(first) = self.packets.first() else {
            self.shape = Shape::of(&packet, limits);
            self.bytes = packet.bytes().len();
            self.has_fixed_id = true;
            self.is_open = self.shape.is_some_and(|shape| !ends_segment(&packet, shape));
            self.packets.push(packet);
            return Ok(());
        };
        let (true, Some(shape)) = (self.is_open, self.shape) else {
            return Err(packet);
        };
        let Some(size) = self.size_of_next(first, &packet, shape, limits) else {
            return Err(packet);
        };
        self.has_fixed_id &= u16_at(first.bytes(), ip::ID) == u16_at(packet.bytes(), ip::ID);
        self.bytes += size;
        self.is_open = size == shape.size && !ends_segment(&packet, shape);
        self.packets.push(packet);
        Ok(())
    }

    /// Returns the size of a packet's payload if it continues the run.
    fn size_of_next(
        &self,
        first: &IpPacket,
        packet: &IpPacket,
        shape: Shape,
        limits: MergeLimits,
    ) -> Option<usize> {
        let next = Shape::of(packet, limits)?;
        let kind = |shape: Shape| (shape.is_ipv6, shape.is_tcp, shape.headers);
        let fits = kind(next) == kind(shape)
            && next.size <= shape.size
            && self.bytes + next.size <= limits.bytes
            && self.packets.len() < MOST_PACKETS;
        if !fits {
            return None;
        }
        let (one, other) = (first.bytes(), packet.bytes());
        let same = |range: std::ops::Range<usize>| one[range.clone()] == other[range];
        // All of the header but length, identification and checksum.
        let same_ip = match shape.is_ipv6 {
            true => same(0..ip6::LENGTH) && same(ip6::NEXT..ip6::HEADER),
            false => same(0..ip::LENGTH) && same(ip::FLAGS..ip::CHECKSUM) && same(ip::SOURCE..HEADER),
        };
        if !same_ip || !(shape.is_ipv6 || self.continues_id(one, other)) {
            return None;
        }
        let continues = match shape.is_tcp {
            true => {
                let headers = shape.start..shape.headers;
                self.continues_stream(&one[headers.clone()], &other[headers], shape)
            }
            false => same(shape.start..shape.start + udp::LENGTH),
        };
        continues.then_some(next.size)
    }

    /// Whether the identification counts up, or stays the same where it has no meaning (RFC 6864, section 4.1).
    fn continues_id(&self, first: &[u8], next: &[u8]) -> bool {
        let (first_id, id) = (u16_at(first, ip::ID), u16_at(next, ip::ID));
        let count = self.packets.len() as u16;
        let counts_up = id == first_id.wrapping_add(count) && (count == 1 || !self.has_fixed_id);
        let stays = id == first_id && self.has_fixed_id && u16_at(first, ip::FLAGS) & DONT_FRAGMENT != 0;
        counts_up || stays
    }

    /// Whether a TCP header is that of the next segment: all fields equal but the sequence number, the checksum, and
    /// the flags that only the first or last segment may have.
    fn continues_stream(&self, first: &[u8], next: &[u8], shape: Shape) -> bool {
        let expected = u32_at(first, tcp::SEQUENCE).wrapping_add((self.packets.len() * shape.size) as u32);
        let same = |range: std::ops::Range<usize>| first[range.clone()] == next[range];
        let differing = (first[tcp::FLAGS] ^ next[tcp::FLAGS]) & !(tcp::FIN | tcp::PSH | tcp::CWR);
        u32_at(next, tcp::SEQUENCE) == expected
            && differing == 0
            && next[tcp::FLAGS] & tcp::CWR == 0
            && same(0..tcp::SEQUENCE)
            && same(tcp::SEQUENCE + 4..tcp::FLAGS)
            && same(tcp::FLAGS + 1..tcp::CHECKSUM)
            && same(tcp::CHECKSUM + 2..first.len())
    }

    /// Its packets.
    pub fn packets(&self) -> &[IpPacket] {
        &self.packets
    }

    /// Writes the joined headers to `headers`, replacing its content, and returns the device's header; `None` for a
    /// single packet, which is written as it is.
    pub fn join(&self, headers: &mut Vec<u8>) -> Option<Header> {
        let (first, last) = (self.packets.first()?, self.packets.last()?);
        let shape = self.shape.filter(|_| self.packets.len() > 1)?;
        headers.clear();
        headers.extend_from_slice(&first.bytes()[..shape.headers]);
        let id = u16_at(headers, ip::ID);
        set_length(&mut headers[..shape.start], self.bytes, id);
        let length = self.bytes - shape.start;
        let sum = pseudo_header(headers, length).folded();
        let segment = &mut headers[shape.start..];
        let (kind, offset) = match shape.is_tcp {
            true => {
                segment[tcp::FLAGS] |= last.bytes()[shape.start + tcp::FLAGS];
                let has_cwr = segment[tcp::FLAGS] & tcp::CWR != 0;
                let is_ipv6 = shape.is_ipv6;
                (SegmentKind::Tcp { has_cwr, is_ipv6 }, tcp::CHECKSUM)
            }
            false => {
                put_u16(segment, udp::LENGTH, length as u16);
                (SegmentKind::Udp, udp::CHECKSUM)
            }
        };
        put_u16(segment, offset, sum);
        Some(Header {
            checksum: Some(PartialChecksum {
                start: shape.start as u16,
                offset: offset as u16,
            }),
            segmentation: Some(Segmentation {
                kind,
                headers: shape.headers as u16,
                size: shape.size as u16,
            }),
        })
    }

    /// The payloads of its packets; empty for a packet that cannot be joined.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let shape = self.shape;
        let payload = move |packet| shape.map(|shape| &IpPacket::bytes(packet)[shape.headers..]);
        self.packets.iter().filter_map(payload)
    }

    /// Empties the run and returns its packets.
    pub fn drain(&mut self) -> impl Iterator<Item = IpPacket> + '_ {
        self.packets.drain(..)
    }
}

/// Whether no segment may follow this one in a run.
fn ends_segment(packet: &IpPacket, shape: Shape) -> bool {
    shape.is_tcp && packet.bytes()[shape.start + tcp::FLAGS] & (tcp::FIN | tcp::PSH) != 0
}

#[cfg(test)]
mod tests {
    use network::Body;
    use proptest::prelude::*;

    use super::super::sample::{Sample, sample, split};
    use super::*;

    const LIMITS: MergeLimits = MergeLimits {
        bytes: 65_535,
        datagrams: true,
    };

    fn packet(bytes: Vec<u8>) -> IpPacket {
        let mut packet = IpPacket::new(bytes).unwrap();
        packet.has_valid_checksum = true;
        packet
    }

    /// The writes of these packets: the device's header and the bytes.
    fn writes(packets: Vec<IpPacket>, limits: MergeLimits) -> Vec<(Header, Vec<u8>)> {
        let (mut run, mut found) = (Run::default(), Vec::new());
        let mut write = |run: &mut Run| {
            let mut bytes = Vec::new();
            let header = run.join(&mut bytes);
            match header {
                Some(_) => run
                    .payloads()
                    .for_each(|payload| bytes.extend_from_slice(payload)),
                None => bytes.extend_from_slice(run.packets()[0].bytes()),
            }
            found.push((header.unwrap_or_default(), bytes));
            run.drain().for_each(drop);
        };
        for packet in packets {
            if let Err(packet) = run.push(packet, limits) {
                write(&mut run);
                run.push(packet, limits).unwrap();
            }
        }
        write(&mut run);
        found
    }

    fn parts(sample: &Sample) -> Vec<IpPacket> {
        split(sample).into_iter().map(packet).collect()
    }

    fn lengths(packets: Vec<IpPacket>, limits: MergeLimits) -> Vec<usize> {
        let mut left = packets
            .iter()
            .map(|packet| packet.bytes().len())
            .collect::<Vec<_>>();
        let mut counts = Vec::new();
        for (header, bytes) in writes(packets, limits) {
            let headers = header.segmentation.map_or(0, |of| usize::from(of.headers));
            let (mut count, mut total) = (0, headers);
            while total < bytes.len() {
                total += left.remove(0) - headers;
                count += 1;
            }
            assert_eq!(total, bytes.len());
            counts.push(count);
        }
        counts
    }

    /// Changes bytes of the third of four packets; returns the number of packets in each write.
    fn with_change(sample: &Sample, change: impl FnOnce(&mut Vec<u8>)) -> Vec<usize> {
        let mut bytes = split(sample);
        change(&mut bytes[2]);
        let packets = bytes.into_iter().map(packet).collect();
        lengths(packets, LIMITS)
    }

    const TCP: usize = HEADER;
    const TIME_TO_LIVE: usize = 8;

    #[test]
    fn segments_with_other_headers_are_not_joined() {
        let sample = Sample::tcp(4000, 1000);
        assert_eq!(with_change(&sample, |_| {}), [4]);
        let flip = |at: usize, bits: u8| with_change(&sample, |bytes| bytes[at] ^= bits);
        for (what, at, bits) in [
            ("ECN", 1, 3),
            ("identification", ip::ID + 1, 8),
            ("DF", ip::FLAGS, 0x40),
            ("time to live", TIME_TO_LIVE, 1),
            ("source address", ip::SOURCE + 3, 4),
            ("destination address", ip::DESTINATION + 3, 4),
            ("source port", TCP + 1, 1),
            ("destination port", TCP + 3, 1),
            ("sequence number", TCP + tcp::SEQUENCE + 3, 1),
            ("acknowledgement", TCP + 11, 1),
            ("the flag AE", TCP + tcp::OFFSET, 1),
            ("ECE", TCP + tcp::FLAGS, tcp::ECE),
            ("window", TCP + 15, 1),
            ("urgent pointer", TCP + 19, 1),
            ("options", TCP + tcp::HEADER + 5, 1),
        ] {
            assert_eq!(flip(at, bits), [2, 1, 1], "{what}");
        }
        // CWR may start a run.
        assert_eq!(flip(TCP + tcp::FLAGS, tcp::CWR), [2, 2]);
    }

    #[test]
    fn segments_with_these_flags_are_written_by_themselves() {
        let sample = Sample::tcp(4000, 1000);
        // SYN, RST, URG, and a missing ACK.
        for bits in [0x02, 0x04, 0x20, tcp::ACK] {
            let counts = with_change(&sample, |bytes| bytes[TCP + tcp::FLAGS] ^= bits);
            assert_eq!(counts, [2, 1, 1], "{bits:#x}");
        }
        // No segment follows PSH or FIN in a run.
        for bits in [tcp::PSH, tcp::FIN] {
            let counts = with_change(&sample, |bytes| bytes[TCP + tcp::FLAGS] |= bits);
            assert_eq!(counts, [3, 1], "{bits:#x}");
        }
    }

    #[test]
    fn fragments_and_packets_with_options_are_written_by_themselves() {
        let sample = Sample::tcp(4000, 1000);
        assert_eq!(with_change(&sample, |bytes| bytes[ip::FLAGS] |= 0x20), [2, 1, 1]);
        assert_eq!(with_change(&sample, |bytes| bytes[ip::FLAGS + 1] |= 1), [2, 1, 1]);
        assert_eq!(with_change(&sample, |bytes| bytes[0] = 0x46), [2, 1, 1]);
        assert_eq!(
            with_change(&sample, |bytes| bytes[ip::LENGTH + 1] ^= 1),
            [2, 1, 1]
        );
    }

    #[test]
    fn datagrams_of_other_flows_are_not_joined() {
        let sample = Sample::udp(4000, 1000);
        assert_eq!(with_change(&sample, |_| {}), [4]);
        for at in [
            1,
            TIME_TO_LIVE,
            ip::SOURCE + 3,
            ip::DESTINATION + 3,
            HEADER + 1,
            HEADER + 3,
        ] {
            assert_eq!(with_change(&sample, |bytes| bytes[at] ^= 1), [2, 1, 1], "{at}");
        }
        let limits = MergeLimits {
            datagrams: false,
            ..LIMITS
        };
        assert_eq!(lengths(parts(&sample), limits), [1, 1, 1, 1]);
    }

    #[test]
    fn gaps_duplicates_and_reordered_segments_are_not_joined() {
        let all = || parts(&Sample::tcp(4000, 1000));
        let mut gap = all();
        gap.remove(1);
        assert_eq!(lengths(gap, LIMITS), [1, 2]);
        let mut duplicate = all();
        duplicate.insert(1, duplicate[1].clone());
        assert_eq!(lengths(duplicate, LIMITS), [2, 3]);
        let mut swapped = all();
        swapped.swap(1, 2);
        assert_eq!(lengths(swapped, LIMITS), [1, 1, 1, 1]);
    }

    #[test]
    fn corrupted_packets_and_unknown_checksums_are_not_joined() {
        for sample in [Sample::tcp(4000, 1000), Sample::udp(4000, 1000)] {
            for bit in [0, 8 * 30, 8 * 500] {
                let mut packets = parts(&sample);
                packets[2].flip_bit(bit);
                let corrupted = packets[2].bytes().to_vec();
                let written = writes(packets, LIMITS);
                assert_eq!(written[1], (Header::default(), corrupted), "{bit}");
                assert_eq!(written.len(), 3, "{bit}");
            }
            let mut packets = parts(&sample);
            packets[1].has_valid_checksum = false;
            assert_eq!(lengths(packets, LIMITS), [1, 1, 2]);
        }
    }

    #[test]
    fn a_shorter_packet_ends_a_run() {
        let mut packets = parts(&Sample::udp(2500, 1000));
        let mut next = Sample::udp(1000, 500);
        next.id += 3;
        packets.extend(parts(&next));
        assert_eq!(lengths(packets, LIMITS), [3, 2]);
    }

    #[test]
    fn an_unchanged_identification_needs_df() {
        let sample = Sample::udp(4000, 1000);
        for (flags, counts) in [(0x40, &[4][..]), (0, &[1, 1, 1, 1])] {
            let mut bytes = split(&sample);
            for bytes in &mut bytes {
                bytes[ip::FLAGS] = flags;
                put_u16(bytes, ip::ID, 0);
            }
            let packets = bytes.into_iter().map(packet).collect();
            assert_eq!(lengths(packets, LIMITS), counts);
        }
    }

    #[test]
    fn a_run_stays_within_its_limits() {
        let limits = |bytes| MergeLimits {
            bytes,
            datagrams: true,
        };
        let sample = Sample::tcp(6000, 1000);
        assert_eq!(lengths(parts(&sample), limits(3052)), [3, 3]);
        assert_eq!(lengths(parts(&sample), limits(3051)), [2, 2, 2]);
        assert_eq!(lengths(parts(&sample), limits(0)), [1; 6]);
        assert_eq!(lengths(parts(&Sample::udp(1000, 10)), LIMITS), [64, 36]);
    }

    proptest! {
        #[test]
        fn joining_the_segments_returns_the_original(sample in sample()) {
            let written = writes(parts(&sample), LIMITS);
            prop_assert_eq!(written, [(sample.header(), sample.bytes())]);
        }
    }
}
