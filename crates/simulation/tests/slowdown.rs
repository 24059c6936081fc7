//! Slowdowns: flow completion times over those of the flow alone on its empty path.

use experiment::{TrialRecord, TrialSpec};
use serde_json::{Value, json};
use simulation::run;

fn record(path: &Value, protocol: &Value, workload: &Value) -> TrialRecord {
    let spec = json!({"path": path, "protocol": protocol, "workload": workload, "seed": 1});
    let record = run(&TrialSpec::from_json(&spec.to_string()).unwrap(), None).unwrap();
    assert_eq!(record.error, None, "{spec}");
    record
}

fn metric(record: &TrialRecord, name: &str) -> f64 {
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

/// Returns the ideal time of the only flow in ms.
fn ideal(record: &TrialRecord) -> f64 {
    let flow = &record.flows[0];
    assert_eq!(flow.slowdown, Some(metric(record, "slowdown_p99")));
    1e3 * flow.fct_s.unwrap() / flow.slowdown.unwrap()
}

#[test]
fn a_flow_alone_has_slowdown_one() {
    let path = json!({"rate": "10Mbit/s", "delay": "5ms"});
    let found = record(
        &path,
        &json!({"kind": "tcp"}),
        &json!({"kind": "file", "size": "7240B"}),
    );
    // Five packets of 1500 bytes, 5 ms, and before them 10 ms with 52 bytes of headers each way.
    let expected = 5.0 * 1.2 + 5.0 + 10.0 + 2.0 * 0.0416;
    assert!((ideal(&found) - expected).abs() < 1e-6, "{}", ideal(&found));
    // The options of SYNs, and the ACK of the handshake.
    let slowdown = metric(&found, "slowdown_mean");
    assert!((1.0..1.004).contains(&slowdown), "{slowdown}");
    for protocol in [
        json!({"kind": "mptcp"}),
        json!({"kind": "selective-repeat", "window": 64}),
    ] {
        let slowdown = metric(
            &record(&path, &protocol, &json!({"kind": "file", "size": "7kB"})),
            "slowdown_mean",
        );
        assert!((1.0..1.02).contains(&slowdown), "{protocol}: {slowdown}");
    }
}

#[test]
fn each_link_forwards_whole_packets() {
    let path = json!({"hops": [{"rate": "10Mbit/s", "delay": "1ms"}, {"rate": "5Mbit/s", "delay": "2ms"}]});
    let found = record(
        &path,
        &json!({"kind": "tcp"}),
        &json!({"kind": "file", "size": "3396B"}),
    );
    // Packets of 1500, 1500 and 552 bytes leave the second link at 3.6, 6.0 and 6.8832 ms.
    let expected = 6.8832 + 3.0 + 6.0 + 2.0 * 52.0 * 8.0 * (1.0 / 10e3 + 1.0 / 5e3);
    assert!((ideal(&found) - expected).abs() < 1e-6, "{}", ideal(&found));
    assert!((1.0..1.01).contains(&metric(&found, "slowdown_mean")));
    // A short last packet waits for none before it, if the first link is the slowest.
    let path = json!({"hops": [{"rate": "5Mbit/s", "delay": "2ms"}, {"rate": "10Mbit/s", "delay": "1ms"}]});
    let found = record(
        &path,
        &json!({"kind": "tcp"}),
        &json!({"kind": "file", "size": "3396B"}),
    );
    let expected = 2.0 * 2.4 + 0.8832 + 0.4416 + 3.0 + 6.0 + 2.0 * 52.0 * 8.0 * (1.0 / 10e3 + 1.0 / 5e3);
    // The second packet leaves the second link 1.2 ms after it has left the first one, after the last packet has arrived there.
    let expected = expected + (1.2 - 0.8832_f64).max(0.0);
    assert!(
        (ideal(&found) - expected).abs() < 1e-6,
        "{} {expected}",
        ideal(&found)
    );
    assert!((1.0..1.01).contains(&metric(&found, "slowdown_mean")));
}

/// Slow start from 10 packets takes round trips that an unlimited window does not.
#[test]
fn a_window_slows_a_flow_down() {
    let path = json!({"rate": "1Gbit/s", "delay": "10ms"});
    let workload = json!({"kind": "file", "size": "1448000B", "classes": ["1MB"]});
    let found = record(&path, &json!({"kind": "tcp", "congestion": "reno"}), &workload);
    assert!((ideal(&found) - (12.0 + 30.0 + 2.0 * 0.000_416)).abs() < 1e-6);
    // 1000 packets need windows of 10, 20, …, 640: six round trips of 20 ms more.
    let slowdown = metric(&found, "slowdown_p50");
    assert!((slowdown - (42.0 + 6.0 * 20.0) / 42.0).abs() < 0.3, "{slowdown}");
    assert_eq!(metric(&found, "slowdown_mean@G1"), slowdown);
    assert_eq!(found.metrics.unwrap()["slowdown_p50@G0"], None);
}

#[test]
fn flows_that_share_a_link_slow_each_other_down() {
    let path = json!({"rate": "10Mbit/s", "delay": "1ms"});
    let workload = json!({"kind": "file", "size": "14480B", "flows": 4});
    let found = record(&path, &json!({"kind": "tcp"}), &workload);
    // The last of 40 packets completes about four times as late as the last of 10.
    let last = metric(&found, "slowdown_p99");
    assert!((last - (3.0 + 48.0) / (3.0 + 12.0)).abs() < 0.2, "{last}");
}

#[test]
fn other_flows_have_no_slowdown() {
    let path = json!({"rate": "10Mbit/s", "delay": "1ms"});
    for workload in [
        json!({"kind": "bulk", "duration": "1s"}),
        json!({"kind": "request-response", "requests": 3}),
    ] {
        let found = record(&path, &json!({"kind": "tcp"}), &workload);
        assert_eq!(found.flows[0].slowdown, None);
        assert_eq!(found.metrics.unwrap()["slowdown_mean"], None);
    }
    let timeless = record(
        &json!({}),
        &json!({"kind": "tcp"}),
        &json!({"kind": "file", "size": "1kB"}),
    );
    assert_eq!(timeless.metrics.unwrap()["slowdown_mean"], None);
}
