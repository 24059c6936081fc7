//! QUIC and TCP through an address translator that rebinds in the middle of a transfer.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

const FILE: &str = r#""kind": "file", "size": "3MB""#;
const REQUEST: &str = r#""kind": "request-response", "response_size": "3MB""#;

fn trial(nat: &str, protocol: &str, workload: &str) -> TrialRecord {
    let json = format!(
        r#"{{"path": {{"rate": "10Mbit/s", "delay": "20ms", "nat": {{{nat}}}}}, "protocol": {{"kind": {protocol}}},
            "workload": {{{workload}}}, "seed": 1}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    run(&spec, None).unwrap()
}

fn figure(record: &TrialRecord, name: &str) -> f64 {
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

/// Both directions resume within ten round trips of 40 ms. With a new address the server starts with a new window.
#[test]
fn quic_continues_after_a_rebinding() {
    for workload in [FILE, REQUEST] {
        let time = |nat: &str| figure(&trial(nat, r#""quic""#, workload), "fct_mean_s");
        let before = time(r#""timeout": "120s""#);
        for nat in [r#""rebind": ["1s"]"#, r#""rebind": ["1s"], "new_address": true"#] {
            let delay = time(nat) - before;
            assert!((0.0..0.4).contains(&delay), "{workload}, {nat}: {delay} s");
        }
    }
}

#[test]
fn tcp_loses_its_connection() {
    let record = trial(r#""rebind": ["1s"]"#, r#""tcp", "user_timeout": "5s""#, FILE);
    let error = record.flows[0].error.as_deref();
    assert_eq!(error, Some("connection timed out: the peer does not answer"));
}
