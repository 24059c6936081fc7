//! Trials with the project's TCP at the hosts of an emulated network.

#![cfg(target_os = "linux")]

mod common;

use common::trials::{PATH, figure, record, refusal};
use experiment::Record;

/// Bytes of payload in a segment, and the segments that fill this path for a round trip of 20 ms.
const SEGMENT: f64 = 1448.0;
const PRODUCT: f64 = 20e6 * 0.02 / 8.0 / 1500.0;

/// What so many segments carry in each round trip that the flow really had, in bit/s: a machine that is busy with other tests
/// makes those longer, and so asks for less.
fn a_round_trip(record: &Record, segments: f64) -> f64 {
    segments * SEGMENT * 8.0 / figure(record, "rtt_mean_s")
}

#[test]
fn controllers_and_keys_that_no_kernel_has_run() {
    for (congestion, window) in [
        (r#"{"kind": "vegas", "alpha": 3}"#, PRODUCT),
        (r#""bbr""#, PRODUCT),
        (r#"{"kind": "fixed", "window": 20}"#, 20.0),
    ] {
        let json = format!(
            r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat", "profile": "rfc", "initial_window": 4,
                "congestion": {congestion}}}, "workload": {{"kind": "bulk", "duration": "4s", "warm_up": "1s"}}, "seed": 1}}"#
        );
        let Some(record) = record(&json) else { return };
        // At least half of its window in each round trip; at most 1448 of 1500 bytes at 20 Mbit/s.
        let goodput = figure(&record, "goodput_bps");
        let least = a_round_trip(&record, window) / 2.0;
        assert!(
            (least..19.4e6).contains(&goodput),
            "{congestion}: {goodput}, not {least}"
        );
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
fn paths_that_it_does_not_choose_are_refused() {
    for (protocol, workload) in [(r#", "path": "least-rtt""#, ""), ("", r#", "each_path": true"#)] {
        let json = format!(
            r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat"{protocol}}},
                "workload": {{"kind": "file", "size": "1kB"{workload}}}, "seed": 1}}"#
        );
        let error = refusal(&json);
        assert!(
            error.contains("protocol.stack: \"longfat\" uses the first path alone"),
            "{error}"
        );
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
    // CUBIC is at least as fast as Reno (RFC 9438, section 4.3), whose mean window is sqrt(1.5 / p) segments (Mathis et al.,
    // CCR 1997): half of that for the losses that the flow really had, which may come in bursts.
    let lost = figure(&record, "retransmissions").max(1.0) / figure(&record, "packets_sent");
    let least = a_round_trip(&record, (1.5 / lost).sqrt().min(PRODUCT / 2.0)) / 2.0;
    assert!((least..19e6).contains(&goodput), "{goodput}, not {least}");
}
