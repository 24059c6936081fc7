//! Bytes of flows per path.

use experiment::flow_table::FlowRecord;
use experiment::{TrialRecord, TrialSpec};
use simulation::run;

/// Two paths between a and b, with one and two links; one path between c and b.
const NETWORK: &str = r#""topology": {"kind": "free", "hosts": ["a", "b", "c"], "routers": ["r"], "links": [
    {"from": "a", "to": "r", "rate": "20Mbit/s", "delay": "2ms", "queue": "60pkt"},
    {"from": "r", "to": "b", "rate": "20Mbit/s", "delay": "2ms", "queue": "60pkt"},
    {"from": "a", "to": "b", "rate": "10Mbit/s", "delay": "5ms", "queue": "60pkt"},
    {"from": "c", "to": "r", "rate": "20Mbit/s", "delay": "2ms", "queue": "60pkt"}]}"#;

fn flows(protocol: &str, workload: &str) -> Vec<FlowRecord> {
    let json = format!(r#"{{{NETWORK}, "protocol": {protocol}, "workload": {workload}, "seed": 5}}"#);
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let TrialRecord { error, flows, .. } = run(&spec, None).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(error, None, "{json}");
    flows
}

#[test]
fn tcp_uses_the_first_path_and_mptcp_all_paths() {
    let file = r#"{"kind": "file", "size": "300kB", "from": "a", "to": "b"}"#;
    for protocol in [
        r#"{"kind": "tcp"}"#,
        r#"{"kind": "selective-repeat", "mss": "1000B"}"#,
    ] {
        assert_eq!(flows(protocol, file)[0].path_bytes, [300_000, 0], "{protocol}");
    }
    let several = &flows(r#"{"kind": "mptcp"}"#, file)[0];
    assert_eq!(several.retransmissions, 0);
    assert_eq!(several.path_bytes.iter().sum::<u64>(), 300_000);
    assert_eq!((several.paths, several.path_bytes.len()), (2, 2));
    assert!(
        several.path_bytes.iter().all(|&bytes| bytes > 50_000),
        "{several:?}"
    );
}

#[test]
fn flows_on_each_path_count_separately() {
    let bulk = r#"{"kind": "bulk", "duration": "3s", "each_path": true, "from": "a", "to": "b"}"#;
    for protocol in [r#"{"kind": "tcp"}"#, r#"{"kind": "mptcp"}"#] {
        let flows = flows(protocol, bulk);
        assert_eq!(flows.len(), 2);
        for (own, flow) in flows.iter().enumerate() {
            assert!(flow.path_bytes[own] > 1_000_000, "{protocol}: {flow:?}");
            assert_eq!(flow.path_bytes[1 - own], 0, "{protocol}: {flow:?}");
        }
    }
}

#[test]
fn data_of_both_ends_counts_during_the_measurement() {
    let requests = r#"{"kind": "request-response", "requests": 10, "request_size": "200B", "response_size": "20kB",
        "from": "c", "to": "b"}"#;
    for protocol in [r#"{"kind": "tcp"}"#, r#"{"kind": "mptcp"}"#] {
        assert_eq!(flows(protocol, requests)[0].path_bytes, [202_000], "{protocol}");
    }
    let late =
        r#"{"kind": "bulk", "rate": "1Mbit/s", "duration": "4s", "warm_up": "3s", "from": "c", "to": "b"}"#;
    for protocol in [r#"{"kind": "tcp"}"#, r#"{"kind": "mptcp"}"#, r#"{"kind": "udp"}"#] {
        let flow = &flows(protocol, late)[0];
        let [bytes] = flow.path_bytes[..] else {
            panic!("{flow:?}")
        };
        assert!((115_000..135_000).contains(&bytes), "{protocol}: {flow:?}");
    }
}
