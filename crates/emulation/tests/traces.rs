//! Traces of trials on real kernels: packets, connections and queues over time.

use std::collections::BTreeSet;

use crate::common;
use emulation::Error;
use emulation::trial::{ControllerNames, Trace, Tracing, TrialError, run_traced};
use experiment::Side;
use experiment::trace::capture::CaptureOptions;
use experiment::trace::{TraceEvent, TraceEventKind};
use experiment::{TrialRecord, TrialSpec};
use foundation::Duration;

fn traced(json: &str) -> Option<(TrialRecord, Trace)> {
    let spec = TrialSpec::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let tracing = Tracing {
        interval: Some(Duration::from_millis(5)),
    };
    match run_traced(&spec, &ControllerNames::new(), None, tracing) {
        Ok(traced) => {
            assert_eq!(traced.0.error, None, "{json}");
            Some(traced)
        }
        Err(TrialError::Emulation(error @ (Error::Permission { .. } | Error::Missing { .. }))) => {
            common::skip_without(&error);
            None
        }
        Err(error) => panic!("{error}: {json}"),
    }
}

fn ids(trace: &Trace, what: TraceEventKind) -> BTreeSet<u64> {
    let of = |event: &&TraceEvent| event.what == what;
    trace
        .events
        .iter()
        .filter(of)
        .filter_map(|event| event.id)
        .collect()
}

#[test]
fn traces_segments_and_windows_of_the_kernel() {
    let Some((record, trace)) = traced(
        r#"{"path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "50pkt", "loss": {"packets": [100]}, "reverse": {"loss": "0%"}},
            "protocol": {"kind": "tcp", "congestion": "reno"}, "workload": {"kind": "file", "size": "1MB"}, "seed": 1}"#,
    ) else {
        return;
    };
    let (sent, received, dropped) = (
        ids(&trace, TraceEventKind::Send),
        ids(&trace, TraceEventKind::Receive),
        ids(&trace, TraceEventKind::Drop),
    );
    assert!(received.is_disjoint(&dropped) && received.is_subset(&sent));
    assert!(!dropped.is_empty(), "packet 100 is lost");
    assert!(trace.events.is_sorted_by_key(|event| (event.time * 1e9) as u64));
    // Every byte after the SYN was sent, and the lost segment twice.
    let data = |event: &&TraceEvent| event.what == TraceEventKind::Send && event.frame == Some("data");
    let first = trace.events.iter().find(data).unwrap();
    assert_eq!((first.sequence, first.direction), (Some(1), Some("forward")));
    let lost = trace
        .events
        .iter()
        .find(|event| event.what == TraceEventKind::Drop)
        .unwrap();
    let copies = trace
        .events
        .iter()
        .filter(|e| data(e) && e.sequence == lost.sequence);
    assert!(copies.clone().count() >= 2);
    assert!(copies.clone().any(|event| event.retransmission));
    let again = trace
        .events
        .iter()
        .filter(|e| data(e) && e.retransmission)
        .count() as u64;
    // Their number depends on the kernel's batching and timers.
    assert!(again >= 1 && record.flows[0].retransmissions >= 1, "{again}");
    let read = trace.events.iter().filter_map(|event| event.delivered).max();
    assert_eq!(read, Some(1_000_000));
    // The first segment meets an empty queue: 10 ms plus 1500 bytes at 20 Mbit/s.
    let at = |what: TraceEventKind| {
        trace
            .events
            .iter()
            .find(|e| e.what == what && e.id == first.id)
            .unwrap()
            .time
    };
    let length = first.length.unwrap();
    assert!((1..=1448).contains(&length), "{length}");
    let minimum = 0.010 + f64::from(length + 52) * 8.0 / 20e6;
    assert!(at(TraceEventKind::Receive) - at(TraceEventKind::Send) >= minimum - 1e-9);

    let series = trace.series.as_ref().unwrap();
    let flow = &series.flows[0];
    // A sample every 5 ms for at least 0.4 s; a busy machine misses some.
    assert!(flow.time.len() > 5, "{}", flow.time.len());
    assert!(flow.time.is_sorted());
    let maximum = flow.cwnd_bytes.iter().flatten().max().unwrap();
    assert!((14_480..2_000_000).contains(maximum), "{maximum}");
    // Reno has a threshold after its first recovery.
    assert!(flow.ssthresh_bytes.iter().any(Option::is_some));
    assert!(flow.state.contains(&"recovery") || flow.state.contains(&"open"));
    assert!(flow.srtt_s.iter().flatten().all(|rtt| *rtt >= 0.02));
    assert!(flow.rttvar_s.iter().flatten().any(|variation| *variation > 0.0));
    assert!(flow.pacing_bps.iter().flatten().any(|rate| *rate > 1e6));
    assert!(flow.delivery_bps.iter().flatten().any(|rate| *rate > 1e6));
    assert!(flow.in_flight_bytes.iter().any(|bytes| *bytes > 14_000));
    assert_eq!(
        flow.retransmissions.last().unwrap().map(|count| count > 0),
        Some(true)
    );
    assert!(series.queues[0].packets.iter().max() > Some(&1));
}

