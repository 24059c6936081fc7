//! Encoding and decoding of segments, compatible with other stacks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use transport::tcp::ByteCounters;
use transport::tcp::fast_open::{Cookie, FastOpen};
use transport::tcp::options::{OpeningOptions, Options, Timestamps};
use transport::tcp::segment::{Ecn, Flags, Segment};
use transport::tcp::sequence::SequenceNumber;
use transport::tcp::ttcp::Count;
use transport::tcp::wire::{DecodeError, EncodeError, Endpoints, MAX_OPTIONS, decode, encode};

fn endpoints() -> Endpoints {
    Endpoints {
        source: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 49_152),
        destination: SocketAddr::new(Ipv4Addr::new(198, 51, 100, 2).into(), 5_001),
    }
}

fn endpoints6() -> Endpoints {
    let host = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
    Endpoints {
        source: SocketAddr::new(host(1), 49_152),
        destination: SocketAddr::new(host(2), 5_001),
    }
}

fn bytes(segment: &Segment, endpoints: Endpoints) -> Vec<u8> {
    let mut out = Vec::new();
    encode(segment, endpoints, &mut out, |payload| payload.fill(0x55)).unwrap();
    out
}

fn segment(flags: Flags, options: Options) -> Segment {
    Segment {
        window: 64_240,
        options,
        ..Segment::bare(SequenceNumber(0x0102_0304), SequenceNumber(0x0a0b_0c0d), flags)
    }
}

fn syn() -> Segment {
    let options = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps {
            value: 0x1122_3344,
            echo: 0,
        }),
        ..Options::default()
    };
    segment(Flags::SYN, options)
}

/// An independent implementation of the sum of RFC 1071, section 1: 0xffff over data with a correct checksum.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn syn_has_the_layout_of_linux() {
    let wire = bytes(&syn(), endpoints());
    assert_eq!(wire.len(), 60);
    let (ip, tcp) = wire.split_at(20);
    // Version 4, 20 bytes, no DSCP or ECN, total length, identification 0, Don't Fragment, 64 hops, TCP.
    assert_eq!(ip[..10], [0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6]);
    assert_eq!(ip[12..], [192, 0, 2, 1, 198, 51, 100, 2]);
    assert_eq!(
        tcp[..16],
        [
            0xc0, 0, 0x13, 0x89, 1, 2, 3, 4, 10, 11, 12, 13, 0xa0, 2, 0xfa, 0xf0
        ]
    );
    // A Linux host's SYN in tcpdump: mss, sackOK, TS, nop, wscale.
    let options = [
        2, 4, 5, 180, 4, 2, 8, 10, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert_eq!(tcp[20..], options);
    assert_eq!(sum(&[ip]), 0xffff);
    assert_eq!(sum(&[&ip[12..], &[0, 6, 0, 40], tcp]), 0xffff);
}

#[test]
fn sack_blocks_follow_timestamps_with_leading_nops() {
    let block = |n: u32| (SequenceNumber(n), SequenceNumber(n + 1));
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let options = Options {
        timestamps,
        sack: [block(9), block(4)].into_iter().collect(),
        ..Options::default()
    };
    let wire = bytes(&segment(Flags::ACK, options), endpoints());
    let expected = [
        1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 4, 0, 0, 0, 5,
    ];
    assert_eq!(wire[40..], expected);
    let lone = Options {
        sack_permitted: true,
        ..Options::default()
    };
    assert_eq!(bytes(&segment(Flags::SYN, lone), endpoints())[40..], [1, 1, 4, 2]);
}

#[test]
fn ipv6_carries_the_same_with_the_codepoint_in_its_traffic_class() {
    let mut marked = syn();
    marked.ecn = Ecn::Ce;
    marked.length = 3;
    let wire = bytes(&marked, endpoints6());
    assert_eq!(wire[..8], [0x60, 0x30, 0, 0, 0, 43, 6, 64]);
    assert_eq!(
        sum(&[&wire[8..40], &[0, 0, 0, 43, 0, 0, 0, 6], &wire[40..]]),
        0xffff
    );
    let packet = decode(&wire).unwrap();
    assert_eq!((packet.segment, packet.endpoints), (marked, endpoints6()));
    assert_eq!(wire[packet.payload], [0x55; 3]);
}

#[test]
fn oversized_segments_fail_and_leave_the_output_unchanged() {
    let mut out = vec![7];
    let mut refuse = |segment: &Segment, endpoints| {
        let error = encode(segment, endpoints, &mut out, |_| {}).unwrap_err();
        assert_eq!(out, [7]);
        error
    };
    let mixed = Endpoints {
        destination: endpoints6().destination,
        ..endpoints()
    };
    assert_eq!(refuse(&syn(), mixed), EncodeError::Versions);
    let block = (SequenceNumber(1), SequenceNumber(2));
    let mut crowded = syn();
    crowded.options.sack = std::iter::repeat_n(block, 4).collect();
    assert_eq!(refuse(&crowded, endpoints()), EncodeError::Options(56));
    let mut long = syn();
    long.length = 65_535 - 20 - 40 + 1;
    assert_eq!(refuse(&long, endpoints()), EncodeError::Payload(long.length));
    long.length -= 1;
    assert_eq!(decode(&bytes(&long, endpoints())).unwrap().segment, long);
}

