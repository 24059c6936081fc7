//! QUIC in the world: whole trials with their records.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

fn trial(path: &str, protocol: &str, workload: &str, seed: u32) -> TrialRecord {
    let json = format!(
        r#"{{"path": {{"rate": "10Mbit/s", "delay": "10ms"{path}}}, "protocol": {{"kind": {protocol}}},
            "workload": {{{workload}}}, "seed": {seed}}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let record = run(&spec, None).unwrap();
    assert_eq!(record.error, None, "{json}");
    record
}

fn figure(record: &TrialRecord, name: &str) -> f64 {
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

const FILE: &str = r#""kind": "file", "size": "1MB""#;
const BULK: &str = r#""kind": "bulk", "duration": "8s", "warm_up": "2s""#;

#[test]
fn file_takes_the_time_of_its_packets() {
    let record = trial("", r#""quic""#, FILE, 1);
    // Two round trips of handshake (the server's flight is paced), then full packets of 1500 bytes with 1439 of payload at the rate of the link.
    let sending = 1e6 / 1439.0 * 1500.0 * 8.0 / 10e6;
    let time = figure(&record, "fct_mean_s");
    assert!((sending + 0.05..sending + 0.15).contains(&time), "{time}");
    let setup = figure(&record, "setup_s");
    assert!((0.040..0.055).contains(&setup), "{setup}");
    assert_eq!(figure(&record, "retransmissions"), 0.0);
    assert_eq!(record.metrics.as_ref().unwrap()["timeouts"], None);
}

/// Two connections start after one that has left a ticket: one of them has early data.
#[test]
fn ticket_serves_one_connection() {
    let json = r#"{"path": {"rate": "10Mbit/s", "delay": "10ms"}, "protocol": {"kind": "quic", "zero_rtt": true},
        "workload": {"kind": "file", "size": "1kB", "flows": 2, "start": "1s"},
        "traffic": [{"name": "earlier", "protocol": {"kind": "quic", "zero_rtt": true}, "workload": {"kind": "file", "size": "1kB"}}], "seed": 1}"#;
    let record = run(&TrialSpec::from_json(json).unwrap(), None).unwrap();
    let [first, last] = ["fct_min_s", "fct_p99_s"].map(|name| figure(&record, name));
    assert!(first < 0.03, "{first}");
    assert!(last > 0.04, "{last}");
}

#[test]
fn file_arrives_over_loss() {
    for seed in 1..=4 {
        let loss = r#", "loss": "3%", "reverse": {"loss": "3%"}, "queue": "50pkt""#;
        let record = trial(loss, r#""quic""#, FILE, seed);
        assert!(figure(&record, "retransmissions") > 5.0);
        assert_eq!(figure(&record, "flows_completed"), 1.0);
        assert_eq!(figure(&record, "flows_failed"), 0.0);
    }
}

#[test]
fn same_seed_same_record() {
    let loss = r#", "loss": "1%""#;
    for protocol in [
        r#""quic""#,
        r#""quic", "congestion": "bbr""#,
        r#""quic", "congestion": "quic-cubic""#,
    ] {
        let run = |seed| serde_json::to_string(&trial(loss, protocol, BULK, seed)).unwrap();
        assert_eq!(run(5), run(5), "{protocol}");
        assert_ne!(run(5), run(6), "{protocol}");
    }
}

#[test]
fn bulk_fills_the_link_with_every_controller() {
    for congestion in ["cubic", "reno", "bbr", "bbr1", "copa", "quic-cubic", "quic-reno"] {
        let protocol = format!(r#""quic", "congestion": "{congestion}""#);
        let record = trial(r#", "queue": "60pkt""#, &protocol, BULK, 1);
        let share = figure(&record, "goodput_bps") / (10e6 * 1439.0 / 1500.0);
        assert!((0.9..1.001).contains(&share), "{congestion}: {share}");
    }
}

#[test]
fn queue_marks_packets_instead_of_dropping_them() {
    let codel = r#", "queue": {"kind": "codel", "ecn": true}"#;
    let with = trial(codel, r#""quic", "congestion": "reno""#, BULK, 1);
    assert!(figure(&with, "marks") > 3.0);
    assert_eq!(figure(&with, "retransmissions"), 0.0);
    let without = trial(codel, r#""quic", "congestion": "reno", "ecn": false"#, BULK, 1);
    assert_eq!(figure(&without, "marks"), 0.0);
    assert!(figure(&without, "retransmissions") > 0.0);
}

#[test]
fn requests_take_a_round_trip_each() {
    let requests =
        r#""kind": "request-response", "request_size": "200B", "response_size": "500B", "requests": 10"#;
    let record = trial("", r#""quic""#, requests, 1);
    assert_eq!(figure(&record, "flows_completed"), 10.0);
    let time = figure(&record, "fct_p50_s");
    assert!((0.020..0.0215).contains(&time), "{time}");
}

/// Controllers must not count in datagrams that the path cannot carry.
#[test]
fn discovery_up_to_jumbo_frames_gains_nothing_on_ethernet() {
    let path = r#", "mtu": "1500B", "loss": "2%""#;
    let goodput = |size: &str| -> f64 {
        let protocol =
            format!(r#""quic", "congestion": "reno", "mtu_discovery": true, "max_datagram_size": "{size}""#);
        let trials = (1..=4).map(|seed| trial(path, &protocol, BULK, seed));
        trials.map(|record| figure(&record, "goodput_bps")).sum()
    };
    let (jumbo, ethernet) = (goodput("9000B"), goodput("1472B"));
    assert!(jumbo < 1.1 * ethernet, "{jumbo} and {ethernet}");
}

/// The library does not report its probe timeouts, so no part of a record counts them.
#[test]
fn timeouts_are_missing_everywhere() {
    let rounds = r#""kind": "request-response", "flows": 2, "barrier": true, "request_size": "200B",
        "response_size": "20kB", "requests": 3"#;
    let record = trial("", r#""quic""#, rounds, 1);
    let metrics = record.metrics.as_ref().unwrap();
    assert!(metrics["round_mean_s"].is_some());
    assert_eq!(metrics["round_timeout_share"], None);
    assert!(record.flows.iter().all(|flow| flow.timeouts.is_none()));
    let tcp = trial("", r#""tcp""#, rounds, 1);
    assert_eq!(tcp.metrics.unwrap()["round_timeout_share"], Some(0.0));
    assert!(tcp.flows.iter().all(|flow| flow.timeouts == Some(0)));

    let classes = r#""kind": "file", "size": "20kB", "classes": ["100kB"]"#;
    let record = trial("", r#""quic""#, classes, 1);
    let metrics = record.metrics.as_ref().unwrap();
    assert_eq!(metrics["flows_completed@G0"], Some(1.0));
    assert_eq!(metrics["timeouts@G0"], None);
}

/// Each request in progress has a stream of its own, so the loss of a packet delays no other response.
#[test]
fn streams_deliver_past_a_gap() {
    let page = r#""kind": "web-page", "request_size": "100B",
        "objects": [{"size": "20kB"}, {"size": "15kB", "count": 30, "after": 0}]"#;
    let objects = |kind: &str, packets: &str| {
        let path = format!(r#", "reverse": {{"loss": {{"kind": "packets", "packets": {packets}}}}}"#);
        let protocol = format!(r#""{kind}", "congestion": {{"kind": "fixed", "window": 30}}"#);
        figure(&trial(&path, &protocol, page, 1), "object_mean_s")
    };
    let delay = |kind: &str| objects(kind, "[80, 120, 160, 200, 240]") - objects(kind, "[]");
    let (tcp, quic) = (delay("tcp"), delay("quic"));
    assert!(0.0 < quic && quic < 0.8 * tcp, "{quic} and {tcp}");
}

/// A receiver whose flow control limits the connection gets the small objects behind a large one in their turns.
#[test]
fn streams_share_what_flow_control_allows() {
    let page = r#""kind": "web-page", "request_size": "100B",
        "objects": [{"size": "2MB"}, {"size": "10kB", "count": 20}]"#;
    let times = |keys: &str| {
        let record = trial(
            "",
            &format!(r#""quic", "receive_window": "32KiB"{keys}"#),
            page,
            1,
        );
        (figure(&record, "object_mean_s"), figure(&record, "fct_mean_s"))
    };
    let (object, whole) = times("");
    assert!(
        object > 0.95 * whole,
        "in the order of the requests: {object} of {whole}"
    );
    let (object, whole_in_turns) = times(r#", "fair_streams": true"#);
    // The small objects share the window with the large one: 420 kB of 2.2 MB, and half of that in the mean.
    assert!(
        object < 0.25 * whole_in_turns,
        "in turns: {object} of {whole_in_turns}"
    );
    assert!(
        (whole_in_turns / whole - 1.0).abs() < 0.05,
        "{whole_in_turns} and {whole}"
    );
}

#[test]
fn page_ends_with_its_last_object() {
    let page = r#""kind": "web-page", "objects": [{"size": "1kB"}, {"size": "2kB", "count": 300, "after": 0},
        {"size": "3kB", "after": 1, "pause": "50ms"}, {"size": "1kB", "after": 0}]"#;
    for protocol in [
        r#""tcp""#,
        r#""quic""#,
        r#""quic", "fair_streams": true"#,
        r#""selective-repeat""#,
    ] {
        let record = trial("", protocol, page, 1);
        assert_eq!(figure(&record, "flows_completed"), 1.0, "{protocol}");
        let flow = &record.flows[0];
        assert_eq!(
            (flow.error.as_deref(), figure(&record, "flows_failed")),
            (None, 0.0),
            "{protocol}"
        );
        // Round trips for the handshake, three objects in a row and the pause, and 600 kB.
        let time = figure(&record, "fct_p50_s");
        assert!((0.5..0.8).contains(&time), "{protocol}: {time}");
        assert!(figure(&record, "object_mean_s") < time, "{protocol}");
    }
}

/// Requests on several streams are in progress at once.
#[test]
fn requests_on_streams_share_round_trips() {
    let times = |protocol: &str, keys: &str| {
        let workload = format!(
            r#""kind": "request-response", "request_size": "200B", "response_size": "500B", "requests": 5{keys}"#
        );
        let record = trial("", protocol, &workload, 1);
        (figure(&record, "flows_completed"), figure(&record, "fct_p99_s"))
    };
    for protocol in [r#""tcp", "nagle": false"#, r#""quic""#] {
        let (one, alone) = times(protocol, "");
        let (many, together) = times(protocol, r#", "streams": 8"#);
        assert_eq!((one, many), (5.0, 40.0), "{protocol}");
        assert!(together < 1.3 * alone, "{protocol}: {together} and {alone}");
    }
}
