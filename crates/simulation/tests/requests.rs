//! Requests and responses of one datagram each: times are exact, and nothing is retransmitted.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

fn record(path: &str, protocol: &str, workload: &str) -> TrialRecord {
    record_within(path, protocol, "", workload)
}

/// Returns the record with further keys of the protocol.
fn record_within(path: &str, protocol: &str, keys: &str, workload: &str) -> TrialRecord {
    let json = format!(
        r#"{{"path": {{"rate": "10Mbit/s", "delay": "5ms"{path}}}, "protocol": {{"kind": "{protocol}"{keys}}},
            "workload": {{"kind": "request-response"{workload}}}, "seed": 7}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let record = run(&spec, None).unwrap();
    assert_eq!(record.error, None, "{json}");
    record
}

fn figure(record: &TrialRecord, name: &str) -> f64 {
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

fn sizes(request: u32, response: u32, requests: u32) -> String {
    format!(r#", "request_size": "{request}B", "response_size": "{response}B", "requests": {requests}"#)
}

/// Returns the transmission time in s at 10 Mbit/s.
fn sending(bytes: u32) -> f64 {
    f64::from(bytes) * 8.0 / 10e6
}

fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-8, "{found}, not {expected}");
}

#[test]
fn a_request_takes_a_round_trip_and_transmission_times() {
    for protocol in ["udp", "icmp"] {
        for reconnect in [", \"reconnect\": true", ""] {
            let all = record("", protocol, &(sizes(300, 300, 20) + reconnect));
            // The headers of IPv4 and of UDP or ICMP are 28 bytes.
            for name in ["fct_min_s", "fct_mean_s", "fct_p99_s"] {
                is_near(figure(&all, name), 0.010 + 2.0 * sending(328));
            }
            is_near(figure(&all, "packets_per_request"), 2.0);
            is_near(figure(&all, "requests_unanswered"), 0.0);
            is_near(figure(&all, "flows_unfinished"), 0.0);
            assert_eq!(all.metrics.as_ref().unwrap()["wire_p50_s"], None);
        }
    }
    let uneven = record("", "udp", &sizes(100, 1000, 3));
    is_near(figure(&uneven, "fct_p50_s"), 0.010 + sending(128) + sending(1028));
}

#[test]
fn datagrams_above_the_mtu_are_fragmented() {
    let mtu = r#", "mtu": "1536B""#;
    let whole = record(mtu, "udp", &sizes(1508, 1508, 5));
    is_near(figure(&whole, "packets_per_request"), 2.0);
    is_near(figure(&whole, "fct_p50_s"), 0.010 + 2.0 * sending(1536));
    let split = record(mtu, "icmp", &sizes(1509, 1509, 5));
    is_near(figure(&split, "packets_per_request"), 4.0);
    // The 1517 bytes of IP payload are split into 1512 and 5, each with a header of 20.
    is_near(figure(&split, "fct_p50_s"), 0.010 + 2.0 * sending(1532 + 25));
    // The default MTU is that of Ethernet.
    is_near(
        figure(&record("", "udp", &sizes(1472, 1472, 2)), "packets_per_request"),
        2.0,
    );
    is_near(
        figure(&record("", "udp", &sizes(1473, 1473, 2)), "packets_per_request"),
        4.0,
    );
}

