//! Workloads of several hosts: barriers between requests, loads, and patterns of pairs.

use experiment::TrialSpec;
use experiment::outcome::FlowOutcome;
use foundation::{Duration, Instant};
use serde_json::{Value, json};
use simulation::trial::run_watched;

/// Three servers around a client, at 1, 5 and 20 ms.
fn star() -> Value {
    let link = |name: &str, delay: &str| json!({"from": name, "to": "client", "rate": "100Mbit/s", "delay": delay, "queue": "100pkt"});
    json!({"kind": "free", "hosts": ["client", "s1", "s2", "s3"],
        "links": [link("s1", "1ms"), link("s2", "5ms"), link("s3", "20ms")]})
}

fn outcomes(
    topology: &Value,
    protocol: &Value,
    workload: &Value,
) -> (experiment::TrialRecord, Vec<FlowOutcome>) {
    let spec = json!({"topology": topology, "protocol": protocol, "workload": workload, "seed": 5});
    let spec = TrialSpec::from_json(&spec.to_string()).unwrap();
    let (record, world) = run_watched(&spec, None, (), None).unwrap();
    (record, world.outcomes().to_vec())
}

#[test]
fn requests_wait_for_the_slowest_response() {
    for protocol in [
        json!({"kind": "tcp"}),
        json!({"kind": "selective-repeat"}),
        json!({"kind": "mptcp"}),
    ] {
        let workload = json!({"kind": "request-response", "requests": 4, "response_size": "20kB", "think": "3ms",
            "from": "client", "to": "s*", "barrier": true});
        let (record, flows) = outcomes(&star(), &protocol, &workload);
        assert_eq!(flows.len(), 3);
        let mut expected = None;
        let mut rounds = Vec::new();
        for round in 0..4 {
            let requests = flows.iter().map(|flow| flow.transactions[round].requested_at);
            if let Some(expected) = expected {
                assert!(
                    requests.clone().all(|at| at == expected),
                    "{protocol}, round {round}"
                );
            }
            let last = flows
                .iter()
                .map(|flow| flow.transactions[round].responded_at)
                .max()
                .unwrap();
            rounds.push((last - requests.min().unwrap()).as_secs_f64());
            expected = Some(last + Duration::from_millis(3));
        }
        assert!(
            rounds.iter().all(|&round| round >= 0.04),
            "the round trip of the slowest is 40 ms"
        );
        let mean = record.metrics.as_ref().unwrap()["round_mean_s"].unwrap();
        assert!((mean - rounds.iter().sum::<f64>() / 4.0).abs() < 1e-9);
    }
}

#[test]
fn a_round_with_a_timeout_counts_once() {
    // The third packet of the first server is its second response: its loss ends in a timeout, since nothing follows it.
    for (lost, expected) in [(None, 0.0), (Some(json!([3])), 0.25), (Some(json!([3, 6])), 0.5)] {
        let mut topology = star();
        if let Some(packets) = lost {
            topology["links"][0]["loss"] = json!({"kind": "packets", "packets": packets});
            topology["links"][0]["reverse"] = json!({"loss": "0%"});
        }
        let protocol = json!({"kind": "tcp", "profile": "rfc", "min_rto": "300ms"});
        let workload = json!({"kind": "request-response", "requests": 4, "response_size": "1kB",
            "from": "client", "to": "s*", "barrier": true});
        let (record, _) = outcomes(&topology, &protocol, &workload);
        let metric = |name: &str| record.metrics.as_ref().unwrap()[name];
        // The response carried the ACK of the request, so that both ends time out.
        assert_eq!(metric("timeouts"), Some(2.0 * 4.0 * expected));
        assert_eq!(metric("round_timeout_share"), Some(expected));
    }
}

#[test]
fn without_a_barrier_flows_are_independent() {
    let workload = json!({"kind": "request-response", "requests": 4, "response_size": "20kB", "from": "client", "to": "s*"});
    let (record, flows) = outcomes(&star(), &json!({"kind": "tcp"}), &workload);
    let second = flows.iter().map(|flow| flow.transactions[1].requested_at);
    assert!(second.clone().min().unwrap() + Duration::from_millis(20) < second.max().unwrap());
    assert_eq!(record.metrics.as_ref().unwrap()["round_mean_s"], None);
}

#[test]
fn a_load_determines_the_rate_of_arrivals() {
    // All of the three pairs share the last link.
    let topology = json!({"kind": "dumbbell", "pairs": 3, "bottleneck": {"rate": "50Mbit/s", "delay": "1ms", "queue": "1000pkt"},
        "access": {"rate": "1Gbit/s", "delay": "1ms"}});
    let workload =
        json!({"kind": "arrivals", "size": "50kB", "sizes": "exponential", "load": "60%", "duration": "60s"});
    let (_, flows) = outcomes(&topology, &json!({"kind": "tcp"}), &workload);
    let offered: u64 = flows.iter().map(|flow| flow.size.unwrap()).sum();
    let load = offered as f64 * 8.0 / 50e6 / 60.0;
    // 4,500 flows of exponential size: a standard deviation of 2 %.
    assert!((load - 0.6).abs() < 0.04, "{load}");
    assert!(
        flows
            .iter()
            .all(|flow| flow.opened_at < Instant::ZERO + Duration::from_secs(60))
    );
}

#[test]
fn a_load_counts_the_most_loaded_link() {
    // Two of the three senders share a link of 20 Mbit/s: they have two thirds of the flows.
    let links = [("s1", "r"), ("s2", "r"), ("s3", "d"), ("r", "d")];
    let links = links.map(|(from, to)| {
        let rate = if from == "r" { "20Mbit/s" } else { "100Mbit/s" };
        json!({"from": from, "to": to, "rate": rate, "delay": "1ms", "queue": "1000pkt"})
    });
    let topology =
        json!({"kind": "free", "hosts": ["s1", "s2", "s3", "d"], "routers": ["r"], "links": links});
    let workload = json!({"kind": "arrivals", "size": "50kB", "load": "50%", "duration": "60s", "from": "s*", "to": "d"});
    let (_, flows) = outcomes(&topology, &json!({"kind": "tcp"}), &workload);
    let expected = 0.5 * 20e6 / (2.0 / 3.0) / (8.0 * 50_000.0) * 60.0;
    assert!(
        (flows.len() as f64 / expected - 1.0).abs() < 0.08,
        "{} of {expected}",
        flows.len()
    );
}

#[test]
fn patterns_are_drawn_in_each_trial() {
    let receivers = |trial: u64| -> Vec<u32> {
        let spec = json!({"topology": {"kind": "dumbbell", "pairs": 8, "bottleneck": {"rate": "1Gbit/s"}},
            "protocol": {"kind": "tcp"}, "workload": {"kind": "file", "size": "1kB", "from": "s*", "to": "r*", "pattern": "permutation"},
            "seed": 5, "trial": trial});
        let spec = TrialSpec::from_json(&spec.to_string()).unwrap();
        let plan = experiment::plan::Plan::of(&spec).unwrap();
        plan.groups[0].pairs.iter().map(|pair| pair.to.0).collect()
    };
    assert_eq!(receivers(0), receivers(0));
    assert_ne!(receivers(0), receivers(1));
    let mut sorted = receivers(0);
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 8);
}
