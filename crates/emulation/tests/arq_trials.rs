//! The project's ARQ protocols between two kernels, under every workload of the simulator.

#![cfg(target_os = "linux")]

use crate::common::trials::{self, PATH, figure};
use experiment::TrialRecord;

/// The record of a successful trial over [`PATH`].
fn record(protocol: &str, workload: &str) -> Option<TrialRecord> {
    let record = trials::record(&format!(
        r#"{{{PATH}, "protocol": {protocol}, "workload": {workload}, "seed": 1}}"#
    ))?;
    assert_eq!(record.error, None, "{protocol} {workload}");
    Some(record)
}

const WINDOW_32: &str = r#"{"kind": "selective-repeat", "window": 32}"#;

#[test]
fn bulk_goodput_is_window_per_rtt() {
    let Some(record) = record(
        WINDOW_32,
        r#"{"kind": "bulk", "duration": "3s", "warm_up": "1s"}"#,
    ) else {
        return;
    };
    // 32 packets of 1024 bytes in 20 ms: at most 13.1 Mbit/s. A busy receiver may read the data of 3 s in the measured
    // 2 s.
    let goodput = figure(&record, "goodput_bps");
    assert!(0.0 < goodput && goodput < 13.2e6 * 3.0 / 2.0, "{goodput}");
    // The sender counts after the warm-up only; the warm-up would add 50 %.
    let first = figure(&record, "packets_sent") - figure(&record, "retransmissions");
    let seconds = first * 1024.0 * 8.0 / goodput;
    assert!((1.5..2.9).contains(&seconds), "{seconds}");
    assert!(figure(&record, "rtt_min_s") >= 0.02);
    assert!(figure(&record, "rtt_mean_s") >= figure(&record, "rtt_min_s"));
}

#[test]
fn flows_between_the_same_hosts_are_separate() {
    let Some(record) = record(WINDOW_32, r#"{"kind": "file", "size": "200kB", "flows": 3}"#) else {
        return;
    };
    assert_eq!(figure(&record, "flows_completed"), 3.0);
    assert_eq!(record.flows.len(), 3);
    for flow in &record.flows {
        assert_eq!(flow.size_bytes, Some(200_000));
        assert!(flow.packets_sent >= 196, "{flow:?}");
        assert!(flow.fct_s.unwrap() > 0.08, "{flow:?}");
    }
    // 600 kB with headers at 20 Mbit/s.
    assert!(figure(&record, "completion_s") > 0.25);
}

#[test]
fn requests_are_answered_in_order() {
    let Some(record) = record(
        WINDOW_32,
        r#"{"kind": "request-response", "requests": 10, "response_size": "10kB", "think": "5ms"}"#,
    ) else {
        return;
    };
    assert_eq!(figure(&record, "flows_completed"), 10.0);
    // An RTT of 20 ms, and 10 kB at 20 Mbit/s.
    let median = figure(&record, "fct_p50_s");
    assert!(median >= 0.024, "{median}");
    // Ten requests of one packet each, and ten responses of ten packets each.
    assert!(figure(&record, "packets_sent") >= 110.0);
}

#[test]
fn a_connection_for_each_request_takes_one_more_rtt() {
    let Some(record) = record(
        WINDOW_32,
        r#"{"kind": "request-response", "requests": 3, "response_size": "1kB", "reconnect": true}"#,
    ) else {
        return;
    };
    assert_eq!(figure(&record, "flows_completed"), 3.0);
    assert_eq!(record.flows.len(), 3);
    let median = figure(&record, "fct_p50_s");
    assert!(median >= 0.04, "{median}");
}

#[test]
fn on_off_source_keeps_its_rate() {
    let workload =
        r#"{"kind": "on-off", "rate": "2Mbit/s", "on": "300ms", "off": "300ms", "duration": "3s"}"#;
    let Some(record) = record(WINDOW_32, workload) else {
        return;
    };
    let goodput = figure(&record, "goodput_bps");
    assert!(0.0 < goodput && goodput < 2e6, "{goodput}");
}

#[test]
fn flows_arrive_and_complete() {
    let Some(record) = record(
        r#"{"kind": "go-back-n", "window": 8}"#,
        r#"{"kind": "arrivals", "arrivals": "20/s", "size": "10kB", "duration": "2s"}"#,
    ) else {
        return;
    };
    // The last flows may not have finished.
    let completed = figure(&record, "flows_completed");
    let arrived = completed + figure(&record, "flows_unfinished");
    assert!(
        completed > 0.0 && (15.0..80.0).contains(&arrived),
        "{completed} of {arrived}"
    );
    // More than two RTTs.
    assert!(figure(&record, "fct_mean_s") > 0.04);
}
