//! Encoding and decoding of MPTCP options, compared with the figures of RFC 8684.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use transport::mptcp::keys::{Keys, Nonces};
use transport::mptcp::segment::{Checksum, JoinHmac, Mapping, Token, Widths};
use transport::mptcp::wire::{
    CHECKSUMS, EXTENSIBILITY, HMAC_SHA256, Near, Number, VERSION, WireMapping, WireOption, decode, encode,
    on_wire, option_bytes, supported,
};
use transport::mptcp::{MptcpOption, PathIndex, Segment, Signal};
use transport::tcp::wire::Endpoints;
use transport::tcp::{self, Flags, SequenceNumber};

use crate::mptcp::pair::{Pair, Side, at};

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<u32>().prop_map(Number::Four),
        any::<u64>().prop_map(Number::Eight)
    ]
}

fn dss() -> impl Strategy<Value = WireOption> {
    let mapping = (number(), any::<u32>(), any::<u16>(), any::<Option<u16>>()).prop_map(
        |(data, subflow, length, checksum)| WireMapping {
            data,
            subflow,
            length,
            checksum,
        },
    );
    (
        prop::option::of(number()),
        prop::option::of(mapping),
        any::<bool>(),
    )
        .prop_map(|(acknowledgement, mapping, fin)| WireOption::Dss {
            acknowledgement,
            mapping,
            fin,
        })
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).into())
    ]
}

/// Generates every option in every form.
fn option() -> impl Strategy<Value = WireOption> {
    let capable = |sender, receiver, data| WireOption::Capable {
        version: VERSION,
        flags: HMAC_SHA256,
        sender,
        receiver,
        data,
    };
    let hmac = prop::array::uniform20(any::<u8>());
    prop_oneof![
        (0_u8..16, any::<u8>()).prop_map(|(version, flags)| WireOption::Capable {
            version,
            flags,
            sender: None,
            receiver: None,
            data: None,
        }),
        any::<u64>().prop_map(move |key| capable(Some(key), None, None)),
        (any::<u64>(), any::<u64>(), any::<Option<(u16, Option<u16>)>>())
            .prop_map(move |(sender, receiver, data)| capable(Some(sender), Some(receiver), data)),
        any::<(bool, u8, u32, u32)>().prop_map(|(backup, address, token, nonce)| WireOption::JoinSyn {
            backup,
            address,
            token,
            nonce,
        }),
        any::<(bool, u8, [u8; 8], u32)>().prop_map(|(backup, address, hmac, nonce)| {
            WireOption::JoinAnswer {
                backup,
                address,
                hmac,
                nonce,
            }
        }),
        hmac.prop_map(|hmac| WireOption::JoinThird { hmac }),
        dss(),
        (
            any::<u8>(),
            address(),
            any::<Option<u16>>(),
            any::<Option<[u8; 8]>>()
        )
            .prop_map(|(id, address, port, hmac)| WireOption::AddAddress {
                id,
                address,
                port,
                hmac,
            }),
        prop::collection::vec(any::<u8>(), 1..37).prop_map(|ids| WireOption::RemoveAddress { ids }),
        any::<bool>().prop_map(|backup| WireOption::Priority { backup }),
        any::<u64>().prop_map(|data| WireOption::Fail { data }),
        any::<u64>().prop_map(|receiver| WireOption::FastClose { receiver }),
        (0_u8..16, any::<u8>()).prop_map(|(flags, reason)| WireOption::Reset { flags, reason }),
    ]
}

/// Returns the bytes without padding.
fn unpadded(option: &WireOption) -> Vec<u8> {
    let bytes = option.bytes();
    assert!(bytes.len().is_multiple_of(4) && bytes.len() <= 40, "{option:?}");
    let length = usize::from(bytes[1]);
    assert!(bytes[length..].iter().all(|&byte| byte == 1), "padded with NOPs");
    bytes[..length].to_vec()
}

