//! Requests between real kernels and their captures at the requesting host.

#![cfg(target_os = "linux")]

use crate::common::trials::{figure, record, refusal};

const PATH: &str = r#""path": {"rate": "10Mbit/s", "delay": "10ms", "mtu": "1000B"}"#;
const LOOPBACK: &str = r#""topology": {"kind": "loopback", "mtu": "1536B"}"#;

fn trial(network: &str, protocol: &str, size: u32) -> String {
    format!(
        r#"{{{network}, "protocol": {protocol}, "workload": {{"kind": "request-response", "requests": 8,
            "request_size": "{size}B", "response_size": "{size}B", "reconnect": true}}, "seed": 1}}"#
    )
}

const ICMP: &str = r#"{"kind": "icmp"}"#;
const UDP: &str = r#"{"kind": "udp"}"#;
const TCP: &str = r#"{"kind": "tcp", "congestion": "reno"}"#;

#[test]
fn a_request_takes_one_rtt_and_a_connection_one_more() {
    for (protocol, round_trips, packets) in [
        (ICMP, 1.0, 2.0..=2.0),
        (UDP, 1.0, 2.0..=2.0),
        // Handshake, request, response and FINs; more if a timer expires on a busy machine.
        (TCP, 2.0, 7.0..=f64::MAX),
    ] {
        let Some(record) = record(&trial(PATH, protocol, 100)) else {
            return;
        };
        assert_eq!(figure(&record, "flows_completed"), 8.0, "{protocol}");
        let minimum = figure(&record, "fct_min_s");
        // 20 ms of RTT, and transmission times.
        assert!(minimum >= round_trips * 0.020, "{protocol}: {minimum}");
        // Wire time and stack time add up to the total.
        let wire = figure(&record, "wire_min_s");
        assert!(
            (round_trips * 0.0199..=minimum).contains(&wire),
            "{protocol}: {wire}"
        );
        assert!(figure(&record, "stack_p50_s") > 0.0, "{protocol}");
        let each = figure(&record, "packets_per_request");
        assert!(packets.contains(&each), "{protocol}: {each}");
    }
}

#[test]
fn fragments_count_as_packets() {
    // 972 bytes fill a packet of 1000 with the headers of IPv4 and of UDP or ICMP.
    for (protocol, size, packets) in [(UDP, 972, 2.0), (UDP, 973, 4.0), (ICMP, 973, 4.0)] {
        let Some(record) = record(&trial(PATH, protocol, size)) else {
            return;
        };
        assert_eq!(
            figure(&record, "packets_per_request"),
            packets,
            "{protocol}, {size}"
        );
        assert_eq!(figure(&record, "requests_unanswered"), 0.0);
    }
}

#[test]
fn loopback_topology_uses_the_loopback_device() {
    for (protocol, size, packets) in [
        (ICMP, 1508, 2.0),
        (ICMP, 1509, 4.0),
        (UDP, 1508, 2.0),
        (UDP, 1509, 4.0),
    ] {
        let Some(record) = record(&trial(LOOPBACK, protocol, size)) else {
            return;
        };
        assert_eq!(figure(&record, "flows_completed"), 8.0, "{protocol}");
        assert_eq!(
            figure(&record, "packets_per_request"),
            packets,
            "{protocol}, {size}"
        );
        let (total, wire) = (figure(&record, "fct_min_s"), figure(&record, "wire_min_s"));
        assert!(0.0 < wire && wire < total, "{protocol}: {wire} of {total}");
    }
    let Some(record) = record(&trial(LOOPBACK, TCP, 1400)) else {
        return;
    };
    assert_eq!(figure(&record, "flows_completed"), 8.0);
}

#[test]
fn opening_early_saves_packets() {
    let mut packets = Vec::new();
    for (settings, minimum) in [("", 4.5), (r#", "ttcp": true"#, 3.0)] {
        let protocol = format!(r#"{{"kind": "tcp", "stack": "longfat"{settings}}}"#);
        let Some(record) = record(&trial(PATH, &protocol, 100)) else {
            return;
        };
        assert_eq!(figure(&record, "flows_completed"), 8.0);
        let each = figure(&record, "packets_per_request");
        assert!(each >= minimum, "{settings}: {each}");
        packets.push(each);
    }
    assert!(packets[1] < packets[0], "{packets:?}");
}

#[test]
fn captures_distinguish_flows() {
    for protocol in [ICMP, UDP] {
        let json = trial(PATH, protocol, 100).replace(r#""requests": 8"#, r#""requests": 8, "flows": 3"#);
        let Some(record) = record(&json) else { return };
        assert_eq!(figure(&record, "flows_completed"), 24.0, "{protocol}");
        assert_eq!(figure(&record, "packets_per_request"), 2.0, "{protocol}");
    }
}

#[test]
fn the_projects_tcp_has_no_loopback_interface() {
    let error = refusal(&trial(LOOPBACK, r#"{"kind": "tcp", "stack": "longfat"}"#, 100));
    assert!(
        error.contains("protocol.stack: \"longfat\" has no loopback interface"),
        "{error}"
    );
}

#[test]
fn unanswered_requests_are_counted() {
    let lossy = r#""path": {"delay": "1ms", "loss": "100%"}"#;
    let json = trial(lossy, UDP, 100).replace(r#""requests": 8"#, r#""requests": 2"#);
    let Some(record) = record(&json) else { return };
    assert_eq!(figure(&record, "requests_unanswered"), 2.0);
    assert_eq!(figure(&record, "flows_completed"), 0.0);
}
