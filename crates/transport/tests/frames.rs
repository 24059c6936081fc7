//! The frame codec with arbitrary bytes, and a connection with arbitrary frames.

use std::convert::Infallible;

use crate::pair::{Bytes, Impairments, Pair, assert_pattern};
use foundation::{Duration, Instant};
use proptest::prelude::*;
use transport::Machine;
use transport::arq::codec::{DecodeError, decode, encode};
use transport::arq::frame::{Frame, FrameType, Handshake, Parameters};
use transport::arq::{ArqConfig, Event};

const KINDS: [FrameType; 11] = [
    FrameType::Open,
    FrameType::Challenge,
    FrameType::Accept,
    FrameType::Data,
    FrameType::Ack,
    FrameType::Update,
    FrameType::Fin,
    FrameType::Ping,
    FrameType::Reset,
    FrameType::Probe,
    FrameType::ProbeReply,
];

prop_compose! {
    fn any_frame()(
        kind in prop::sample::select(&KINDS[..]),
        words in any::<[u32; 6]>(),
        sack in prop::collection::vec(any::<(u32, u32)>(), 0..=4),
        token in any::<[u8; 24]>(),
        (protocol, numbers) in any::<(u8, [u16; 3])>(),
        payload in prop::collection::vec(any::<u8>(), 1..1500),
    ) -> Frame<Bytes> {
        let mut frame = Frame::new(kind, words[0]);
        [frame.sequence, frame.acknowledgement, frame.window, frame.timestamp, frame.echo] =
            [words[1], words[2], words[3], words[4], words[5]];
        for (start, end) in sack {
            frame.sack.push(start, end);
        }
        if matches!(kind, FrameType::Open | FrameType::Challenge | FrameType::Accept) {
            let [segment_size, acknowledge_every, acknowledge_delay] = numbers;
            let parameters = Parameters { protocol, segment_size, acknowledge_every, acknowledge_delay };
            frame.handshake = Some(Box::new(Handshake { token, parameters }));
        }
        frame.payload = matches!(kind, FrameType::Data | FrameType::Probe).then_some(Bytes(payload));
        frame
    }
}

fn bytes_of(frame: &Frame<Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    let append = |payload: &Bytes, out: &mut Vec<u8>| {
        out.extend_from_slice(&payload.0);
        Ok::<(), Infallible>(())
    };
    encode(frame, &mut out, append).unwrap();
    out
}

#[test]
fn the_payload_has_its_length_whatever_is_appended() {
    let mut frame = Frame::new(FrameType::Data, 1);
    frame.payload = Some(Bytes(vec![0; 5]));
    for (appended, payload) in [(&b"abc"[..], b"abc\0\0"), (b"abcdefg", b"abcde")] {
        let mut out = vec![9];
        let result = encode(&frame, &mut out, |_, out| {
            out.extend_from_slice(appended);
            Ok::<(), Infallible>(())
        });
        assert_eq!(result, Ok(()));
        let decoded = decode(&out[1..]).unwrap();
        assert_eq!(&out[1..][decoded.payload.unwrap()], payload);
        let failed = encode(&frame, &mut out, |_, out| {
            out.extend_from_slice(appended);
            Err("no payload")
        });
        assert_eq!((failed, out.len()), (Err("no payload"), 1 + frame.length()));
    }
}

proptest! {
    #[test]
    fn frames_survive_encoding(frame in any_frame()) {
        let bytes = bytes_of(&frame);
        prop_assert_eq!(bytes.len(), frame.length());
        let back = decode(&bytes).unwrap().map_payload(|place| bytes[place].to_vec());
        prop_assert_eq!(back, frame.map_payload(|p| p.0));
    }

    #[test]
    fn detects_flipped_bits(frame in any_frame(), flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4)) {
        let mut bytes = bytes_of(&frame);
        let bits = bytes.len() * 8;
        let flips: std::collections::BTreeSet<usize> = flips.iter().map(|i| i.index(bits)).collect();
        for bit in flips {
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn decodes_any_bytes_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // Random bytes pass a 32-bit checksum with probability 1 in 4 billion.
        prop_assert!(decode(&bytes).is_err());
    }

    /// Arbitrary bytes with a correct version, length and checksum: the decoder does not panic, and
    /// its result encodes to the same bytes.
    #[test]
    fn decoded_frames_encode_to_the_same_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 32..300), kind in 0_u8..16, sack in 0_u8..6,
    ) {
        bytes[0] = 0x10 | kind;
        bytes[1] = sack;
        let set_up = if (1..=3).contains(&kind) { 32 } else { 0 };
        let before_payload = 32 + 8 * usize::from(sack) + set_up;
        let payload = bytes.len().saturating_sub(before_payload) as u16;
        bytes[2..4].copy_from_slice(&payload.to_be_bytes());
        if set_up > 0 && bytes.len() >= before_payload {
            bytes[before_payload - 7] = 0; // reserved
        }
        bytes[28..32].fill(0);
        let checksum = crc32c::crc32c(&bytes);
        bytes[28..32].copy_from_slice(&checksum.to_be_bytes());
        if let Ok(frame) = decode(&bytes) {
            let again = bytes_of(&frame.map_payload(|place| Bytes(bytes[place].to_vec())));
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn refuses_truncated_and_padded_frames(frame in any_frame(), cut in any::<prop::sample::Index>()) {
        let mut bytes = bytes_of(&frame);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert_eq!(decode(&bytes), Err(DecodeError::Length));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Both ends receive frames with a correct checksum and connection and arbitrary other fields.
    /// They may close the connection (as a forged reset does), but never cause a panic, a hang or the
    /// delivery of unsent data, except for the data that they carry.
    #[test]
    fn invalid_frames_cause_no_harm(frames in prop::collection::vec((any_frame(), any::<bool>(), 0_i64..2000), 1..60)) {
        let config = ArqConfig::for_files();
        let mut pair = Pair::new(&config, Impairments::NONE, 5, 0);
        while pair.listener.connection.is_none() {
            prop_assert!(pair.step(Instant::MAX));
        }
        pair.write_all(true, 300_000);
        pair.write_all(false, 1000);
        for (mut frame, to_listener, near) in frames {
            if matches!(frame.kind, FrameType::Data | FrameType::Fin) {
                frame.kind = FrameType::Ack;
                frame.payload = None;
            }
            frame.connection = pair.opener.connection.as_ref().unwrap().id();
            // Some numbers are close to valid ones, where errors are likely.
            if near % 2 == 0 {
                frame.acknowledgement = near as u32;
                frame.sequence = (near / 2) as u32;
            }
            let is_reset = frame.kind == FrameType::Reset;
            let now = pair.now;
            let host = if to_listener { &mut pair.listener } else { &mut pair.opener };
            if !is_reset {
                host.connection.as_mut().unwrap().handle_frame(now, frame);
            }
            pair.drain(!to_listener);
            for _ in 0..5 {
                pair.step(Instant::MAX);
            }
        }
        let until = pair.now + Duration::from_secs(200);
        let mut steps = 0_u64;
        while !pair.is_over() && pair.step(until) {
            steps += 1;
            prop_assert!(steps < 1_000_000, "hangs");
        }
        prop_assert!(pair.is_over());
        assert_pattern(&pair.listener.received);
        assert_pattern(&pair.opener.received);
        let finished = pair.opener.events.contains(&Event::Finished);
        prop_assert!(finished || pair.opener.failed());
    }
}
