//! Real-time frames in the world: over a byte stream, on streams of QUIC, and in its datagrams.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

/// Each way takes 50 ms, and a frame of 1 kB less than 1 ms.
const PATH: &str = r#""rate": "20Mbit/s", "delay": "50ms""#;
const TCP: &str = r#""tcp", "nagle": false"#;
const STREAMS: &str = r#""quic""#;
const DATAGRAMS: &str = r#""quic", "datagrams": true"#;
/// 50 frames per second, a frame each 20 ms.
const SMALL: &str = r#""size": "1kB", "frame_rate": "50/s", "deadline": "75ms""#;

fn trial(path: &str, protocol: &str, frames: &str) -> TrialRecord {
    let json = format!(
        r#"{{"path": {{{PATH}{path}}}, "protocol": {{"kind": {protocol}, "congestion": {{"kind": "fixed", "window": 80}}}},
            "workload": {{"kind": "frames", "duration": "6s", "warm_up": "1s", {frames}}}, "seed": 1}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let record = run(&spec, None).unwrap();
    assert_eq!(record.error, None, "{json}");
    record
}

fn figure(record: &TrialRecord, name: &str) -> f64 {
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

/// Loses the packets of these numbers from the sender.
fn losing(packets: &str) -> String {
    format!(r#", "loss": {{"kind": "packets", "packets": {packets}}}, "reverse": {{}}"#)
}

/// Returns the frames that are late or missing.
fn late(record: &TrialRecord) -> f64 {
    let sent = figure(record, "frames_sent");
    (sent * (1.0 - figure(record, "frame_in_time_share"))).round()
}

#[test]
fn frames_take_the_delay_of_the_path_without_loss() {
    for protocol in [TCP, STREAMS, DATAGRAMS] {
        let record = trial("", protocol, SMALL);
        // Sent from 1 s on, 75 ms before the end at the latest.
        assert_eq!(figure(&record, "frames_sent"), 247.0, "{protocol}");
        assert_eq!(figure(&record, "frames_missing"), 0.0, "{protocol}");
        assert_eq!(figure(&record, "frame_in_time_share"), 1.0, "{protocol}");
        // 50 frames of 1 kB in each of 5 s.
        assert_eq!(figure(&record, "goodput_bps"), 400e3, "{protocol}");
        for name in ["frame_delay_p50_s", "frame_delay_p99_s"] {
            let delay = figure(&record, name);
            assert!((0.0504..0.0506).contains(&delay), "{protocol}: {delay}");
        }
    }
}

/// The ACK of the next packet arrives 121 ms after the lost one was sent. QUIC retransmits then; TCP waits until a quarter of the RTT
/// has passed after it (RACK: RFC 8985, section 6.2), so that its retransmission arrives after 176 ms. The frames of the 101 ms between the lost
/// one and 75 ms before that wait for it, and are late, too.
#[test]
fn a_lost_packet_delays_later_frames_over_a_byte_stream_only() {
    let loss = losing("[150]");
    let tcp = trial(&loss, TCP, SMALL);
    assert_eq!((late(&tcp), figure(&tcp, "frames_missing")), (6.0, 0.0));
    let streams = trial(&loss, STREAMS, SMALL);
    assert_eq!((late(&streams), figure(&streams, "frames_missing")), (1.0, 0.0));
    let datagrams = trial(&loss, DATAGRAMS, SMALL);
    assert_eq!(
        (late(&datagrams), figure(&datagrams, "frames_missing")),
        (1.0, 1.0)
    );
    assert_eq!(figure(&datagrams, "retransmissions"), 0.0);
}

/// With time for a retransmission, streams deliver what datagrams lose.
#[test]
fn a_retransmission_arrives_before_a_late_deadline() {
    let frames = SMALL.replace("75ms", "250ms");
    let loss = losing("[150]");
    assert_eq!(late(&trial(&loss, STREAMS, &frames)), 0.0);
    assert_eq!(late(&trial(&loss, TCP, &frames)), 0.0);
    assert_eq!(late(&trial(&loss, DATAGRAMS, &frames)), 1.0);
}

/// A frame of 10 kB needs 7 packets of 1472 bytes, and none arrives without all of them.
#[test]
fn large_frames_are_split_into_datagrams() {
    let frames = r#""size": "10kB", "frame_rate": "50/s""#;
    let record = trial("", DATAGRAMS, frames);
    assert_eq!(figure(&record, "frame_in_time_share"), 1.0);
    let packets = figure(&record, "packets_sent");
    assert!((7.0 * 249.0..=7.0 * 251.0).contains(&packets), "{packets}");
    let record = trial(&losing("[600, 601, 650]"), DATAGRAMS, frames);
    assert_eq!(figure(&record, "frames_missing"), 2.0);
}

/// Congestion control applies to DATAGRAM frames (RFC 9221, section 5.4), and the oldest ones leave a full buffer.
#[test]
fn a_full_buffer_drops_the_oldest_frames() {
    let frames = r#""size": "10kB", "frame_rate": "50/s""#;
    let protocol = DATAGRAMS.to_owned() + r#", "send_window": "32KiB""#;
    let slow = r#", "reverse": {}, "queue": "1000pkt", "loss": "0%""#;
    let record = trial(slow, &protocol, &frames.replace("50/s", "500/s"));
    assert!(figure(&record, "frames_missing") > 0.0);
}

#[test]
fn same_seed_same_frames() {
    let of = |protocol: &str| serde_json::to_string(&trial(r#", "loss": "2%""#, protocol, SMALL)).unwrap();
    for protocol in [STREAMS, DATAGRAMS] {
        assert_eq!(of(protocol), of(protocol));
    }
}

/// Traffic of frames that ends before the trial closes its connection.
#[test]
fn frames_of_traffic_end_orderly() {
    for protocol in [TCP, STREAMS, DATAGRAMS] {
        let json = format!(
            r#"{{"path": {{{PATH}}}, "protocol": {{"kind": "tcp"}}, "workload": {{"kind": "bulk", "duration": "3s"}}, "seed": 1,
                "traffic": [{{"name": "video", "protocol": {{"kind": {protocol}}},
                    "workload": {{"kind": "frames", "size": "5kB", "duration": "1s"}}}}]}}"#
        );
        let record = run(&TrialSpec::from_json(&json).unwrap(), None).unwrap();
        let video = &record.flows[1];
        assert_eq!(
            (video.error.as_deref(), video.traffic.as_deref()),
            (None, Some("video"))
        );
        assert!(video.goodput_bps > Some(0.0), "{protocol}");
    }
}

#[test]
fn conflicting_keys_are_errors() {
    let problem = |protocol: &str, workload: &str| {
        let json = format!(
            r#"{{"path": {{{PATH}}}, "protocol": {{"kind": {protocol}}}, "workload": {{"kind": {workload}}}, "seed": 1}}"#
        );
        TrialSpec::from_json(&json).unwrap_err().to_string()
    };
    let found = problem(DATAGRAMS, r#""bulk", "duration": "1s""#);
    assert!(found.contains("remove datagrams of the protocol"), "{found}");
    let frames = r#""frames", "size": "1kB", "duration": "1s""#;
    let found = problem(r#""quic", "datagrams": true, "fair_streams": true"#, frames);
    assert!(
        found.contains("true has no streams: remove fair_streams"),
        "{found}"
    );
    let found = problem(r#""udp""#, frames);
    assert!(found.contains("udp cannot carry \"frames\""), "{found}");
    let found = problem(
        TCP,
        r#""frames", "size": "1kB", "duration": "1s", "deadline": "2s""#,
    );
    assert!(found.contains("leaves no frame to measure"), "{found}");
    let found = problem(
        TCP,
        r#""frames", "size": "1kB", "duration": "1s", "frame_rate": "200000/s""#,
    );
    assert!(found.contains("\"0.1/s\" to \"100000/s\""), "{found}");
}
