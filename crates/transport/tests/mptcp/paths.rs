//! Connection features used by path policies: scatter, delayed joins, tail protection, handshake retries.

use std::collections::BTreeSet;

use foundation::Instant;
use transport::mptcp::{MptcpConfig, MptcpOption, PathIndex, Segment};
use transport::tcp::Flags;

use crate::mptcp::pair::{Pair, Sent, Side, at, ms};

fn config(policy: &str) -> MptcpConfig {
    let text = format!(r#"{{"kind": "mptcp", "profile": "rfc", "policy": {policy}}}"#);
    let config: MptcpConfig = serde_json::from_str(&text).unwrap();
    assert_eq!(config.validate(), []);
    config
}

fn data(pair: &Pair) -> impl Iterator<Item = &Sent> {
    let sent = pair.trace.iter();
    sent.filter(|sent| sent.from == Side::Client && sent.packet.segment.tcp.length > 0)
}

/// MMPTCP: one subflow over all paths until the switch, without losses detected because of reordering, then one
/// subflow on each path.
#[test]
fn scatters_packets_then_uses_subflows() {
    let run = |duplicates: u32| {
        let policy = format!(r#"{{"kind": "mmptcp", "duplicates": {duplicates}}}"#);
        let mut pair = Pair::lossless(&config(&policy), &[20, 24, 28], 4_000_000);
        pair.open();
        pair.run(at(60_000));
        assert!(pair.is_finished() && pair.ends[1].received == 4_000_000);
        pair
    };
    let hasty = run(3);
    assert!(hasty.connection(Side::Client).statistics().retransmissions > 0);
    let pair = run(300);
    let scattered: BTreeSet<u8> = data(&pair)
        .filter(|sent| sent.packet.segment.subflow == 0)
        .map(|sent| sent.path.0)
        .collect();
    assert_eq!(scattered, [0, 1, 2].into());
    let client = pair.connection(Side::Client);
    assert_eq!(client.statistics().retransmissions, 0);
    let subflows: Vec<_> = client.subflows().collect();
    assert_eq!(subflows.len(), 4);
    assert!(subflows[1..].iter().all(|subflow| subflow.bytes > 50_000));
    // The first subflow still carries data until others can: the switch takes one round trip, and joins take two.
    assert!((100_000..2_000_000).contains(&subflows[0].bytes), "{subflows:?}");
    let taught = pair
        .host
        .paths()
        .iter()
        .map(|path| path.acknowledged)
        .sum::<u64>();
    assert!(
        taught <= 4_000_000 - subflows[0].bytes,
        "scattered bytes do not count for a path"
    );
}

/// A flow that completes before the switch has one subflow.
#[test]
fn short_flow_only_scatters() {
    let mut pair = Pair::lossless(&config("\"mmptcp\""), &[20, 24, 28], 60_000);
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(pair.connection(Side::Client).subflows().len(), 1);
}

#[test]
fn delayed_joins_wait_for_bytes_or_time() {
    let syns = |policy: &str| {
        let mut pair = Pair::lossless(&config(policy), &[20, 60], 2_000_000);
        pair.open();
        pair.run(at(60_000));
        let sent = pair.trace.iter();
        sent.filter(|sent| sent.from == Side::Client && sent.packet.segment.tcp.has(Flags::SYN))
            .map(|sent| (sent.path, sent.at))
            .collect::<Vec<_>>()
    };
    let late = syns(r#"{"kind": "delayed", "after_time": "70ms"}"#);
    // Joins are possible from 40 ms on, after a handshake and an acknowledgement.
    assert_eq!(late, [(PathIndex(0), Instant::ZERO), (PathIndex(1), at(110))]);
    let grown = syns(r#"{"kind": "delayed", "after_bytes": "400kB"}"#);
    assert!(grown[1].1 > at(100) && grown[1].1 < at(200), "{grown:?}");
    assert_eq!(syns(r#"{"kind": "delayed", "after_bytes": "3MB"}"#).len(), 1);
}

/// Returns when 14 kB were acknowledged, in ms, if the first transmission of the last 2 kB on path 0 is lost, and the
/// bytes that the second path carried.
fn after_a_lost_tail(tail: u32) -> (u64, u64) {
    let paths = move |now: Instant, side, path: PathIndex, segment: &mut Segment| {
        let last = matches!(segment.option, MptcpOption::Dss { mapping: Some(m), .. } if m.data > 12_000);
        if side == Side::Client && path.0 == 0 && last && now < at(500) {
            return Vec::new();
        }
        vec![ms([20, 30][path.index()]) / 2]
    };
    let policy = format!(r#"{{"kind": "foresight", "slack": 0, "tail": {tail}}}"#);
    let mut pair = Pair::new(&config(&policy), &[20, 30], 14_000, 1, Box::new(paths));
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished() && pair.ends[1].received == 14_000);
    let client = pair.connection(Side::Client);
    let done = client.statistics().last_acknowledged_at.unwrap();
    let second = client.subflows().nth(1).map_or(0, |subflow| subflow.bytes);
    (done.as_nanos() / 1_000_000, second)
}

/// The tail is retransmitted on the next path when its acknowledgement is 1.5 round trips late. The join takes two
/// round trips, where the timeout of RFC 6298 takes one second.
#[test]
fn retransmits_lost_tail_on_another_path() {
    let (done, second) = after_a_lost_tail(3);
    assert!(
        done < 200 && (1000..4500).contains(&second),
        "{done} ms, {second} bytes"
    );
    let (done, second) = after_a_lost_tail(0);
    assert!(done > 1000 && second == 0, "{done} ms, {second} bytes");
}

/// Returns when and on which path the connection opened, if the first SYN on every path but the last is lost, and the
/// tried paths.
fn after_lost_syns(policy: &str, rtts: &'static [u64]) -> (u64, Vec<u8>) {
    let paths = move |now: Instant, side, path: PathIndex, segment: &mut Segment| {
        let first = side == Side::Client && segment.tcp.has(Flags::SYN) && now < at(500);
        if first && path.index() + 1 < rtts.len() {
            return Vec::new();
        }
        vec![ms(rtts[path.index()]) / 2]
    };
    let mut pair = Pair::new(&config(policy), rtts, 10_000, 1, Box::new(paths));
    pair.open();
    while !pair.connection(Side::Client).is_established() {
        pair.run_until(pair.now + ms(1));
    }
    let open = pair.now.as_nanos() / 1_000_000;
    pair.run(at(60_000));
    assert!(pair.is_finished() && pair.ends[1].received == 10_000);
    let syns = pair
        .trace
        .iter()
        .filter(|sent| sent.from == Side::Client && sent.packet.segment.tcp.has(Flags::SYN));
    let capable = syns.filter(|sent| matches!(sent.packet.segment.option, MptcpOption::Capable { .. }));
    (open, capable.map(|sent| sent.path.0).collect())
}

/// A handshake retries on the next path after two round trips and 10 ms, where TCP's timer takes one second.
#[test]
fn retries_handshake_on_another_path() {
    let (open, paths) = after_lost_syns(r#"{"kind": "foresight"}"#, &[20, 30, 40]);
    assert_eq!((open, paths), (50 + 70 + 40, vec![0, 1, 2]));
    let (open, paths) = after_lost_syns(r#"{"kind": "foresight", "handshake_after": 0}"#, &[20, 30, 40]);
    assert_eq!((open, paths), (1020, vec![0, 0]));
}

/// A late SYN/ACK is reset, the listener forgets the half-open connection, and the data arrives once.
#[test]
fn resets_late_answer_to_abandoned_attempt() {
    let paths = move |_, side, path: PathIndex, segment: &mut Segment| {
        let late = path.0 == 0 && segment.tcp.has(Flags::SYN) && side == Side::Server;
        vec![if late {
            ms(300)
        } else {
            ms([20, 30][path.index()]) / 2
        }]
    };
    let config = config(r#"{"kind": "foresight", "tail": 0}"#);
    let mut pair = Pair::new(&config, &[20, 30], 100_000, 1, Box::new(paths));
    pair.open();
    pair.run(at(60_000));
    pair.run_until(at(61_000));
    assert!(pair.is_finished() && pair.ends[1].received == 100_000);
    let resets: Vec<_> = pair
        .trace
        .iter()
        .filter(|sent| sent.packet.segment.subflow == 0 && sent.packet.segment.tcp.has(Flags::RST))
        .map(|sent| (sent.from, sent.path.0))
        .collect();
    assert_eq!(resets, [(Side::Client, 0)]);
    let client = pair.connection(Side::Client);
    assert!(
        client
            .subflows()
            .next()
            .is_some_and(|first| first.path.0 == 1 && first.bytes > 0)
    );
    assert!(
        pair.host.paths().iter().all(|path| path.unfinished == 0),
        "no bytes remain unaccounted"
    );
}

/// An abandoned SYN that arrives after the newer one does not replace it.
#[test]
fn ignores_late_syn_of_abandoned_attempt() {
    let paths = move |_, side, path: PathIndex, segment: &mut Segment| {
        let late = path.0 == 0 && side == Side::Client && segment.tcp.has(Flags::SYN);
        vec![if late {
            ms(70)
        } else {
            ms([20, 30][path.index()]) / 2
        }]
    };
    let mut pair = Pair::new(&config("\"foresight\""), &[20, 30], 10_000, 1, Box::new(paths));
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished() && pair.ends[1].received == 10_000);
    let done = pair.connection(Side::Client).statistics().last_acknowledged_at;
    assert!(done.unwrap() < at(200), "{done:?}");
}
