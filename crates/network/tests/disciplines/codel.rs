//! CoDel: RFC 8289, and Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 10 (5), 2012.

use super::*;

/// Times of drops in ms after the first one: the intervals are 100, 100 / sqrt(2), 100 / sqrt(3), ... (RFC 8289,
/// section 3.3: "control law").
const ROW: [f64; 8] = [0.0, 100.0, 170.71, 228.45, 278.45, 323.17, 363.99, 401.79];

/// Asserts that these times follow the control law. A drop may wait for the end of one transmission.
fn follow_the_law(times: &[u64]) {
    for (at, due) in times.iter().zip(ROW) {
        let since = (at - times[0]) as f64 / MILLI as f64;
        assert!((due - 0.02..=due + 1.02).contains(&since), "{since} is not {due}");
    }
}

#[test]
fn drop_rate_increases_while_the_queue_persists() {
    let mut network = network(r#"{"kind": "codel", "limit": "10000pkt"}"#);
    drive(&mut network, steady(0, 1000 * MILLI, 1.5));
    let drops = times(network.observer(), DROPPED);
    // At 1.5 times the link's rate, the packet sent at k ms has waited k/3 ms; the first above the target leaves at 15
    // ms.
    assert_eq!(drops[0], 115 * MILLI);
    assert!(drops.len() > ROW.len());
    follow_the_law(&drops);
}

#[test]
fn marks_follow_the_same_law_without_losses() {
    let mut network = network(r#"{"kind": "codel", "limit": "10000pkt", "ecn": true}"#);
    let arrivals = drive(&mut network, capable(steady(0, 1000 * MILLI, 1.5)));
    let marks = times(network.observer(), EventKind::Marked);
    follow_the_law(&marks);
    assert_eq!(arrivals.len(), 1500);
    let marked = arrivals
        .iter()
        .filter(|arrival| arrival.packet.body.marks == 1)
        .count();
    assert_eq!(marked, marks.len());
    // Packets that are not ECN-capable are dropped.
    let mut network = super::network(r#"{"kind": "codel", "limit": "10000pkt", "ecn": true}"#);
    drive(&mut network, steady(0, 1000 * MILLI, 1.5));
    follow_the_law(&times(network.observer(), DROPPED));
    assert_eq!(network.counters(LINK).marked.packets, 0);
}

/// A queue that drains within an interval causes no drops (RFC 8289, section 1: "good queue").
#[test]
fn a_burst_shorter_than_the_interval_passes() {
    for (packets, dropped) in [(104, false), (110, true)] {
        let mut network = network(r#"{"kind": "codel"}"#);
        drive(
            &mut network,
            (0..packets).map(|number| (0, Packet::new(FORWARD, 1250, mark(number)))),
        );
        assert_eq!(
            network.counters(LINK).queue_dropped.packets > 0,
            dropped,
            "{packets}"
        );
    }
}

/// A packet whose transmission exceeds the target is not a standing queue (RFC 8289, section 5.4: MAXPACKET).
#[test]
fn a_single_packet_is_never_dropped() {
    let mut network = network(r#"{"kind": "codel", "target": "100us", "interval": "1ms"}"#);
    // In pairs: the second packet waits 1 ms, ten times the target.
    drive(
        &mut network,
        (0..4000).map(|number| {
            (
                number / 2 * 2 * PACKET_TIME,
                Packet::new(FORWARD, 1250, mark(number)),
            )
        }),
    );
    assert_eq!(network.counters(LINK).queue_dropped.packets, 0);
}

/// After a short pause, the drop rate resumes near its previous value (RFC 8289, section 5.5).
#[test]
fn a_recent_drop_rate_is_resumed() {
    for (pause, remembers) in [(1500, true), (3500, false)] {
        let mut network = network(r#"{"kind": "codel", "limit": "10000pkt"}"#);
        let (end, again) = (1000 * MILLI, (1000 + pause) * MILLI);
        let second = steady(again, again + 1000 * MILLI, 1.5);
        drive(&mut network, steady(0, end, 1.5).chain(second));
        let drops = times(network.observer(), DROPPED);
        let (first, second): (Vec<u64>, Vec<u64>) = drops.iter().partition(|&&at| at < again);
        let gap = (second[1] - second[0]) as f64 / MILLI as f64;
        let count = if remembers { first.len() as f64 - 1.0 } else { 1.0 };
        let due = 100.0 / count.sqrt();
        assert!(
            (due - 1.02..=due + 1.02).contains(&gap),
            "{pause}: {gap} is not {due}"
        );
    }
}

/// With a CE threshold, each ECN-capable packet that waits longer is marked, regardless of the control law: of a burst of 30
/// packets, packet n waits n ms, so a threshold of 20 ms marks the last 9. The burst is shorter than the interval.
#[test]
fn packets_above_the_ce_threshold_are_marked() {
    let queue = r#"{"kind": "codel", "ce_threshold": "20ms"}"#;
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let arrivals = drive(&mut network(queue), with_ecn(burst(30), ecn));
        let marks: Vec<u32> = arrivals.iter().map(|arrival| arrival.packet.body.marks).collect();
        assert_eq!(marks, [[0; 21].as_slice(), &[1; 9]].concat(), "{ecn:?}");
    }
    let mut plain = network(queue);
    assert_eq!(drive(&mut plain, burst(30)).len(), 30);
    assert_eq!(plain.counters(LINK).marked.packets, 0);
}

/// The CE threshold does not replace the control law, which still drops at its times.
#[test]
fn the_control_law_drops_next_to_a_ce_threshold() {
    let queue = r#"{"kind": "codel", "limit": "10000pkt", "ce_threshold": "1ms"}"#;
    let mut network = network(queue);
    let arrivals = drive(&mut network, capable(steady(0, 1000 * MILLI, 1.5)));
    let drops = times(network.observer(), DROPPED);
    assert_eq!(drops[0], 115 * MILLI);
    follow_the_law(&drops);
    let waits = |arrival: &Arrival<Mark>| arrival.at - PACKET_TIME - arrival.packet.body.number;
    for arrival in &arrivals {
        let is_late = waits(arrival) > MILLI;
        assert_eq!(
            arrival.packet.body.marks,
            u32::from(is_late),
            "{}",
            waits(arrival)
        );
    }
}
