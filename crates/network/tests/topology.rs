//! `[topology]`: nodes, links and routes of each kind, and messages about invalid keys.

use crate::common::{self, drive, mark};
use foundation::{Duration, Instant, Streams};
use network::topology::Star;
use network::{Capacity, HostId, Network, Packet, PathSpec, Topology, TopologyConfig};

fn read(json: &str) -> TopologyConfig {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn topology(json: &str) -> Topology {
    read(json)
        .resolve(&mut |file| Err(format!("unexpected file {file}")))
        .unwrap_or_else(|problems| panic!("{json}: {problems:?}"))
}

/// Returns the names of the links from host to host.
fn link_names<'a>(topology: &'a Topology, from: &str, to: &str) -> Vec<&'a str> {
    let host = |name| topology.host(name).unwrap();
    let route = topology.links_between(host(from), host(to)).unwrap();
    route
        .iter()
        .map(|link| topology.links()[link.0 as usize].name.as_str())
        .collect()
}

fn pairs(topology: &Topology) -> Vec<(&str, &str)> {
    let name = |host: network::HostId| topology.hosts()[host.0 as usize].as_str();
    topology
        .pairs()
        .iter()
        .map(|&(from, to)| (name(from), name(to)))
        .collect()
}

fn bottlenecks(topology: &Topology) -> Vec<&str> {
    let name = |link: &network::LinkId| topology.links()[link.0 as usize].name.as_str();
    topology.bottlenecks().iter().map(name).collect()
}

fn rate(topology: &Topology, link: &str) -> String {
    let link = topology.link(link).unwrap();
    match &topology.links()[link.0 as usize].spec.capacity {
        Capacity::Rate(rate) => rate.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_dumbbell_joins_two_sides_by_one_link() {
    let bell = topology(
        r#"{"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate": "10Mbit/s", "reverse": {"rate": "1Mbit/s"}},
            "access": {"rate": "1Gbit/s"}, "exit": {"delay": "1ms"}}"#,
    );
    assert_eq!(bell.hosts(), ["s1", "s2", "r1", "r2"]);
    assert_eq!(pairs(&bell), [("s1", "r1"), ("s2", "r2")]);
    assert_eq!(bottlenecks(&bell), ["bottleneck"]);
    assert_eq!(
        link_names(&bell, "s2", "r2"),
        ["access/2", "bottleneck", "exit/2"]
    );
    assert_eq!(
        link_names(&bell, "r2", "s2"),
        ["exit/2/reverse", "bottleneck/reverse", "access/2/reverse"]
    );
    assert_eq!(link_names(&bell, "s1", "s2"), ["access/1", "access/2/reverse"]);
    assert_eq!(rate(&bell, "bottleneck"), "10Mbit/s");
    assert_eq!(rate(&bell, "bottleneck/reverse"), "1Mbit/s");
}

/// Five clients with links of 5, 10, … 25 Mbit/s, and one server behind 45 Mbit/s.
#[test]
fn a_dumbbell_may_have_one_receiver() {
    let bell = topology(
        r#"{"kind": "dumbbell", "receivers": 1, "bottleneck": {"rate": "45Mbit/s"}, "access": [
            {"rate": "5Mbit/s"}, {"rate": "10Mbit/s"}, {"rate": "15Mbit/s"}, {"rate": "20Mbit/s"}, {"rate": "25Mbit/s"}]}"#,
    );
    assert_eq!(bell.hosts(), ["s1", "s2", "s3", "s4", "s5", "r1"]);
    assert_eq!(pairs(&bell).last(), Some(&("s5", "r1")));
    // A receiver without an exit link is at the router, one hop closer.
    assert_eq!(link_names(&bell, "s4", "r1"), ["access/4", "bottleneck"]);
    assert_eq!(rate(&bell, "access/4"), "20Mbit/s");
    assert_eq!(rate(&bell, "access/4/reverse"), "20Mbit/s");
}