proptest! {
    #[test]
    fn decodes_encoded_options(option in option()) {
        let bytes = unpadded(&option);
        prop_assert_eq!(WireOption::read(&bytes), Some(option));
        for cut in 0..bytes.len() {
            prop_assert_eq!(WireOption::read(&bytes[..cut]), None, "its length is unpadded");
        }
    }

    #[test]
    fn decodes_or_rejects_random_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..41), valid_length in any::<bool>()) {
        if valid_length && bytes.len() >= 3 {
            bytes[0] = 30;
            bytes[1] = bytes.len() as u8;
        }
        if let Some(option) = WireOption::read(&bytes) {
            // Reserved bits are dropped; everything else is preserved.
            prop_assert_eq!(WireOption::read(&unpadded(&option)), Some(option.clone()));
            let keys = Keys { sender: 1, receiver: 2 };
            let near = Near { data: 5, acknowledgement: u64::MAX - 5 };
            let typed = supported(&option, keys, near);
            prop_assert_eq!(option_bytes(&typed, keys).len() as u32, typed.encoded_length());
        }
    }

    /// A connection neither panics nor hangs on any decodable option.
    #[test]
    fn connection_survives_any_option(
        options in prop::collection::vec((option(), 0_u8..3, 0_u8..64, 0_u32..3000, -3000_i32..3000), 1..40),
        side in prop::sample::select(vec![Side::Client, Side::Server]),
        seed in 0_u64..100,
    ) {
        let config = serde_json::from_str(r#"{"kind": "mptcp", "profile": "linux", "policy": "all"}"#).unwrap();
        let rtts = [20, 30];
        let mut pair = Pair::new(&config, &rtts, 300_000, seed, Box::new(move |_, _, path: PathIndex, _| {
            vec![crate::mptcp::pair::ms(rtts[path.index()] / 2)]
        }));
        pair.open();
        pair.run_until(at(100));
        for (number, (option, subflow, flags, length, off)) in options.into_iter().enumerate() {
            let Some(like) = pair.trace.iter().rfind(|sent| sent.from != side && sent.packet.segment.subflow == subflow) else {
                continue;
            };
            let (path, mut segment) = (like.path, like.packet.segment);
            segment.option = supported(&option, Keys::default(), Near { data: 100_000, acknowledgement: 100_000 });
            segment.tcp.flags = Flags::from_bits(flags.into());
            segment.tcp.length = if number % 2 == 0 { length } else { 0 };
            segment.tcp.sequence = SequenceNumber(segment.tcp.sequence.0.wrapping_add(off as u32));
            pair.deliver(side, path, segment);
        }
        pair.run_until(at(2000));
    }

    #[test]
    fn decodes_encoded_packets(option in option(), length in 0_u32..1000) {
        let endpoints = Endpoints {
            source: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 1000),
            destination: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 2).into(), 2000),
        };
        let keys = Keys { sender: 11, receiver: 22 };
        let near = Near { data: 70_000, acknowledgement: 90_000 };
        let typed = supported(&option, keys, near);
        let mut tcp = tcp::Segment::bare(SequenceNumber(1), SequenceNumber(2), Flags::ACK);
        tcp.length = length;
        let mut bytes = Vec::new();
        let segment = Segment { tcp, option: typed, signal: Signal::None, subflow: 0 };
        encode(&segment, keys, None, endpoints, &mut bytes, |_| {}).unwrap();
        let (packet, options) = decode(&bytes).unwrap();
        prop_assert_eq!(packet.endpoints, endpoints);
        prop_assert_eq!(packet.segment, tcp);
        prop_assert_eq!(options.first().cloned(), on_wire(&typed, keys));
        if let Some(read) = options.first() {
            // Four bytes are sufficient near the expected position.
            let near = match typed {
                MptcpOption::Dss { acknowledgement, mapping, .. } => Near {
                    data: mapping.map_or(0, |mapping| mapping.data),
                    acknowledgement,
                },
                _ => near,
            };
            let again = supported(read, keys, near);
            prop_assert_eq!(option_bytes(&again, keys), option_bytes(&typed, keys));
        }
    }
}

/// A four-byte number is that of the nearest position, across wraps too (RFC 8684, section 3.3.1).
#[test]
fn four_byte_numbers_resolve_to_nearest_position() {
    let keys = Keys {
        sender: 0x1234,
        receiver: 0x5678,
    };
    for base in [1_u64, 1 << 31, (1 << 32) - 5, 1 << 33] {
        for off in [-1000_i64, 0, 1000, 1 << 30] {
            let Some(position) = base.checked_add_signed(off) else {
                continue;
            };
            let option = MptcpOption::Dss {
                acknowledgement: position,
                mapping: Some(Mapping {
                    data: position,
                    subflow: 1,
                    length: 100,
                }),
                fin: true,
                widths: Widths::default(),
                checksum: Checksum::Absent,
            };
            let near = Near {
                data: base,
                acknowledgement: base,
            };
            let wire = on_wire(&option, keys).unwrap();
            assert_eq!(supported(&wire, keys, near), option, "{base} {off}");
        }
    }
}

