//! Segments and duration of one request and reply over TCP, Fast Open and T/TCP.

use experiment::TrialSpec;
use experiment::trace::TraceEventKind;
use simulation::trace::Recorder;
use simulation::trial::run_watched;

/// Results of three consecutive connections with one transaction each.
struct Transactions {
    segments: Vec<usize>,
    milliseconds: Vec<f64>,
}

fn run(keys: &str, response: &str) -> Transactions {
    let json = format!(
        r#"{{"path": {{"delay": "20ms"}}, "seed": 1,
            "protocol": {{"kind": "tcp", "profile": "rfc"{keys}}},
            "workload": {{"kind": "request-response", "requests": 3, "reconnect": true, "think": "1s",
                "request_size": "400B", "response_size": "{response}"}}}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap();
    let (record, mut world) = run_watched(&spec, None, Recorder::default(), None).unwrap();
    assert_eq!(record.error, None);
    let times: Vec<f64> = world
        .outcomes()
        .iter()
        .flat_map(|flow| &flow.transactions)
        .map(|it| (it.responded_at - it.requested_at).as_secs_f64() * 1e3)
        .collect();
    let events = std::mem::take(world.network_mut().observer_mut()).table.events;
    let sent = |flow: u32| {
        events
            .iter()
            .filter(|event| event.what == TraceEventKind::Send && event.flow == flow)
            .count()
    };
    Transactions {
        segments: (0..3).map(sent).collect(),
        milliseconds: times,
    }
}

fn assert_times(found: &Transactions, expected: [f64; 3]) {
    for (time, expected) in found.milliseconds.iter().zip(expected) {
        assert!((time - expected).abs() < 1e-6, "{:?}", found.milliseconds);
    }
    assert_eq!(found.milliseconds.len(), 3);
}

#[test]
fn tcp_takes_two_round_trips_each_time() {
    // SYN; SYN,ACK; request,FIN; reply,FIN; ACK, because data and close are written together.
    let found = run("", "300B");
    assert_eq!(found.segments[..2], [5, 5]);
    assert_times(&found, [80.0; 3]);
}

#[test]
fn ttcp_takes_three_segments_and_one_round_trip_after_the_first_time() {
    let found = run(r#", "ttcp": true"#, "300B");
    assert_eq!(found.segments[..2], [5, 3]);
    assert_times(&found, [80.0, 40.0, 40.0]);
}

#[test]
fn fast_open_takes_one_round_trip_after_the_first_time() {
    // SYN,request; SYN,ACK; reply; the client's FIN; the server's; ACK.
    let found = run(r#", "fast_open": true"#, "300B");
    assert_eq!(found.segments[..2], [5, 6]);
    assert_times(&found, [80.0, 40.0, 40.0]);
}

#[test]
fn a_longer_reply_starts_as_early() {
    // Nagle's algorithm would delay the reply's last segment until the others are acknowledged: the server has not
    // received the end of the request with the SYN, so it does not close its stream yet.
    for keys in [r#", "ttcp": true"#, r#", "fast_open": true, "nagle": false"#] {
        let found = run(keys, "12kB");
        assert_times(&found, [80.0, 40.0, 40.0]);
    }
}
