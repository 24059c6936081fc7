use foundation::{Duration, Instant};
use quic::Event;
use quic::wire::{self, Frame};

use crate::pair::{config, minute};
use crate::two_paths::TwoPaths;

/// Bytes of the file; one path of 11.7 Mbit/s takes 2.1 s.
const FILE: u64 = 3_000_000;

fn at(milliseconds: u64) -> Instant {
    Instant::default() + Duration::from_millis(milliseconds)
}

fn run(keys: &str, first: u8, fails: [Instant; 2]) -> TwoPaths {
    let json = format!(r#"{{"kind": "quic", "multipath": true{keys}}}"#);
    let mut paths = TwoPaths::new(&config(&json), 7, FILE, first);
    paths.fails = fails;
    paths.run(minute());
    paths
}

const NEVER: [Instant; 2] = [Instant::MAX; 2];

fn finished_at(paths: &TwoPaths) -> Instant {
    assert_eq!(paths.read[1], FILE);
    assert!(
        paths.events[0].contains(&Event::Finished),
        "{:?}",
        paths.events[0]
    );
    let statistics = paths.ends[0].statistics();
    statistics.last_acknowledged_at.unwrap()
}

/// One path takes at least 3 MB / 1439 B × 1 ms = 2.08 s.
#[test]
fn both_paths_carry_data_and_their_rates_add_up() {
    for keys in [
        "",
        r#", "scheduler": "round-robin""#,
        r#", "scheduler": "ecf""#,
        r#", "scheduler": "blest""#,
        r#", "scheduler": "quic-first""#,
        r#", "congestion": "quic-reno""#,
        r#", "congestion": "lia""#,
        r#", "congestion": "bbr""#,
    ] {
        // The acknowledgements return on the first path, and the faster one is not always the first.
        for (first, limit) in [(0, 1300), (1, 2080)] {
            let paths = run(keys, first, NEVER);
            let carried = paths.carried();
            assert!(
                carried.iter().all(|&bytes| bytes > FILE / 6),
                "{keys}: {carried:?}"
            );
            assert!(finished_at(&paths) < at(limit), "{keys}: {}", finished_at(&paths));
        }
    }
}

#[test]
fn same_seed_same_bits_on_two_paths() {
    let (one, two) = (run("", 0, NEVER), run("", 0, NEVER));
    assert!(one.sent == two.sent);
    assert!(one.sent.len() > 3000);
}

/// The paths between the hosts and the path IDs are independent: the first path has the ID 0.
#[test]
fn first_path_of_the_plan_carries_the_handshake() {
    for first in [0, 1] {
        let paths = run("", first, NEVER);
        assert_eq!(paths.sent[0].way, first);
        let numbers: Vec<_> = paths.ends[0]
            .paths()
            .map(|path| (path.number, path.way))
            .collect();
        assert_eq!(numbers, [(0, first), (1, 1 - first)]);
        for sent in &paths.sent {
            assert_eq!(sent.datagram.path, Some(u8::from(sent.way != first)));
        }
    }
}

#[test]
fn subflows_limit_the_paths() {
    let paths = run(r#", "subflows": 1"#, 0, NEVER);
    assert!(paths.sent.iter().all(|sent| sent.way == 0));
    assert!(finished_at(&paths) > at(2000));
}

/// The library sends all acknowledgements of both paths on the usable path with the smallest ID.
#[test]
fn acknowledgements_return_on_the_first_path() {
    let paths = run("", 0, NEVER);
    let mut acknowledgements = [0_u32; 2];
    for sent in paths
        .sent
        .iter()
        .filter(|sent| sent.from == 1 && sent.at > at(200))
    {
        wire::packets(&sent.datagram.bytes, |packet| {
            packet.frames(|frame| {
                if let Frame::Ack(_) = frame {
                    acknowledgements[usize::from(sent.way)] += 1;
                }
            });
        });
    }
    assert!(acknowledgements[0] > 500, "{acknowledgements:?}");
    assert!(acknowledgements[1] < 20, "{acknowledgements:?}");
}

/// Either path fails in the middle of the file. The other one carries the rest after path_timeout.
#[test]
fn one_path_survives_the_other() {
    for failing in [0, 1] {
        for first in [0, 1] {
            let mut fails = NEVER;
            fails[failing] = at(500);
            let paths = run(r#", "path_timeout": "1s""#, first, fails);
            let end = finished_at(&paths);
            assert!(end > at(1500) && end < at(4500), "{failing} {first}: {end}");
        }
    }
}

/// PINGs keep a path open whose acknowledgements return on the other one.
#[test]
fn working_paths_outlive_the_timeout() {
    let paths = run(r#", "path_timeout": "300ms""#, 0, NEVER);
    let late = paths
        .sent
        .iter()
        .filter(|sent| sent.from == 0 && sent.at > at(800));
    let on_second = late
        .filter(|sent| sent.way == 1 && sent.datagram.data > 0)
        .count();
    assert!(on_second > 100, "{on_second}");
}

/// A scheduler of this project sends on a slower path only when the window of the faster one is full, so a short flow stays on the
/// faster path, also if that is not the first.
#[test]
fn lowest_rtt_takes_precedence_over_the_order_of_paths() {
    let share = |keys: &str| {
        let json = format!(
            r#"{{"kind": "quic", "multipath": true, "congestion": {{"kind": "fixed", "window": 200}}{keys}}}"#
        );
        let mut paths = TwoPaths::new(&config(&json), 7, 400_000, 1);
        paths.run(minute());
        assert_eq!(paths.read[1], 400_000);
        paths.carried()
    };
    let ours = share("");
    let library = share(r#", "scheduler": "quic-first""#);
    assert!(ours[0] > library[0], "{ours:?} {library:?}");
}

/// The library compares packet numbers of different paths to decide whether a packet has old keys (its `prev_crypto`), and drops packets
/// whose number is not below that of the first one with new keys. An update before further paths open avoids that.
#[test]
fn an_early_key_update_overtakes_no_packets() {
    let late = run("", 1, NEVER);
    let early = run(r#", "early_key_update": true"#, 1, NEVER);
    assert!(late.overtaken() > 0);
    assert!(late.ends[0].statistics().retransmissions >= late.overtaken() as u64);
    assert_eq!(early.overtaken(), 0);
    let (early, late) = (finished_at(&early), finished_at(&late));
    assert!(early < late, "{early} {late}");
}
