//! A server whose client gets another port or address in the middle of a response.

use std::net::SocketAddr;

use foundation::{Duration, Instant};
use quic::wire::{self, Frame};

use crate::pair::{Pair, Sent, config, minute};

const BYTES: u64 = 2_000_000;
/// The time of the rebinding.
const AT: Duration = Duration::from_millis(270);

fn at(time: Duration) -> Instant {
    Instant::default() + time
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns whether a datagram has a frame of this name.
fn has(sent: &Sent, name: &'static str) -> bool {
    let mut found = false;
    wire::packets(&sent.datagram.bytes, |packet| {
        packet.frames(|frame| found |= frame == Frame::Other(name));
    });
    found
}

/// Returns a pair whose client has got the address `to` while the server sends, and the server's window before.
fn rebound(to: &str) -> (Pair, u64) {
    let config = config(r#"{"kind": "quic", "congestion": "reno"}"#);
    let mut pair = Pair::idle(&config, 1);
    pair.client = Some(address("100.64.0.0:1"));
    pair.send(0, at(Duration::from_millis(100)), 100);
    pair.send(1, at(Duration::from_millis(200)), BYTES);
    pair.run(at(AT));
    let window = pair.ends[1].window().unwrap();
    assert!(window > 50 * 1472, "{window}");
    pair.client = Some(address(to));
    (pair, window)
}

/// Returns the smallest window of the server in the next five round trips.
fn smallest_window(pair: &mut Pair) -> u64 {
    let windows = (1..=100).map(|millis| {
        pair.run(at(AT + Duration::from_millis(millis)));
        pair.ends[1].window().unwrap()
    });
    windows.min().unwrap()
}

/// A server challenges the new path within a round trip (RFC 9000, section 9.3), and the client answers.
#[test]
fn server_validates_the_path_of_a_new_port() {
    let (mut pair, _) = rebound("100.64.0.0:2");
    pair.run(minute());
    assert_eq!(pair.read[0], BYTES);
    let first = |side: usize, name: &'static str| {
        let found = pair.sent.iter().find(|sent| sent.from == side && has(sent, name));
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    let (challenge, response) = (first(1, "path_challenge"), first(0, "path_response"));
    let new = Some(address("100.64.0.0:2"));
    assert_eq!(challenge.datagram.client, new, "it leaves for the new port");
    assert!(challenge.at >= at(AT) && challenge.at <= at(AT + Duration::from_millis(20)));
    assert_eq!(response.at - challenge.at, Duration::from_millis(10));
}

/// RFC 9000, section 9.4: the congestion state starts anew with a new address, and may stay with a new port only. The library keeps it then.
#[test]
fn window_starts_anew_with_a_new_address_only() {
    let (mut pair, before) = rebound("100.64.0.0:2");
    let smallest = smallest_window(&mut pair);
    assert!(2 * smallest >= before, "{smallest} of {before}");

    let (mut pair, before) = rebound("100.64.0.1:2");
    let smallest = smallest_window(&mut pair);
    assert!(
        smallest <= 10 * 1472 && smallest < before / 4,
        "{smallest} of {before}"
    );
    pair.run(minute());
    assert_eq!(pair.read[0], BYTES);
}
