//! Trials on real kernels: the record says what the path must have done to them.

#![cfg(target_os = "linux")]

mod common;

use common::trials::{PATH, figure, record, refusal};

#[test]
fn a_kernel_fills_a_path_and_its_queue() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "reno"}},
            "workload": {{"kind": "bulk", "duration": "4s", "warm_up": "1s"}}, "seed": 1}}"#
    );
    let Some(record) = record(&json) else { return };
    let goodput = figure(&record, "goodput_bps");
    // At most 1448 of 1500 bytes at 20 Mbit/s; less where the machine is busy with other tests.
    assert!((12e6..19.4e6).contains(&goodput), "{goodput}");
    assert!((0.6..1.02).contains(&figure(&record, "utilisation")));
    // 20 ms of delay and up to 30 ms of queue; wake-ups take their time on a busy machine.
    assert!((0.02..0.3).contains(&figure(&record, "rtt_mean_s")));
    assert!(figure(&record, "queue_mean_packets") > 1.0);
    // No timer is exact: how late the emulator was is told, and not in units of another size.
    let (late, most) = (
        figure(&record, "emulator_late_p99_s"),
        figure(&record, "emulator_late_max_s"),
    );
    assert!(
        (1e-9..4.0).contains(&late) && (late..4.0).contains(&most),
        "{late} {most}"
    );
}

#[test]
fn a_file_takes_its_round_trips_and_its_time_on_the_link() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "cubic"}},
            "workload": {{"kind": "file", "size": "1MB"}}, "seed": 1}}"#
    );
    let Some(record) = record(&json) else { return };
    let completion = figure(&record, "completion_s");
    // 0.414 s at the rate, and slow start of some round trips.
    assert!((0.41..4.0).contains(&completion), "{completion}");
    assert_eq!(figure(&record, "flows_completed"), 1.0);
    assert_eq!(record.flows[0].size_bytes, Some(1_000_000));
}

#[test]
fn traffic_and_requests_run_beside_each_other() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "cubic"}},
            "workload": {{"kind": "request-response", "requests": 10, "response_size": "1kB"}}, "seed": 1,
            "traffic": [{{"name": "cross", "protocol": {{"kind": "udp"}}, "workload": {{"kind": "bulk", "rate": "2Mbit/s"}}}}]}}"#
    );
    let Some(record) = record(&json) else { return };
    assert_eq!(figure(&record, "flows_completed"), 10.0);
    let median = figure(&record, "fct_p50_s");
    assert!((0.0203..0.3).contains(&median), "{median}");
}

#[test]
fn the_projects_own_protocol_runs_over_the_kernels_datagrams() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "selective-repeat", "window": 32}},
            "workload": {{"kind": "file", "size": "500kB"}}, "seed": 1}}"#
    );
    let Some(record) = record(&json) else { return };
    let goodput = figure(&record, "goodput_bps");
    // A window of 32 packets of 1024 bytes a round trip of 20 ms and some queue: at most 13 Mbit/s.
    assert!((1e6..13.2e6).contains(&goodput), "{goodput}");
}

#[test]
fn what_no_kernel_can_do_is_said() {
    for (protocol, said) in [
        (
            r#"{"kind": "tcp", "initial_window": 3}"#,
            "protocol.initial_window: a kernel's TCP has no knob for it",
        ),
        (
            r#"{"kind": "tcp", "congestion": "bbr"}"#,
            "protocol.congestion: Linux has BBR version 1 only",
        ),
    ] {
        let json = format!(
            r#"{{{PATH}, "protocol": {protocol}, "workload": {{"kind": "file", "size": "1kB"}}, "seed": 1}}"#
        );
        let error = refusal(&json);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_controller_that_the_kernel_lacks_fails_the_flow_by_name() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "westwood"}},
            "workload": {{"kind": "file", "size": "1kB"}}, "seed": 1}}"#
    );
    let has =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if has.split_whitespace().any(|name| name == "westwood") {
        return common::skip("the kernel has Westwood");
    }
    let Some(record) = record(&json) else { return };
    assert!(
        record
            .error
            .unwrap()
            .contains("no congestion controller \"westwood\"")
    );
}