#[test]
fn capture_has_the_kernels_packets() {
    let Some((_, trace)) = traced(
        r#"{"path": {"rate": "20Mbit/s", "delay": "5ms"}, "protocol": {"kind": "tcp", "congestion": "cubic"},
            "workload": {"kind": "file", "size": "50kB"}, "seed": 1}"#,
    ) else {
        return;
    };
    let size = |side: Option<Side>, snap: Option<u32>| {
        let mut bytes = Vec::new();
        trace
            .write_capture(&mut bytes, CaptureOptions { side, snap })
            .unwrap();
        // The magic number of a pcapng section header.
        assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        bytes.len()
    };
    let (sender, receiver, both) = (
        size(Some(Side::Sender), None),
        size(Some(Side::Receiver), None),
        size(None, None),
    );
    assert!(sender > 50_000 && receiver > 50_000 && both > sender + receiver - 1000);
    assert!(size(Some(Side::Sender), Some(64)) < sender / 4);
}

#[test]
fn traces_arq_frames_in_datagrams() {
    let Some((record, trace)) = traced(
        r#"{"path": {"rate": "10Mbit/s", "delay": "5ms", "loss": {"packets": [12]}, "reverse": {"loss": "0%"}},
            "protocol": {"kind": "go-back-n", "window": 4}, "workload": {"kind": "file", "size": "50kB"}, "seed": 1}"#,
    ) else {
        return;
    };
    let data: Vec<&TraceEvent> = trace
        .events
        .iter()
        .filter(|event| event.what == TraceEventKind::Send && event.frame == Some("data"))
        .collect();
    assert_eq!(data.len() as u64, record.flows[0].packets_sent);
    assert_eq!(data[0].length, Some(1024));
    // Sequence numbers are relative to the connection's first.
    let numbers: BTreeSet<u32> = data.iter().filter_map(|event| event.sequence).collect();
    assert_eq!(numbers.last().unwrap() - numbers.first().unwrap(), 48);
    assert!(*numbers.first().unwrap() <= 1);
    assert!(
        trace
            .events
            .iter()
            .any(|event| event.what == TraceEventKind::Timeout)
    );
    let flow = &trace.series.as_ref().unwrap().flows[0];
    assert_eq!(flow.cwnd_bytes.iter().flatten().max(), Some(&4096));
}

#[test]
fn traces_marks_and_corruption() {
    let Some((_, trace)) = traced(
        r#"{"path": {"rate": "5Mbit/s", "delay": "10ms", "corrupt": "1%", "queue": {"kind": "codel", "ecn": true, "limit": "200pkt"}},
            "protocol": {"kind": "tcp", "congestion": "cubic", "ecn": true},
            "workload": {"kind": "bulk", "duration": "3s"}, "seed": 1}"#,
    ) else {
        return;
    };
    let marked = ids(&trace, TraceEventKind::Mark);
    assert!(!marked.is_empty());
    let arrived = trace
        .events
        .iter()
        .filter(|e| e.what == TraceEventKind::Receive && e.marked);
    let arrived: BTreeSet<u64> = arrived.filter_map(|event| event.id).collect();
    assert!(arrived.is_subset(&marked) && !arrived.is_empty());
    assert!(!ids(&trace, TraceEventKind::Corrupt).is_empty());
}

/// A client with a server at 2 ms and one at 30 ms.
#[test]
fn requests_wait_at_a_barrier_for_the_slowest_response() {
    for protocol in [
        r#"{"kind": "tcp", "congestion": "reno"}"#,
        r#"{"kind": "tcp", "stack": "longfat"}"#,
        r#"{"kind": "mptcp"}"#,
        r#"{"kind": "selective-repeat"}"#,
    ] {
        let Some((record, trace)) = traced(&format!(
            r#"{{"topology": {{"kind": "free", "hosts": ["client", "near", "far"], "links": [
                {{"from": "client", "to": "near", "delay": "2ms"}}, {{"from": "client", "to": "far", "delay": "30ms"}}]}},
                "protocol": {protocol}, "seed": 1, "workload": {{"kind": "request-response", "requests": 4, "barrier": true,
                "request_size": "100B", "response_size": "1kB", "from": "client", "to": ["near", "far"]}}}}"#
        )) else {
            return;
        };
        assert_eq!(
            record.metrics.as_ref().unwrap()["flows_completed"],
            Some(8.0),
            "{protocol}"
        );
        let round = record.metrics.as_ref().unwrap()["round_p50_s"].unwrap();
        assert!(round >= 0.06, "{protocol}: {round}");
        // The requests to the near server, whose round trip takes 4 ms.
        let requests: Vec<f64> = trace
            .events
            .iter()
            .filter(|event| event.flow == 0 && event.host == "sender" && event.what == TraceEventKind::Send)
            .filter(|event| event.frame == Some("data"))
            .map(|event| event.time)
            .collect();
        // The last request may carry the FIN, and is then no plain data.
        assert!(requests.len() >= 3, "{protocol}: {requests:?}");
        assert!(requests[2] - requests[0] >= 0.115, "{protocol}: {requests:?}");
    }
}
