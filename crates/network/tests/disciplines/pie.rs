//! PIE: RFC 8033.

use super::*;

/// Under unresponsive overload, PIE drops packets such that the mean delay equals the target (RFC 8033, section 1:
/// "control the average queuing latency to a target value").
#[test]
fn the_delay_stays_at_the_target() {
    for (target, load) in [(15, 1.05), (15, 1.25), (15, 2.0), (30, 1.25)] {
        let queue = format!(r#"{{"kind": "pie", "target": "{target}ms"}}"#);
        let (queue, dropped) = mean_queue(
            &queue,
            steady(0, 80_000 * MILLI, load),
            20_000 * MILLI,
            80_000 * MILLI,
        );
        // At 1 ms per packet, the queue length (with the packet in transmission) is the delay in milliseconds.
        let wait = queue - 0.5;
        assert!(
            (wait / f64::from(target) - 1.0).abs() < 0.1,
            "{target} ms at {load}: {wait} ms"
        );
        assert!((dropped - (1.0 - 1.0 / load)).abs() < 0.005, "{load}: {dropped}");
    }
}

/// Bursts of up to 150 ms pass (RFC 8033, section 4.4).
#[test]
fn drops_start_after_the_burst_allowance() {
    let mut network = network(r#"{"kind": "pie"}"#);
    drive(&mut network, steady(0, 2000 * MILLI, 2.0));
    let drops = times(network.observer(), DROPPED);
    assert!(drops[0] >= 150 * MILLI, "{}", drops[0]);
    assert!(drops[0] < 400 * MILLI, "{}", drops[0]);
}

/// Packets are marked up to a probability of 10 %, and dropped above (RFC 8033, section 5.1).
#[test]
fn heavy_congestion_is_not_marked() {
    let run = |queue: &str, load: f64| {
        let mut network = network(queue);
        drive(&mut network, capable(steady(0, 20_000 * MILLI, load)));
        let counters = network.counters(LINK);
        (counters.marked.packets, counters.queue_dropped.packets)
    };
    let ecn = r#"{"kind": "pie", "ecn": true, "limit": "100000pkt"}"#;
    let (marked, dropped) = run(ecn, 1.5);
    // These senders ignore marks, so the probability exceeds the threshold and packets are dropped.
    assert!(marked > 0 && dropped > 5000, "{marked} {dropped}");
    let always = r#"{"kind": "pie", "ecn": true, "limit": "100000pkt", "mark_threshold": "100%"}"#;
    assert_eq!(run(always, 1.5).1, 0);
    assert_eq!(run(r#"{"kind": "pie"}"#, 1.5).0, 0);
}
