//! Links that fail and recover, and routes around them.

use std::collections::BTreeSet;

use crate::common::{Log, Mark, drive, mark, numbers, path, train};
use foundation::{Duration, Instant, Streams};
use network::queue::QueueConfig;
use network::{
    DropReason, FORWARD, LinkId, LinkSpec, Network, NetworkBuilder, Outage, Packet, Topology, TopologyConfig,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * MS)
}

/// Times and packet numbers.
type Times = Vec<(u64, u64)>;

/// Five packets of 1 ms each: three at once, one while the link is down, and one at its recovery.
fn across_an_outage(queue: &str) -> (Times, Times, Network<Mark, Log>) {
    let json =
        format!(r#"{{"rate": "10Mbit/s", "delay": "5ms", "queue": "{queue}", "down": ["1.5ms..3ms"]}}"#);
    let builder = NetworkBuilder::chain(&[path(&json)], Streams::new(1, 0));
    let mut network = builder.build_observed(Log::default());
    let times = [0, 0, 0, 2 * MS, 3 * MS];
    let sends = (1..)
        .zip(times)
        .map(|(number, at)| (at, Packet::new(FORWARD, 1250, mark(number))));
    let arrivals = drive(&mut network, sends);
    let arrivals = arrivals.iter().map(|one| (one.at / MS, one.packet.body.number));
    let drops = network.observer().drops(DropReason::Outage);
    (arrivals.collect(), drops, network)
}

#[test]
fn a_failed_link_drops_the_packets_that_wait_or_arrive() {
    for queue in QueueConfig::KINDS.iter().filter(|kind| **kind != "drop-head") {
        let (arrivals, drops, network) = across_an_outage(queue);
        // The second packet is in transmission at the failure.
        assert_eq!(arrivals, [(6, 1), (7, 2), (9, 5)], "{queue}");
        assert_eq!(drops, [(3 * MS / 2, 3), (2 * MS, 4)], "{queue}");
        let counters = network.counters(LinkId(0));
        assert_eq!(counters.outage_dropped.packets, 2);
        assert_eq!(counters.dropped(DropReason::Outage), counters.outage_dropped);
        assert_eq!(
            counters.queue_dropped.packets + counters.mtu_dropped.packets + counters.lost.packets,
            0
        );
    }
}

#[test]
fn a_failed_link_does_not_report_packets_as_too_big() {
    let down = path(r#"{"mtu": "1000B", "down": ["0s..1ms"]}"#);
    let mut network: Network<Vec<u8>> = Network::two_hosts(&down, Streams::new(1, 0));
    network.send(at(0), Packet::new(FORWARD, 1500, Vec::new()));
    assert!(network.is_down(LinkId(0)) && network.poll_too_big().is_none());
    network.send(at(1), Packet::new(FORWARD, 1500, Vec::new()));
    assert!(!network.is_down(LinkId(0)) && network.poll_too_big().is_some());
}

/// Losses depend on the number of a packet at the link, so an outage shifts none of them.
#[test]
fn an_outage_changes_no_other_loss() {
    let run = |down: &str| {
        let json = format!(r#"{{"loss": "20%", "down": {down}}}"#);
        let mut network =
            NetworkBuilder::chain(&[path(&json)], Streams::new(5, 0)).build_observed(Log::default());
        let arrivals = numbers(&drive(&mut network, train(100, MS, 500)));
        arrivals
            .into_iter()
            .filter(|number| !(11..=30).contains(number))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(r#"["9.5ms..29.5ms"]"#), run("[]"));
}

#[test]
fn a_link_that_changes_while_it_is_down_stays_down() {
    let mut network: Network<Vec<u8>> =
        Network::two_hosts(&path(r#"{"down": ["1ms..10ms"]}"#), Streams::new(1, 0));
    network.handle_timeout(at(5));
    network.change_link(
        at(5),
        LinkId(0),
        &path(r#"{"mtu": "1000B", "rate": "1Gbit/s"}"#).forward,
    );
    assert!(network.is_down(LinkId(0)));
    network.handle_timeout(at(10));
    assert!(!network.is_down(LinkId(0)));
}

#[test]
fn a_restarted_schedule_counts_from_the_restart() {
    let mut network: Network<Vec<u8>> = Network::two_hosts(
        &path(r#"{"down": ["10ms..20ms", "30ms..40ms"]}"#),
        Streams::new(1, 0),
    );
    let is_down = |network: &mut Network<Vec<u8>>, millis: u64| {
        network.handle_timeout(at(millis));
        network.is_down(LinkId(0))
    };
    assert!(is_down(&mut network, 15));
    network.restart_outages(at(15));
    let seen = [15, 24, 25, 34, 35, 45, 55, 60].map(|millis| is_down(&mut network, millis));
    assert_eq!(seen, [false, false, true, true, false, true, false, false]);
    assert_eq!(network.poll_timeout(), None);
}

fn topology(json: &str) -> Topology {
    let config: TopologyConfig = serde_json::from_str(json).unwrap();
    config.resolve(&mut |_| Err("no files here".into())).unwrap()
}

/// Returns the network of a topology with a route for its first pair, which is [`FORWARD`].
fn routed(topology: &Topology) -> Network<Mark, Log> {
    let mut builder = topology.builder(Streams::new(1, 0));
    let (from, to) = topology.pairs()[0];
    builder.route(&topology.links_between(from, to).unwrap(), to);
    topology.avoid_outages(&mut builder);
    builder.build_observed(Log::default())
}

const TWO_SPINES: &str = r#""kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 1, "access": {"delay": "1us", "rate": "1Gbit/s"}"#;

/// Returns the uplink of the first host's leaf on the route to the second host.
fn first_uplink(keys: &str) -> String {
    let topology = topology(&format!("{{{keys}}}"));
    let (from, to) = topology.pairs()[0];
    let way = topology.links_between(from, to).unwrap();
    topology.links()[way[1].0 as usize].name.clone()
}

#[test]
fn routes_avoid_a_failed_link_after_the_detection_time() {
    let uplink = first_uplink(TWO_SPINES);
    let other = if uplink == "uplink/1/1" {
        "uplink/1/2"
    } else {
        "uplink/1/1"
    };
    let keys = format!(r#"{{{TWO_SPINES}, "down": {{"{uplink}": ["200ms..500ms"]}}, "detection": "50ms"}}"#);
    let topology = topology(&keys);
    let mut network = routed(&topology);
    let arrived: BTreeSet<u64> = numbers(&drive(&mut network, train(100, 10 * MS, 500)))
        .into_iter()
        .collect();
    // Packet n leaves at (n - 1) × 10 ms, and arrives at the uplink a few microseconds later.
    let lost: Vec<u64> = (1..=100).filter(|number| !arrived.contains(number)).collect();
    assert_eq!(lost, [21, 22, 23, 24, 25]);
    let entered = |name: &str| network.counters(topology.link(name).unwrap()).entered.packets;
    assert_eq!(entered(other), 30);
    assert_eq!(entered(&uplink), 70);
}

#[test]
fn routers_do_not_detect_an_outage_that_is_over() {
    let uplink = first_uplink(TWO_SPINES);
    let keys = format!(r#"{{{TWO_SPINES}, "down": {{"{uplink}": ["200ms..250ms"]}}, "detection": "50ms"}}"#);
    let mut network = routed(&topology(&keys));
    assert_eq!(drive(&mut network, train(100, 10 * MS, 500)).len(), 95);
}

#[test]
fn a_route_without_an_alternative_stays() {
    let keys = r#"{"kind": "free", "hosts": ["a", "b"], "routers": ["r"], "links": [
        {"from": "a", "to": "r", "delay": "1ms"},
        {"from": "r", "to": "b", "delay": "1ms", "down": ["100ms..200ms"]}]}"#;
    let mut network = routed(&topology(keys));
    assert_eq!(drive(&mut network, train(30, 10 * MS, 500)).len(), 20);
}

#[test]
fn routers_of_a_free_topology_take_a_longer_route() {
    let keys = r#"{"kind": "free", "hosts": ["a", "b"], "routers": ["r1", "r2", "r3"], "links": [
        {"from": "a", "to": "r1"}, {"from": "r2", "to": "b"},
        {"from": "r1", "to": "r2", "down": ["100ms..200ms"], "delay": "1ms"},
        {"from": "r1", "to": "r3", "delay": "2ms"}, {"from": "r3", "to": "r2", "delay": "2ms"}]}"#;
    let mut network = routed(&topology(keys));
    let arrivals = drive(&mut network, train(30, 10 * MS, 500));
    let delays = arrivals
        .iter()
        .map(|one| one.at / MS - (one.packet.body.number - 1) * 10);
    let slow = delays.filter(|&delay| delay == 4).count();
    assert_eq!((arrivals.len(), slow), (30, 10));
}

#[test]
fn outages_of_unknown_links_are_refused() {
    let keys = format!(r#"{{{TWO_SPINES}, "down": {{"uplink/1/3": ["1s..2s"]}}}}"#);
    let config: TopologyConfig = serde_json::from_str(&keys).unwrap();
    let problems: Vec<String> = config.validate().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("down: there is no link \"uplink/1/3\": did you mean \"uplink/1/"),
        "{problems:?}"
    );
    let keys = format!(r#"{{{TWO_SPINES}, "down": {{"uplink/1/1": ["2s..1s"]}}, "detection": "120min"}}"#);
    let config: TopologyConfig = serde_json::from_str(&keys).unwrap();
    let problems: Vec<String> = config.validate().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "down.uplink/1/1: \"2s..1s\" ends before it starts",
            "detection: \"7200s\" is out of range: 0 to \"3600s\"",
        ]
    );
}

#[test]
fn both_directions_fail_unless_the_reverse_has_its_own_outages() {
    let down = |failures: &str| {
        let topology = topology(&format!(r#"{{{TWO_SPINES}, "down": {failures}}}"#));
        ["uplink/1/1", "uplink/1/1/reverse"].map(|name| {
            topology.links()[topology.link(name).unwrap().0 as usize]
                .spec
                .down
                .len()
        })
    };
    assert_eq!(down(r#"{"uplink/1/1": ["1s..2s"]}"#), [1, 1]);
    assert_eq!(
        down(r#"{"uplink/1/1": ["1s..2s"], "uplink/1/1/reverse": []}"#),
        [1, 0]
    );
    assert_eq!(down(r#"{"uplink/1/1/reverse": ["1s..2s"]}"#), [0, 1]);
}

/// Returns whether links that are up lead from the first leaf to the second.
fn is_reachable(topology: &Topology, is_up: &dyn Fn(LinkId) -> bool) -> bool {
    let names: Vec<&str> = topology.nodes().collect();
    let node = |name: &str| names.iter().position(|other| *other == name).unwrap() as u32;
    let (mut open, mut seen) = (vec![node("leaf1")], BTreeSet::new());
    while let Some(here) = open.pop() {
        if seen.insert(here) {
            let links = (0..).map(LinkId).zip(topology.links());
            let up = links.filter(|(link, one)| one.from.0 == here && is_up(*link));
            open.extend(up.map(|(_, one)| one.to.0));
        }
    }
    seen.contains(&node("leaf2"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::cases(256)))]

    /// Routers detect failures at once: a packet that meets no failure on its way arrives if and only if links that are
    /// up lead to its destination.
    #[test]
    fn packets_arrive_if_a_way_is_left(
        spines in 1_usize..4,
        leaves in 2_usize..4,
        outages in prop::collection::vec((0_usize..9, 1_u64..90, 1_u64..40), 0..12),
    ) {
        let mut failures: std::collections::BTreeMap<String, Vec<Outage>> = Default::default();
        for (uplink, from, length) in outages {
            let name = format!("uplink/{}/{}", 1 + uplink / 3 % leaves, 1 + uplink % 3 % spines);
            let listed = failures.entry(name).or_default();
            // Whole multiples of 10 ms; packets leave between them.
            let from = from * 10;
            if listed.last().is_none_or(|last| last.to < Duration::from_millis(from)) {
                listed.push(Outage {
                    from: Duration::from_millis(from),
                    to: Duration::from_millis(from + length * 10),
                });
            }
        }
        let topology = topology(&format!(
            r#"{{"kind": "leaf-spine", "leaves": {leaves}, "spines": {spines}, "hosts": 1,
                "access": {{"delay": "10us"}}, "down": {}}}"#,
            serde_json::to_string(&failures).unwrap()
        ));
        let mut builder = topology.builder(Streams::new(1, 0));
        let (from, to) = (topology.host("h1").unwrap(), topology.host("h2").unwrap());
        builder.route(&topology.links_between(from, to).unwrap(), to);
        topology.avoid_outages(&mut builder);
        let mut network = builder.build_observed(Log::default());
        let sends = train(130, 10 * MS, 500).map(|(at, packet)| (at + 5 * MS, packet));
        let arrived: BTreeSet<u64> = numbers(&drive(&mut network, sends)).into_iter().collect();
        for number in 1..=130_u64 {
            let now = Duration::from_nanos((number - 1) * 10 * MS + 5 * MS);
            let is_up = |link: LinkId| {
                let spec: &LinkSpec = &topology.links()[link.0 as usize].spec;
                !spec.down.iter().any(|outage| outage.from <= now && now < outage.to)
            };
            prop_assert_eq!(arrived.contains(&number), is_reachable(&topology, &is_up), "packet {}", number);
        }
    }
}
