//! Trials with the project's TCP at emulated hosts.

#![cfg(target_os = "linux")]

use crate::common::trials::{PATH, figure, record, refusal};

#[test]
fn runs_controllers_and_keys_that_kernels_lack() {
    // At most 1448 of 1500 bytes at 20 Mbit/s, or one window in 20 ms. A busy receiver may read the data of the whole 4
    // s in the measured 3 s.
    for (congestion, maximum) in [
        (r#"{"kind": "vegas", "alpha": 3}"#, 19.4e6),
        (r#""bbr""#, 19.4e6),
        (r#"{"kind": "fixed", "window": 20}"#, 20.0 * 1448.0 * 8.0 / 0.02),
    ] {
        let json = format!(
            r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat", "profile": "rfc", "initial_window": 4,
                "congestion": {congestion}}}, "workload": {{"kind": "bulk", "duration": "4s", "warm_up": "1s"}}, "seed": 1}}"#
        );
        let Some(record) = record(&json) else { return };
        let goodput = figure(&record, "goodput_bps");
        assert!(
            0.0 < goodput && goodput < maximum * 4.0 / 3.0,
            "{congestion}: {goodput}"
        );
        let rtt = figure(&record, "rtt_min_s");
        // A histogram's bucket at 20 ms begins a little lower.
        assert!(rtt >= 0.0199, "{congestion}: {rtt} s");
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
fn refuses_path_choices() {
    for (protocol, workload) in [(r#", "path": "least-rtt""#, ""), ("", r#", "each_path": true"#)] {
        let json = format!(
            r#"{{{PATH}, "protocol": {{"kind": "tcp", "stack": "longfat"{protocol}}},
                "workload": {{"kind": "file", "size": "1kB"{workload}}}, "seed": 1}}"#
        );
        let error = refusal(&json);
        assert!(
            error.contains("protocol.stack: \"longfat\" uses only the first path"),
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
    // Both get a share, and together at most the rate over 5 s, of which 4 s are measured.
    let (goodput, others) = (
        figure(&record, "goodput_bps"),
        figure(&record, "traffic_goodput_bps"),
    );
    assert!(goodput > 0.0 && others > 0.0, "{goodput} {others}");
    assert!(goodput + others < 20e6 * 5.0 / 4.0, "{goodput} {others}");
}
