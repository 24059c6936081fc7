//! Trials on real kernels: the record shows the path's effects.

#![cfg(target_os = "linux")]

use crate::common::trials::{PATH, figure, record, refusal};

#[test]
fn a_kernel_fills_a_path_and_its_queue() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "reno"}},
            "workload": {{"kind": "bulk", "duration": "4s", "warm_up": "1s"}}, "seed": 1}}"#
    );
    let started = std::time::Instant::now();
    let Some(record) = record(&json) else { return };
    let duration = started.elapsed().as_secs_f64();
    let goodput = figure(&record, "goodput_bps");
    // At most 1448 of 1500 bytes at 20 Mbit/s. A busy receiver may read the data of the whole 4 s in the measured 3 s.
    assert!(0.0 < goodput && goodput < 19.4e6 * 4.0 / 3.0, "{goodput}");
    let utilisation = figure(&record, "utilisation");
    assert!(utilisation < 1.02, "{utilisation}");
    // Received data crossed the link, some of it in the second before.
    assert!(
        goodput <= utilisation * 20e6 + 20e6 / 3.0,
        "{goodput} {utilisation}"
    );
    // 20 ms of delay; Reno fills the queue of 50 packets at least once.
    assert!(figure(&record, "rtt_min_s") >= 0.02);
    assert!(figure(&record, "rtt_mean_s") >= figure(&record, "rtt_min_s"));
    let longest = figure(&record, "queue_max_packets");
    assert!((2.0..=50.0).contains(&longest), "{longest}");
    // Timers are not exact to 100 ns, and no packet is later than the trial's duration.
    let (late, maximum) = (
        figure(&record, "emulator_late_p99_s"),
        figure(&record, "emulator_late_max_s"),
    );
    assert!(
        1e-7 < late && late <= maximum && maximum < duration,
        "{late} {maximum} {duration}"
    );
}

#[test]
fn file_transfer_takes_rtts_and_transmission_time() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "cubic"}},
            "workload": {{"kind": "file", "size": "1MB"}}, "seed": 1}}"#
    );
    let Some(record) = record(&json) else { return };
    let completion = figure(&record, "completion_s");
    // 0.414 s at the rate, plus slow start.
    assert!(completion >= 0.41, "{completion}");
    assert_eq!(figure(&record, "flows_completed"), 1.0);
    assert_eq!(record.flows[0].size_bytes, Some(1_000_000));
}

#[test]
fn traffic_and_requests_run_together() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "cubic"}},
            "workload": {{"kind": "request-response", "requests": 10, "response_size": "1kB"}}, "seed": 1,
            "traffic": [{{"name": "cross", "protocol": {{"kind": "udp"}}, "workload": {{"kind": "bulk", "rate": "2Mbit/s"}}}}]}}"#
    );
    let Some(record) = record(&json) else { return };
    assert_eq!(figure(&record, "flows_completed"), 10.0);
    let median = figure(&record, "fct_p50_s");
    assert!(median >= 0.0203, "{median}");
}

#[test]
fn the_projects_own_protocol_runs_over_the_kernels_datagrams() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "selective-repeat", "window": 32}},
            "workload": {{"kind": "file", "size": "500kB"}}, "seed": 1}}"#
    );
    let Some(record) = record(&json) else { return };
    let goodput = figure(&record, "goodput_bps");
    // A window of 32 packets of 1024 bytes per RTT of 20 ms and some queue: at most 13 Mbit/s.
    assert!(0.0 < goodput && goodput < 13.2e6, "{goodput}");
}

#[test]
fn refuses_unsupported_keys() {
    for (protocol, message) in [
        (
            r#"{"kind": "tcp", "initial_window": 3}"#,
            "protocol.initial_window: not supported by a kernel's TCP",
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
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn names_a_missing_controller() {
    let json = format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "congestion": "westwood"}},
            "workload": {{"kind": "file", "size": "1kB"}}, "seed": 1}}"#
    );
    let has =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if has.split_whitespace().any(|name| name == "westwood") {
        return;
    }
    let Some(record) = record(&json) else { return };
    assert!(
        record
            .error
            .unwrap()
            .contains("no congestion controller \"westwood\"")
    );
}