/// Unsupported options have no effect: the connection falls back to TCP (section 3.7).
#[test]
fn unsupported_options_have_no_effect() {
    let capable = |version, flags| WireOption::Capable {
        version,
        flags,
        sender: None,
        receiver: None,
        data: None,
    };
    let read = |option: &WireOption| supported(option, Keys::default(), Near::default());
    assert_ne!(read(&capable(VERSION, HMAC_SHA256)), MptcpOption::None);
    assert_eq!(read(&capable(0, HMAC_SHA256)), MptcpOption::None);
    assert_eq!(
        read(&capable(VERSION, HMAC_SHA256 | EXTENSIBILITY)),
        MptcpOption::None
    );
    assert_eq!(read(&capable(VERSION, CHECKSUMS)), MptcpOption::None);
    assert_eq!(WireOption::read(&[30, 4, 0x90, 0]), None, "unknown subtype");
    assert_eq!(WireOption::read(&[30, 5, 0x20, 1, 0]), None, "a DATA_ACK cut off");
}

/// The figures of RFC 8684, byte by byte.
#[test]
fn encoding_matches_rfc_figures() {
    let hex = |option: &WireOption| -> String {
        unpadded(option)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    let join = WireOption::JoinSyn {
        backup: true,
        address: 3,
        token: 0x0102_0304,
        nonce: 0x0506_0708,
    };
    assert_eq!(hex(&join), "1e0c11030102030405060708");
    let dss = WireOption::Dss {
        acknowledgement: Some(Number::Eight(1)),
        mapping: Some(WireMapping {
            data: Number::Four(2),
            subflow: 3,
            length: 4,
            checksum: Some(0xabcd),
        }),
        fin: true,
    };
    assert_eq!(hex(&dss), "1e182017000000000000000100000002000000030004abcd");
    let add = WireOption::AddAddress {
        id: 9,
        address: Ipv4Addr::new(192, 0, 2, 1).into(),
        port: Some(80),
        hmac: None,
    };
    assert_eq!(hex(&add), "1e0a3109c00002010050", "an echo");
    assert_eq!(hex(&WireOption::RemoveAddress { ids: vec![5, 6] }), "1e05400506");
    assert_eq!(hex(&WireOption::Priority { backup: true }), "1e0351");
    assert_eq!(hex(&WireOption::Fail { data: 1 }), "1e0c60000000000000000001");
    assert_eq!(
        hex(&WireOption::FastClose { receiver: 2 }),
        "1e0c70000000000000000002"
    );
    assert_eq!(hex(&WireOption::Reset { flags: 1, reason: 6 }), "1e048106");
}

/// Encoded lengths equal those that segments reserve.
#[test]
fn encoded_lengths_match_reserved_lengths() {
    let hmac = JoinHmac::Derived {
        keys: Keys {
            sender: 1,
            receiver: 2,
        },
        nonces: Nonces {
            sender: 3,
            receiver: 4,
        },
    };
    let capable = |sender, receiver, length| MptcpOption::Capable {
        sender,
        receiver,
        length,
        checksums: false,
        checksum: Checksum::Absent,
    };
    let mapping = Some(Mapping::default());
    let of_widths = |mapping, fin, widths| MptcpOption::Dss {
        acknowledgement: 1,
        mapping,
        fin,
        widths,
        checksum: Checksum::Correct,
    };
    let dss = |mapping, fin| of_widths(mapping, fin, Widths::default());
    let wide = |acknowledgement, data| Widths {
        acknowledgement,
        data,
    };
    let (nonce, address, backup) = (1, 2, false);
    // Lengths in RFC 8684, figures 4 to 9, 13, 14, rounded up to a multiple of four by NOPs.
    for (option, unpadded) in [
        (capable(None, None, 0), 4),
        (capable(Some(1), None, 0), 12),
        (capable(Some(1), Some(2), 0), 20),
        (capable(Some(1), Some(2), 100), 22),
        (
            MptcpOption::JoinSyn {
                token: Token::Derived(1),
                nonce,
                address,
                backup,
            },
            12,
        ),
        (
            MptcpOption::JoinAnswer {
                hmac,
                nonce,
                address,
                backup,
            },
            16,
        ),
        (MptcpOption::JoinThird { hmac }, 24),
        (dss(None, false), 8),
        (dss(mapping, false), 20),
        (dss(mapping, true), 20),
        (of_widths(None, false, wide(true, true)), 12),
        (of_widths(mapping, false, wide(false, true)), 24),
        (of_widths(mapping, true, wide(true, true)), 28),
        (MptcpOption::Fail { data: 1 }, 12),
        (MptcpOption::FastClose { receiver: 1 }, 12),
        (
            MptcpOption::Reset {
                transient: true,
                reason: 1,
            },
            4,
        ),
    ] {
        let bytes = option_bytes(&option, Keys::default());
        assert_eq!(bytes[1], unpadded, "{option:?}");
        assert_eq!(bytes.len() as u32, option.encoded_length(), "{option:?}");
    }
}