#[test]
fn a_parking_lot_has_a_pair_for_all_and_one_for_each_hop() {
    let lot = topology(
        r#"{"kind": "parking-lot", "hops": 3, "bottleneck": {"rate": "1Mbit/s"}, "access": {"delay": "1ms"}}"#,
    );
    assert_eq!(
        pairs(&lot),
        [("s0", "r0"), ("s1", "r1"), ("s2", "r2"), ("s3", "r3")]
    );
    assert_eq!(
        link_names(&lot, "s0", "r0"),
        ["access/0", "bottleneck/1", "bottleneck/2", "bottleneck/3"]
    );
    assert_eq!(link_names(&lot, "s2", "r2"), ["access/2", "bottleneck/2"]);
    assert_eq!(
        bottlenecks(&lot),
        ["bottleneck/1", "bottleneck/2", "bottleneck/3"]
    );
    let each =
        topology(r#"{"kind": "parking-lot", "bottleneck": [{"rate": "1Mbit/s"}, {"rate": "2Mbit/s"}]}"#);
    assert_eq!(rate(&each, "bottleneck/2"), "2Mbit/s");
    assert_eq!(pairs(&each).len(), 3);
}

#[test]
fn a_leaf_spine_network_joins_each_leaf_to_each_spine() {
    let fabric = topology(
        r#"{"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts": 2, "access": {"rate": "1Mbit/s"}, "uplink": {"rate": "2Mbit/s"}}"#,
    );
    assert_eq!(fabric.hosts(), ["h1", "h2", "h3", "h4", "h5", "h6"]);
    assert_eq!(
        pairs(&fabric),
        [
            ("h1", "h4"),
            ("h2", "h5"),
            ("h3", "h6"),
            ("h4", "h1"),
            ("h5", "h2"),
            ("h6", "h3")
        ]
    );
    assert_eq!(
        bottlenecks(&fabric),
        [
            "uplink/1/1",
            "uplink/1/2",
            "uplink/2/1",
            "uplink/2/2",
            "uplink/3/1",
            "uplink/3/2"
        ]
    );
    assert_eq!(rate(&fabric, "uplink/3/2"), "2Mbit/s");
    assert_eq!(rate(&fabric, "access/6/reverse"), "1Mbit/s");
    assert_eq!(link_names(&fabric, "h1", "h2"), ["access/1", "access/2/reverse"]);
    let across = link_names(&fabric, "h1", "h4");
    let spine = across[1].strip_prefix("uplink/1/").unwrap();
    assert_eq!(
        across,
        [
            "access/1",
            &format!("uplink/1/{spine}"),
            &format!("uplink/2/{spine}/reverse"),
            "access/4/reverse"
        ]
    );
    let alike = topology(r#"{"kind": "leaf-spine", "access": {"rate": "3Mbit/s"}}"#);
    assert_eq!(rate(&alike, "uplink/2/2"), "3Mbit/s");
}

/// In a fat tree, each host is two, four or six links away, and pairs of hosts use all core switches about equally.
/// Returns the share of the routes between hosts of different leaves over each spine.
fn spine_shares(keys: &str) -> [f64; 2] {
    let topology = topology(&format!(
        r#"{{"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 60, "access": {{}}{keys}}}"#
    ));
    let hosts = || (0..120).map(HostId);
    let mut counts = [0; 2];
    let mut search = topology.search();
    for from in hosts() {
        for to in hosts().filter(|to| (to.0 < 60) != (from.0 < 60)) {
            let way = search.links_between(from, to).unwrap();
            let name = &topology.links()[way[1].0 as usize].name;
            counts[usize::from(name.ends_with('2'))] += 1;
        }
    }
    counts.map(|count| f64::from(count) / 7200.0)
}

#[test]
fn the_shares_of_routes_follow_the_weights() {
    // Three standard errors of a share of 7200 routes.
    let is_near = |share: f64, expected: f64| (share - expected).abs() < 0.018;
    for (keys, expected) in [
        ("", 0.5),
        (r#", "weights": [3, 1]"#, 0.75),
        (r#", "weights": [1, 9]"#, 0.1),
        // One per uplink: the leaves have opposite weights.
        (r#", "weights": [3, 1, 1, 3]"#, 0.5),
    ] {
        let [first, second] = spine_shares(keys);
        assert!(is_near(first, expected), "{keys}: {first} is not {expected}");
        assert!((first + second - 1.0).abs() < 1e-9);
    }
    // Equal weights choose the same routes as none.
    assert_eq!(spine_shares(r#", "weights": [1, 1]"#), spine_shares(""));
}

#[test]
fn weights_of_a_fat_tree_apply_at_each_switch() {
    let over_first = |keys: &str| {
        let topology = topology(&format!(
            r#"{{"kind": "fat-tree", "ports": 8, "link": {{}}{keys}}}"#
        ));
        let mut search = topology.search();
        let mut counts = [0_u32; 4];
        for &(from, to) in topology.pairs() {
            let way = search.links_between(from, to).unwrap();
            let core = topology.links()[way[2].0 as usize]
                .name
                .rsplit('/')
                .next()
                .unwrap();
            counts[core.parse::<usize>().unwrap() - 1] += 1;
        }
        f64::from(counts[0]) / f64::from(counts.iter().sum::<u32>())
    };
    assert!((over_first("") - 0.25).abs() < 0.12);
    assert!(over_first(r#", "weights": [97, 1, 1, 1]"#) > 0.9);
}

#[test]
fn weights_in_a_free_topology_spread_routes() {
    let hosts: Vec<String> = (0..400).map(|number| format!("\"h{number}\"")).collect();
    let access: Vec<String> = (0..400)
        .map(|number| format!(r#"{{"from": "h{number}", "to": "a"}}"#))
        .collect();
    let over_first = |weights: [&str; 2]| {
        let topology = topology(&format!(
            r#"{{"kind": "free", "hosts": [{}, "server"], "routers": ["a", "r1", "r2", "b"], "links": [{},
                {{"from": "a", "to": "r1"{}}}, {{"from": "a", "to": "r2"{}}},
                {{"from": "r1", "to": "b"}}, {{"from": "r2", "to": "b"}}, {{"from": "b", "to": "server"}}]}}"#,
            hosts.join(","),
            access.join(","),
            weights[0],
            weights[1],
        ));
        let mut search = topology.search();
        let server = topology.host("server").unwrap();
        let first = (0..400).filter(|&from| {
            let way = search.links_between(HostId(from), server).unwrap();
            topology.links()[way[1].0 as usize].name == "a-r1"
        });
        first.count() as f64 / 400.0
    };
    assert_eq!(over_first(["", ""]), 1.0);
    let share = over_first([r#", "weight": 3"#, ""]);
    assert!((share - 0.75).abs() < 0.065, "{share}");
}

#[test]
fn pairs_of_a_fat_tree_spread_over_its_core() {
    let tree = topology(r#"{"kind": "fat-tree", "ports": 8, "link": {"rate": "1Mbit/s"}}"#);
    assert_eq!(tree.hosts().len(), 128);
    assert_eq!(tree.links().len(), 2 * 3 * 128);
    assert_eq!(link_names(&tree, "h1", "h2").len(), 2);
    assert_eq!(link_names(&tree, "h1", "h5").len(), 4);
    assert_eq!(link_names(&tree, "h1", "h17").len(), 6);
    let mut used = std::collections::BTreeMap::<u32, u32>::new();
    let mut search = tree.search();
    for from in (0..128).map(HostId) {
        for to in (0..128).map(HostId).filter(|&to| to != from) {
            let route = search.links_between(from, to).unwrap();
            if route.len() == 6 {
                *used.entry(tree.links()[route[2].0 as usize].to.0).or_default() += 1;
            }
        }
    }
    // 128 hosts with 112 peers in other pods, over 16 core switches: 896 pairs per switch, ± a few times the square
    // root.
    assert_eq!(used.len(), 16);
    assert!(
        used.values().all(|&pairs| (746..=1046).contains(&pairs)),
        "{used:?}"
    );
}

#[test]
fn all_leaves_of_a_star_send_to_the_hub() {
    let star = topology(r#"{"kind": "star", "leaves": 3, "leaf": {"rate": "1Mbit/s"}}"#);
    assert_eq!(star.hosts(), ["hub", "h1", "h2", "h3"]);
    assert_eq!(pairs(&star), [("h1", "hub"), ("h2", "hub"), ("h3", "hub")]);
    assert_eq!(link_names(&star, "h3", "hub"), ["leaf/3", "hub"]);
    assert_eq!(link_names(&star, "h3", "h1"), ["leaf/3", "leaf/1/reverse"]);
    // All senders share the hub's access link, which has the keys of `leaf` by default.
    assert_eq!(bottlenecks(&star), ["hub"]);
    assert_eq!(rate(&star, "hub"), "1Mbit/s");
    let uneven = topology(
        r#"{"kind": "star", "leaf": [{"rate": "1Mbit/s"}, {"rate": "2Mbit/s"}], "hub": {"rate": "3Mbit/s"}}"#,
    );
    assert_eq!(rate(&uneven, "leaf/2"), "2Mbit/s");
    assert_eq!(rate(&uneven, "hub"), "3Mbit/s");
}

/// Returns the bottlenecks of data from one host to another.
fn measured(topology: &Topology, from: &str, to: &str) -> Vec<String> {
    let mut topology = topology.clone();
    let host = |name| topology.host(name).unwrap();
    let route = topology.links_between(host(from), host(to)).unwrap();
    topology.measure([route.as_slice()]);
    bottlenecks(&topology).into_iter().map(str::to_owned).collect()
}

#[test]
fn bottlenecks_are_links_that_the_data_crosses() {
    let bell = topology(
        r#"{"kind": "dumbbell", "pairs": 2, "bottleneck": {}, "access": {"rate": "5Mbit/s"}, "exit": {"rate": "1Mbit/s"}}"#,
    );
    assert_eq!(measured(&bell, "s1", "r2"), ["bottleneck"]);
    assert_eq!(measured(&bell, "r2", "s1"), ["bottleneck/reverse"]);
    // The route has no shared link, so its slowest link counts.
    assert_eq!(measured(&bell, "s1", "s2"), ["access/1"]);
    let lot = topology(r#"{"kind": "parking-lot", "hops": 3, "bottleneck": {}}"#);
    assert_eq!(measured(&lot, "s2", "r2"), ["bottleneck/2"]);
    assert_eq!(
        measured(&lot, "r0", "s2"),
        ["bottleneck/2/reverse", "bottleneck/3/reverse"]
    );
    let links = r#""hosts": ["a", "b", "c"], "routers": ["x"], "links": [{"from": "a", "to": "x", "rate": "1Mbit/s"},
        {"from": "x", "to": "b", "rate": "2Mbit/s"}, {"from": "x", "to": "c", "rate": "3Mbit/s"}]"#;
    let free = topology(&format!(r#"{{"kind": "free", {links}}}"#));
    assert_eq!(measured(&free, "a", "c"), ["a-x"]);
    assert_eq!(measured(&free, "c", "b"), ["x-b"]);
    assert_eq!(measured(&free, "b", "a"), ["a-x/reverse"]);
    let named = topology(&format!(r#"{{"kind": "free", {links}, "bottlenecks": ["x-c"]}}"#));
    assert_eq!(measured(&named, "a", "b"), ["x-c"]);
}

#[test]
fn all_leaves_of_a_tree_send_to_the_root() {
    let tree =
        topology(r#"{"kind": "tree", "fan_out": 3, "level": [{"rate": "45Mbit/s"}, {"rate": "10Mbit/s"}]}"#);
    assert_eq!(pairs(&tree).len(), 9);
    assert_eq!(link_names(&tree, "h4", "server"), ["level/2/4", "level/1/2"]);
    assert_eq!(
        link_names(&tree, "server", "h9"),
        ["level/1/3/reverse", "level/2/9/reverse"]
    );
    assert_eq!(link_names(&tree, "h1", "h3"), ["level/2/1", "level/2/3/reverse"]);
    assert_eq!(rate(&tree, "level/1/3"), "45Mbit/s");
    assert_eq!(bottlenecks(&tree), ["level/1/1", "level/1/2", "level/1/3"]);
    let deep = topology(r#"{"kind": "tree", "depth": 5, "level": {}}"#);
    assert_eq!(pairs(&deep).len(), 32);
}

#[test]
fn a_free_topology_has_the_listed_nodes_and_links() {
    let free = topology(
        r#"{"kind": "free", "hosts": ["a", "b", "c"], "routers": ["x", "y"],
            "links": [{"from": "a", "to": "x", "rate": "9Mbit/s"}, {"from": "x", "to": "y", "rate": "5Mbit/s", "reverse": {"rate": "7Mbit/s"}},
                      {"from": "b", "to": "x"}, {"from": "y", "to": "c", "name": "last"}],
            "pairs": [["a", "c"], ["c", "b"]]}"#,
    );
    assert_eq!(link_names(&free, "a", "c"), ["a-x", "x-y", "last"]);
    assert_eq!(
        link_names(&free, "c", "b"),
        ["last/reverse", "x-y/reverse", "b-x/reverse"]
    );
    // The slowest link on the route of each pair.
    assert_eq!(bottlenecks(&free), ["x-y", "x-y/reverse"]);
    assert_eq!(free.nodes().collect::<Vec<_>>(), ["a", "b", "c", "x", "y"]);
    let named = topology(
        r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b", "preset": "lte"}], "bottlenecks": ["a-b/reverse"]}"#,
    );
    assert_eq!(pairs(&named), [("a", "b")]);
    assert_eq!(bottlenecks(&named), ["a-b/reverse"]);
    assert_eq!(rate(&named, "a-b/reverse"), "6Mbit/s");
}

#[test]
fn routes_have_the_fewest_links_and_ties_follow_declaration_order() {
    let diamond = |first: &str, second: &str| {
        topology(&format!(
            r#"{{"kind": "free", "hosts": ["a", "b", "c"], "routers": ["x", "y", "z"], "links": [
                {{"from": "a", "to": "{first}"}}, {{"from": "a", "to": "{second}"}}, {{"from": "x", "to": "b"}},
                {{"from": "y", "to": "b"}}, {{"from": "a", "to": "z"}}, {{"from": "a", "to": "c"}}, {{"from": "c", "to": "b"}}]}}"#
        ))
    };
    assert_eq!(link_names(&diamond("x", "y"), "a", "b"), ["a-x", "x-b"]);
    assert_eq!(link_names(&diamond("y", "x"), "a", "b"), ["a-y", "y-b"]);
    assert_eq!(
        link_names(&diamond("y", "x"), "b", "a"),
        ["x-b/reverse", "a-x/reverse"]
    );
}

/// Hosts do not forward packets, even if the route through them were shorter.
#[test]
fn routes_do_not_pass_through_hosts() {
    let free = topology(
        r#"{"kind": "free", "hosts": ["a", "b", "c"], "routers": ["x", "y"], "links": [{"from": "a", "to": "c"}, {"from": "c", "to": "b"},
            {"from": "a", "to": "x"}, {"from": "x", "to": "y"}, {"from": "y", "to": "b"}], "pairs": [["a", "b"]]}"#,
    );
    assert_eq!(link_names(&free, "a", "b"), ["a-x", "x-y", "y-b"]);
    assert_eq!(link_names(&free, "a", "c"), ["a-c"]);
}

#[test]
fn mistakes_are_problems_of_their_key() {
    for (json, key, words) in [
        (r#"{"kind": "dumbbell", "pairs": 2}"#, "bottleneck", "missing"),
        (r#"{"kind": "dumbbell", "bottleneck": {}}"#, "pairs", "missing"),
        (
            r#"{"kind": "dumbbell", "bottleneck": {}, "pairs": 0}"#,
            "pairs",
            "1 to 10000",
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {}, "pairs": 10001}"#,
            "pairs",
            "1 to 10000",
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {}, "pairs": 3, "receivers": 4}"#,
            "receivers",
            "1 to 3",
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {}, "pairs": 3, "access": [{}, {}]}"#,
            "access",
            "2 links, but 3",
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {"mtu": "1B"}, "pairs": 3}"#,
            "bottleneck.mtu",
            "68B",
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {}, "access": [{}, {"delay": "61min"}]}"#,
            "access[1].delay",
            "\"3600s\"",
        ),
        (
            r#"{"kind": "parking-lot", "hops": 251, "bottleneck": {}}"#,
            "hops",
            "1 to 250",
        ),
        (r#"{"kind": "star", "leaves": 2}"#, "leaf", "missing"),
        (r#"{"kind": "leaf-spine"}"#, "access", "missing"),
        (
            r#"{"kind": "leaf-spine", "access": {}, "weights": [3, 0]}"#,
            "weights",
            "0 is out of range: 1 to 65535",
        ),
        (
            r#"{"kind": "leaf-spine", "access": {}, "weights": [3, 1, 1]}"#,
            "weights",
            "the list has 3 numbers, but 2 (one per spine) or 4 (one per uplink) are required",
        ),
        (
            r#"{"kind": "fat-tree", "link": {}, "weights": [1]}"#,
            "weights",
            "the list has 1 numbers, but 2 are required",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b", "weight": 70000}]}"#,
            "links[0].weight",
            "70000 is out of range: 1 to 65535",
        ),
        (
            r#"{"kind": "leaf-spine", "leaves": 1, "hosts": 1, "access": {}}"#,
            "hosts",
            "at least 2",
        ),
        (
            r#"{"kind": "leaf-spine", "leaves": 1000, "spines": 101, "access": {}}"#,
            "spines",
            "exceed 100000",
        ),
        (
            r#"{"kind": "leaf-spine", "leaves": 100, "hosts": 101, "access": {}}"#,
            "hosts",
            "exceed 10000",
        ),
        (
            r#"{"kind": "leaf-spine", "leaves": 1, "access": [{}, {}]}"#,
            "uplink",
            "required if access is a list",
        ),
        (r#"{"kind": "fat-tree"}"#, "link", "missing"),
        (
            r#"{"kind": "fat-tree", "ports": 5, "link": {}}"#,
            "ports",
            "an even number from 2 to 32",
        ),
        (r#"{"kind": "star", "leaf": {}}"#, "leaves", "missing"),
        (r#"{"kind": "star", "leaf": [{}, {}]}"#, "hub", "missing"),
        (
            r#"{"kind": "tree", "fan_out": 10, "depth": 5, "level": {}}"#,
            "depth",
            "10000 leaves",
        ),
        (
            r#"{"kind": "tree", "fan_out": 1, "depth": 101, "level": {}}"#,
            "depth",
            "1 to 100",
        ),
        (r#"{"kind": "free", "hosts": ["a", "b"]}"#, "links", "missing"),
        (r#"{"kind": "free", "hosts": ["a"], "links": []}"#, "hosts", "two"),
        (
            r#"{"kind": "free", "hosts": ["a", "b", "a"], "links": []}"#,
            "hosts",
            "are named \"a\"",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": []}"#,
            "pairs",
            "no path from \"a\" to \"b\"",
        ),
        (
            r#"{"kind": "free", "hosts": ["alice", "bob"], "links": [{"from": "alice", "to": "bpb"}]}"#,
            "links[0].to",
            "did you mean \"bob\"?",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "a"}]}"#,
            "links[0]",
            "the same",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"to": "a"}]}"#,
            "links[0].from",
            "missing",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b"}, {"from": "a", "to": "b"}]}"#,
            "links[1].name",
            "\"a-b\"",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b", "queue": "0B"}]}"#,
            "links[0].queue",
            "1pkt",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b"}], "pairs": [["a", "c"]]}"#,
            "pairs",
            "no host \"c\"",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b"}], "pairs": [["a", "a"]]}"#,
            "pairs",
            "both sender and receiver",
        ),
        (
            r#"{"kind": "free", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b"}], "bottlenecks": ["a-c"]}"#,
            "bottlenecks",
            "did you mean \"a-b\"?",
        ),
    ] {
        let found: Vec<String> = read(json).validate().iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{json}: {found:?}");
        assert!(found[0].starts_with(&format!("{key}: ")), "{json}: {found:?}");
        assert!(found[0].contains(words), "{json}: {found:?}");
    }
    let long: Vec<String> = (0..300)
        .map(|i| format!(r#"{{"from": "n{i}", "to": "n{}"}}"#, i + 1))
        .collect();
    let routers: Vec<String> = (1..300).map(|i| format!("\"n{i}\"")).collect();
    let json = format!(
        r#"{{"kind": "free", "hosts": ["n0", "n300"], "routers": [{}], "links": [{}]}}"#,
        routers.join(","),
        long.join(",")
    );
    assert!(
        read(&json).validate()[0]
            .to_string()
            .contains("300 links: at most 255")
    );
}

#[test]
fn errors_list_the_allowed_forms() {
    for (json, words) in [
        (
            r#"{"kind": "dumbell"}"#,
            &[
                "kind: \"dumbell\"",
                "did you mean \"dumbbell\"?",
                "multipath, loopback, free",
            ][..],
        ),
        (
            r#"{"kind": "dumbbell", "bottelneck": {}}"#,
            &["bottelneck: unknown key: did you mean \"bottleneck\"?"],
        ),
        (
            r#"{"kind": "dumbbell", "pairs": 3, "hops": 2}"#,
            &[
                "hops: unknown key: ",
                "allowed: pairs, receivers, bottleneck, access, exit",
            ],
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": "10Mbit/s"}"#,
            &["rate = \"1Mbit/s\"", "a list"],
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {"dealy": "1ms"}}"#,
            &["dealy: unknown key: did you mean \"delay\"?"],
        ),
        (
            r#"{"kind": "dumbbell", "access": [{"dealy": "1ms"}]}"#,
            &["dealy: unknown key: did you mean \"delay\"?"],
        ),
        (
            r#"{"kind": "dumbbell", "pairs": "2"}"#,
            &["pairs: ", "must be a whole number"],
        ),
        (
            r#"{"kind": "dumbbell", "pairs": [["a", "b"]]}"#,
            &["pairs: ", "must be a whole number"],
        ),
        (
            r#"{"kind": "free", "links": [{"form": "a"}]}"#,
            &["links[0].form: unknown key: did you mean \"from\"?"],
        ),
    ] {
        let message = serde_json::from_str::<TopologyConfig>(json)
            .unwrap_err()
            .to_string();
        for word in words {
            assert!(message.contains(word), "{json}: {word} is missing in {message}");
        }
    }
}

#[test]
fn configurations_round_trip() {
    for json in [
        r#"{"kind":"dumbbell","pairs":3,"bottleneck":{"reverse":{"delay":"1ms"},"rate":"1Mbit/s"},"access":[{},{},{"preset":"lte"}]}"#,
        r#"{"kind":"free","hosts":["a","b"],"links":[{"from":"a","to":"b","rate":"1Mbit/s"}],"pairs":[["a","b"]]}"#,
    ] {
        assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
    }
    assert_eq!(TopologyConfig::Star(Star::default()), read(r#"{"kind": "star"}"#));
}

#[test]
fn the_schema_describes_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(TopologyConfig)).unwrap();
    let kinds = schema["oneOf"].as_array().unwrap();
    assert_eq!(kinds.len(), TopologyConfig::KINDS.len());
    for kind in kinds {
        for (key, property) in kind["properties"].as_object().unwrap() {
            assert!(
                key == "kind" || property["description"].is_string(),
                "{kind}: {key}"
            );
        }
    }
}

/// Names of links determine losses, so paths and chains of paths must keep theirs.
#[test]
fn chains_name_their_links() {
    let spec = common::path(r#"{"rate": "1Mbit/s", "delay": "3ms"}"#);
    let path = Topology::path(&spec);
    assert_eq!(path.hosts(), ["sender", "receiver"]);
    assert_eq!(link_names(&path, "sender", "receiver"), ["forward"]);
    assert_eq!(link_names(&path, "receiver", "sender"), ["reverse"]);
    assert_eq!(bottlenecks(&path), ["forward"]);
    let chain = Topology::chain(&[spec.clone(), PathSpec::default(), spec]);
    let names: Vec<&str> = chain.links().iter().map(|link| link.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "forward/1",
            "reverse/1",
            "forward/2",
            "reverse/2",
            "forward/3",
            "reverse/3"
        ]
    );
    assert_eq!(
        link_names(&chain, "receiver", "sender"),
        ["reverse/3", "reverse/2", "reverse/1"]
    );
}

#[test]
fn a_packet_takes_the_delays_of_its_route() {
    let lot = topology(
        r#"{"kind": "parking-lot", "hops": 3, "bottleneck": {"delay": "5ms"}, "access": {"delay": "1ms"}, "exit": {"delay": "2ms"}}"#,
    );
    let mut builder = lot.builder(Streams::new(1, 0));
    let routes: Vec<_> = lot
        .pairs()
        .iter()
        .map(|&(from, to)| builder.route(&lot.links_between(from, to).unwrap(), to))
        .collect();
    let mut network: Network<common::Mark> = builder.build();
    let arrivals = drive(
        &mut network,
        routes
            .iter()
            .map(|&route| (0, Packet::new(route, 100, mark(u64::from(route.0))))),
    );
    let seen: Vec<(u64, u64)> = arrivals
        .iter()
        .map(|arrival| (arrival.packet.body.number, arrival.at))
        .collect();
    let millis = |millis| Duration::from_millis(millis).as_nanos();
    assert_eq!(
        seen,
        [(1, millis(8)), (2, millis(8)), (3, millis(8)), (0, millis(18))]
    );
    assert_eq!(arrivals[3].host, lot.host("r0").unwrap());
}

/// Building thousands of hosts is fast, because lookups of names and routes are not linear.
#[test]
fn large_topologies_are_built() {
    let bell = topology(
        r#"{"kind": "dumbbell", "pairs": 2000, "bottleneck": {}, "access": {"delay": "1ms"}, "exit": {"delay": "1ms"}}"#,
    );
    let mut builder = bell.builder(Streams::new(1, 0));
    for &(from, to) in bell.pairs() {
        builder.route(&bell.links_between(from, to).unwrap(), to);
    }
    let network: Network<common::Mark> = builder.build();
    assert_eq!(network.links().count(), 8002);
    assert_eq!(
        link_names(&bell, "s2000", "r2000"),
        ["access/2000", "bottleneck", "exit/2000"]
    );
}

#[test]
fn ways_between_two_hosts_are_link_disjoint() {
    let topology = topology(
        r#"{"kind": "free", "hosts": ["a", "b"], "routers": ["x", "y", "z"], "links": [
            {"from": "a", "to": "x", "rate": "1Mbit/s"}, {"from": "x", "to": "b", "rate": "1Mbit/s"},
            {"from": "a", "to": "y", "rate": "1Mbit/s"}, {"from": "y", "to": "z", "rate": "1Mbit/s"},
            {"from": "z", "to": "b", "rate": "1Mbit/s"}, {"from": "x", "to": "z", "rate": "1Mbit/s"}]}"#,
    );
    let (a, b) = (topology.host("a").unwrap(), topology.host("b").unwrap());
    for (from, to) in [(a, b), (b, a)] {
        let ways = topology.ways(from, to);
        assert_eq!(ways[0], topology.links_between(from, to).unwrap());
        assert_eq!(ways.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3]);
        let mut links: Vec<_> = ways.concat();
        links.sort_unstable();
        links.dedup();
        assert_eq!(links.len(), 5);
    }
    assert_eq!(topology.ways(a, a), [Vec::new()]);
}

#[test]
fn routers_are_reachable_in_both_directions() {
    let lot = topology(
        r#"{"kind": "free", "hosts": ["a", "b"], "routers": ["x", "y"], "links": [
            {"from": "a", "to": "x"}, {"from": "x", "to": "y", "name": "one"},
            {"from": "x", "to": "y", "name": "two"}, {"from": "y", "to": "b"}]}"#,
    );
    let routers: Vec<_> = lot.routers().collect();
    let names: Vec<&str> = lot.nodes().collect();
    assert_eq!(
        routers
            .iter()
            .map(|node| names[node.0 as usize])
            .collect::<Vec<_>>(),
        ["x", "y"]
    );
    let link = |name: &str| lot.link(name).unwrap();
    let host = |name: &str| lot.host(name).unwrap();
    assert_eq!(
        lot.links_to(host("a"), routers[1]),
        Some(vec![link("a-x"), link("one")])
    );
    assert_eq!(
        lot.links_to(host("b"), routers[1]),
        Some(vec![link("y-b/reverse")])
    );
    for name in ["a-x", "one", "two", "y-b"] {
        let reverse = format!("{name}/reverse");
        assert_eq!(lot.reverse_of(link(name)), Some(link(&reverse)));
        assert_eq!(lot.reverse_of(link(&reverse)), Some(link(name)));
    }
}

#[test]
fn routes_can_be_added_to_a_running_network() {
    let spec = common::path(r#"{"delay": "1ms"}"#);
    let chain = Topology::chain(&[spec.clone(), spec]);
    let mut builder = chain.builder(Streams::new(1, 0));
    let middle = builder.host();
    let whole = builder.route(&chain.links_between(HostId(0), HostId(1)).unwrap(), HostId(1));
    let mut network: Network<Vec<u8>> = builder.build();
    network.send(Instant::ZERO, Packet::new(whole, 100, vec![1]));
    let half = network.add_route(&[chain.link("forward/1").unwrap()], middle);
    network.send(Instant::ZERO, Packet::new(half, 100, vec![2]));
    network.handle_timeout(Instant::from_nanos(1_000_000));
    let (end, packet) = network.poll_delivery().unwrap();
    assert_eq!((end, packet.body, packet.hop), (middle, vec![2], 1));
    assert_eq!(network.poll_delivery(), None);
    network.handle_timeout(Instant::from_nanos(2_000_000));
    assert_eq!(network.poll_delivery().unwrap().0, HostId(1));
}
