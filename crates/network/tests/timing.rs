//! Arrival times, compared with values computed by hand.

use crate::common::{Log, Mark, drive, mark, numbers, path, run_train, train};
use foundation::{Instant, Streams};
use network::{
    Body, DropReason, FORWARD, HostId, LinkId, LinkSpec, Network, NetworkBuilder, Packet, REVERSE,
};

const MS: u64 = 1_000_000;

#[test]
fn store_and_forward_over_three_links() {
    // 1250 bytes: 1 ms at 10 Mbit/s, 10 ms at 1 Mbit/s, 0.1 ms at 100 Mbit/s; delays 5, 20 and 1 ms.
    let links = [
        path(r#"{"rate": "10Mbit/s", "delay": "5ms"}"#),
        path(r#"{"rate": "1Mbit/s", "delay": "20ms"}"#),
        path(r#"{"rate": "100Mbit/s", "delay": "1ms"}"#),
    ];
    let mut network = Network::chain(&links, Streams::new(1, 0));
    let arrivals = drive(&mut network, train(3, 0, 1250));
    let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
    // The first packet takes 1 + 5 + 10 + 20 + 0.1 + 1 ms. The others follow at the rate of the slowest link.
    assert_eq!(times, [37_100_000, 47_100_000, 57_100_000]);
    assert!(
        arrivals
            .iter()
            .all(|arrival| arrival.host == HostId(1) && arrival.packet.hop == 3)
    );
    // The second link's queue: when the second packet arrives, 1 ms after the first, the first is in transmission.
    let slowest = network.route_links(FORWARD).nth(1).unwrap();
    assert_eq!(network.counters(slowest).max_queue_packets, 3);
    assert_eq!(network.counters(slowest).max_queue_bytes, 3750);
}

#[test]
fn the_reverse_route_passes_the_links_backwards() {
    let links = [
        path(r#"{"delay": "1ms", "reverse": {"delay": "10ms"}}"#),
        path(r#"{"delay": "2ms", "reverse": {"delay": "20ms"}}"#),
    ];
    let mut network: Network<Mark> = Network::chain(&links, Streams::new(1, 0));
    let arrivals = drive(&mut network, [(0, Packet::new(REVERSE, 100, mark(1)))]);
    assert_eq!((arrivals[0].at, arrivals[0].host), (30 * MS, HostId(0)));
    let names: Vec<&str> = network
        .route_links(REVERSE)
        .map(|link| network.link_name(link))
        .collect();
    assert_eq!(names, ["reverse/2", "reverse/1"]);
}

/// Two links: on the way to the second one, no packet arrives at a host next.
#[test]
fn the_expected_packet_arrives_next() {
    let link = || path(r#"{"rate": "10Mbit/s", "delay": "5.3ms", "queue": "30000pkt"}"#);
    let mut network = Network::chain(&[link(), link()], Streams::new(1, 0));
    for number in 1..=20_000 {
        network.send(Instant::ZERO, Packet::new(FORWARD, 1250, mark(number)));
    }
    let mut expectations = 0;
    while let Some(at) = network.poll_timeout() {
        let expected = network.expected().cloned();
        network.handle_timeout(at);
        let arrived = network.poll_delivery().map(|(_, packet)| packet.body);
        expectations += u32::from(expected.is_some());
        assert!(
            expected.is_none() || expected == arrived,
            "{expected:?} at {at:?}"
        );
    }
    // Half of the events are those of the first link.
    assert!(expectations > 10_000, "{expectations}");
}

#[test]
fn an_unlimited_link_has_no_queue() {
    let (arrivals, network) = run_train(r#"{"delay": "7ms", "queue": "1pkt"}"#, 1, 50, 0, 1500);
    assert_eq!(numbers(&arrivals), (1..=50).collect::<Vec<_>>());
    assert!(arrivals.iter().all(|arrival| arrival.at == 7 * MS));
    assert_eq!(network.counters(LinkId(0)).max_queue_packets, 0);
}

#[test]
fn a_full_queue_drops_arrivals() {
    // Three packets of 1 ms fit. At 1.0 ms the first leaves, so one more fits; at 1.5 ms none does.
    let json = r#"{"rate": "10Mbit/s", "queue": "3pkt"}"#;
    let mut network = NetworkBuilder::chain(&[path(json)], Streams::new(1, 0)).build_observed(Log::default());
    let times = [0, 0, 0, 0, 999_999, 1_000_000, 1_500_000];
    let sends = times
        .iter()
        .zip(1..)
        .map(|(&at, number)| (at, Packet::new(FORWARD, 1250, mark(number))));
    let arrivals = drive(&mut network, sends);
    assert_eq!(numbers(&arrivals), [1, 2, 3, 6]);
    assert_eq!(arrivals[3].at, 4 * MS);
    let drops = network.observer().drops(DropReason::Queue);
    assert_eq!(drops, [(0, 4), (999_999, 5), (1_500_000, 7)]);
    assert_eq!(network.counters(LinkId(0)).queue_dropped.bytes, 3 * 1250);
}

#[test]
fn a_queue_in_bytes_counts_bytes() {
    let json = r#"{"rate": "8Mbit/s", "queue": "2000B"}"#;
    let mut network = Network::two_hosts(&path(json), Streams::new(1, 0));
    let sizes = [1500, 600, 500, 1];
    let sends = sizes
        .iter()
        .zip(1..)
        .map(|(&size, number)| (0, Packet::new(FORWARD, size, mark(number))));
    let arrivals = drive(&mut network, sends);
    assert_eq!(numbers(&arrivals), [1, 3]);
    assert_eq!(network.counters(LinkId(0)).max_queue_bytes, 2000);
    // 1 µs per byte.
    assert_eq!(arrivals[1].at, 2 * MS);
}

#[test]
fn drop_head_keeps_the_newest() {
    let json = r#"{"rate": "10Mbit/s", "delay": "3ms", "queue": {"kind": "drop-head", "limit": "3pkt"}}"#;
    let mut network = NetworkBuilder::chain(&[path(json)], Streams::new(1, 0)).build_observed(Log::default());
    let arrivals = drive(&mut network, train(6, 0, 1250));
    // The first packet is in transmission when the others arrive, so it is not dropped.
    assert_eq!(numbers(&arrivals), [1, 5, 6]);
    let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
    assert_eq!(times, [4 * MS, 5 * MS, 6 * MS]);
    let counters = network.counters(LinkId(0));
    assert_eq!(
        (counters.max_queue_packets, counters.queue_dropped.packets),
        (3, 3)
    );
    let drops = network.observer().drops(DropReason::Queue);
    assert_eq!(drops[0].1, 2);
}

#[test]
fn drop_head_rejects_packets_larger_than_the_queue() {
    let json = r#"{"rate": "8Mbit/s", "queue": {"kind": "drop-head", "limit": "2000B"}}"#;
    let mut network = Network::two_hosts(&path(json), Streams::new(1, 0));
    // 800 bytes remain during the transmission of 1200: 900 can never fit, and 500 replace the 400.
    let sends = [1200, 400, 900, 500, 300]
        .iter()
        .zip(1..)
        .map(|(&size, number)| (0, Packet::new(FORWARD, size, mark(number))));
    assert_eq!(numbers(&drive(&mut network, sends)), [1, 4, 5]);
}

#[test]
fn a_departure_frees_room_at_the_same_time() {
    for queue in [r#""1pkt""#, r#"{"kind": "drop-head", "limit": "1pkt"}"#] {
        let json = format!(r#"{{"rate": "10Mbit/s", "queue": {queue}}}"#);
        let (arrivals, _) = run_train(&json, 1, 5, MS, 1250);
        assert_eq!(numbers(&arrivals), [1, 2, 3, 4, 5]);
        // One nanosecond earlier, every other packet finds the link busy.
        let (arrivals, _) = run_train(&json, 1, 5, MS - 1, 1250);
        assert_eq!(numbers(&arrivals), [1, 3, 5]);
    }
}

#[test]
fn active_queues_without_drops_time_like_drop_tail() {
    let timing = |queue: &str| {
        let json = format!(r#"{{"rate": "3Mbit/s", "delay": "3ms", "queue": {queue}}}"#);
        let (arrivals, _) = run_train(&json, 1, 300, 1_700_000, 700);
        arrivals
    };
    assert_eq!(
        timing(r#""1000pkt""#),
        timing(r#"{"kind": "drop-head", "limit": "1000pkt"}"#)
    );
}

#[test]
fn packets_above_the_mtu_are_dropped_and_counted() {
    let (arrivals, network) = run_train(r#"{"mtu": "1400B", "loss": {"packets": [1]}}"#, 1, 3, MS, 1401);
    assert!(arrivals.is_empty());
    let counters = network.counters(LinkId(0));
    assert_eq!(
        (counters.mtu_dropped.packets, counters.mtu_dropped.bytes),
        (3, 4203)
    );
    assert_eq!(counters.dropped(DropReason::Mtu), counters.mtu_dropped);
    let (arrivals, _) = run_train(r#"{"mtu": "1400B"}"#, 1, 3, MS, 1400);
    assert_eq!(arrivals.len(), 3);
}

#[test]
fn late_calls_do_not_change_delivery_times() {
    // Two sources share a chain. The first caller handles timeouts on time, the second only with its next packet.
    let paths = [
        path(r#"{"rate": "10Mbit/s", "delay": "1ms", "jitter": "0.5ms", "queue": "20pkt"}"#),
        path(
            r#"{"rate": "8Mbit/s", "delay": "2ms", "loss": "5%", "queue": {"kind": "drop-head", "limit": "9pkt"}}"#,
        ),
    ];
    let builder = NetworkBuilder::chain(&paths, Streams::new(3, 0));
    let mut exact = builder.clone().build_observed(Log::default());
    let mut late = builder.build_observed(Log::default());
    drive(&mut exact, train(400, 900_001, 1100));
    for (at, packet) in train(400, 900_001, 1100) {
        late.send(Instant::from_nanos(at), packet);
    }
    late.handle_timeout(Instant::MAX);
    assert_eq!(exact.observer().events, late.observer().events);
    assert!(exact.observer().events.len() > 1000);
}

#[test]
fn an_earlier_time_counts_as_the_latest() {
    let mut network: Network<Mark> = Network::two_hosts(&path(r#"{"delay": "1ms"}"#), Streams::new(1, 0));
    network.handle_timeout(Instant::from_nanos(5 * MS));
    network.send(Instant::from_nanos(2 * MS), Packet::new(FORWARD, 1, mark(1)));
    assert_eq!(network.poll_timeout(), Some(Instant::from_nanos(6 * MS)));
}

#[test]
fn ties_follow_the_scheduling_time_then_the_link() {
    // Two access links of equal delay join at a third, where their packets arrive at the same time.
    let mut builder = NetworkBuilder::new(Streams::new(1, 0));
    let sink = builder.host();
    let access = LinkSpec {
        delay: "1ms".parse().unwrap(),
        ..LinkSpec::default()
    };
    let (first, second) = (builder.link("first", &access), builder.link("second", &access));
    let shared = builder.link("shared", &access);
    let routes = [
        builder.route(&[first, shared], sink),
        builder.route(&[second, shared], sink),
    ];
    let mut network = builder.build();
    let sends = [1, 0, 0, 1, 1, 0]
        .iter()
        .zip(1..)
        .map(|(&route, number)| (0, Packet::new(routes[route], 100, mark(number))));
    assert_eq!(numbers(&drive(&mut network, sends)), [2, 3, 6, 1, 4, 5]);
}

#[test]
fn a_route_without_links_delivers_immediately() {
    let mut builder = NetworkBuilder::new(Streams::new(1, 0));
    let host = builder.host();
    let route = builder.route(&[], host);
    let mut network: Network<Mark> = builder.build();
    network.send(Instant::ZERO, Packet::new(route, 1, mark(7)));
    assert_eq!(network.poll_timeout(), None);
    assert_eq!(network.poll_delivery().unwrap().1.body.number, 7);
    assert_eq!(network.packets_inside(), 0);
}

#[test]
#[should_panic(expected = "no hop 2")]
fn a_hop_beyond_the_route_panics() {
    let mut network: Network<Mark> = Network::two_hosts(&path("{}"), Streams::new(1, 0));
    let mut packet = Packet::new(FORWARD, 1, mark(1));
    packet.hop = 2;
    network.send(Instant::ZERO, packet);
}

#[test]
#[should_panic(expected = "a second link is named")]
fn duplicate_link_names_panic() {
    let mut builder = NetworkBuilder::new(Streams::new(1, 0));
    builder.link("core", &LinkSpec::default());
    builder.link("core", &LinkSpec::default());
}

/// A body without traits for inspection, which counts operations on it.
struct Sealed {
    clones: std::rc::Rc<std::cell::Cell<u32>>,
    flips: std::rc::Rc<std::cell::Cell<u32>>,
}

impl Clone for Sealed {
    fn clone(&self) -> Self {
        self.clones.set(self.clones.get() + 1);
        Self {
            clones: self.clones.clone(),
            flips: self.flips.clone(),
        }
    }
}

impl Body for Sealed {
    fn flip_bit(&mut self, _: u64) {
        self.flips.set(self.flips.get() + 1);
    }
}

#[test]
fn bodies_are_cloned_and_flipped_only_by_impairments() {
    let json = r#"{"rate": "50Mbit/s", "delay": "5ms", "jitter": "4ms", "loss": "5%", "duplicate": "10%",
        "corrupt": "10%", "queue": "30pkt", "reorder": {"probability": "5%", "delay": "3ms"}}"#;
    let paths = [path(json), path(json)];
    let (clones, flips) = Default::default();
    let mut network: Network<Sealed> = Network::chain(&paths, Streams::new(1, 0));
    let sends = (0..500).map(|number| {
        let (clones, flips) = (std::rc::Rc::clone(&clones), std::rc::Rc::clone(&flips));
        (
            number * 100_000,
            Packet::new(FORWARD, 1000, Sealed { clones, flips }),
        )
    });
    let sealed = drive(&mut network, sends);
    let total = |count: fn(&network::LinkCounters) -> u64| {
        let links = network.route_links(FORWARD);
        links.map(|link| count(&network.counters(link))).sum::<u64>()
    };
    assert!(clones.get() > 50 && flips.get() > 50);
    assert_eq!(
        u64::from(clones.get()),
        total(|counters| counters.duplicated.packets)
    );
    assert_eq!(
        u64::from(flips.get()),
        total(|counters| counters.corrupted.packets)
    );
    // Packets with other bodies have the same times.
    let mut network: Network<Mark> = Network::chain(&paths, Streams::new(1, 0));
    let marked = drive(&mut network, train(500, 100_000, 1000));
    let seen = |at: u64, id: u64, hop: u8| (at, id, hop);
    let sealed: Vec<_> = sealed
        .iter()
        .map(|a| seen(a.at, a.packet.id, a.packet.hop))
        .collect();
    let marked: Vec<_> = marked
        .iter()
        .map(|a| seen(a.at, a.packet.id, a.packet.hop))
        .collect();
    assert_eq!(sealed, marked);
}
