//! Every scheduler over paths that differ: that all arrives, and what their papers claim.

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

/// All of them over unlike paths that lose and reorder, with a small and a large window; and where the faster path dies.
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

/// 10 Mbit/s at 20 ms beside 10 Mbit/s at 200 ms, and a window that the slow path alone would need.
const UNLIKE: [Link; 2] = [Link::new(10.0, 20, 30), Link::new(10.0, 200, 100)];

/// What BLEST and ECF claim: with a small receive buffer segments on the slow path block the fast one less, which makes
/// the transfer sooner done (sections IV of Ferlin et al. 2016 and 5 of Lim et al. 2017).
#[test]
fn blest_and_ecf_block_less_in_a_small_window() {
    let [min_rtt, ecf, blest] =
        ["min-rtt", "ecf", "blest"].map(|scheduler| default(scheduler, "128KiB", &UNLIKE, 2_000_000));
    assert!(blest.seconds < 0.85 * min_rtt.seconds && blest.held < 0.3 * min_rtt.held);
    assert!(ecf.seconds < 0.97 * min_rtt.seconds && ecf.held < 0.95 * min_rtt.held);
    // With a window that holds the slow path's data too both use it.
    let wide = default("blest", "1MiB", &UNLIKE, 4_000_000);
    assert!(wide.bytes[1] > 1_000_000, "{:?}", wide.bytes);
}

/// What ECF claims: data that the fast path would have done with sooner does not end on the slow one.
#[test]
fn ecf_does_not_leave_the_end_to_the_slow_path() {
    let links = [Link::new(10.0, 20, 30), Link::new(1.0, 100, 10)];
    let [min_rtt, ecf] = ["min-rtt", "ecf"].map(|scheduler| default(scheduler, "1MiB", &links, 600_000));
    assert!(
        ecf.bytes[1] < min_rtt.bytes[1] && ecf.seconds < 0.5 * min_rtt.seconds,
        "{} s and {} s",
        ecf.seconds,
        min_rtt.seconds
    );
}

/// What those claim that send out of order for in-order arrival, against round robin as Sarwar et al. 2013 do and
/// against the least round-trip time: less is held by the receiver, and a small buffer is no hindrance.
#[test]
fn in_order_arrival_holds_less() {
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
        for scheduler in ["delay-aware", "daps", "otias", "jitter-aware"] {
            let outcome = default(scheduler, buffer, &links, size);
            let least = round_robin.held.min(min_rtt.held);
            assert!(
                outcome.held < 0.5 * least && outcome.seconds < 0.98 * min_rtt.seconds,
                "{scheduler}, {buffer}: holds {} of {least}, {} s of {}",
                outcome.held,
                outcome.seconds,
                min_rtt.seconds
            );
        }
    }
}

/// What leaves ahead of its turn has not left before: where nothing is lost or late nothing counts as sent again, but for
/// the copies that are a scheduler's purpose.
#[test]
fn sending_ahead_is_not_sending_again() {
    let links = [Link::new(10.0, 20, 2000), Link::new(5.0, 100, 2000)];
    for scheduler in SchedulerConfig::KINDS {
        let outcome = default(scheduler, "1MiB", &links, 1_000_000);
        assert!(outcome.bytes.iter().all(|&bytes| bytes > 0), "{scheduler}");
        assert_eq!(
            outcome.sent_again > 0,
            *scheduler == "redundant",
            "{scheduler}: {}",
            outcome.sent_again
        );
    }
}

/// What JAPS claims over DAPS where delays jitter and the buffer is small; by how much depends on the paths, and where
/// they are nearly alike DAPS is faster, by some 5 %: that part of the claim is not seen.
#[test]
fn allowing_for_jitter_holds_less_than_daps() {
    let jitters = |link, jitter| Link { jitter, ..link };
    let mean = |scheduler, links: &[Link], of: fn(&Outcome) -> f64| {
        let one = |seed| of(&transfer(&config(scheduler, "128KiB"), links, 3_000_000, seed));
        (1..=4).map(one).sum::<f64>() / 4.0
    };
    let fast = Link::new(10.0, 20, 60);
    for (first, slow, gain) in [
        (20, Link::new(5.0, 100, 60), 1.0),
        (0, Link::new(5.0, 100, 60), 1.0),
        (20, Link::new(10.0, 60, 60), 1.08),
    ] {
        let links = [jitters(fast, first), jitters(slow, 60)];
        let held = ["jitter-aware", "daps"].map(|scheduler| mean(scheduler, &links, |outcome| outcome.held));
        let time =
            ["jitter-aware", "daps"].map(|scheduler| mean(scheduler, &links, |outcome| outcome.seconds));
        assert!(
            held[0] < 0.6 * held[1] && time[0] < gain * time[1],
            "{held:?} {time:?}"
        );
    }
}

/// What redundancy buys: hardly any data waits for what comes later, and a path that dies is not missed; it costs the
/// other path's rate.
#[test]
fn redundancy_outlives_a_path() {
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
        redundant.seconds > 1.5 * min_rtt.seconds && redundant.held < 0.5 * min_rtt.held,
        "{} s, holds {}; {} s, holds {}",
        redundant.seconds,
        redundant.held,
        min_rtt.seconds,
        min_rtt.held
    );
}
