//! Testbeds and checks of paths, skipped without namespaces.

#![cfg(target_os = "linux")]

use std::time::Duration;

use crate::common::{path, skip_without, topology};
use emulation::check;
use emulation::testbed::Testbed;
use emulation::{Error, ProgramOptions};
use experiment::TrialSpec;
use foundation::Streams;
use network::Topology;
use serde_json::{Value, json};

/// A testbed; `None`, with a printed reason, if the system lacks something.
fn testbed(topology: Topology) -> Option<Testbed> {
    match Testbed::start(topology, Streams::new(1, 0), ProgramOptions::default()) {
        Ok(testbed) => Some(testbed),
        Err(error @ (Error::Permission { .. } | Error::Missing { .. })) => {
            skip_without(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn pings_match_the_links_delay_and_loss() {
    let keys = r#"{"rate": "1Mbit/s", "delay": "20ms", "loss": {"every": 4}}"#;
    let Some(testbed) = testbed(path(keys)) else {
        return;
    };
    let pings = testbed.ping_all(20, &mut || false).unwrap();
    assert_eq!(pings.len(), 2);
    for ping in &pings {
        let expected = ping.expected.unwrap();
        // 84 bytes at 1 Mbit/s take 0.672 ms in each direction.
        assert!((expected.rtt_s - 0.041_344).abs() < 1e-9);
        assert!((expected.loss - (1.0 - 0.75 * 0.75)).abs() < 1e-9);
        assert_eq!(ping.sent, 20);
        assert!(ping.answered < 20);
        assert!(ping.min_s.unwrap() >= expected.rtt_s);
    }
    // One packet in four was lost.
    for link in testbed.links() {
        assert_eq!(link.lost, link.packets / 4);
    }
    let unanswered: u32 = pings.iter().map(|ping| ping.sent - ping.answered).sum();
    let lost: u64 = testbed.links().iter().map(|link| link.lost).sum();
    assert_eq!(u64::from(unanswered), lost);
}

#[test]
fn hosts_resolve_names() {
    let keys = r#"{"kind": "dumbbell", "pairs": 2, "bottleneck": {"delay": "1ms"}}"#;
    let Some(testbed) = testbed(topology(keys)) else {
        return;
    };
    let names: Vec<String> = testbed.hosts().into_iter().map(|host| host.name).collect();
    assert_eq!(testbed.host(&names[3]).unwrap().0, 3);
    assert_eq!(testbed.host("10.77.0.2").unwrap().0, 1);
    let refused = testbed.host("nobody").unwrap_err().to_string();
    assert!(refused.contains(&names.join(", ")), "{refused}");
    assert_eq!(testbed.ping_all(1, &mut || false).unwrap().len(), 12);
}

#[test]
fn changes_a_link_in_operation() {
    let Some(testbed) = testbed(path(r#"{"rate": "1Mbit/s", "delay": "5ms", "jitter": "1ms"}"#)) else {
        return;
    };
    testbed.set("reverse", "delay", &json!("40ms")).unwrap();
    testbed.set("forward", "rate", &Value::Null).unwrap();
    testbed.set("forward", "jitter", &Value::Null).unwrap();
    let links = testbed.links();
    assert_eq!(
        (links[0].rate_bps, links[0].delay_s, links[0].jitter_s),
        (None, 0.005, 0.0)
    );
    assert_eq!(
        (links[1].rate_bps, links[1].delay_s, links[1].jitter_s),
        (Some(1e6), 0.04, 0.001)
    );
    for ping in testbed.ping_all(3, &mut || false).unwrap() {
        assert!((ping.expected.unwrap().rtt_s - 0.045_672).abs() < 1e-9);
        assert!(ping.min_s.unwrap() >= 0.044_672, "{ping:?}");
    }
    testbed.set("forward", "loss", &json!("100%")).unwrap();
    let pings = testbed.ping_all(1, &mut || false).unwrap();
    assert_eq!(pings.iter().map(|ping| ping.answered).sum::<u32>(), 0);
    for (link, key, value, events) in [
        (
            "forwrd",
            "delay",
            json!("1ms"),
            "did you mean \"forward\"? allowed: forward, reverse",
        ),
        ("forward", "dealy", json!("1ms"), "did you mean \"delay\"?"),
        ("forward", "delay", json!("1"), "delay: "),
        ("forward", "jitter", json!("6ms"), "jitter"),
        (
            "forward",
            "trace",
            json!("/no/such/trace"),
            "trace: \"/no/such/trace\": ",
        ),
    ] {
        let error = testbed.set(link, key, &value).unwrap_err().to_string();
        assert!(error.contains(events) && !error.contains('\n'), "{error}");
    }
    assert_eq!(testbed.links()[0].delay_s, 0.005);
}

#[test]
fn measurements_stop_on_request() {
    let Some(testbed) = testbed(path(r#"{"rate": "1Mbit/s"}"#)) else {
        return;
    };
    let started = std::time::Instant::now();
    let span = Duration::from_secs(3600);
    testbed
        .goodput("sender", "receiver", span, &mut || {
            started.elapsed().as_secs() >= 1
        })
        .unwrap();
    assert!(testbed.ping_all(100, &mut || true).unwrap().is_empty());
    assert!(started.elapsed() < span / 10);
}

fn spec(path: &str) -> TrialSpec {
    let text = format!(
        r#"{{"path": {path}, "protocol": {{"kind": "tcp"}}, "workload": {{"kind": "bulk", "duration": "1s"}}, "seed": 1, "trial": 0}}"#
    );
    TrialSpec::from_json(&text).unwrap()
}

#[test]
fn equal_paths_are_checked_once() {
    assert_eq!(check::paths(&spec(r#"{"rate": "1Mbit/s"}"#)).unwrap().len(), 1);
    let other = check::paths(&spec(r#"{"rate": "1Mbit/s", "reverse": {"rate": "2Mbit/s"}}"#)).unwrap();
    assert_eq!(other.len(), 2);
    assert_eq!(
        (other[1].from.as_str(), other[1].links.as_slice()),
        ("receiver", &["reverse".to_owned()][..])
    );
}

#[test]
fn check_measures_the_configured_path() {
    let spec = spec(r#"{"rate": "2Mbit/s", "delay": "30ms", "loss": "5%", "queue": "20pkt"}"#);
    let paths = check::paths(&spec).unwrap();
    let report = match check::check(&paths[0], spec.streams(), &mut || false) {
        Ok(report) => report,
        Err(error @ (Error::Permission { .. } | Error::Missing { .. })) => return skip_without(&error),
        Err(error) => panic!("{error}"),
    };
    let figure = |name: &str| report.figures.iter().find(|figure| figure.name == name).unwrap();
    assert_eq!(figure("rate").configured, Some(2e6));
    // 100 bytes at 2 Mbit/s take 0.4 ms.
    assert!((figure("delay").configured.unwrap() - 0.0304).abs() < 1e-9);
    assert!(figure("delay").measured.unwrap() >= 0.0304);
    assert!((figure("loss").measured.unwrap() - 0.05).abs() < 0.03);
    assert_eq!(
        (figure("queue").configured, figure("queue").measured),
        (Some(20.0), Some(20.0))
    );
    assert_eq!(figure("queue").holds, Some(true));
    // A link does not exceed its rate.
    assert!(figure("rate").measured.unwrap() < 2.05e6);
}
