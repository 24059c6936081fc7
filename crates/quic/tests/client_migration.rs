//! A client that moves in the middle of a transfer (RFC 9000, section 9).

use foundation::{Duration, Instant};
use quic::wire::{self, Frame};
use quic::{Connection, Event};

use crate::pair::{Pair, Sent, config, minute};

const BYTES: u64 = 2_000_000;
const AT: Duration = Duration::from_millis(270);

fn at(time: Duration) -> Instant {
    Instant::default() + time
}

fn has(sent: &Sent, name: &'static str) -> bool {
    let mut found = false;
    wire::packets(&sent.datagram.bytes, |packet| {
        packet.frames(|frame| found |= frame == Frame::Other(name));
    });
    found
}

/// Returns the connection ID of the first packet with a short header.
fn connection_id(sent: &Sent) -> Option<[u8; 8]> {
    let is_short = sent.datagram.bytes[0] & 0x80 == 0;
    is_short.then(|| sent.datagram.bytes[1..9].try_into().unwrap())
}

/// Returns a pair whose server has sent [`BYTES`] while the client moved.
fn moved(to: &str) -> Pair {
    let json =
        format!(r#"{{"kind": "quic", "congestion": "reno", "migrate": ["270ms"], "migrate_to": "{to}"}}"#);
    let mut pair = Pair::idle(&config(&json), 1);
    pair.send(0, at(Duration::from_millis(100)), 100);
    pair.send(1, at(Duration::from_millis(200)), BYTES);
    pair
}

#[test]
fn server_validates_the_address_of_a_client_that_moves() {
    for (to, address) in [("port", "10.0.0.1:50001"), ("address", "10.1.0.1:50000")] {
        let mut pair = moved(to);
        pair.run(at(Duration::from_secs(5)));
        assert_eq!(pair.read[0], BYTES, "{to}");
        let new = Some(address.parse().unwrap());
        let first = pair
            .sent
            .iter()
            .find(|sent| sent.from == 0 && sent.datagram.client == new);
        assert_eq!(first.unwrap().at, at(AT), "{to}: a PING leaves at once");
        let challenge = pair
            .sent
            .iter()
            .find(|sent| sent.from == 1 && has(sent, "path_challenge"));
        assert_eq!(challenge.unwrap().datagram.client, new, "{to}");
        assert_eq!(challenge.unwrap().at, at(AT + Duration::from_millis(10)), "{to}");
        assert!(
            !pair.events[0]
                .iter()
                .any(|event| matches!(event, Event::Failed(_)))
        );
    }
}

/// A client uses another connection ID from another address (RFC 9000, section 9.5).
#[test]
fn client_changes_its_connection_id() {
    let mut pair = moved("address");
    pair.run(minute());
    let ids = |has_moved: bool| {
        let own = pair.sent.iter().filter(|sent| sent.from == 0);
        let own = own.filter(|sent| sent.datagram.client.is_some() == has_moved);
        own.filter_map(connection_id).collect::<Vec<_>>()
    };
    let (before, after) = (ids(false), ids(true));
    assert!(!before.is_empty() && !after.is_empty());
    assert!(after.iter().all(|id| !before.contains(id)));
}

/// RFC 9000, section 9.4: the server starts with a new window after a new address. The library keeps it with a new port only.
#[test]
fn server_keeps_its_window_with_a_new_port_only() {
    let smallest = |to: &str| {
        let mut pair = moved(to);
        pair.run(at(AT));
        let before = pair.ends[1].window().unwrap();
        let windows = (1..=50).map(|millis| {
            pair.run(at(AT + Duration::from_millis(millis)));
            pair.ends[1].window().unwrap()
        });
        (windows.min().unwrap(), before)
    };
    let (least, before) = smallest("address");
    assert!(least <= 10 * 1472 && least < before / 4, "{least} of {before}");
    let (least, before) = smallest("port");
    assert!(2 * least >= before, "{least} of {before}");
}

#[test]
fn client_moves_when_the_handshake_is_confirmed() {
    let json = r#"{"kind": "quic", "migrate": ["1ms", "2ms"], "migrate_to": "port"}"#;
    let mut pair = Pair::new(&config(json), 1, 5000, |_, _| false);
    pair.run(minute());
    assert_eq!(pair.read[1], 5000);
    let moved = pair
        .sent
        .iter()
        .find(|sent| sent.datagram.client.is_some())
        .unwrap();
    assert!(moved.at >= at(Duration::from_millis(40)), "{:?}", moved.at);
    assert_eq!(
        moved.datagram.client.unwrap().port(),
        50_002,
        "both moves are due"
    );
    assert!(pair.ends.iter().all(Connection::exists));
}
