//! Handshakes, mappings, closing and failures.

use foundation::Instant;
use transport::mptcp::{MptcpConfig, MptcpOption, PathIndex, Segment};
use transport::tcp::{Event, Flags, Profile};

use crate::mptcp::pair::{Pair, Side, at, ms};

fn config(text: &str) -> MptcpConfig {
    let config: MptcpConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.validate(), []);
    config
}

/// The first subflow uses path 0; the others join after the first acknowledgement.
fn plain() -> MptcpConfig {
    config(r#"{"kind": "mptcp", "profile": "rfc", "policy": {"kind": "all", "first": "first"}}"#)
}

fn syns(pair: &Pair) -> Vec<(u64, u8, Side)> {
    pair.trace
        .iter()
        .filter(|sent| sent.packet.segment.tcp.has(Flags::SYN))
        .map(|sent| (sent.at.as_nanos() / 1_000_000, sent.path.0, sent.from))
        .collect()
}

#[test]
fn transfers_file_over_two_paths() {
    let mut pair = Pair::lossless(&plain(), &[20, 60], 2_000_000);
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished(), "{:?}", pair.ends[0].events);
    assert_eq!(pair.ends[1].received, 2_000_000);
    let bytes: Vec<u64> = pair
        .connection(Side::Client)
        .subflows()
        .map(|s| s.bytes)
        .collect();
    assert_eq!(bytes.iter().sum::<u64>(), 2_000_000, "nothing twice");
    assert!(bytes.iter().all(|&bytes| bytes > 10_000), "{bytes:?}");
    assert_eq!(pair.connection(Side::Client).statistics().retransmissions, 0);
}

#[test]
fn handshakes_take_the_specified_round_trips() {
    let mut pair = Pair::lossless(&plain(), &[20, 60], 2_000_000);
    pair.open();
    pair.run(at(60_000));
    // The join waits for a DSS option (RFC 8684, section 3.1), one round trip after the handshake of the first
    // subflow.
    assert_eq!(
        syns(&pair),
        [
            (0, 0, Side::Client),
            (10, 0, Side::Server),
            (40, 1, Side::Client),
            (70, 1, Side::Server)
        ]
    );
    // Its data follows the fourth segment (section 3.2), two of its own round trips after its SYN.
    let first = pair
        .trace
        .iter()
        .find(|sent| sent.path == PathIndex(1) && sent.packet.segment.tcp.length > 0);
    assert_eq!(first.unwrap().at, at(160));
    let third = pair
        .trace
        .iter()
        .find(|sent| matches!(sent.packet.segment.option, MptcpOption::JoinThird { .. }));
    assert_eq!(third.unwrap().at, at(100));
}

#[test]
fn ns3_joins_after_the_handshake() {
    let text = r#"{"kind": "mptcp", "profile": "ns3", "policy": {"kind": "all", "first": "first"}}"#;
    let mut pair = Pair::lossless(&config(text), &[20, 60], 500_000);
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(syns(&pair)[2], (20, 1, Side::Client));
}

#[test]
fn signals_end_of_empty_data() {
    let mut pair = Pair::lossless(&plain(), &[20, 60], 0);
    pair.open();
    pair.run(at(10_000));
    assert!(
        pair.is_finished(),
        "{:?} {:?}",
        pair.ends[0].events,
        pair.ends[1].events
    );
}

#[test]
fn transfers_in_both_directions() {
    let mut pair = Pair::lossless(&plain(), &[20, 30], 300_000);
    pair.ends[1].to_write = 700_000;
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!((pair.ends[0].received, pair.ends[1].received), (700_000, 300_000));
}

#[test]
fn falls_back_to_tcp_without_options() {
    // A middlebox removes the options of the SYNs (RFC 8684, section 3.7).
    let strip = |_: Instant, _: Side, _: PathIndex, segment: &mut Segment| {
        segment.option = MptcpOption::None;
        vec![ms(10)]
    };
    let mut pair = Pair::new(&plain(), &[20, 20], 200_000, 1, Box::new(strip));
    pair.open();
    pair.run(at(60_000));
    assert!(
        pair.is_finished(),
        "{:?} {:?}",
        pair.ends[0].events,
        pair.ends[1].events
    );
    assert!(pair.connection(Side::Client).is_plain() && pair.connection(Side::Server).is_plain());
    assert_eq!(pair.ends[1].received, 200_000);
    assert_eq!(syns(&pair).len(), 2);
}

#[test]
fn reinjects_data_of_dead_path() {
    for dead in [0, 1] {
        let dies = move |now: Instant, _: Side, path: PathIndex, _: &mut Segment| {
            if path.0 == dead && now >= at(300) {
                return Vec::new();
            }
            vec![ms(20)]
        };
        let mut pair = Pair::new(&plain(), &[40, 40], 3_000_000, 1, Box::new(dies));
        pair.open();
        pair.run(at(60_000));
        assert!(pair.is_finished(), "{dead}: {:?}", pair.ends[0].events);
        assert_eq!(pair.ends[1].received, 3_000_000);
        assert!(pair.now < at(6_000), "{:?}", pair.now);
    }
}

#[test]
fn reinjects_data_of_reset_subflow() {
    let mut pair = Pair::lossless(&plain(), &[40, 40], 3_000_000);
    pair.open();
    pair.run_until(at(300));
    let reset = pair
        .trace
        .iter()
        .rfind(|sent| sent.path == PathIndex(1) && sent.from == Side::Server)
        .unwrap();
    let mut segment = reset.packet.segment;
    segment.tcp.flags = Flags::RST | Flags::ACK;
    segment.option = MptcpOption::None;
    use transport::Machine as _;
    pair.with(Side::Client, |connection, now| {
        connection.handle_frame(now, (PathIndex(1), segment))
    });
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(pair.ends[1].received, 3_000_000);
}

#[test]
fn fails_without_a_peer() {
    let mut pair = Pair::new(&plain(), &[40, 40], 1000, 1, Box::new(|_, _, _, _| Vec::new()));
    pair.open();
    pair.run_until(at(1_000_000));
    assert!(
        pair.ends[0]
            .events
            .iter()
            .any(|event| matches!(event, Event::Failed(_))),
        "{:?}",
        pair.ends[0].events
    );
}

#[test]
fn full_receive_buffer_stops_the_sender() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let mut settings = MptcpConfig::new(profile);
        settings.tcp.receive_buffer = Some(foundation::Size::from_bytes(100_000));
        let mut pair = Pair::lossless(&settings, &[20, 50], 1_000_000);
        pair.ends[1].reads = false;
        pair.open();
        pair.run_until(at(5_000));
        let held = pair.connection(Side::Server).readable();
        assert!((90_000..=103_000).contains(&held), "{profile:?}: {held}");
        pair.ends[1].reads = true;
        pair.with(Side::Server, |_, _| ());
        pair.run(at(100_000));
        assert!(pair.is_finished());
        assert_eq!(pair.ends[1].received, 1_000_000);
    }
}
