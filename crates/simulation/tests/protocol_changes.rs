//! Keys of protocols that change while their flows run.

use experiment::spec::TrialSpec;
use experiment::trace::{Series, TraceEvent, TraceEventKind};
use foundation::Duration;
use proptest::prelude::*;
use serde_json::{Value, json};
use simulation::session::Session;

const PATH: &str = r#"{"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt"}"#;

fn open(protocol: &str, network: &str) -> Session {
    let json = format!(
        r#"{{{network}, "protocol": {protocol}, "workload": {{"kind": "bulk", "duration": "60s"}}, "seed": 1}}"#
    );
    Session::new(&TrialSpec::from_json(&json).unwrap(), Duration::from_millis(10)).unwrap()
}

fn on_path(protocol: &str) -> Session {
    open(protocol, &format!(r#""path": {PATH}"#))
}

fn run(session: &mut Session, millis: u64) -> (Vec<TraceEvent>, Series) {
    session.advance(Duration::from_millis(millis))
}

fn set(session: &mut Session, key: &str, value: Value) {
    session.set_protocol(0, key, &value).unwrap();
}

fn is_data(event: &TraceEvent) -> bool {
    event.direction == Some("forward") && event.length.unwrap_or(0) > 0
}

/// Returns the times and the packets in flight of each transmission of new data after `base` packets were acknowledged.
fn in_flight(events: &[TraceEvent]) -> Vec<(f64, u32)> {
    let (mut acknowledged, mut found) = (0, Vec::new());
    for event in events {
        if event.what == TraceEventKind::Receive && event.direction == Some("reverse") {
            acknowledged = acknowledged.max(event.acknowledgement.unwrap_or(0));
        } else if event.what == TraceEventKind::Send && is_data(event) && !event.retransmission {
            found.push((event.time, event.sequence.unwrap() + 1 - acknowledged));
        }
    }
    found
}

#[test]
fn a_smaller_window_sends_no_new_data_until_the_data_in_flight_fits() {
    for kind in ["go-back-n", "selective-repeat"] {
        let mut session = on_path(&format!(r#"{{"kind": "{kind}", "window": 32}}"#));
        let (mut events, _) = run(&mut session, 1000);
        set(&mut session, "window", json!(4));
        events.extend(run(&mut session, 1000).0);
        set(&mut session, "window", json!(40));
        events.extend(run(&mut session, 1000).0);
        let sent = in_flight(&events);
        let most = |from: f64, to: f64| {
            let during = sent.iter().filter(|(time, _)| (from..to).contains(time));
            during.map(|(_, packets)| *packets).max()
        };
        assert_eq!(most(0.5, 1.0), Some(32), "{kind}");
        // 28 packets are acknowledged first, at the intervals of their transmission.
        assert_eq!(most(1.0, 1.02), None, "{kind}");
        assert_eq!(most(1.0, 2.0), Some(4), "{kind}");
        assert_eq!(
            most(2.0, 2.000_1),
            Some(40),
            "{kind}: a larger window is used at once"
        );
        assert_eq!(most(2.0, 3.0), Some(40), "{kind}");
        assert!(events.iter().all(|event| !event.retransmission), "{kind}");
    }
}

/// Returns the time from the loss of a packet that is sent at `at` ms to the timeout, if `change` applies 50 ms after it.
fn timeout_after(protocol: &str, change: impl Fn(&mut Session)) -> f64 {
    let mut session = on_path(protocol);
    run(&mut session, 1000);
    session.change_link("forward", "loss", &"100%".into()).unwrap();
    let (mut events, _) = run(&mut session, 50);
    change(&mut session);
    session.change_link("forward", "loss", &Value::Null).unwrap();
    events.extend(run(&mut session, 3000).0);
    let expired = events
        .iter()
        .find(|event| event.what == TraceEventKind::Timeout)
        .unwrap();
    let mut lost = events.iter().filter(|event| event.what == TraceEventKind::Drop);
    expired.time - lost.next().unwrap().time
}

#[test]
fn another_timeout_applies_to_packets_in_flight() {
    let fixed = r#"{"kind": "stop-and-wait", "rto": "700ms"}"#;
    let adaptive = r#"{"kind": "stop-and-wait", "min_rto": "200ms"}"#;
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    near(timeout_after(fixed, |_| {}), 0.7);
    near(
        timeout_after(fixed, |session| set(session, "rto", json!("300ms"))),
        0.3,
    );
    near(
        timeout_after(adaptive, |session| set(session, "rto", json!("300ms"))),
        0.3,
    );
    near(
        timeout_after(adaptive, |session| set(session, "min_rto", json!("400ms"))),
        0.4,
    );
    // The round trip is 41 ms, and the margin of an adaptive timeout is at least 4 ms: it has passed.
    let now_adaptive = timeout_after(fixed, |session| set(session, "rto", json!("adaptive")));
    assert!((0.04..0.051).contains(&now_adaptive), "{now_adaptive}");
}

#[test]
fn arq_receivers_take_the_frequency_and_the_delay_of_acks_over() {
    let mut session = on_path(r#"{"kind": "selective-repeat", "window": 8, "rto": "1s"}"#);
    let acks = |events: &[TraceEvent], from: f64| {
        let sent = events
            .iter()
            .filter(|event| event.what == TraceEventKind::Send && event.time > from);
        let (data, acks): (Vec<_>, Vec<_>) = sent.partition(|event| is_data(event));
        acks.len() as f64 / data.len() as f64
    };
    // Each of the first 128 packets has its own ACK.
    let (events, _) = run(&mut session, 2000);
    assert!((acks(&events, 1.0) - 1.0).abs() < 0.05);
    set(&mut session, "acknowledge_every", json!(4));
    set(&mut session, "acknowledge_delay", json!("20ms"));
    let (events, _) = run(&mut session, 1000);
    assert!((acks(&events, 2.2) - 0.25).abs() < 0.05);
    // With a window below the number of packets per ACK, each ACK waits for its delay.
    set(&mut session, "window", json!(3));
    set(&mut session, "acknowledge_delay", json!("50ms"));
    let (events, _) = run(&mut session, 2000);
    let data = events
        .iter()
        .filter(|event| event.what == TraceEventKind::Send && event.time > 3.5 && is_data(event));
    let rounds = data.count() as f64 / 3.0;
    // A round takes 40 ms, the delay, and the transmission of a data packet and an ACK.
    assert!((rounds - 1.5 / 0.091).abs() < 1.5, "{rounds}");
}

#[test]
fn tcp_takes_timers_over() {
    let timeout = |change: &dyn Fn(&mut Session)| {
        let mut session = on_path(r#"{"kind": "tcp", "congestion": "reno", "tail_loss_probe": false}"#);
        run(&mut session, 1000);
        change(&mut session);
        run(&mut session, 100);
        session.change_link("forward", "loss", &"100%".into()).unwrap();
        let (events, _) = run(&mut session, 5000);
        let expired = events
            .iter()
            .find(|event| event.what == TraceEventKind::Timeout)
            .unwrap();
        expired.time - 1.1
    };
    let usual = timeout(&|_| {});
    let long = timeout(&|session| set(session, "min_rto", json!("1200ms")));
    let short = timeout(&|session| set(session, "min_rto", json!("50ms")));
    assert!((long - usual - 1.0).abs() < 0.02, "{long}, {usual}");
    assert!((usual - short - 0.15).abs() < 0.05, "{usual}, {short}");

    let mut session = on_path(r#"{"kind": "tcp", "congestion": {"kind": "fixed", "window": 1}}"#);
    let segments = |session: &mut Session| {
        run(session, 1000);
        let (events, _) = run(session, 1000);
        events
            .iter()
            .filter(|event| event.what == TraceEventKind::Send && is_data(event))
            .count()
    };
    set(&mut session, "delayed_ack", json!("200ms"));
    run(&mut session, 5000);
    // Each segment waits for the delayed ACK of the one before.
    assert!((3..=5).contains(&segments(&mut session)));
    set(&mut session, "delayed_ack", json!("0ms"));
    assert!((22..=25).contains(&segments(&mut session)));
    set(&mut session, "delayed_ack", json!("160ms"));
    assert!((4..=6).contains(&segments(&mut session)));
    set(&mut session, "ack_every", json!(1));
    assert!((22..=25).contains(&segments(&mut session)));
}

#[test]
fn later_flows_and_those_in_a_handshake_have_the_new_settings() {
    let window = |series: &Series, flow: usize| series.flows[flow].cwnd_bytes.last().copied().flatten();
    let fixed = |packets: u32| json!({"kind": "fixed", "window": packets});
    let mut session = on_path(r#"{"kind": "tcp", "congestion": "reno"}"#);
    run(&mut session, 5);
    set(&mut session, "congestion", fixed(7));
    let (_, series) = run(&mut session, 500);
    assert_eq!(window(&series, 0), Some(7 * 1448));
    set(&mut session, "congestion", fixed(3));
    assert_eq!(session.start_flow(0, 0, None).unwrap(), 1);
    let (_, series) = run(&mut session, 500);
    assert_eq!(
        (window(&series, 0), window(&series, 1)),
        (Some(3 * 1448), Some(3 * 1448))
    );

    let mut session = on_path(r#"{"kind": "go-back-n", "window": 9, "acknowledge_every": 1}"#);
    run(&mut session, 5);
    set(&mut session, "window", json!(5));
    set(&mut session, "acknowledge_every", json!(5));
    set(&mut session, "acknowledge_delay", json!("100ms"));
    run(&mut session, 2000);
    session.start_flow(0, 0, None).unwrap();
    let (events, series) = run(&mut session, 3000);
    assert_eq!(
        (window(&series, 0), window(&series, 1)),
        (Some(5 * 1024), Some(5 * 1024))
    );
    let late = events
        .iter()
        .filter(|event| event.what == TraceEventKind::Send && event.time > 4.5);
    let (data, acks): (Vec<_>, Vec<_>) = late.partition(|event| is_data(event));
    assert!(
        data.len() > 4 * acks.len(),
        "{} data packets, {} ACKs",
        data.len(),
        acks.len()
    );
}

const TWO_PATHS: &str = r#""topology": {"kind": "multipath", "path": [
    {"rate": "5Mbit/s", "delay": "10ms", "queue": "50pkt"}, {"rate": "5Mbit/s", "delay": "20ms", "queue": "50pkt"}]}"#;

#[test]
fn mptcp_takes_scheduler_controller_and_timers_over() {
    let mut session = open(
        r#"{"kind": "mptcp", "scheduler": "min-rtt", "congestion": "lia"}"#,
        TWO_PATHS,
    );
    let copies = |session: &mut Session| {
        run(session, 500);
        let (events, _) = run(session, 2000);
        let sent: u64 = events
            .iter()
            .filter(|event| event.what == TraceEventKind::Send && is_data(event))
            .map(|event| u64::from(event.length.unwrap()))
            .sum();
        let read = events.iter().filter_map(|event| event.delivered);
        let (first, last) = (read.clone().min().unwrap(), read.max().unwrap());
        sent as f64 / (last - first) as f64
    };
    let once = copies(&mut session);
    assert!((0.9..1.15).contains(&once), "{once}");
    set(&mut session, "scheduler", json!("redundant"));
    let twice = copies(&mut session);
    assert!((1.7..2.2).contains(&twice), "{twice}");
    set(&mut session, "scheduler", json!({"kind": "round-robin"}));
    let once = copies(&mut session);
    assert!((0.9..1.15).contains(&once), "{once}");

    set(&mut session, "congestion", json!({"kind": "fixed", "window": 6}));
    set(&mut session, "delayed_ack", json!("1ms"));
    set(&mut session, "min_rto", json!("300ms"));
    let (_, series) = run(&mut session, 500);
    let window = series.flows[0].cwnd_bytes.last().copied().flatten().unwrap();
    assert_eq!(window % 12, 0);
    assert!(
        (12 * 1300..=12 * 1448).contains(&window),
        "{window}: six packets on each path"
    );
    set(&mut session, "congestion", json!("olia"));
    let (_, series) = run(&mut session, 2000);
    assert!(series.flows[0].cwnd_bytes.last().copied().flatten().unwrap() > window);
}

#[test]
fn refuses_keys_that_cannot_change() {
    let mut session = on_path(r#"{"kind": "go-back-n", "window": 8}"#);
    run(&mut session, 100);
    let error = session
        .set_protocol(0, "mss", &json!("200B"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("mss: cannot change while flows run: allowed: window, "),
        "{error}"
    );
    let (events, _) = run(&mut session, 1000);
    assert!(
        events
            .iter()
            .filter(|event| is_data(event))
            .all(|event| event.length == Some(1024))
    );
}

fn changes() -> impl Strategy<Value = (&'static str, Value)> {
    let time = prop_oneof![
        (1_u32..400).prop_map(|millis| json!(format!("{millis}ms"))),
        Just(json!("adaptive"))
    ];
    prop_oneof![
        (1_u32..80).prop_map(|window| ("window", json!(window))),
        time.prop_map(|time| ("rto", time)),
        (1_u32..400).prop_map(|millis| ("min_rto", json!(format!("{millis}ms")))),
        (1_u32..20).prop_map(|every| ("acknowledge_every", json!(every))),
        (0_u32..300).prop_map(|millis| ("acknowledge_delay", json!(format!("{millis}ms")))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(48), ..ProptestConfig::default() })]

    /// Receivers read the stream in order, which the simulator asserts.
    #[test]
    fn transfers_complete_despite_any_changes(
        selective in any::<bool>(),
        loss in 0_u32..15,
        steps in prop::collection::vec((0_u64..120, changes()), 0..25),
    ) {
        let kind = if selective { "selective-repeat" } else { "go-back-n" };
        let spec = format!(
            r#"{{"path": {{"rate": "10Mbit/s", "delay": "5ms", "queue": "20pkt", "loss": "{loss}%"}},
                "protocol": {{"kind": "{kind}", "window": 16}}, "workload": {{"kind": "file", "size": "200kB"}}, "seed": 3}}"#
        );
        let mut session = Session::new(&TrialSpec::from_json(&spec).unwrap(), Duration::from_millis(100)).unwrap();
        let mut delivered = 0;
        let mut take = |events: Vec<TraceEvent>| {
            delivered = events.iter().filter_map(|event| event.delivered).fold(delivered, u64::max);
        };
        for (wait, (key, value)) in steps {
            take(session.advance(Duration::from_millis(1 + wait)).0);
            session.set_protocol(0, key, &value).unwrap();
        }
        set(&mut session, "rto", json!("100ms"));
        set(&mut session, "window", json!(16));
        take(session.advance(Duration::from_secs(300)).0);
        prop_assert!(session.is_over());
        prop_assert_eq!(delivered, 200_000);
    }
}
