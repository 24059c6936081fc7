//! RED: Floyd and Jacobson, IEEE/ACM ToN 1 (4), 1993; RFC 2309.

use super::*;
use foundation::{Duration, Instant};

const RED: &str = r#""kind": "red", "min_threshold": "5pkt", "max_threshold": "15pkt""#;

/// Under unresponsive load, the average queue settles where the share of drops equals the overload.
///
/// With gaps uniform on 1..1/p, the share of drops is 2p / (1 + p) (Floyd and Jacobson, section 7). At a load of 1.05
/// it is 1 - 1/1.05, hence p = 2.44 %. As p rises from 0 to 10 % between 5 and 15 packets, arriving packets find 7.44
/// packets on average. The mean over time is half a packet larger, because it includes the arriving packets.
#[test]
fn the_average_settles_where_drops_match_the_overload() {
    let mut network = network(&format!("{{{RED}}}"));
    let until = 100_000 * MILLI;
    for (at, packet) in steady(0, until, 1.05) {
        network.send(Instant::from_nanos(at), packet);
        while network.poll_delivery().is_some() {}
    }
    let end = Instant::from_nanos(until);
    network.handle_timeout(end);
    let mean = mean_packets(&network.occupancy(LINK, end), Duration::from_nanos(until));
    assert!((mean - 7.94).abs() < 0.2, "{mean}");
    let counters = network.counters(LINK);
    let share = counters.queue_dropped.packets as f64 / counters.entered.packets as f64;
    assert!((share - 0.0476).abs() < 0.002, "{share}");
}

/// A short burst, which hardly changes the average, passes without loss. Drop-tail with the upper threshold as its
/// limit drops most of it (Floyd and Jacobson, section 1: "occasional bursts").
#[test]
fn a_short_burst_passes() {
    let burst = || (0..60).map(|number| (0, Packet::new(FORWARD, 1250, mark(number))));
    let mut red = network(&format!("{{{RED}}}"));
    assert_eq!(drive(&mut red, burst()).len(), 60);
    let mut tail = network(r#""15pkt""#);
    assert_eq!(drive(&mut tail, burst()).len(), 15);
}

/// Packets are marked between the thresholds, and dropped above the upper one.
#[test]
fn marks_up_to_the_upper_threshold_then_drops() {
    let run = |load: f64, weight: f64| {
        let queue = format!("{{{RED}, \"weight\": {weight}, \"ecn\": true}}");
        let mut network = network(&queue);
        drive(&mut network, capable(steady(0, 20_000 * MILLI, load)));
        network.counters(LINK)
    };
    // Weight 1 makes the average equal the queue: it stays below the threshold at a load of 0.99, and exceeds it at 2.
    let light = run(0.99, 1.0);
    assert_eq!((light.marked.packets, light.queue_dropped.packets), (0, 0));
    let heavy = run(2.0, 1.0);
    assert!(heavy.marked.packets > 0);
    assert!((heavy.queue_dropped.packets as f64 / heavy.entered.packets as f64 - 0.5).abs() < 0.01);
    // The gentle variant keeps the queue below twice the upper threshold.
    assert!(
        (16..=30).contains(&heavy.max_queue_packets),
        "{}",
        heavy.max_queue_packets
    );
}

/// Without the gentle variant, all packets above the upper threshold are dropped.
#[test]
fn the_upper_threshold_is_hard_without_the_gentle_variant() {
    let mut network = network(&format!("{{{RED}, \"weight\": 1, \"gentle\": false}}"));
    drive(&mut network, steady(0, 5000 * MILLI, 2.0));
    assert_eq!(network.counters(LINK).max_queue_packets, 15);
}

/// Thresholds in bytes correspond to twice as many packets of half the size.
#[test]
fn thresholds_in_bytes_count_bytes() {
    let longest = |size: u32| {
        let queue = r#"{"kind": "red", "min_threshold": "5kB", "max_threshold": "15kB", "weight": 1, "gentle": false}"#;
        let mut network = network(queue);
        let packets = steady(0, 5000 * MILLI, 4.0);
        drive(
            &mut network,
            packets.map(|(at, packet)| (at, Packet { size, ..packet })),
        );
        network.counters(LINK).max_queue_packets
    };
    assert_eq!((longest(1000), longest(500)), (15, 30));
}

/// The adaptive variant keeps the average midway between the thresholds at any load (Floyd, Gummadi and Shenker,
/// "Adaptive RED", 2001, section 3); without it, the average rises with the load.
#[test]
fn the_adaptive_variant_settles_between_the_thresholds() {
    let mean = |adaptive: bool, load: f64| {
        let mut network = network(&format!(
            "{{{RED}, \"max_probability\": \"2%\", \"adaptive\": {adaptive}}}"
        ));
        let (from, until) = (
            Instant::from_nanos(60_000 * MILLI),
            Instant::from_nanos(120_000 * MILLI),
        );
        let mut before = None;
        for (at, packet) in steady(0, until.as_nanos(), load) {
            let at = Instant::from_nanos(at);
            if at >= from && before.is_none() {
                network.handle_timeout(at);
                before = Some(network.occupancy(LINK, at));
            }
            network.send(at, packet);
            while network.poll_delivery().is_some() {}
        }
        network.handle_timeout(until);
        let sums = network.occupancy(LINK, until).since(&before.unwrap());
        mean_packets(&sums, until - from)
    };
    for load in [1.05, 1.15] {
        let (plain, adaptive) = (mean(false, load), mean(true, load));
        assert!((8.5..11.5).contains(&adaptive), "{load}: {adaptive}");
        assert!(plain > 14.0, "{load}: {plain}");
    }
}