#[test]
fn lost_requests_are_counted_and_not_retransmitted() {
    let lossy = record(r#", "loss": "20%""#, "udp", &sizes(100, 100, 500));
    let (lost, answered) = (
        figure(&lossy, "requests_unanswered"),
        figure(&lossy, "flows_completed"),
    );
    is_near(lost + answered, 500.0);
    // Request or response is lost with 36 %, ± four standard deviations.
    assert!(
        (0.36 - lost / 500.0).abs() < 4.0 * (0.36_f64 * 0.64 / 500.0).sqrt(),
        "{lost}"
    );
    // Unanswered requests are slower than all others: the median is known, the 95th percentile is not.
    is_near(figure(&lossy, "fct_p50_s"), 0.010 + 2.0 * sending(128));
    for name in ["fct_mean_s", "fct_p95_s", "fct_p99_s", "rtt_mean_s", "rtt_p99_s"] {
        assert_eq!(lossy.metrics.as_ref().unwrap()[name], None, "{name}");
    }
}

#[test]
fn a_late_response_does_not_answer_the_next_request() {
    // A round trip of 3 s exceeds the timeout of a request.
    let late = record(
        r#", "reverse": {"delay": "3s"}"#,
        "icmp",
        &(sizes(100, 100, 4) + r#", "think": "500ms""#),
    );
    is_near(figure(&late, "requests_unanswered"), 4.0);
    is_near(figure(&late, "flows_completed"), 0.0);
}

#[test]
fn response_timeout_is_a_key() {
    for (protocol, timeout, answered) in [("udp", "3.1s", 4.0), ("icmp", "3.1s", 4.0), ("udp", "2.9s", 0.0)] {
        let keys = format!(r#", "response_timeout": "{timeout}""#);
        let slow = r#", "reverse": {"delay": "3s"}"#;
        let found = record_within(slow, protocol, &keys, &sizes(100, 100, 4));
        is_near(figure(&found, "flows_completed"), answered);
        is_near(figure(&found, "requests_unanswered"), 4.0 - answered);
    }
}

#[test]
fn duplicates_are_not_counted_twice() {
    let twice = record(r#", "duplicate": "100%""#, "udp", &sizes(100, 100, 50));
    is_near(figure(&twice, "flows_completed"), 50.0);
    is_near(figure(&twice, "requests_unanswered"), 0.0);
    // Every request arrives twice and is answered twice.
    is_near(figure(&twice, "packets_per_request"), 3.0);
}

#[test]
fn oversized_datagrams_are_refused() {
    let wrong = |protocol: &str, workload: &str, message: &str| {
        let json = format!(r#"{{"protocol": {protocol}, "workload": {workload}, "seed": 1}}"#);
        let error = TrialSpec::from_json(&json).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    let exchange = |request: &str, response: &str| {
        format!(
            r#"{{"kind": "request-response", "request_size": "{request}", "response_size": "{response}"}}"#
        )
    };
    wrong(r#"{"kind": "udp"}"#, &exchange("65508B", "1B"), "at most 65507B");
    wrong(
        r#"{"kind": "icmp"}"#,
        &exchange("64B", "65B"),
        "icmp echoes request_size",
    );
    wrong(
        r#"{"kind": "udp", "mss": "100B"}"#,
        &exchange("64B", "64B"),
        "remove mss of the protocol",
    );
    wrong(
        r#"{"kind": "udp", "response_timeout": "1us"}"#,
        &exchange("64B", "64B"),
        "protocol.response_timeout",
    );
    wrong(
        r#"{"kind": "udp", "response_timeout": "1s"}"#,
        r#"{"kind": "bulk", "rate": "1Mbit/s", "duration": "1s"}"#,
        "remove response_timeout of the protocol",
    );
    wrong(
        r#"{"kind": "icmp"}"#,
        r#"{"kind": "file", "size": "1kB"}"#,
        "allowed: request-response",
    );
}

#[test]
fn a_file_in_no_time_has_no_goodput() {
    let json = r#"{"path": {}, "protocol": {"kind": "go-back-n", "window": 4, "rto": "200ms"},
        "workload": {"kind": "file", "size": "100kB"}, "seed": 1}"#;
    let found = run(&TrialSpec::from_json(json).unwrap(), None).unwrap();
    assert_eq!(found.error, None);
    is_near(figure(&found, "completion_s"), 0.0);
    for name in [
        "goodput_bps",
        "flow_goodput_bps",
        "flow_throughput_bps",
        "throughput_bps",
    ] {
        assert_eq!(found.metrics.as_ref().unwrap()[name], None, "{name}");
    }
    assert_eq!(found.flows[0].goodput_bps, None);
}

#[test]
fn arrivals_that_do_not_complete_are_beyond_all_others() {
    // Twice the capacity arrives for 5 s; the trial ends 5 s later.
    let json = r#"{"path": {"rate": "1Mbit/s", "delay": "5ms"}, "protocol": {"kind": "tcp"},
        "workload": {"kind": "arrivals", "arrivals": "30/s", "size": "10kB", "duration": "5s",
        "classes": ["5kB"]}, "seed": 1}"#;
    let found = run(&TrialSpec::from_json(json).unwrap(), None).unwrap();
    let metrics = found.metrics.as_ref().unwrap();
    assert!(figure(&found, "flows_unfinished") > 0.0);
    for name in ["fct_mean_s", "fct_p99_s", "flow_throughput_bps", "fct_mean_s@G1"] {
        assert_eq!(metrics[name], None, "{name}");
    }
    is_near(
        figure(&found, "flows_unfinished@G1"),
        figure(&found, "flows_unfinished"),
    );
    // An empty class has no times, but nothing is unknown.
    is_near(figure(&found, "flows_unfinished@G0"), 0.0);
}
