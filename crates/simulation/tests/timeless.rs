//! Paths without rate and delay: every trial ends, with a result or an error that names the cause.

use std::time::{Duration as WallTime, Instant as WallClock};

use proptest::prelude::*;
use serde_json::{Value, json};
use simulation::session::Session;
use simulation::trial::{TrialError, run};

use experiment::TrialSpec;
use foundation::Duration;

/// Far above the time of any trial here.
const PATIENCE: WallTime = WallTime::from_secs(60);

fn spec(network: &Value, protocol: &Value, workload: &Value) -> Result<TrialSpec, String> {
    let mut spec = json!({"protocol": protocol, "workload": workload, "seed": 1});
    for (key, value) in network.as_object().unwrap() {
        spec[key] = value.clone();
    }
    TrialSpec::from_json(&spec.to_string()).map_err(|error| error.to_string())
}

fn ends(network: &Value, protocol: &Value, workload: &Value) -> Result<Option<String>, String> {
    let spec = spec(network, protocol, workload)?;
    let started = WallClock::now();
    let is_late = || started.elapsed() > PATIENCE;
    match run(&spec, Some(&is_late)) {
        Ok(record) => Ok(record.error),
        Err(TrialError::Spec(error)) => Err(error.to_string()),
        Err(TrialError::Cancelled) => panic!("never ends: {network} {protocol} {workload}"),
    }
}

fn networks() -> impl Strategy<Value = Value> {
    let link = prop::sample::select(vec![
        json!({}),
        json!({"delay": "0ms"}),
        json!({"loss": "20%"}),
        json!({"queue": "10pkt"}),
        json!({"duplicate": "10%"}),
        json!({"jitter": {"kind": "uniform", "low": "0ms", "high": "1us"}}),
        json!({"rate": "1000Gbit/s"}),
        json!({"reverse": {"delay": "100us"}}),
        json!({"delay": "100us", "reverse": {"delay": "0s"}}),
    ]);
    (link, 0_u8..4).prop_map(|(link, shape)| {
        let mut one_way = link.clone();
        one_way.as_object_mut().unwrap().remove("reverse");
        match shape {
            0 | 1 => json!({"path": link}),
            2 => json!({"path": {"hops": [link, {}]}}),
            _ => json!({"topology": {"kind": "dumbbell", "pairs": 2, "bottleneck": one_way, "access": {}}}),
        }
    })
}

fn protocols() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"kind": "tcp"}),
        json!({"kind": "tcp", "congestion": "bbr"}),
        json!({"kind": "tcp", "congestion": "reno", "delayed_ack": false}),
        json!({"kind": "mptcp"}),
        json!({"kind": "stop-and-wait"}),
        json!({"kind": "go-back-n", "window": 8}),
        json!({"kind": "selective-repeat"}),
        json!({"kind": "udp"}),
        json!({"kind": "icmp"}),
    ])
}

fn workloads() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"kind": "file", "size": "200kB"}),
        json!({"kind": "bulk", "duration": "2ms"}),
        json!({"kind": "bulk", "duration": "20ms", "rate": "10Mbit/s"}),
        json!({"kind": "on-off", "duration": "20ms", "rate": "10Mbit/s"}),
        json!({"kind": "request-response", "requests": 20}),
        json!({"kind": "request-response", "requests": 20, "reconnect": true}),
        json!({"kind": "arrivals", "duration": "10ms", "arrivals": "1000/s", "size": "20kB"}),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_trial_ends(network in networks(), protocol in protocols(), workload in workloads()) {
        // Some combinations are refused; the others end.
        let _ = ends(&network, &protocol, &workload);
    }
}

#[test]
fn refuses_endless_data_on_a_path_that_takes_no_time() {
    let bulk = json!({"kind": "bulk", "duration": "1s"});
    for protocol in [
        json!({"kind": "tcp"}),
        json!({"kind": "mptcp"}),
        json!({"kind": "go-back-n"}),
    ] {
        let error = ends(&json!({"path": {}}), &protocol, &bulk).unwrap_err();
        assert_eq!(
            error,
            "path: time never advances in sim for unlimited data over links without rate and delay (forward): \
             set a rate or a delay"
        );
    }
    let dumbbell = json!({"topology": {"kind": "dumbbell", "pairs": 1, "bottleneck": {}, "access": {}}});
    let error = ends(&dumbbell, &json!({"kind": "tcp"}), &bulk).unwrap_err();
    assert!(error.starts_with("topology: time never advances"), "{error}");
    // One direction with a delay, or a limited sender, suffices.
    let slow = json!({"path": {"reverse": {"delay": "1ms"}}});
    assert_eq!(ends(&slow, &json!({"kind": "tcp"}), &bulk), Ok(None));
    let paced = json!({"kind": "bulk", "duration": "10ms", "rate": "1Mbit/s"});
    assert_eq!(
        ends(&json!({"path": {}}), &json!({"kind": "tcp"}), &paced),
        Ok(None)
    );
}

#[test]
fn ends_a_session_whose_clock_stops() {
    let bulk = json!({"kind": "bulk", "duration": "1s"});
    let spec = spec(&json!({"path": {"delay": "1ms"}}), &json!({"kind": "tcp"}), &bulk).unwrap();
    let mut session = Session::new(&spec, Duration::from_millis(10)).unwrap();
    session.advance(Duration::from_millis(20));
    assert_eq!(session.fault(), None);
    for link in ["forward", "reverse"] {
        session.change_link(link, "delay", &json!("0ms")).unwrap();
    }
    session.advance(Duration::from_millis(20));
    assert!(session.is_over());
    let fault = session.fault().unwrap();
    assert!(
        fault.starts_with("1000000 events at ") && fault.contains("flow \"sender\" take no time"),
        "{fault}"
    );
    assert_eq!(session.finish().error, Some(fault));
}

#[test]
fn a_caller_interrupts_a_session() {
    let bulk = json!({"kind": "bulk", "duration": "1000s"});
    let spec = spec(
        &json!({"path": {"rate": "1Gbit/s", "delay": "1ms"}}),
        &json!({"kind": "tcp"}),
        &bulk,
    )
    .unwrap();
    let mut session = Session::new(&spec, Duration::from_secs(1)).unwrap();
    let started = WallClock::now();
    session.interrupt_by(move || started.elapsed() > WallTime::from_millis(20));
    session.advance(Duration::from_secs(1000));
    assert!(!session.is_over() && session.now().as_secs_f64() < 1000.0);
}
