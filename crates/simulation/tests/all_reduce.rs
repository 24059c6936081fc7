//! All-reduces: their times are those of the closed forms.

use experiment::{TrialRecord, TrialSpec};
use serde_json::{Value, json};
use simulation::run;

/// Bytes of a full packet of TCP with timestamps, and its payload.
const PACKET: f64 = 1500.0;
const PAYLOAD: u64 = 1448;
/// Bytes of an ACK with timestamps.
const ACK: f64 = 52.0;
const RATE: f64 = 1e9;
/// Delay of each link in s.
const DELAY: f64 = 20e-6;

/// Hosts around a switch.
fn record(hosts: u32, workload: &Value) -> TrialRecord {
    let names: Vec<String> = (1..=hosts).map(|host| format!("g{host}")).collect();
    let link = |name: &String| json!({"from": name, "to": "switch", "rate": "1Gbit/s", "delay": "20us"});
    let links: Vec<Value> = names.iter().map(link).collect();
    let spec = json!({"topology": {"kind": "free", "hosts": names, "routers": ["switch"], "links": links},
        "protocol": {"kind": "tcp", "slow_start_after_idle": false}, "workload": workload, "seed": 1});
    let spec = TrialSpec::from_json(&spec.to_string()).unwrap();
    let record = run(&spec, None).unwrap();
    assert_eq!(record.error, None, "{workload}");
    record
}

fn round(record: &TrialRecord) -> f64 {
    record.metrics.as_ref().unwrap()["round_mean_s"].unwrap()
}

/// Returns the time of a step: `packets` packets over two links, each of which forwards whole packets.
fn step(packets: u64) -> f64 {
    (packets + 1) as f64 * PACKET * 8.0 / RATE + 2.0 * DELAY
}

/// In each step, ACKs of the peer's packets precede the own ones on a link.
fn assert_time(found: f64, expected: f64, acks: u64) {
    let most = expected + acks as f64 * ACK * 8.0 / RATE;
    assert!(
        expected - 1e-9 <= found && found <= most,
        "{found} s, not {expected} to {most} s"
    );
}

/// 2(n-1) steps, each with an n-th of the vector, of at most the initial window.
#[test]
fn a_ring_takes_two_n_minus_two_steps() {
    for (hosts, packets) in [(2, 8), (4, 1), (4, 8), (8, 6)] {
        let size = u64::from(hosts) * packets * PAYLOAD;
        let workload = json!({"kind": "all-reduce", "size": format!("{size}B"), "rounds": 5, "think": "1ms"});
        let found = record(hosts, &workload);
        let steps = 2 * u64::from(hosts - 1);
        assert_time(round(&found), steps as f64 * step(packets), steps * 2 * packets);
        assert_eq!(found.flows.len(), hosts as usize);
        // Each host sends 2(n-1)/n of the vector in each round.
        let bytes = 5 * steps * packets * PAYLOAD;
        assert!(found.flows.iter().all(|flow| flow.size_bytes == Some(bytes)));
    }
}

/// The vector takes 2(n-1)/n of its transmission time, with headers, if it is large.
#[test]
fn a_large_vector_takes_its_share_of_the_rate() {
    let workload = json!({"kind": "all-reduce", "size": "40MB", "rounds": 2});
    let expected = 2.0 * 3.0 / 4.0 * 40e6 * 8.0 / RATE * PACKET / PAYLOAD as f64;
    let found = round(&record(4, &workload));
    // An ACK for every second packet shares the link, and six times a latency and the start of TCP come on top.
    let acks = 1.0 + ACK / (2.0 * PACKET);
    assert!(
        (expected..expected * acks * 1.01).contains(&found),
        "{found} s, not {expected} s"
    );
}

#[test]
fn halving_doubling_takes_two_steps_per_bit() {
    let size = 8 * PAYLOAD;
    let workload = json!({"kind": "all-reduce", "algorithm": "halving-doubling", "size": format!("{size}B"), "rounds": 5});
    let found = round(&record(8, &workload));
    let expected = 2.0 * (step(4) + step(2) + step(1));
    assert_time(found, expected, 2 * 2 * 7);
}

#[test]
fn every_connection_protocol_carries_it() {
    let links = json!([{"from": "g1", "to": "s", "rate": "1Gbit/s", "delay": "20us"}, {"from": "g2", "to": "s", "rate": "1Gbit/s", "delay": "20us"},
        {"from": "g3", "to": "s", "rate": "1Gbit/s", "delay": "20us", "loss": "1%"}]);
    for protocol in ["tcp", "mptcp", "selective-repeat"] {
        let spec = json!({"topology": {"kind": "free", "hosts": ["g1", "g2", "g3"], "routers": ["s"], "links": links},
            "protocol": {"kind": protocol}, "workload": {"kind": "all-reduce", "size": "300kB", "rounds": 20}, "seed": 1,
            "traffic": [{"name": "other", "protocol": {"kind": "tcp"}, "workload": {"kind": "all-reduce", "size": "3kB", "from": ["g2", "g1"]}}]});
        let record = run(&TrialSpec::from_json(&spec.to_string()).unwrap(), None).unwrap();
        assert_eq!(record.error, None, "{protocol}");
        let metrics = record.metrics.as_ref().unwrap();
        assert!(
            round(&record) > 2.0 * 2.0 / 3.0 * 300e3 * 8.0 / RATE,
            "{protocol}"
        );
        let share = metrics["round_timeout_share"].unwrap();
        assert!(
            (0.0..1.0).contains(&share) && metrics["retransmissions"].unwrap() > 0.0,
            "{protocol}: {share}"
        );
    }
}

#[test]
fn mistakes_are_one_line() {
    let refused = |hosts: u32, workload: Value| {
        let names: Vec<String> = (1..=hosts).map(|host| format!("g{host}")).collect();
        let links: Vec<Value> = names
            .iter()
            .map(|name| json!({"from": name, "to": "s", "delay": "1ms"}))
            .collect();
        let spec = json!({"topology": {"kind": "free", "hosts": names, "routers": ["s"], "links": links},
            "protocol": {"kind": "tcp"}, "workload": workload, "seed": 1});
        let spec = match TrialSpec::from_json(&spec.to_string()) {
            Ok(spec) => spec,
            Err(error) => return error.to_string(),
        };
        run(&spec, None).map_or_else(|error| error.to_string(), |_| String::new())
    };
    for (workload, message) in [
        (json!({"kind": "all-reduce"}), "workload.size: the key is missing"),
        (
            json!({"kind": "all-reduce", "size": "2B"}),
            "workload.size: \"2B\" is out of range: at least one byte for each of 3 hosts",
        ),
        (
            json!({"kind": "all-reduce", "size": "1MB", "from": "g1"}),
            "workload.from: an all-reduce requires at least 2 hosts",
        ),
        (
            json!({"kind": "all-reduce", "size": "1MB", "algorithm": "halving-doubling"}),
            "workload.from: \"halving-doubling\" requires 2, 4, 8, … hosts, not 3",
        ),
        (
            json!({"kind": "all-reduce", "size": "1MB", "think": "1ms"}),
            "workload.think: requires rounds",
        ),
    ] {
        let found = refused(3, workload);
        assert!(found.contains(message), "{found}");
    }
}
