//! Backups, replacement of failed subflows, and aborts.

use foundation::Instant;
use transport::Machine as _;
use transport::mptcp::{MptcpConfig, MptcpOption, PathIndex, Segment, Signal};
use transport::tcp::{Error, Event, Flags};

use crate::mptcp::pair::{Pair, Sent, Side, at, ms};

fn config(more: &str) -> MptcpConfig {
    let text = format!(
        r#"{{"kind": "mptcp", "profile": "rfc", "policy": {{"kind": "all", "first": "first"}},
            "receive_buffer": "200kB"{more}}}"#
    );
    let config: MptcpConfig = serde_json::from_str(&text).unwrap();
    assert_eq!(config.validate(), []);
    config
}

fn data_on(pair: &Pair, path: u8, from: u64, until: u64) -> u64 {
    let sent = pair.trace.iter().filter(|sent| {
        sent.from == Side::Client && sent.path.0 == path && (at(from)..at(until)).contains(&sent.at)
    });
    sent.map(|sent| u64::from(sent.packet.segment.tcp.length)).sum()
}

/// After MP_PRIO of either end no data leaves on a backup while there is another subflow, until the flag is cleared
/// (RFC 8684, section 3.3.8).
#[test]
fn backup_carries_nothing_while_another_subflow_can() {
    for side in [Side::Client, Side::Server] {
        let mut pair = Pair::lossless(&config(""), &[20, 40], 50_000_000);
        pair.open();
        pair.run_until(at(500));
        assert!(pair.with(side, |connection, _| connection.set_backup(PathIndex(0), true)));
        assert!(!pair.with(side, |connection, _| connection.set_backup(PathIndex(2), true)));
        pair.run_until(at(1000));
        // By then, data in flight or in the subflow's TCP has left.
        assert!(data_on(&pair, 0, 300, 400) > 10_000);
        assert_eq!(data_on(&pair, 0, 600, 1000), 0);
        assert!(data_on(&pair, 1, 600, 1000) > 100_000);
        for end in [Side::Client, Side::Server] {
            let backups: Vec<bool> = pair.connection(end).subflows().map(|s| s.backup).collect();
            assert_eq!(backups, [true, false], "both ends have the flag");
        }
        pair.with(side, |connection, _| connection.set_backup(PathIndex(0), false));
        pair.run_until(at(1500));
        assert!(data_on(&pair, 0, 1100, 1500) > 100_000);
        let reported = |sent: &&Sent| matches!(sent.packet.segment.signal, Signal::Priority { .. });
        let reported: Vec<_> = pair.trace.iter().filter(reported).collect();
        assert_eq!(reported.len(), 2, "once each");
        assert!(
            reported
                .iter()
                .all(|sent| sent.from == side && sent.path == PathIndex(0))
        );
    }
}

/// A backup carries data once the last other subflow is closed.
#[test]
fn backup_replaces_last_other_subflow() {
    let dies = |now: Instant, _: Side, path: PathIndex, _: &mut Segment| {
        if path.0 == 0 && now >= at(1000) {
            return Vec::new();
        }
        vec![ms(20)]
    };
    let more = r#", "user_timeout": "3s""#;
    let mut pair = Pair::new(&config(more), &[40, 40], 50_000_000, 1, Box::new(dies));
    pair.open();
    pair.run_until(at(300));
    pair.with(Side::Client, |connection, _| {
        connection.set_backup(PathIndex(1), true)
    });
    pair.run_until(at(1000));
    assert_eq!(data_on(&pair, 1, 500, 1000), 0);
    pair.run_until(at(10_000));
    assert!(data_on(&pair, 1, 1000, 10_000) > 1_000_000);
}

