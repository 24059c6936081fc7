//! What single facts do to a window, in the numbers of the RFCs, of Linux and of ns-3.

use foundation::{Duration, Instant};
use transport::congestion::{Acknowledgement, CongestionConfig, Controller, Loss};

const SEGMENT: u64 = 1000;

fn build(text: &str) -> Box<dyn Controller> {
    let config: CongestionConfig = serde_json::from_str(text).unwrap();
    config.build(SEGMENT)
}

const fn ms(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// An ACK at `now` ms of `packets` that left 100 ms ago, under a window in full use.
fn ack(now: u64, packets: u64) -> Acknowledgement {
    Acknowledgement {
        now: ms(now),
        bytes: packets * SEGMENT,
        rtt: Some(Duration::from_millis(100)),
        newest_sent_at: ms(now - 100),
        smoothed_rtt: Duration::from_millis(100),
        bytes_in_flight: 0,
        delivered: 0,
        rate_sample: None,
        window_limited: true,
        in_recovery: false,
    }
}

/// A packet that left at `sent` ms is found lost at `now` ms, with `packets` in flight until then.
fn loss(now: u64, sent: u64, packets: u64) -> Loss {
    Loss {
        now: ms(now),
        bytes: SEGMENT,
        newest_sent_at: ms(sent),
        prior_in_flight: packets * SEGMENT,
        bytes_in_flight: (packets - 1) * SEGMENT,
        in_flight_at_send: packets * SEGMENT,
        lost_since_send: SEGMENT,
        application_limited: false,
        in_recovery: false,
    }
}

fn packets(controller: &dyn Controller) -> u64 {
    assert_eq!(controller.window() % SEGMENT, 0, "{}", controller.window());
    controller.window() / SEGMENT
}

/// All that hold to RFC 5681 and 6675: no growth and no second cut while losses are repaired.
#[test]
fn a_window_stands_still_in_recovery() {
    for name in ["reno", "cubic", "westwood", "vegas"] {
        for rules in [None, Some("linux")] {
            let rules = rules.map_or(String::new(), |rules| format!(r#", "rules": "{rules}""#));
            let mut controller = build(&format!(r#"{{"kind": "{name}", "initial_window": 20{rules}}}"#));
            controller.on_acknowledged(&ack(200, 1));
            controller.on_lost(&loss(300, 250, 20));
            let window = controller.window();
            for i in 0..50 {
                let repairing = Acknowledgement {
                    in_recovery: true,
                    ..ack(410 + i, 1)
                };
                controller.on_acknowledged(&repairing);
                // A retransmission lost again is of the same episode.
                controller.on_lost(&Loss {
                    in_recovery: true,
                    ..loss(410 + i, 305 + i, 10)
                });
            }
            assert_eq!(controller.window(), window, "{name}{rules}");
            assert_eq!(controller.ssthresh(), Some(window), "{name}{rules}");
            assert!(!controller.in_slow_start());
            controller.on_lost(&loss(700, 600, 10));
            assert!(controller.window() <= window, "{name}{rules}");
        }
    }
}

/// RFC 4015, section 3.4, and Linux's `tcp_undo_cwnd_reduction`: window and threshold come back.
#[test]
fn a_needless_reduction_is_undone() {
    for reno in [r#"{"kind": "reno"}"#, r#"{"kind": "reno", "rules": "linux"}"#] {
        let mut reno = build(reno);
        reno.on_acknowledged(&ack(200, 1));
        reno.on_lost(&loss(300, 250, 11));
        assert!(reno.window() < 6 * SEGMENT);
        reno.on_spurious(ms(400));
        assert_eq!((packets(reno.as_ref()), reno.ssthresh()), (11, Some(u64::MAX)));
        assert!(reno.in_slow_start());
        // Two timeouts in a row are one reduction.
        reno.on_timeout(ms(1000), 11 * SEGMENT);
        reno.on_timeout(ms(3000), SEGMENT);
        assert_eq!(packets(reno.as_ref()), 1);
        reno.on_spurious(ms(3100));
        assert_eq!(packets(reno.as_ref()), 11);
        // There is nothing more to undo.
        reno.on_spurious(ms(3200));
        assert_eq!(packets(reno.as_ref()), 11);
    }
}

/// RFC 9438, section 4.9: W_max, too, is what it was. Linux keeps what it has learnt.
#[test]
fn cubic_forgets_a_needless_plateau() {
    let plateau = |cubic: &dyn Controller| {
        let mut found = None;
        cubic.metrics(&mut |name, value| {
            if name == "w_max_bytes" {
                found = Some(value as u64 / SEGMENT);
            }
        });
        found
    };
    for (rules, after) in [("rfc", Some(100)), ("linux", Some(59))] {
        let mut cubic = build(&format!(
            r#"{{"kind": "cubic", "rules": "{rules}", "initial_window": 100}}"#
        ));
        cubic.on_acknowledged(&Acknowledgement {
            window_limited: false,
            ..ack(150, 1)
        });
        cubic.on_lost(&loss(200, 150, 100));
        assert_eq!(plateau(cubic.as_ref()), Some(100), "{rules}");
        cubic.on_lost(&loss(400, 300, 70));
        cubic.on_spurious(ms(500));
        assert_eq!(
            (plateau(cubic.as_ref()), packets(cubic.as_ref())),
            (after, 70),
            "{rules}"
        );
    }
}

/// RFC 5681, section 4.1: the restart window after more than a timeout of silence. Linux halves for each
/// timeout that passed, down to the initial window, and remembers three quarters as the threshold.
#[test]
fn silence_costs_the_window() {
    let rto = Duration::from_millis(200);
    let after = |rules: &str, timeouts: u64| {
        let mut reno = build(&format!(r#"{{"kind": "reno", "rules": "{rules}"}}"#));
        for i in 0..26 {
            reno.on_acknowledged(&ack(200 + i, 1));
        }
        assert_eq!(packets(reno.as_ref()), 36);
        reno.on_idle(ms(5000), rto * timeouts + Duration::from_millis(1), rto);
        (packets(reno.as_ref()), reno.ssthresh())
    };
    assert_eq!(after("rfc", 0), (36, Some(u64::MAX)), "less than a timeout");
    assert_eq!(after("rfc", 1), (10, Some(u64::MAX)));
    assert_eq!(after("linux", 0), (36, Some(u64::MAX)));
    assert_eq!(after("linux", 1), (18, Some(u64::MAX)));
    assert_eq!(after("linux", 9), (10, Some(u64::MAX)));
    let mut small = build(r#"{"kind": "reno", "rules": "linux", "initial_window": 4}"#);
    small.on_lost(&loss(100, 50, 4));
    small.on_idle(ms(5000), rto * 5, rto);
    assert_eq!(
        (packets(small.as_ref()), small.ssthresh()),
        (2, Some(2 * SEGMENT)),
        "never raised"
    );
}

/// `tcp_slow_start` of Linux has no limit of growth per ACK; RFC 9406, section 4.3, has one of 8.
#[test]
fn slow_start_counts_as_its_rules_say() {
    for (rules, grown) in [("linux", 30), ("rfc", 18), ("ns3", 11)] {
        let mut reno = build(&format!(r#"{{"kind": "reno", "rules": "{rules}"}}"#));
        reno.on_acknowledged(&ack(200, 20));
        assert_eq!(packets(reno.as_ref()), grown, "{rules}");
    }
}

/// With an ACK for every second packet ns-3's Reno grows by half a packet a round trip, the others by one.
#[test]
fn delayed_acks_halve_what_ns3_grows_by() {
    for (rules, grown) in [("linux", 1.0), ("rfc", 1.0), ("ns3", 0.5)] {
        let mut reno = build(&format!(
            r#"{{"kind": "reno", "rules": "{rules}", "initial_window": 200}}"#
        ));
        reno.on_acknowledged(&Acknowledgement {
            window_limited: true,
            bytes: 0,
            ..ack(150, 1)
        });
        reno.on_lost(&loss(160, 100, 201));
        let before = reno.window();
        for i in 0..before / SEGMENT / 2 {
            reno.on_acknowledged(&ack(300 + i, 2));
        }
        let growth = (reno.window() - before) as f64 / SEGMENT as f64;
        // Where ns-3 adds a part of a packet it drops the part of a byte.
        assert!((growth - grown).abs() < 0.06, "{rules}: {growth}");
    }
}

/// ns-3 halves what is in flight once the lost packet is out; RFC 5681 and Linux what was before.
#[test]
fn a_loss_halves_what_its_rules_say() {
    for (rules, threshold) in [("linux", 10_000), ("rfc", 8500), ("ns3", 8000)] {
        let mut reno = build(&format!(
            r#"{{"kind": "reno", "rules": "{rules}", "initial_window": 20}}"#
        ));
        reno.on_lost(&loss(200, 100, 17));
        assert_eq!(reno.ssthresh(), Some(threshold), "{rules}");
    }
}

/// The constants of Linux's CUBIC: 717/1024 of whole packets, W_max lowered to (1024 + 717)/2048, at least a
/// packet in 20 before the first congestion and at most one for two afterwards.
#[test]
fn cubic_as_linux_computes_it() {
    let mut cubic = build(r#"{"kind": "cubic", "rules": "linux", "initial_window": 1001}"#);
    cubic.on_lost(&loss(200, 100, 1000));
    assert_eq!(packets(cubic.as_ref()), 700, "1001 * 717 / 1024 = 700.8");
    // After a timeout there is no plateau: one packet in 20, though the curve stands still.
    let mut cubic = build(r#"{"kind": "cubic", "rules": "linux", "initial_window": 143, "hystart": "off"}"#);
    cubic.on_timeout(ms(200), 143 * SEGMENT);
    for i in 0..99 {
        cubic.on_acknowledged(&ack(301 + i, 1));
    }
    assert_eq!((packets(cubic.as_ref()), cubic.in_slow_start()), (100, false));
    for i in 0..40 {
        cubic.on_acknowledged(&ack(401 + i, 1));
    }
    assert_eq!(packets(cubic.as_ref()), 102);
    // Far beyond the plateau it grows by half a round trip, not faster.
    for i in 0..100 {
        cubic.on_acknowledged(&ack(60_000 + i, 2));
    }
    let window = packets(cubic.as_ref());
    assert!((200..=203).contains(&window), "{window}");
}

/// Time that passes in silence is not time on the curve (RFC 9438, section 5.8).
#[test]
fn cubic_as_linux_computes_it_does_not_grow_by_waiting() {
    let grown = |wait: u64| {
        let mut cubic = build(r#"{"kind": "cubic", "rules": "linux", "initial_window": 100}"#);
        cubic.on_sent(ms(90), SEGMENT, 50 * SEGMENT);
        cubic.on_lost(&loss(200, 100, 100));
        for i in 0..10 {
            cubic.on_acknowledged(&ack(301 + i, 1));
        }
        cubic.on_sent(ms(320), SEGMENT, 2 * SEGMENT);
        cubic.on_sent(ms(320 + wait), SEGMENT, SEGMENT);
        for i in 0..140 {
            cubic.on_acknowledged(&ack(430 + wait + i, 1));
        }
        packets(cubic.as_ref())
    };
    assert_eq!(grown(60_000), grown(1));
}

/// Section 3.3 of Brakmo and Peterson: slow start doubles in every other round; Linux's in every one.
#[test]
fn vegas_doubles_every_other_round() {
    for (rules, windows) in [("paper", [4, 4, 8, 8, 16]), ("linux", [4, 8, 16, 32, 64])] {
        let mut vegas = build(&format!(
            r#"{{"kind": "vegas", "rules": "{rules}", "initial_window": 2}}"#
        ));
        let mut found = Vec::new();
        for round in 1..=5 {
            let window = packets(vegas.as_ref());
            // The first packet of the next round leaves with the first ACK of this one.
            for _ in 0..window {
                vegas.on_acknowledged(&Acknowledgement {
                    newest_sent_at: ms((round - 1) * 100 + 1),
                    rtt: Some(Duration::from_millis(99)),
                    ..ack(round * 100, 1)
                });
            }
            found.push(packets(vegas.as_ref()));
        }
        assert_eq!(found, windows, "{rules}");
    }
}

/// Linux ends slow start with what the path holds and one packet more, and its threshold never lies above
/// the window that Vegas decided on (`tcp_vegas_cong_avoid`).
#[test]
fn vegas_leaves_slow_start_with_what_the_path_holds() {
    let mut vegas = build(r#"{"kind": "vegas", "rules": "linux", "initial_window": 40}"#);
    let mut found = Vec::new();
    for (round, rtt) in [(1, 99), (2, 110), (3, 110), (4, 110)] {
        for _ in 0..10 {
            vegas.on_acknowledged(&Acknowledgement {
                newest_sent_at: ms((round - 1) * 100 + 1),
                rtt: Some(Duration::from_millis(rtt)),
                ..ack(round * 100, 1)
            });
        }
        found.push((
            packets(vegas.as_ref()),
            vegas.ssthresh().map(|bytes| bytes / SEGMENT),
        ));
    }
    let never = Some(u64::MAX / SEGMENT);
    // 60 * 99 / 110 packets fit, 6 wait; then 55 * 11 / 99 = 6 wait, more than beta.
    assert_eq!(found, [(50, never), (60, never), (55, Some(55)), (54, Some(54))]);
}

/// A loss takes a quarter in the paper's implementation, a half in Linux's.
#[test]
fn vegas_gives_less_at_a_loss_than_reno() {
    for (rules, left) in [("paper", 15), ("linux", 10)] {
        let mut vegas = build(&format!(
            r#"{{"kind": "vegas", "rules": "{rules}", "initial_window": 20}}"#
        ));
        vegas.on_lost(&loss(200, 100, 20));
        assert_eq!(packets(vegas.as_ref()), left, "{rules}");
    }
}
