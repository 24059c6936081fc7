//! Trials in steps.

use experiment::Side;
use experiment::spec::TrialSpec;
use experiment::trace::{TraceDetail, TraceEvent, TraceEventKind};
use foundation::{Duration, Rate};
use proptest::prelude::*;
use simulation::environment::{Action, Environment};
use simulation::session::Session;

const SPEC: &str = r#"{"path": {"rate": "5Mbit/s", "delay": "10ms", "queue": "20pkt", "loss": "1%"},
    "protocol": {"kind": "tcp", "congestion": "cubic"}, "workload": {"kind": "bulk", "duration": "3s"}, "seed": 1}"#;

fn session() -> Session {
    Session::new(&TrialSpec::from_json(SPEC).unwrap(), Duration::from_millis(7)).unwrap()
}

/// Runs to the end in steps of these lengths in ms, with changes at 1 s; returns events, samples and metrics as text.
fn run(steps: &[u64]) -> (Vec<TraceEvent>, Vec<f64>, String) {
    let mut session = session();
    let (mut events, mut samples) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut lengths = steps.iter().cycle();
    while !session.is_over() {
        let left = if at < 1000 { 1000 - at } else { u64::MAX };
        let step = left.min(*lengths.next().unwrap());
        let (new, series) = session.advance(Duration::from_millis(step));
        at += step;
        events.extend(new);
        samples.extend(series.flows.iter().flat_map(|flow| flow.goodput_bps.clone()));
        if at == 1000 {
            session.change_link("forward", "delay", &"20ms".into()).unwrap();
            session.change_link("forward", "queue", &"codel".into()).unwrap();
            session
                .set_controller(0, &serde_json::from_str("\"reno\"").unwrap())
                .unwrap();
            session.set_protocol(0, "min_rto", &"300ms".into()).unwrap();
        }
    }
    (events, samples, serde_json::to_string(&session.finish()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(8), ..ProptestConfig::default() })]

    #[test]
    fn step_sizes_do_not_affect_results(steps in prop::collection::vec(1_u64..400, 1..5)) {
        prop_assert_eq!(run(&steps), run(&[1000]));
    }
}

#[test]
fn sessions_without_changes_equal_trials() {
    let spec = TrialSpec::from_json(SPEC).unwrap();
    let mut session = session();
    while !session.is_over() {
        session.advance(Duration::from_millis(13));
    }
    let whole = simulation::run(&spec, None).unwrap();
    let stepped = serde_json::to_string(&session.finish()).unwrap();
    assert_eq!(stepped, serde_json::to_string(&whole).unwrap());
}

#[test]
fn refuses_unknown_links_and_flows() {
    let mut session = session();
    let error = session
        .change_link("forwrad", "delay", &"20ms".into())
        .unwrap_err();
    assert!(error.to_string().contains("did you mean \"forward\"?"), "{error}");
    let reno = serde_json::from_str("\"reno\"").unwrap();
    assert!(session.set_controller(0, &reno).is_err(), "not established yet");
    session.advance(Duration::from_millis(100));
    session.set_controller(0, &reno).unwrap();
    assert!(session.set_controller(1, &reno).is_err());
}

