//! One request and one reply over each TCP: the segments that it takes, and the time.

use experiment::TrialSpec;
use experiment::trace::TraceEventKind;
use simulation::trace::Recorder;
use simulation::trial::run_watched;

/// What a transaction of each of three connections in a row took.
struct Took {
    segments: Vec<usize>,
    milliseconds: Vec<f64>,
}

fn run(keys: &str, response: &str) -> Took {
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
    Took {
        segments: (0..3).map(sent).collect(),
        milliseconds: times,
    }
}

fn assert_times(took: &Took, expected: [f64; 3]) {
    for (found, expected) in took.milliseconds.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{:?}", took.milliseconds);
    }
    assert_eq!(took.milliseconds.len(), 3);
}

#[test]
fn tcp_takes_two_round_trips_each_time() {
    // SYN; SYN,ACK; request,FIN; reply,FIN; ACK: what goes together is written together here.
    let took = run("", "300B");
    assert_eq!(took.segments[..2], [5, 5]);
    assert_times(&took, [80.0; 3]);
}

#[test]
fn ttcp_takes_three_segments_and_one_round_trip_after_the_first_time() {
    let took = run(r#", "ttcp": true"#, "300B");
    assert_eq!(took.segments[..2], [5, 3]);
    assert_times(&took, [80.0, 40.0, 40.0]);
}

#[test]
fn fast_open_takes_one_round_trip_after_the_first_time() {
    // SYN,request; SYN,ACK; reply; the client's FIN; the server's; ACK.
    let took = run(r#", "fast_open": true"#, "300B");
    assert_eq!(took.segments[..2], [5, 6]);
    assert_times(&took, [80.0, 40.0, 40.0]);
}

#[test]
fn a_longer_reply_begins_as_early() {
    // Nagle's algorithm would hold the reply's last segment back until the others are acknowledged: the server, which is not
    // reported of the request's end with the SYN, does not yet end its stream.
    for keys in [r#", "ttcp": true"#, r#", "fast_open": true, "nagle": false"#] {
        let took = run(keys, "12kB");
        assert_times(&took, [80.0, 40.0, 40.0]);
    }
}
