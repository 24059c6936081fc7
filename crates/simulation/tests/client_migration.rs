//! A client of QUIC that moves in the middle of a transfer.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

const FILE: &str = r#""kind": "file", "size": "3MB""#;
const REQUEST: &str = r#""kind": "request-response", "response_size": "3MB""#;
const PATH: &str = r#""path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "50pkt"}"#;
const PATHS: &str = r#""topology": {"kind": "multipath",
    "path": [{"rate": "10Mbit/s", "delay": "20ms", "queue": "50pkt"}, {"rate": "2Mbit/s", "delay": "20ms", "queue": "50pkt"}]}"#;

fn trial(network: &str, keys: &str, workload: &str) -> TrialRecord {
    let json = format!(
        r#"{{{network}, "protocol": {{"kind": "quic"{keys}}}, "workload": {{{workload}}}, "seed": 1}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    run(&spec, None).unwrap()
}

fn time(network: &str, keys: &str, workload: &str) -> f64 {
    let record = trial(network, keys, workload);
    assert_eq!(record.error, None);
    record.metrics.as_ref().unwrap()["fct_mean_s"].unwrap()
}

/// Transfers in both directions take less than 0.8 s longer with two moves.
#[test]
fn transfers_continue_from_a_new_address() {
    for workload in [FILE, REQUEST] {
        let before = time(PATH, "", workload);
        for to in ["port", "address"] {
            let keys = format!(r#", "migrate": ["1s", "1500ms"], "migrate_to": "{to}""#);
            let delay = time(PATH, &keys, workload) - before;
            assert!((-0.05..0.8).contains(&delay), "{workload}, {to}: {delay} s");
        }
    }
}

/// On the second path the rest of the transfer takes five times as long, until the client is back.
#[test]
fn a_client_moves_to_the_next_path() {
    let to = |times: &str| format!(r#", "migrate": [{times}], "migrate_to": "path""#);
    let first = time(PATHS, "", FILE);
    assert!(first < 2.8, "{first}");
    let moved = time(PATHS, &to(r#""1s""#), FILE);
    assert!((6.5..10.0).contains(&moved), "{first} {moved}");
    let back = time(PATHS, &to(r#""1s", "3s""#), FILE);
    assert!((3.0..6.0).contains(&back), "{back}");
    let flow = &trial(PATHS, &to(r#""1s""#), FILE).flows[0];
    assert_eq!(flow.error, None);
}

#[test]
fn moves_that_have_no_effect_are_errors() {
    let key = |network: &str, keys: &str| {
        let json = format!(
            r#"{{{network}, "protocol": {{"kind": "quic"{keys}}}, "workload": {{{FILE}}}, "seed": 1}}"#
        );
        let refused = match TrialSpec::from_json(&json) {
            Ok(spec) => run(&spec, None).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        refused.lines().next().unwrap_or_default().to_owned()
    };
    let moves = r#", "migrate": ["1s"]"#;
    let path = format!(r#"{moves}, "migrate_to": "path""#);
    assert!(key(PATH, &path).contains("needs several paths between the hosts"));
    let nat = PATH.replace("}", r#", "nat": {}}"#);
    assert!(key(&nat, moves).contains("needs a network without translators"));
    assert!(key(PATH, r#", "migrate_to": "port""#).contains("has no effect without moves"));
    assert!(key(PATH, r#", "migrate": ["2s", "1s"]"#).contains("ascending order"));
    assert!(key(PATH, &format!(r#"{moves}, "multipath": true"#)).contains("remove multipath"));
}
