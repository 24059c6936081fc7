//! Schedulers over unequal paths: delivery, and the claims of their papers.

use transport::mptcp::{MptcpConfig, SchedulerConfig};

use crate::mptcp::links::{Link, Outcome, transfer};

fn config(scheduler: &str, buffer: &str) -> MptcpConfig {
    let config: MptcpConfig = serde_json::from_value(serde_json::json!({
        "kind": "mptcp", "profile": "rfc", "scheduler": scheduler, "receive_buffer": buffer,
        "policy": {"kind": "all", "first": "first"},
    }))
    .unwrap();
    assert_eq!(config.validate(), []);
    config
}

fn default(scheduler: &str, buffer: &str, links: &[Link], size: u64) -> Outcome {
    let outcome = transfer(&config(scheduler, buffer), links, size, 1);
    assert!(outcome.finished && outcome.received == size, "{scheduler}");
    outcome
}

/// All data arrives over unequal paths with loss and reordering, with a small and a large window, and if the faster
/// path fails.
#[test]
fn every_scheduler_delivers() {
    let lossy = |link| Link {
        loss: 0.02,
        jitter: 5,
        ..link
    };
    let sound = [
        Link::new(10.0, 20, 40),
        Link::new(2.0, 200, 40),
        Link::new(5.0, 60, 10),
    ]
    .map(lossy);
    let mut dying = sound;
    dying[0].dies = 400;
    for scheduler in SchedulerConfig::KINDS {
        for (links, buffer) in [(&sound, "32KiB"), (&sound, "4MiB"), (&dying, "256KiB")] {
            for seed in 1..=3 {
                let outcome = transfer(&config(scheduler, buffer), links, 1_000_000, seed);
                assert!(
                    outcome.finished && outcome.received == 1_000_000,
                    "{scheduler}, {buffer}, seed {seed}: {} bytes after {} s",
                    outcome.received,
                    outcome.seconds
                );
            }
        }
    }
}

/// 10 Mbit/s at 20 ms and at 200 ms, with a window that the slow path alone would fill.
const UNLIKE: [Link; 2] = [Link::new(10.0, 20, 30), Link::new(10.0, 200, 100)];

/// With a small receive buffer, segments on the slow path block the fast one less, so that the transfer completes
/// sooner (Ferlin et al. 2016, section IV; Lim et al. 2017, section 5).
#[test]
fn blest_and_ecf_block_small_window_less() {
    let [min_rtt, ecf, blest] =
        ["min-rtt", "ecf", "blest"].map(|scheduler| default(scheduler, "128KiB", &UNLIKE, 2_000_000));
    assert!(blest.seconds < 0.85 * min_rtt.seconds && blest.reordered < 0.3 * min_rtt.reordered);
    assert!(ecf.seconds < 0.97 * min_rtt.seconds && ecf.reordered < 0.95 * min_rtt.reordered);
    // With a window that also holds the data of the slow path, both schedulers use it.
    let wide = default("blest", "1MiB", &UNLIKE, 4_000_000);
    assert!(wide.bytes[1] > 1_000_000, "{:?}", wide.bytes);
}

/// The last data does not use the slow path if the fast path delivers it sooner (ECF).
#[test]
fn ecf_sends_the_end_on_the_fast_path() {
    let links = [Link::new(10.0, 20, 30), Link::new(1.0, 100, 10)];
    let [min_rtt, ecf] = ["min-rtt", "ecf"].map(|scheduler| default(scheduler, "1MiB", &links, 600_000));
    assert!(
        ecf.bytes[1] < min_rtt.bytes[1] && ecf.seconds < 0.5 * min_rtt.seconds,
        "{} s and {} s",
        ecf.seconds,
        min_rtt.seconds
    );
}

/// Schedulers for in-order arrival reorder less data at the receiver than round robin and the smallest round-trip
/// time, and a small buffer does not slow them down.
#[test]
fn in_order_schedulers_reorder_less() {
    for (buffer, size, links) in [
        ("128KiB", 2_000_000, UNLIKE),
        (
            "1MiB",
            2_000_000,
            [Link::new(10.0, 20, 30), Link::new(2.0, 200, 30)],
        ),
    ] {
        let [round_robin, min_rtt] =
            ["round-robin", "min-rtt"].map(|scheduler| default(scheduler, buffer, &links, size));
        for scheduler in ["daps", "otias"] {
            let outcome = default(scheduler, buffer, &links, size);
            let minimum = round_robin.reordered.min(min_rtt.reordered);
            assert!(
                outcome.reordered < 0.5 * minimum && outcome.seconds < 0.98 * min_rtt.seconds,
                "{scheduler}, {buffer}: reorders {} of {minimum}, {} s of {}",
                outcome.reordered,
                outcome.seconds,
                min_rtt.seconds
            );
        }
    }
}

/// First transmissions ahead of earlier data do not count as retransmissions; only redundant copies do.
#[test]
fn sending_ahead_is_no_retransmission() {
    let links = [Link::new(10.0, 20, 2000), Link::new(5.0, 100, 2000)];
    for scheduler in SchedulerConfig::KINDS {
        let outcome = default(scheduler, "1MiB", &links, 1_000_000);
        assert!(outcome.bytes.iter().all(|&bytes| bytes > 0), "{scheduler}");
        assert_eq!(
            outcome.retransmissions > 0,
            *scheduler == "redundant",
            "{scheduler}: {}",
            outcome.retransmissions
        );
    }
}

/// With redundant copies hardly any data is reordered, and a dead path causes no delay, at the cost of the other
/// path's rate.
#[test]
fn redundancy_survives_a_dead_path() {
    let links = [Link::new(10.0, 20, 40), Link::new(10.0, 30, 40)];
    let mut dying = links;
    dying[0].dies = 200;
    let [min_rtt, redundant] =
        ["min-rtt", "redundant"].map(|scheduler| default(scheduler, "256KiB", &dying, 500_000));
    assert!(
        redundant.seconds < 0.7 * min_rtt.seconds,
        "{} s and {} s",
        redundant.seconds,
        min_rtt.seconds
    );
    let alike = [Link::new(10.0, 20, 30); 2];
    let [min_rtt, redundant] =
        ["min-rtt", "redundant"].map(|scheduler| default(scheduler, "256KiB", &alike, 2_000_000));
    assert!(
        redundant.seconds > 1.5 * min_rtt.seconds && redundant.reordered < 0.5 * min_rtt.reordered,
        "{} s, reorders {}; {} s, reorders {}",
        redundant.seconds,
        redundant.reordered,
        min_rtt.seconds,
        min_rtt.reordered
    );
}