#[test]
fn opening_options_have_the_layout_of_their_rfcs() {
    let layout = |options: Options| {
        let wire = bytes(&segment(Flags::SYN, options), endpoints());
        assert_eq!(decode(&wire).unwrap().segment.options, options);
        wire[40..].to_vec()
    };
    let with = |count: u32, opening: OpeningOptions| {
        let mut options = Options {
            count: Count::new(count),
            ..Options::default()
        };
        options.set_opening(opening);
        layout(options)
    };
    // RFC 7413, section 2: kind 34, with trailing padding as in Linux.
    let fast_open = |option| OpeningOptions {
        fast_open: Some(option),
        ..OpeningOptions::default()
    };
    assert_eq!(with(0, fast_open(FastOpen::Request)), [34, 2, 1, 1]);
    let cookie = FastOpen::Cookie(Cookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap());
    assert_eq!(with(0, fast_open(cookie)), [34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1]);
    // Appendix A: kind 254 with the magic number 0xF989.
    let experimental = |option| OpeningOptions {
        experimental: true,
        ..fast_open(option)
    };
    assert_eq!(with(0, experimental(FastOpen::Request)), [254, 4, 0xf9, 0x89]);
    assert_eq!(
        with(0, experimental(cookie)),
        [254, 12, 0xf9, 0x89, 1, 2, 3, 4, 5, 6, 7, 8]
    );
    // RFC 1644, section 3.1: kinds 11, 12 and 13.
    let counts = |count_is_new, echo| OpeningOptions {
        count_is_new,
        count_echo: Count::new(echo),
        ..OpeningOptions::default()
    };
    assert_eq!(with(7, counts(true, 0)), [1, 1, 12, 6, 0, 0, 0, 7]);
    let both = [1, 1, 11, 6, 0, 0, 0, 7, 1, 1, 13, 6, 0, 0, 1, 0];
    assert_eq!(with(7, counts(false, 256)), both);
    // In every segment, next to SACK blocks.
    let bare = Options {
        count: Count::new(7),
        ..Options::default()
    };
    assert_eq!(layout(bare), [1, 1, 11, 6, 0, 0, 0, 7]);
}

#[test]
fn unknown_options_are_skipped() {
    // An unknown option, an experimental one, timestamps of a wrong length, and a valid MSS.
    let known = |raw: &[u8]| {
        let mut wire = bytes(&segment(Flags::SYN, Options::default()), endpoints());
        wire.extend_from_slice(raw);
        assert_eq!(raw.len() % 4, 0);
        wire[32] = (5 + raw.len() as u8 / 4) << 4;
        correct_checksums(&mut wire);
        decode(&wire).unwrap().segment.options
    };
    let strange = [35, 2, 254, 4, 1, 2, 8, 4, 1, 2, 2, 4, 5, 180, 1, 1];
    assert_eq!(
        known(&strange),
        Options {
            mss: Some(1460),
            ..Options::default()
        }
    );
    // Decoding stops at the end of the list and at an invalid length (RFC 9293, MUST-7).
    assert_eq!(known(&[0, 2, 4, 5, 180, 0, 0, 0]), Options::default());
    assert_eq!(known(&[77, 0, 2, 4, 5, 180, 0, 0]), Options::default());
    assert_eq!(known(&[1, 1, 1, 77]), Options::default());
    assert_eq!(known(&[2, 4, 5, 180, 77, 40, 1, 1]).mss, Some(1460));
}

/// Corrects the length and the checksums of an IPv4 packet.
fn correct_checksums(wire: &mut [u8]) {
    let length = (wire.len() as u16).to_be_bytes();
    wire[2..4].copy_from_slice(&length);
    wire[10..12].fill(0);
    let header = !sum(&[&wire[..20]]);
    wire[10..12].copy_from_slice(&header.to_be_bytes());
    wire[36..38].fill(0);
    let tcp_length = (wire.len() as u16 - 20).to_be_bytes();
    let checksum = !sum(&[&wire[12..20], &[0, 6], &tcp_length, &wire[20..]]);
    wire[36..38].copy_from_slice(&checksum.to_be_bytes());
}

