//! CAKE: Høiland-Jørgensen, Täht and Morton, LANMAN 2018; constants of Linux's `sch_cake`.

use super::*;
use crate::common::numbers;
use network::{HostId, RouteId};

const SECOND: u64 = 1000 * MILLI;

/// Returns a link of 10 Mbit/s with this queue, and a route for each of these pairs of hosts.
fn home(queue: &str, pairs: &[(u32, u32)]) -> Network<Mark, Log> {
    let spec = path(&format!(r#"{{"rate": "10Mbit/s", "queue": {queue}}}"#)).forward;
    let mut builder = NetworkBuilder::new(Streams::new(1, 0));
    let hosts = pairs.iter().map(|&(from, to)| from.max(to)).max();
    for _ in 0..=hosts.unwrap() {
        builder.host();
    }
    let link = builder.link("link", &spec);
    for &(from, to) in pairs {
        builder.route_from(HostId(from), &[link], HostId(to));
    }
    builder.build_observed(Log::default())
}

/// Returns packets of 1250 bytes of flows, each given by its route and number, at `load` times the link's rate each.
fn flows(flows: &[(u32, u64)], load: f64, until: u64) -> Vec<(u64, Packet<Mark>)> {
    let mut all = Vec::new();
    for &(route, flow) in flows {
        all.extend(steady(0, until, load).map(|(at, mut packet)| {
            packet.route = RouteId(route);
            packet.body.flow = flow;
            (at, packet)
        }));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Returns the share of each route of the bytes delivered between 1 s and 4 s.
fn shares(queue: &str, pairs: &[(u32, u32)], sends: Vec<(u64, Packet<Mark>)>) -> Vec<f64> {
    let mut network = home(queue, pairs);
    let arrivals = drive(&mut network, sends);
    let mut bytes = vec![0.0; pairs.len()];
    for arrival in &arrivals {
        if (SECOND..4 * SECOND).contains(&arrival.at) {
            bytes[arrival.packet.route.0 as usize] += f64::from(arrival.packet.size);
        }
    }
    let all: f64 = bytes.iter().sum();
    assert!(all > 0.98 * 3.0 * 1_250_000.0 || queue.contains("rate"), "{all}");
    bytes.iter().map(|bytes| bytes / all).collect()
}

/// Asserts equality within 1.5 %.
fn are_near(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found / expected - 1.0).abs() < 0.015,
            "{found} is not {expected}"
        );
    }
}

/// One flow of a host and eight of another: the hosts have equal shares with isolation of hosts, the flows without it (section
/// III.B of the paper).
#[test]
fn hosts_get_equal_shares() {
    // The hosts send to different hosts, to the same one, or receive from the same one.
    for (isolation, pairs, share) in [
        ("triple-isolate", [(0, 2), (1, 3)], 0.5),
        ("triple-isolate", [(0, 3), (1, 3)], 1.0 / 9.0),
        ("dual-srchost", [(0, 3), (1, 3)], 0.5),
        ("dual-srchost", [(0, 1), (0, 2)], 1.0 / 9.0),
        ("dual-dsthost", [(0, 1), (0, 2)], 0.5),
        ("dual-dsthost", [(0, 3), (1, 3)], 1.0 / 9.0),
        ("flows", [(0, 2), (1, 3)], 1.0 / 9.0),
    ] {
        let nine: Vec<(u32, u64)> = std::iter::once((0, 0))
            .chain((0..8).map(|flow| (1, flow)))
            .collect();
        let sends = flows(&nine, 0.6, 4 * SECOND);
        let queue = format!(r#"{{"kind": "cake", "isolation": "{isolation}"}}"#);
        let found = shares(&queue, &pairs, sends);
        are_near(&found, &[share, 1.0 - share]);
    }
}

/// A host that has three flows to different hosts shares like one with three to the same: each flow has a third of its source.
#[test]
fn triple_isolation_divides_the_share_of_the_busier_host() {
    let pairs = [(0, 2), (1, 3), (1, 4), (1, 5)];
    let sends = flows(&[(0, 0), (1, 0), (2, 0), (3, 0)], 0.9, 4 * SECOND);
    let found = shares(r#""cake""#, &pairs, sends);
    are_near(&found, &[0.5, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0]);
}

/// A burst leaves at the rate of the shaper: at 4 Mbit/s, 1250 bytes take 2.5 ms, then 1 ms on the link. Overhead and framing
/// count as bytes: 1250 + 44 bytes are 27 ATM cells of 53 bytes (2.862 ms), or 1294 + 21 bytes of PTM (2.63 ms).
#[test]
fn packets_leave_at_the_rate_of_the_shaper() {
    for (keys, micros) in [
        ("", 2500),
        (r#", "overhead": "44B""#, 2588),
        (r#", "overhead": "44B", "framing": "atm""#, 2862),
        (r#", "overhead": "44B", "framing": "ptm""#, 2630),
        (r#", "mpu": "256B""#, 2500),
    ] {
        let mut network = home(
            &format!(r#"{{"kind": "cake", "rate": "4Mbit/s"{keys}}}"#),
            &[(0, 1)],
        );
        let arrivals = drive(&mut network, burst(20));
        let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
        let expected: Vec<u64> = (0..20).map(|number| number * micros * 1000 + MILLI).collect();
        assert_eq!(times, expected, "{keys}");
    }
    // Small packets take the smallest size.
    let mut network = home(r#"{"kind": "cake", "rate": "4Mbit/s", "mpu": "250B"}"#, &[(0, 1)]);
    let small = (0..5).map(|number| (0, Packet::new(FORWARD, 125, mark(number))));
    let times: Vec<u64> = drive(&mut network, small)
        .iter()
        .map(|arrival| arrival.at)
        .collect();
    assert_eq!(times, [100_000, 600_000, 1_100_000, 1_600_000, 2_100_000]);
}

/// The packets of a flow leave at the rate of the shaper exactly, also with fractions of nanoseconds and after pauses.
#[test]
fn the_shaper_is_exact() {
    // 1250 bytes at 3 Mbit/s take 3333333.3 ns.
    let mut network = home(r#"{"kind": "cake", "rate": "3Mbit/s"}"#, &[(0, 1)]);
    let late = burst(4).map(|(_, packet)| (SECOND, packet));
    let arrivals = drive(&mut network, capable(burst(301).chain(late)));
    assert_eq!(arrivals[300].at, SECOND + MILLI);
    let times: Vec<u64> = arrivals[301..]
        .iter()
        .map(|arrival| arrival.at - SECOND - MILLI)
        .collect();
    assert_eq!(times, [3_333_334, 6_666_667, 10_000_000, 13_333_334]);
}

/// Under the shaper, the queue is where the AQM is: a sparse flow waits for one packet of the bulk flow at most, and the
/// bulk flow that ignores signals keeps its full rate.
#[test]
fn a_sparse_flow_sees_no_queue_under_the_shaper() {
    let bulk = flows(&[(0, 0)], 0.55, 4 * SECOND);
    let sparse = (0..150_u64).map(|number| {
        let at = number * 19_700_000;
        let packet = Packet::new(RouteId(1), 125, mark(at));
        (at, packet)
    });
    let sends: Vec<_> = merge(bulk.into_iter(), sparse).collect();
    let mut network = home(r#"{"kind": "cake", "rate": "5Mbit/s"}"#, &[(0, 2), (1, 3)]);
    let arrivals = drive(&mut network, sends);
    let of = |route: u32| -> Vec<Arrival<Mark>> {
        let of = arrivals
            .iter()
            .filter(|arrival| arrival.packet.route == RouteId(route));
        of.cloned().collect()
    };
    // A bulk packet takes 2 ms at the shaper, and an own packet 0.1 ms on the link.
    let worst = delays(&of(1)).into_iter().skip(1).max().unwrap();
    assert!(worst <= 2_100_000, "{worst}");
    let bytes: u64 = of(0)
        .iter()
        .filter(|arrival| (SECOND..3 * SECOND).contains(&arrival.at))
        .map(|arrival| u64::from(arrival.packet.size))
        .sum();
    // 5 Mbit/s for 2 s, without the sparse flow's 102 packets.
    assert!((1_230_000..1_240_000).contains(&bytes), "{bytes}");
}

/// The intervals between signals are 100 / sqrt(2), 100 / sqrt(3), ... ms: unlike CoDel's, the first interval counts as the
/// first signal (Linux: `cobalt_should_drop`).
#[test]
fn signals_follow_the_control_law() {
    const ROW: [f64; 8] = [0.0, 70.71, 128.45, 178.45, 223.17, 263.99, 301.79, 337.14];
    let follow = |times: &[u64]| {
        assert!(times.len() >= ROW.len());
        for (at, due) in times.iter().zip(ROW) {
            let since = (at - times[0]) as f64 / MILLI as f64;
            assert!((due - 0.02..=due + 1.02).contains(&since), "{since} is not {due}");
        }
    };
    let mut marking = network(r#""cake""#);
    let arrivals = drive(&mut marking, capable(steady(0, 600 * MILLI, 1.5)));
    let marks = times(marking.observer(), EventKind::Marked);
    assert_eq!(arrivals.len(), 900);
    // The first packet that has waited longer than 5 ms leaves at 18 ms at the latest.
    assert!((115 * MILLI..=118 * MILLI).contains(&marks[0]), "{}", marks[0]);
    follow(&marks);
    let mut dropping = network(r#""cake""#);
    drive(&mut dropping, steady(0, 600 * MILLI, 1.5));
    follow(&times(dropping.observer(), DROPPED));
}

/// The target is at least the time of 1.5 frames of 1514 bytes at the rate of the shaper: 36 ms at 500 kbit/s. A queue of
/// four frames is never too long.
#[test]
fn the_target_follows_from_the_rate() {
    for (rate, waits) in [("500kbit/s", 97), ("10Mbit/s", 5)] {
        let queue = format!(r#"{{"kind": "cake", "rate": "{rate}"}}"#);
        let mut network = home(&queue, &[(0, 1)]);
        let load = if waits > 5 { 0.055 } else { 1.05 };
        drive(&mut network, capable(steady(0, 8 * SECOND, load)));
        // The delay grows by 1/10 or 1/20 of the time; signals start an interval after it exceeds the target.
        let marks = times(network.observer(), EventKind::Marked);
        let interval = if waits > 5 { 131 } else { 100 };
        let due = waits * if waits > 5 { 11 } else { 21 } + interval;
        let first = marks[0] / MILLI;
        assert!(first.abs_diff(due) < due / 10, "{rate}: {first} is not {due}");
    }
}

/// At overflow, the queue with the most bytes loses its first packet, and BLUE acts on that flow only.
#[test]
fn overflow_drops_from_the_longest_queue() {
    let bulk = flows(&[(0, 1)], 4.0, 2 * SECOND);
    let small = flows(&[(1, 2)], 0.3, 2 * SECOND);
    let count = small.len();
    let sends: Vec<_> = merge(bulk.into_iter(), small.into_iter()).collect();
    let mut network = home(r#"{"kind": "cake", "limit": "50pkt"}"#, &[(0, 2), (1, 3)]);
    let arrivals = drive(&mut network, sends);
    let delivered = |route| {
        arrivals
            .iter()
            .filter(|arrival| arrival.packet.route == RouteId(route))
            .count()
    };
    assert_eq!(delivered(1), count);
    let counters = network.counters(LINK);
    assert_eq!(counters.max_queue_packets, 50);
    assert!(counters.queue_dropped.packets > 5000);
    // The link is never idle, whatever BLUE drops: the last packet of a queue stays.
    assert!(arrivals.iter().filter(|arrival| arrival.at <= 2 * SECOND).count() >= 1999);
}

/// A changed queue keeps its packets in order, also those that the shaper holds back.
#[test]
fn a_change_moves_the_packets_of_the_shaper() {
    let mut network = home(r#"{"kind": "cake", "rate": "1Mbit/s"}"#, &[(0, 1)]);
    for (at, packet) in burst(10) {
        network.send(Instant::from_nanos(at), packet);
    }
    let mut spec = network.link_spec(LINK).clone();
    spec.queue = serde_json::from_str(r#""100pkt""#).unwrap();
    network.change_link(Instant::from_nanos(2 * MILLI), LINK, &spec);
    let arrivals = drive(&mut network, []);
    assert_eq!(numbers(&arrivals), (0..10).collect::<Vec<_>>());
    // The others leave back to back at the rate of the link.
    assert_eq!(arrivals[9].at, 11 * MILLI);
}