/// An abort resets every subflow, and a single reset is sufficient (RFC 8684, section 3.5).
#[test]
fn one_fast_close_closes_the_connection() {
    for (side, arrives) in [(Side::Client, 0), (Side::Client, 1), (Side::Server, 1)] {
        let mut pair = Pair::new(
            &config(""),
            &[20, 40],
            50_000_000,
            1,
            Box::new(move |now, from, path: PathIndex, _| {
                let lost = now >= at(500) && from == side && path.0 != arrives;
                if lost {
                    Vec::new()
                } else {
                    vec![ms(10 + 10 * u64::from(path.0))]
                }
            }),
        );
        pair.open();
        pair.run_until(at(500));
        pair.with(side, |connection, now| connection.abort(now));
        let closes = |sent: &&Sent| {
            sent.packet.segment.tcp.has(Flags::RST)
                && matches!(sent.packet.segment.option, MptcpOption::FastClose { .. })
        };
        assert_eq!(pair.trace.iter().filter(closes).count(), 2, "on each subflow");
        pair.run_until(at(600));
        let other = if side == Side::Client {
            Side::Server
        } else {
            Side::Client
        };
        assert!(pair.ends[other as usize].saw(Event::Failed(Error::Reset)));
        assert!(pair.ends[side as usize].saw(Event::Closed));
        let left = |sent: &&Sent| sent.at > at(550);
        assert_eq!(pair.trace.iter().filter(left).count(), 0, "no more segments");
        assert!(
            pair.ends
                .iter()
                .all(|end| end.connection.as_ref().unwrap().poll_timeout().is_none())
        );
    }
}

/// A FASTCLOSE with a wrong key is ignored.
#[test]
fn ignores_fast_close_with_wrong_key() {
    let mut pair = Pair::lossless(&config(""), &[20, 40], 1_000_000);
    pair.open();
    pair.run_until(at(200));
    let last = pair.trace.iter().rfind(|sent| sent.from == Side::Server).unwrap();
    let (path, mut segment) = (last.path, last.packet.segment);
    segment.option = MptcpOption::FastClose { receiver: 1 };
    pair.deliver(Side::Client, path, segment);
    pair.run(at(60_000));
    assert!(pair.is_finished());
}

/// Returns when the client opened subflows on path 1, in ms.
fn joins(pair: &Pair) -> Vec<u64> {
    let mut last = None;
    let syns = pair.trace.iter().filter(|sent| {
        let tcp = &sent.packet.segment.tcp;
        sent.from == Side::Client && sent.path.0 == 1 && tcp.has(Flags::SYN)
    });
    let mut times = Vec::new();
    for sent in syns {
        if last.replace(sent.packet.segment.subflow) != Some(sent.packet.segment.subflow) {
            times.push(sent.at.as_nanos() / 1_000_000);
        }
    }
    times
}

/// A reset subflow is replaced after one second, then after two, four, ... while none carries data; without the
/// setting it is not replaced.
#[test]
fn replaces_failed_subflow_with_backoff() {
    let run = |more: &str, until: u64| {
        let paths = move |now: Instant, from: Side, path: PathIndex, segment: &mut Segment| {
            // From 500 ms the server resets everything on path 1.
            if path.0 == 1 && (at(500)..at(until)).contains(&now) && from == Side::Server {
                segment.tcp.flags = Flags::RST | Flags::ACK;
                segment.option = MptcpOption::None;
            }
            vec![ms([10, 5][path.index()])]
        };
        let mut pair = Pair::new(&config(more), &[20, 10], 2_000_000_000, 1, Box::new(paths));
        pair.open();
        pair.run_until(at(20_000));
        pair
    };
    assert_eq!(joins(&run("", 9000)).len(), 1);
    let pair = run(r#", "rejoin": "1s""#, 9000);
    let times = joins(&pair);
    let waits: Vec<u64> = times.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    // A SYN and its reset take a round trip of 10 ms.
    assert_eq!(waits, [2010, 4010, 8010]);
    assert!(
        data_on(&pair, 1, times[4], 20_000) > 100_000,
        "it carries data again"
    );
}

/// A path that the peer refused permanently is not retried (RFC 8684, section 3.6).
#[test]
fn does_not_retry_after_permanent_refusal() {
    for (transient, more) in [(false, 0), (true, 1)] {
        let mut pair = Pair::lossless(&config(r#", "rejoin": "1s""#), &[20, 10], 2_000_000_000);
        pair.open();
        pair.run_until(at(500));
        let last = |sent: &&Sent| sent.from == Side::Server && sent.path.0 == 1;
        let mut segment = pair.trace.iter().rfind(last).unwrap().packet.segment;
        segment.tcp.flags = Flags::RST | Flags::ACK;
        segment.option = MptcpOption::Reset { transient, reason: 3 };
        pair.deliver(Side::Client, PathIndex(1), segment);
        pair.run_until(at(5000));
        assert_eq!(joins(&pair).len(), 1 + more, "{transient}");
    }
}
