//! Step marking: Alizadeh et al., SIGCOMM 2010, section 3.1; RFC 8257, section 3.1.

use super::*;

/// Of a burst of 30 packets into an empty queue with K = 20 and 25 packets of room, 20 join without a mark, 5 with one, and
/// 5 are dropped.
#[test]
fn marks_above_the_threshold_and_drops_above_the_limit() {
    for (limit, threshold) in [("25pkt", "20pkt"), ("31250B", "25000B"), ("25pkt", "25000B")] {
        let queue = format!(r#"{{"kind": "step", "limit": "{limit}", "threshold": "{threshold}"}}"#);
        let mut network = network(&queue);
        let arrivals = drive(&mut network, capable(burst(30)));
        let counters = network.counters(LINK);
        assert_eq!(arrivals.len(), 25);
        assert_eq!((counters.marked.packets, counters.queue_dropped.packets), (5, 5));
        let marked = arrivals.iter().map(|arrival| arrival.packet.body.marks > 0);
        assert!(
            marked.eq((0..25).map(|number| number >= 20)),
            "{limit}, {threshold}"
        );
    }
}

/// The mark depends on the instantaneous queue: it stops as soon as the queue is short (RFC 8257, section 3.1).
#[test]
fn stops_marking_when_the_queue_is_short() {
    let mut network = network(r#"{"kind": "step", "threshold": "3pkt"}"#);
    let later = steady(20 * MILLI, 40 * MILLI, 1.0);
    let arrivals = drive(&mut network, capable(burst(10).chain(later)));
    let marked: Vec<bool> = arrivals
        .iter()
        .map(|arrival| arrival.packet.body.marks > 0)
        .collect();
    assert_eq!(marked.iter().filter(|&&marked| marked).count(), 7);
    assert!(!marked[10..].contains(&true));
}

#[test]
fn packets_without_ecn_are_dropped_at_the_limit_only() {
    let mut network = network(r#"{"kind": "step", "limit": "25pkt", "threshold": "20pkt"}"#);
    assert_eq!(drive(&mut network, burst(30)).len(), 25);
    let counters = network.counters(LINK);
    assert_eq!((counters.marked.packets, counters.queue_dropped.packets), (0, 5));
}

/// Without a threshold, a short queue marks from half of its limit on.
#[test]
fn the_default_threshold_is_below_the_limit() {
    for (limit, marked) in [("1pkt", 1), ("10pkt", 5), ("200pkt", 135), ("15kB", 0)] {
        let mut network = network(&format!(r#"{{"kind": "step", "limit": "{limit}"}}"#));
        drive(&mut network, capable(burst(300)));
        assert_eq!(network.counters(LINK).marked.packets, marked, "{limit}");
    }
}
