//! Trials with the project's TCP at the hosts of an emulated network.

use emulation::Error;
use emulation::trial::{Names, TrialError, run};
use experiment::{Record, TrialSpec};

mod common;

fn spec(json: &str) -> TrialSpec {
    TrialSpec::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The record of a trial; `None`, with the reason printed, where the system lacks something.
fn record(json: &str) -> Option<Record> {
    match run(&spec(json), &Names::new(), None) {
        Ok(record) => Some(record),
        Err(TrialError::Emulation(error @ (Error::Permission { .. } | Error::Missing { .. }))) => {
            common::skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}: {json}"),
    }
}

fn figure(record: &Record, name: &str) -> f64 {
    assert_eq!(record.error, None);
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

const PATH: &str = r#""path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "50pkt"}"#;

#[test]
fn controllers_and_keys_that_no_kernel_has_run() {
    for congestion in [
        r#"{"kind": "vegas", "alpha": 3}"#,
        r#""bbr""#,
        r#"{"kind": "fixed", "window": 20}"#,
    ] {
        let json = format!(
            r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat", "profile": "rfc", "initial_window": 4,
                "congestion": {congestion}}}, "workload": {{"kind": "bulk", "duration": "4s", "warm_up": "1s"}}, "seed": 1}}"#
        );
        let Some(record) = record(&json) else { return };
        // At most 1448 of 1500 bytes at 20 Mbit/s; much less where the machine is busy with other tests.
        let goodput = figure(&record, "goodput_bps");
        assert!((0.5e6..19.4e6).contains(&goodput), "{congestion}: {goodput}");
        assert!(figure(&record, "rtt_min_s") >= 0.02, "{congestion}");
    }
}

#[test]
fn every_workload_runs() {
    for (workload, metric) in [
        (r#""kind": "file", "size": "500KB", "flows": 2"#, "completion_s"),
        (
            r#""kind": "request-response", "requests": 3, "response_size": "50KB""#,
            "goodput_bps",
        ),
        (
            r#""kind": "request-response", "requests": 3, "reconnect": true"#,
            "goodput_bps",
        ),
        (
            r#""kind": "on-off", "rate": "2Mbit/s", "on": "200ms", "off": "100ms", "duration": "2s""#,
            "goodput_bps",
        ),
        (
            r#""kind": "arrivals", "arrivals": "10/s", "size": "20KB", "duration": "2s""#,
            "goodput_bps",
        ),
    ] {
        let json = format!(
            r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat"}}, "workload": {{{workload}}}, "seed": 1}}"#
        );
        let Some(record) = record(&json) else { return };
        assert_eq!(record.error, None, "{workload}");
        let metrics = record.metrics.as_ref().unwrap();
        let value = metrics
            .get(metric)
            .unwrap_or_else(|| panic!("{metric}: {:?}", metrics.keys()));
        assert!(value.unwrap() > 0.0, "{workload}");
    }
}

#[test]
fn kernels_and_stacks_meet_at_a_bottleneck() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat", "congestion": "cubic"}},
            "workload": {{"kind": "bulk", "duration": "5s", "warm_up": "1s"}},
            "traffic": [
                {{"name": "rival", "protocol": {{"kind": "tcp", "congestion": "cubic"}}, "workload": {{"kind": "bulk"}}}},
                {{"name": "noise", "protocol": {{"kind": "udp"}}, "workload": {{"kind": "bulk", "rate": "1Mbit/s", "duration": "5s"}}}}
            ], "seed": 1}}"#
    );
    let Some(record) = record(&json) else { return };
    let goodput = figure(&record, "goodput_bps");
    // However late a busy machine lets them run, both are heard.
    assert!((0.2e6..19e6).contains(&goodput), "{goodput}");
}
