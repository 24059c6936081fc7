//! Shared buffers with dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN 6 (2), 1998.

use crate::common::{Log, Mark, drive, mark, path};
use foundation::{Ecn, Instant, Size, Streams};
use network::queue::SharedBuffer;
use network::{LinkId, Network, NetworkBuilder, Packet, RouteId, Topology, TopologyConfig};

const MILLI: u64 = 1_000_000;
/// Bytes of a packet, which takes 1 ms.
const PACKET: u32 = 1250;
const BUFFER: u64 = 1_000_000;

fn buffer(alpha: f64) -> SharedBuffer {
    SharedBuffer {
        size: Size::from_bytes(BUFFER),
        alpha,
    }
}

/// Returns a switch with ports of 10 Mbit/s, each with its route, and this queue.
fn switch(ports: u32, alpha: f64, queue: &str) -> Network<Mark, Log> {
    let spec = path(&format!(r#"{{"rate": "10Mbit/s", "queue": {queue}}}"#)).forward;
    let mut builder = NetworkBuilder::new(Streams::new(1, 0));
    let links: Vec<LinkId> = (0..ports)
        .map(|port| {
            let host = builder.host();
            let link = builder.link(format!("port/{port}"), &spec);
            builder.route(&[link], host);
            link
        })
        .collect();
    builder.share_buffer(buffer(alpha), &links);
    builder.build_observed(Log::default())
}

/// Sends packets to ports in turn at twice their rate, until a time.
fn overload(network: &mut Network<Mark, Log>, ports: std::ops::Range<u32>, from: u64, until: u64) {
    for at in (from..until).step_by(500_000) {
        for port in ports.clone() {
            send(network, at, port, Ecn::NotEct);
        }
    }
}

fn send(network: &mut Network<Mark, Log>, at: u64, port: u32, ecn: Ecn) {
    let body = Mark { ecn, ..mark(at) };
    network.send(Instant::from_nanos(at), Packet::new(RouteId(port), PACKET, body));
    while network.poll_delivery().is_some() {}
}

fn bytes(network: &Network<Mark, Log>, port: u32, at: u64) -> f64 {
    network.queue(LinkId(port), Instant::from_nanos(at)).bytes as f64
}

fn used(network: &mut Network<Mark, Log>, at: u64) -> f64 {
    network.handle_timeout(Instant::from_nanos(at));
    let used = network.shared_buffer(LinkId(0), Instant::from_nanos(at));
    used.unwrap() as f64
}

/// With n congested queues, each has alpha / (1 + n alpha) of the buffer, and 1 / (1 + n alpha) stays free (equation 4).
#[test]
fn congested_queues_share_the_buffer() {
    for (ports, alpha, share) in [
        (1, 1.0, 500_000.0),
        (2, 1.0, 333_333.3),
        (4, 1.0, 200_000.0),
        (8, 1.0, 111_111.1),
        (1, 2.0, 666_666.7),
        (4, 2.0, 222_222.2),
        (4, 0.5, 166_666.7),
        (2, 0.125, 100_000.0),
    ] {
        let mut network = switch(ports, alpha, r#""1GB""#);
        let end = 2000 * MILLI;
        overload(&mut network, 0..ports, 0, end);
        // The threshold falls and rises by alpha packets with each packet that joins and leaves.
        let slack = (1.0 + alpha) * f64::from(PACKET);
        for port in 0..ports {
            let length = bytes(&network, port, end);
            assert!((length - share).abs() <= slack, "{ports}, {alpha}: {length}");
        }
        let free = BUFFER as f64 - used(&mut network, end);
        let slack = slack * f64::from(ports);
        assert!((free - share / alpha).abs() <= slack, "{ports}, {alpha}: {free}");
    }
}

/// When a second port becomes congested, the first releases what exceeds its new share (section III: it drains).
#[test]
fn queues_release_room_for_new_ones() {
    let mut network = switch(2, 1.0, r#""1GB""#);
    overload(&mut network, 0..1, 0, 1000 * MILLI);
    assert!((bytes(&network, 0, 1000 * MILLI) - 500_000.0).abs() <= 2500.0);
    overload(&mut network, 0..2, 1000 * MILLI, 2000 * MILLI);
    for port in 0..2 {
        let length = bytes(&network, port, 2000 * MILLI);
        assert!((length - 333_333.0).abs() <= 2500.0, "{port}: {length}");
    }
}

/// The limit of a queue applies, too: of a burst of 30 packets, 25 fit.
#[test]
fn queues_keep_their_own_limits() {
    for queue in [
        r#""25pkt""#,
        r#""31250B""#,
        r#"{"kind": "drop-head", "limit": "25pkt"}"#,
    ] {
        let mut network = switch(1, 1.0, queue);
        (0..30).for_each(|_| send(&mut network, 0, 0, Ecn::NotEct));
        assert_eq!(network.queue(LinkId(0), Instant::ZERO).packets, 25, "{queue}");
        assert_eq!(
            network.shared_buffer(LinkId(0), Instant::ZERO),
            Some(31_250),
            "{queue}"
        );
    }
}

/// A queue marks above K and drops above its share. With two congested ports and alpha = 1, each accepts packets below a
/// third of the buffer: 267 packets, of which 20 join without a mark.
#[test]
fn marks_at_a_threshold_and_drops_at_the_share() {
    let mut network = switch(
        2,
        1.0,
        r#"{"kind": "step", "limit": "1GB", "threshold": "20pkt"}"#,
    );
    for _ in 0..300 {
        (0..2).for_each(|port| send(&mut network, 0, port, Ecn::Ect0));
    }
    for port in [0, 1] {
        let counters = network.counters(LinkId(port));
        assert_eq!(network.queue(LinkId(port), Instant::ZERO).packets, 267);
        assert_eq!(counters.marked.packets, 247);
        assert_eq!(counters.queue_dropped.packets, 33);
    }
}

/// A packet in transmission is in the buffer until its end.
#[test]
fn the_buffer_is_empty_when_all_queues_are() {
    let mut network = switch(2, 1.0, r#""1GB""#);
    (0..2).for_each(|port| send(&mut network, 0, port, Ecn::NotEct));
    assert_eq!(used(&mut network, MILLI - 1), 2500.0);
    assert_eq!(used(&mut network, MILLI), 0.0);
    let mut alone: Network<Mark> = Network::two_hosts(&path("{}"), Streams::new(1, 0));
    alone.handle_timeout(Instant::ZERO);
    assert_eq!(alone.shared_buffer(LinkId(0), Instant::ZERO), None);
}

fn read(json: &str) -> Result<Topology, String> {
    let config: TopologyConfig = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let resolved = config.resolve(&mut |_| Err("no files here".into()));
    resolved.map_err(|problems| {
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string()
    })
}

/// Returns the names of the links whose queues are in a shared buffer.
fn shared(topology: &Topology) -> Vec<String> {
    let network: Network<Mark> = topology.builder(Streams::new(1, 0)).build();
    let links = network.links();
    let shared = links.filter(|&link| network.shared_buffer(link, Instant::ZERO).is_some());
    shared.map(|link| network.link_name(link).to_owned()).collect()
}

const LINK: &str = r#"{"rate": "1Gbit/s"}"#;

/// The queues of switches are in their buffers, those of hosts are not.
#[test]
fn switches_have_buffers() {
    let with = |keys: &str| shared(&read(&format!(r#"{{{keys}, "shared_buffer": "4MB"}}"#)).unwrap());
    assert_eq!(
        with(&format!(r#""kind": "star", "leaves": 2, "leaf": {LINK}"#)),
        ["hub", "leaf/1/reverse", "leaf/2/reverse"]
    );
    assert_eq!(
        with(&format!(
            r#""kind": "tree", "depth": 2, "fan_out": 1, "level": {LINK}"#
        )),
        ["level/1/1", "level/2/1/reverse"]
    );
    assert_eq!(
        with(&format!(
            r#""kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts": 1, "access": {LINK}"#
        )),
        [
            "uplink/1/1",
            "uplink/1/1/reverse",
            "access/1/reverse",
            "uplink/2/1",
            "uplink/2/1/reverse",
            "access/2/reverse"
        ]
    );
    // Of 48 links in both directions, 16 lead out of a host.
    assert_eq!(
        with(&format!(r#""kind": "fat-tree", "ports": 4, "link": {LINK}"#)).len(),
        96 - 16
    );
    let links =
        r#"[{"from": "a", "to": "r", "rate": "1Gbit/s"}, {"from": "r", "to": "b", "rate": "1Gbit/s"}]"#;
    assert_eq!(
        with(&format!(
            r#""kind": "free", "hosts": ["a", "b"], "routers": ["r"], "links": {links}"#
        )),
        ["a-r/reverse", "r-b"]
    );
}

/// Each switch has its own buffer: a full one leaves the other as it was.
#[test]
fn buffers_of_switches_are_separate() {
    let json = format!(
        r#"{{"kind": "tree", "depth": 3, "fan_out": 1, "level": {LINK}, "shared_buffer": {{"size": "64KiB", "alpha": 2}}}}"#
    );
    let topology = read(&json).unwrap();
    let mut builder = topology.builder(Streams::new(1, 0));
    let [server, client] = ["server", "h1"].map(|name| topology.host(name).unwrap());
    let way = topology.links_between(client, server).unwrap();
    let route = builder.route(&way, server);
    let mut network: Network<Mark> = builder.build();
    let sends = (0..4).map(|number| (0, Packet::new(route, 1250, mark(number))));
    for (at, packet) in sends {
        network.send(Instant::from_nanos(at), packet);
    }
    // Each takes 10 us.
    let now = Instant::from_nanos(25_000);
    network.handle_timeout(now);
    let in_buffer = |link: LinkId| network.shared_buffer(link, now);
    assert_eq!(
        way.iter().map(|&link| in_buffer(link)).collect::<Vec<_>>(),
        [None, Some(1250), Some(1250)]
    );
}

#[test]
fn wrong_shared_buffers_are_refused() {
    let star = |link: &str, buffer: &str| {
        let keys = format!(r#""kind": "star", "leaves": 2, "leaf": {link}"#);
        read(&format!(r#"{{{keys}, "shared_buffer": {buffer}}}"#)).unwrap_err()
    };
    for (link, buffer, expected) in [
        (
            LINK,
            r#""60kB""#,
            "shared_buffer.size: \"60kB\" is out of range: at least \"64KiB\"",
        ),
        (
            LINK,
            r#"{"size": "4MB", "alpha": 0}"#,
            "shared_buffer.alpha: 0 is out of range: above 0, at most 100",
        ),
        (
            r#"{"delay": "1ms"}"#,
            r#""4MB""#,
            "shared_buffer: the link \"hub\" has no rate: the outgoing links of a switch require rate or trace",
        ),
        (
            r#"{"rate": "1Gbit/s", "queue": {"kind": "step", "limit": "4MB", "threshold": "2MB"}}"#,
            r#""4MB""#,
            "shared_buffer: the link \"hub\" has a queue that is shorter in the shared buffer: queue.threshold: \"2MB\" is out of range: below limit = \"2MB\"",
        ),
    ] {
        assert_eq!(star(link, buffer), expected);
    }
    let unit = star(LINK, r#""100pkt""#);
    assert!(unit.contains("unknown unit \"pkt\""), "{unit}");
    let key = star(LINK, r#"{"size": "4MB", "beta": 1}"#);
    assert!(key.contains("beta"), "{key}");
    assert_eq!(
        read(&format!(
            r#"{{"kind": "tree", "depth": 1, "level": {LINK}, "shared_buffer": "4MB"}}"#
        ))
        .unwrap_err(),
        "shared_buffer: requires a switch: each node of this topology has a host"
    );
    let dumbbell =
        format!(r#"{{"kind": "dumbbell", "pairs": 2, "bottleneck": {LINK}, "shared_buffer": "4MB"}}"#);
    let dumbbell = read(&dumbbell).unwrap_err();
    assert!(dumbbell.contains("shared_buffer"), "{dumbbell}");
    // A threshold below the share is within the buffer.
    let step = r#"{"rate": "1Gbit/s", "queue": {"kind": "step", "limit": "4MB", "threshold": "1.9MB"}}"#;
    let keys = format!(r#""kind": "star", "leaves": 2, "leaf": {step}"#);
    assert!(read(&format!(r#"{{{keys}, "shared_buffer": "4MB"}}"#)).is_ok());
}

#[test]
fn a_size_is_a_buffer_with_the_factor_1() {
    let read = |json: &str| serde_json::from_str::<SharedBuffer>(json).unwrap();
    let table = read(r#"{"size": "4MB"}"#);
    assert_eq!(read(r#""4MB""#), table);
    let written = serde_json::to_string(&table).unwrap();
    assert_eq!(written, r#"{"size":"4MB","alpha":1.0}"#);
    assert_eq!(read(&written), table);
}

/// Packets do not cross links ahead of time where queues depend on each other.
#[test]
fn cut_through_changes_no_arrival() {
    let json = format!(
        r#"{{"kind": "star", "leaves": 3, "leaf": {LINK}, "hub": {{"rate": "300Mbit/s"}}, "shared_buffer": "64KiB"}}"#
    );
    let topology = read(&json).unwrap();
    let arrivals = |cut: bool| {
        let mut builder = topology.builder(Streams::new(1, 0));
        for &(from, to) in topology.pairs() {
            builder.route(&topology.links_between(from, to).unwrap(), to);
        }
        if cut {
            builder = builder.cut_through(&[]);
        }
        let mut network: Network<Mark> = builder.build();
        let sends = (0..600).map(|number| {
            let route = RouteId(number as u32 % 3);
            (number / 3 * 9000, Packet::new(route, PACKET, mark(number)))
        });
        let arrivals = drive(&mut network, sends);
        (arrivals, network.counters(topology.bottlenecks()[0]))
    };
    let (arrivals_of, counters) = arrivals(false);
    assert!(counters.queue_dropped.packets > 50, "{counters:?}");
    assert_eq!(arrivals(true), (arrivals_of, counters));
}