#[test]
fn other_packets_have_distinct_errors() {
    let good = bytes(&syn(), endpoints());
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut wire = good.clone();
        change(&mut wire);
        decode(&wire).unwrap_err()
    };
    assert_eq!(changed(&|wire| wire.truncate(19)), DecodeError::Ip);
    assert_eq!(changed(&|wire| wire.truncate(59)), DecodeError::Ip);
    assert_eq!(changed(&|wire| wire[0] = 0x55), DecodeError::Ip);
    assert_eq!(changed(&|wire| wire[8] = 63), DecodeError::HeaderChecksum);
    assert_eq!(changed(&|wire| wire[33] |= 1), DecodeError::Checksum);
    let udp = changed(&|wire| {
        wire[9] = 17;
        correct_checksums(wire);
    });
    assert_eq!(udp, DecodeError::Protocol(17));
    let fragment = changed(&|wire| {
        wire[6] = 0x20;
        correct_checksums(wire);
    });
    assert_eq!(fragment, DecodeError::Fragment);
    let offset = changed(&|wire| {
        wire[32] = 0x40;
        correct_checksums(wire);
    });
    assert_eq!(offset, DecodeError::Header);
    let mut padded = good.clone();
    padded.extend([0; 6]);
    assert_eq!(
        decode(&padded).unwrap().segment,
        syn(),
        "padding of a frame is no payload"
    );
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let options = (
        proptest::option::of(any::<u16>()),
        proptest::option::of(any::<u8>()),
        any::<bool>(),
        proptest::option::of(any::<(u32, u32)>()),
        proptest::collection::vec(any::<(u32, u32)>(), 0..=4),
        proptest::option::of(prop_oneof![
            Just(FastOpen::Request),
            (2_usize..=8, any::<[u8; 16]>())
                .prop_map(|(pairs, bytes)| FastOpen::Cookie(Cookie::new(&bytes[..2 * pairs]).unwrap())),
        ]),
        any::<(Option<u32>, bool, Option<u32>)>(),
        proptest::option::of((any::<bool>(), proptest::collection::vec(0_u32..1 << 24, 0..=3))),
    );
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let header = (
        any::<u32>(),
        any::<u32>(),
        0_u16..0x200,
        any::<u16>(),
        ecn,
        0_u32..3000,
    );
    (header, options).prop_map(
        |(header, (mss, window_scale, sack_permitted, timestamps, sack, fast_open, counts, counters))| {
            let mut options = Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
                sack: sack
                    .into_iter()
                    .map(|(a, b)| (SequenceNumber(a), SequenceNumber(b)))
                    .collect(),
                count: counts.0.and_then(Count::new),
            };
            if options.sack.is_empty() {
                options.set_opening(OpeningOptions {
                    fast_open,
                    experimental: fast_open.is_some() && counts.1,
                    count_is_new: options.count.is_some() && counts.1,
                    count_echo: counts.2.and_then(Count::new),
                });
            }
            if let Some((ect0_first, values)) = counters {
                options.sack.set_counters(ByteCounters::new(ect0_first, &values));
            }
            Segment {
                sequence: SequenceNumber(header.0),
                acknowledgement: SequenceNumber(header.1),
                flags: Flags::from_bits(header.2),
                window: header.3,
                ecn: header.4,
                length: header.5,
                options,
            }
        },
    )
}

fn any_endpoints() -> impl Strategy<Value = Endpoints> {
    let v4 = any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    (prop_oneof![v4, v6], any::<(u16, u16)>()).prop_map(|((from, to), ports)| Endpoints {
        source: SocketAddr::new(from, ports.0),
        destination: SocketAddr::new(to, ports.1),
    })
}

proptest! {
    #[test]
    fn decoded_segments_equal_encoded_ones(segment in any_segment(), endpoints in any_endpoints(), before in 0_usize..5) {
        let mut out = vec![9; before];
        let room = segment.options.encoded_length() <= MAX_OPTIONS;
        let written = encode(&segment, endpoints, &mut out, |payload| {
            for (at, byte) in payload.iter_mut().enumerate() {
                *byte = at as u8;
            }
        });
        prop_assert_eq!(written.is_ok(), room);
        if room {
            let packet = decode(&out[before..]).unwrap();
            prop_assert_eq!(packet.segment, segment);
            prop_assert_eq!(packet.endpoints, endpoints);
            let ip = if endpoints.source.is_ipv4() { 20 } else { 40 };
            prop_assert_eq!(packet.payload.start, ip + segment.header_length() as usize);
            let payload = &out[before..][packet.payload];
            prop_assert_eq!(payload.len(), segment.length as usize);
            prop_assert!(payload.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        }
    }

    /// Every flipped bit of a packet is detected: by a checksum, or because the packet is no longer TCP.
    #[test]
    fn a_flipped_bit_never_passes(mut segment in any_segment(), at: prop::sample::Index, bit in 0_u8..8) {
        if segment.options.encoded_length() > MAX_OPTIONS {
            segment.options.sack = Default::default();
        }
        let mut wire = bytes(&segment, endpoints());
        let at = at.index(wire.len());
        wire[at] ^= 1 << bit;
        prop_assert!(decode(&wire).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_decoded_or_refused(mut wire: Vec<u8>, four: bool) {
        if let Some(first) = wire.first_mut() {
            *first = if four { 0x45 } else { 0x60 };
        }
        let _ = decode(&wire);
        if wire.len() >= 40 && four {
            wire[9] = 6;
            wire[6..8].fill(0);
            correct_checksums(&mut wire);
            if let Ok(packet) = decode(&wire) {
                prop_assert_eq!(packet.payload.len(), packet.segment.length as usize);
                prop_assert_eq!(packet.payload.end, wire.len());
            }
        }
    }
}
