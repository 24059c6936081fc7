//! 0-RTT: data in the first flight of a client with a ticket (RFC 9001, section 4.6).

use foundation::{Generator, Instant};
use quic::wire::{PacketType, packets};
use quic::{Connection, Event};
use rand::SeedableRng;

use crate::pair::{DELAY, Pair, config, minute};

const EARLY: &str = r#"{"kind": "quic", "zero_rtt": true, "initial_rtt": "20ms"}"#;

fn run(json: &str, resumes: bool, bytes: u64, drops: fn(usize, usize) -> bool) -> Pair {
    let config = config(json);
    let mut pair = Pair::new(&config, 1, bytes, drops);
    pair.ends[0] = Connection::resume(Instant::default(), &config, resumes, Generator::seed_from_u64(1));
    pair.run(minute());
    pair
}

/// Returns when the server has sent payload of the handshake and the client has read nothing before: the bytes of the server.
fn handshake_bytes(pair: &Pair) -> usize {
    let sent = pair.sent.iter().filter(|sent| sent.from == 1);
    sent.map(|sent| {
        let mut bytes = 0;
        packets(&sent.datagram.bytes, |packet| {
            if packet.kind == PacketType::Handshake {
                bytes += packet.length;
            }
        });
        bytes
    })
    .sum()
}

#[test]
fn first_connection_gets_a_ticket_only_with_the_key() {
    let pair = run(EARLY, false, 400, |_, _| false);
    assert!(pair.ends[0].take_ticket());
    assert!(!pair.ends[0].take_ticket());
    assert_eq!(pair.read[1], 400);
    let pair = run(r#"{"kind": "quic"}"#, false, 400, |_, _| false);
    assert!(!pair.ends[0].take_ticket());
}

#[test]
fn request_leaves_with_the_first_flight() {
    let pair = run(EARLY, true, 400, |_, _| false);
    assert_eq!(pair.read[1], 400);
    let carries = |pair: &Pair| {
        let first = pair.sent.iter().find(|sent| sent.datagram.data > 0).unwrap();
        (first.at, first.from, first.datagram.data)
    };
    assert_eq!(carries(&pair), (Instant::default(), 0, 400));
    let (at, ..) = carries(&run(EARLY, false, 400, |_, _| false));
    assert!(at >= Instant::default() + DELAY * 2, "{at:?}");
    assert_eq!(pair.ends[0].statistics().bytes_acknowledged, 400);
    let connected = pair.events[0].iter().filter(|event| **event == Event::Connected);
    assert_eq!(connected.count(), 1);
    // A resumed session has no certificate.
    let full = handshake_bytes(&run(EARLY, false, 400, |_, _| false));
    assert!(handshake_bytes(&pair) + 3000 < full);
}

#[test]
fn early_data_survives_loss() {
    for lost in 0..4 {
        let drops: fn(usize, usize) -> bool = match lost {
            0 => |side, number| side == 0 && number == 0,
            1 => |side, number| side == 0 && number == 1,
            2 => |side, number| side == 1 && number == 0,
            _ => |side, number| side == 1 && number < 3,
        };
        let pair = run(EARLY, true, 5000, drops);
        assert_eq!(pair.read[1], 5000, "{lost}");
        assert!(
            pair.events[0].contains(&Event::Finished),
            "{lost}: {:?}",
            pair.events[0]
        );
    }
}
