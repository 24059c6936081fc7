//! Response of the window to single events, in the numbers of the RFCs, of Linux and of ns-3.

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

/// Returns an ACK at `now` ms of `packets` sent 100 ms ago under a fully used window.
fn ack(now: u64, packets: u64) -> Acknowledgement {
    Acknowledgement {
        now: ms(now),
        bytes: packets * SEGMENT,
        marked_bytes: 0,
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

/// Returns the loss, detected at `now` ms, of a packet sent at `sent` ms, with `packets` in flight before.
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

/// Controllers that follow RFC 5681 and 6675 neither grow nor reduce the window while losses are repaired.
#[test]
fn window_is_constant_in_recovery() {
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
                // A lost retransmission belongs to the same episode.
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

/// A spurious reduction is undone: window and ssthresh are restored (RFC 4015, section 3.4; Linux's
/// `tcp_undo_cwnd_reduction`).
#[test]
fn undoes_spurious_reduction() {
    for reno in [r#"{"kind": "reno"}"#, r#"{"kind": "reno", "rules": "linux"}"#] {
        let mut reno = build(reno);
        reno.on_acknowledged(&ack(200, 1));
        reno.on_lost(&loss(300, 250, 11));
        assert!(reno.window() < 6 * SEGMENT);
        reno.on_spurious(ms(400));
        assert_eq!((packets(reno.as_ref()), reno.ssthresh()), (11, Some(u64::MAX)));
        assert!(reno.in_slow_start());
        // Two consecutive timeouts are one reduction.
        reno.on_timeout(ms(1000), 11 * SEGMENT);
        reno.on_timeout(ms(3000), SEGMENT);
        assert_eq!(packets(reno.as_ref()), 1);
        reno.on_spurious(ms(3100));
        assert_eq!(packets(reno.as_ref()), 11);
        // Nothing more is undone.
        reno.on_spurious(ms(3200));
        assert_eq!(packets(reno.as_ref()), 11);
    }
}

/// W_max is restored too (RFC 9438, section 4.9). Linux keeps its state.
#[test]
fn cubic_restores_plateau_after_spurious_loss() {
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

/// The restart window after an idle period of more than an RTO (RFC 5681, section 4.1). Linux halves the window for
/// each RTO of the period, down to the initial window, and keeps three quarters as ssthresh.
#[test]
fn idle_period_reduces_window() {
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

/// Linux's `tcp_slow_start` does not limit the growth per ACK; RFC 9406, section 4.3, limits it to 8.
#[test]
fn slow_start_counts_by_rules() {
    for (rules, grown) in [("linux", 30), ("rfc", 18), ("ns3", 11)] {
        let mut reno = build(&format!(r#"{{"kind": "reno", "rules": "{rules}"}}"#));
        reno.on_acknowledged(&ack(200, 20));
        assert_eq!(packets(reno.as_ref()), grown, "{rules}");
    }
}

/// With an ACK for every second packet ns-3's Reno grows by half a packet per round trip, the others by one.
#[test]
fn delayed_acks_halve_growth_of_ns3() {
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
        // ns-3 drops the fraction of a byte when it adds a fraction of a packet.
        assert!((growth - grown).abs() < 0.06, "{rules}: {growth}");
    }
}

/// ns-3 halves the bytes in flight without the lost packet; RFC 5681 and Linux halve those before the loss.
#[test]
fn loss_halves_by_rules() {
    for (rules, threshold) in [("linux", 10_000), ("rfc", 8500), ("ns3", 8000)] {
        let mut reno = build(&format!(
            r#"{{"kind": "reno", "rules": "{rules}", "initial_window": 20}}"#
        ));
        reno.on_lost(&loss(200, 100, 17));
        assert_eq!(reno.ssthresh(), Some(threshold), "{rules}");
    }
}

/// Constants of Linux's CUBIC: 717/1024 of whole packets, W_max lowered to (1024 + 717)/2048, at least one packet in
/// 20 before the first congestion and at most one in two afterwards.
#[test]
fn cubic_matches_linux() {
    let mut cubic = build(r#"{"kind": "cubic", "rules": "linux", "initial_window": 1001}"#);
    cubic.on_lost(&loss(200, 100, 1000));
    assert_eq!(packets(cubic.as_ref()), 700, "1001 * 717 / 1024 = 700.8");
    // After a timeout without plateau: one packet in 20, although the curve is flat.
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
    // Far above the plateau it grows by half per round trip at most.
    for i in 0..100 {
        cubic.on_acknowledged(&ack(60_000 + i, 2));
    }
    let window = packets(cubic.as_ref());
    assert!((200..=203).contains(&window), "{window}");
}

/// Idle time does not advance the curve (RFC 9438, section 5.8).
#[test]
fn linux_cubic_does_not_advance_while_idle() {
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

/// Slow start doubles in every other round (Brakmo and Peterson, section 3.3), Linux's in every round.
#[test]
fn vegas_doubles_every_other_round() {
    for (rules, windows) in [("paper", [4, 4, 8, 8, 16]), ("linux", [4, 8, 16, 32, 64])] {
        let mut vegas = build(&format!(
            r#"{{"kind": "vegas", "rules": "{rules}", "initial_window": 2}}"#
        ));
        let mut found = Vec::new();
        for round in 1..=5 {
            let window = packets(vegas.as_ref());
            // The first packet of the next round is sent on the first ACK of this one.
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

/// Linux leaves slow start with the capacity of the path plus one packet, and its ssthresh never exceeds the window
/// chosen by Vegas (`tcp_vegas_cong_avoid`).
#[test]
fn vegas_leaves_slow_start_at_path_capacity() {
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
    // 60 × 99 / 110 packets fit, 6 are queued; then 55 × 11 / 99 = 6 are queued, more than beta.
    assert_eq!(found, [(50, never), (60, never), (55, Some(55)), (54, Some(54))]);
}

/// A loss reduces the window by a quarter in the paper's implementation, by half in Linux.
#[test]
fn vegas_reduces_less_than_reno() {
    for (rules, left) in [("paper", 15), ("linux", 10)] {
        let mut vegas = build(&format!(
            r#"{{"kind": "vegas", "rules": "{rules}", "initial_window": 20}}"#
        ));
        vegas.on_lost(&loss(200, 100, 20));
        assert_eq!(packets(vegas.as_ref()), left, "{rules}");
    }
}
