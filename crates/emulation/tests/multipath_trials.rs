//! Trials over the kernel's MPTCP: the paths of flows in the record, under the study's policies and the kernel's.

#![cfg(target_os = "linux")]

use crate::common::trials::{self, refusal};
use crate::common::{self, Requirement};
use experiment::TrialRecord;
use kernel::mptcp;

fn spec(protocol: &str, size: &str) -> String {
    format!(
        r#"{{"topology": {{"kind": "multipath", "paths": 3, "path": {{"rate": "20Mbit/s", "queue": "100pkt"}},
            "delays": "10ms..30ms"}}, "protocol": {protocol}, "workload": {{"kind": "file", "size": "{size}"}}, "seed": 1}}"#
    )
}

/// The record of a trial; `None`, with a printed reason, if the system lacks something.
fn record(spec: &str) -> Option<TrialRecord> {
    if mptcp::path_manager().is_err() {
        common::skip(
            Requirement::Mptcp,
            "the kernel has no MPTCP with a path manager in user space",
        );
        return None;
    }
    trials::record(spec)
}

#[test]
fn short_flows_use_one_path_and_long_ones_all() {
    for (policy, size, paths) in [
        ("fsfs", "50kB", 1),
        ("fsfs", "5MB", 3),
        ("single", "5MB", 1),
        ("in-kernel", "50kB", 3),
        ("in-kernel", "5MB", 3),
    ] {
        let spec = spec(&format!(r#"{{"kind": "mptcp", "policy": "{policy}"}}"#), size);
        let Some(record) = record(&spec) else { return };
        assert_eq!(record.error, None, "{policy} {size}");
        let flow = &record.flows[0];
        let metrics = record.metrics.as_ref().unwrap();
        let bytes = if size == "50kB" { 50_000 } else { 5_000_000 };
        assert_eq!(flow.size_bytes, Some(bytes));
        // A joined path may carry no data of a short flow; the packets show that the kernel joined it.
        if (policy, size) == ("in-kernel", "50kB") {
            assert!((1..=3).contains(&flow.paths));
        } else {
            assert_eq!(flow.paths, paths, "{policy} {size}");
        }
        let completion = metrics["completion_s"].unwrap();
        // At the paths' total rate, plus some RTTs of the first.
        let minimum = bytes as f64 * 8.0 / (20e6 * f64::from(paths)) + 0.02;
        assert!(completion >= minimum, "{policy} {size}: {completion}");
    }
}

#[test]
fn plain_tcp_uses_the_chosen_path() {
    let spec = spec(r#"{"kind": "tcp", "path": "random"}"#, "20kB");
    let Some(record) = record(&spec) else { return };
    assert_eq!(record.error, None);
    assert_eq!(record.flows[0].paths, 1);
}

#[test]
fn refuses_unsupported_mptcp_keys() {
    for (keys, message) in [
        (
            r#""scheduler": "round-robin""#,
            "protocol.scheduler: the kernel's MPTCP has one scheduler",
        ),
        (
            r#""congestion": "lia""#,
            "protocol.congestion: Linux does not couple subflows",
        ),
        (r#""profile": "rfc""#, "protocol.profile: "),
        (r#""join_after": "handshake""#, "protocol.join_after: "),
        (r#""rejoin": "1s""#, "protocol.rejoin: "),
        (
            r#""policy": {"kind": "foresight", "tail": 3}"#,
            "protocol.policy.tail: not supported by Linux",
        ),
        (
            r#""policy": {"kind": "foresight", "tail_after": 2}"#,
            "protocol.policy.tail_after: ",
        ),
        (
            r#""policy": "mmptcp""#,
            "protocol.policy.kind: Linux does not scatter packets",
        ),
        (
            r#""opportunistic_retransmission": true"#,
            "protocol.opportunistic_retransmission: ",
        ),
    ] {
        let spec = spec(&format!(r#"{{"kind": "mptcp", {keys}}}"#), "1kB");
        let error = refusal(&spec);
        assert!(error.contains(message), "{error}");
    }
}