#[test]
fn agents_set_rate_and_window() {
    let text = SPEC.replace(r#", "loss": "1%""#, "");
    let spec = TrialSpec::from_json(&text).unwrap();
    let interval = Duration::from_millis(10);
    let mut environment = Environment::new(&spec, 1).unwrap();
    let paced = Action {
        window: 1 << 40,
        rate: Rate::from_bits_per_second(2_000_000),
    };
    let acked: u64 = (0..100)
        .map(|_| environment.step(&[paced], interval)[0].acknowledged)
        .sum();
    let goodput = acked as f64 * 8.0;
    assert!((1.8e6..2.15e6).contains(&goodput), "{goodput}");
    let narrow = Action {
        window: 2 * 1448,
        rate: None,
    };
    let narrow: u64 = (0..100)
        .map(|_| environment.step(&[narrow], interval)[0].acknowledged)
        .sum();
    // Two segments each RTT, of 20 ms and the transmission of two packets.
    assert!((75 * 1448..90 * 1448).contains(&narrow), "{narrow}");
}

#[test]
fn a_requested_packet_is_lost_at_the_end_of_its_link() {
    let mut session = session();
    session.record_crossings(true);
    session.set_detail(TraceDetail::All);
    session.advance(Duration::from_millis(300));
    let crossings = session.take_crossings().unwrap();
    let now = session.now().as_secs_f64();
    let &(id, link, start, end, arrival) = crossings
        .sent
        .iter()
        .find(|(_, link, .., arrival)| *link == 0 && *arrival > now)
        .unwrap();
    assert!(start <= end && end <= arrival);
    session.lose(id).unwrap();
    let (events, _) = session.advance(Duration::from_millis(200));
    let fate: Vec<_> = events.iter().filter(|event| event.id == Some(id)).collect();
    assert_eq!(fate.len(), 1, "{fate:?}");
    assert_eq!(
        (fate[0].reason, fate[0].time),
        (Some("request"), arrival),
        "link {link}"
    );
    assert!(session.lose(id).is_err(), "it is gone");
}

#[test]
fn the_next_packet_of_a_flow_is_lost() {
    let mut session = session();
    session.advance(Duration::from_millis(300));
    session.lose_next(0, Side::Receiver).unwrap();
    session.lose_next(0, Side::Sender).unwrap();
    let (events, _) = session.advance(Duration::from_millis(300));
    let lost: Vec<_> = events
        .iter()
        .filter(|event| event.reason == Some("request"))
        .collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    for direction in ["forward", "reverse"] {
        let first = events
            .iter()
            .find(|event| event.what == TraceEventKind::Send && event.direction == Some(direction))
            .unwrap();
        assert!(
            lost.iter().any(|event| event.id == first.id),
            "{direction}: the next packet"
        );
    }
    assert!(session.lose_next(7, Side::Receiver).is_err());
}

#[test]
fn flows_start_and_stop_while_it_runs() {
    let mut session = session();
    session.advance(Duration::from_millis(500));
    let second = session.start_flow(0, 0, None).unwrap();
    let third = session.start_flow(0, 0, Some(100_000)).unwrap();
    assert_eq!((second, third), (1, 2));
    assert!(
        session.start_flow(0, 1, None).is_err(),
        "a path has one pair of hosts"
    );
    let (events, _) = session.advance(Duration::from_millis(1000));
    let read = events
        .iter()
        .filter(|event| event.flow == third)
        .filter_map(|event| event.delivered);
    assert_eq!(read.max(), Some(100_000));
    session.stop_flow(0).unwrap();
    let (events, _) = session.advance(Duration::from_millis(1400));
    let sent = |flow, after| {
        let data = events
            .iter()
            .filter(move |event| event.flow == flow && event.time > after);
        data.filter(|event| event.what == TraceEventKind::Send && event.length.unwrap_or(0) > 0)
            .count()
    };
    assert_eq!((sent(0, 2.7), sent(1, 2.7) > 30), (0, true));
    assert!(session.stop_flow(0).is_err(), "it has ended");
}

#[test]
fn losses_on_request_do_not_depend_on_the_steps() {
    let run = |steps: &[u64]| {
        let mut session = session();
        let mut events = Vec::new();
        for &step in steps {
            events.extend(session.advance(Duration::from_millis(step)).0);
            if session.now().as_secs_f64() == 0.5 {
                session.lose_next(0, Side::Receiver).unwrap();
                session.start_flow(0, 0, None).unwrap();
            }
        }
        events
    };
    assert_eq!(run(&[500, 500]), run(&[100, 150, 250, 1, 499]));
}

#[test]
fn flows_started_at_once_follow_those_that_are_due() {
    let mut session = session();
    let fixed = serde_json::from_str(r#"{"kind": "fixed", "window": 4}"#).unwrap();
    session.set_later_controllers(&fixed).unwrap();
    session.lose_next(0, Side::Receiver).unwrap();
    assert_eq!(session.start_flow(0, 0, None).unwrap(), 1, "flow 0 starts first");
    let (events, series) = session.advance(Duration::from_millis(500));
    let windows: Vec<_> = series
        .flows
        .iter()
        .map(|flow| flow.cwnd_bytes.last().copied().flatten())
        .collect();
    assert_eq!(windows[1], Some(4 * 1448));
    assert_ne!(windows[0], windows[1]);
    assert!(
        events
            .iter()
            .any(|event| event.reason == Some("request") && event.flow == 0)
    );
}

/// The ways of packets name the times at which they really leave, also after a move to another queue.
#[test]
fn packets_that_move_to_another_queue_have_new_transmission_times() {
    let mut session = session();
    session.record_crossings(true);
    session.advance(Duration::from_millis(300));
    session
        .change_link("forward", "rate", &"500kbit/s".into())
        .unwrap();
    session.advance(Duration::from_millis(200));
    let before = session.take_crossings().unwrap();
    assert!(before.requeued.is_empty());
    let now = session.now().as_secs_f64();
    let waiting = before
        .sent
        .iter()
        .filter(|(_, link, start, ..)| *link == 0 && *start > now);
    let waiting: Vec<(u64, u32)> = waiting.map(|&(id, link, ..)| (id, link)).collect();
    assert!(waiting.len() > 3, "{waiting:?}");
    session
        .change_link("forward", "queue", &"drop-head".into())
        .unwrap();
    session
        .change_link("forward", "rate", &"10Mbit/s".into())
        .unwrap();
    let (events, _) = session.advance(Duration::from_millis(200));
    let after = session.take_crossings().unwrap();
    assert_eq!(after.requeued, waiting);
    for (id, _) in waiting {
        let (.., arrival) = after.sent.iter().find(|sent| sent.0 == id).unwrap();
        let received = events
            .iter()
            .find(|event| event.id == Some(id) && event.what == TraceEventKind::Receive);
        assert_eq!(received.unwrap().time, *arrival);
    }
}

#[test]
fn groups_have_their_own_protocols_and_flows() {
    let json = r#"{"path": {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt"}, "seed": 1,
        "protocol": {"kind": "tcp", "congestion": "cubic"}, "workload": {"kind": "bulk", "duration": "60s"},
        "traffic": [{"name": "b", "protocol": {"kind": "tcp", "congestion": "reno"}, "workload": {"kind": "bulk"}}]}"#;
    let spec = TrialSpec::from_json(json).unwrap();
    let mut session = Session::new(&spec, Duration::from_millis(10)).unwrap();
    session.record_decisions();
    session.advance(Duration::from_millis(500));
    assert_eq!(session.start_flow(1, 0, Some(30_000)).unwrap(), 2);
    let fixed = serde_json::json!({"kind": "fixed", "window": 4});
    session.set_protocol(1, "congestion", &fixed).unwrap();
    let groups: Vec<_> = session
        .take_started()
        .iter()
        .map(|one| (one.flow, one.group))
        .collect();
    assert_eq!(groups, [(0, 0), (1, 1), (2, 1)]);
    let (_, series) = session.advance(Duration::from_millis(100));
    let windows = |flow: usize| series.flows[flow].cwnd_bytes.last().copied().flatten();
    assert_eq!(windows(1), Some(4 * 1448));
    assert!(windows(0).unwrap() > 4 * 1448);
    assert!(session.set_protocol(2, "congestion", &fixed).is_err());
    assert!(session.start_flow(2, 0, None).is_err());
}
