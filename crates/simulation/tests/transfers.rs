//! Transfers in the simulator over arbitrary paths.

use experiment::TrialSpec;
use foundation::Instant;
use proptest::prelude::*;
use simulation::run;
use simulation::trial::run_watched;
use transport::congestion::Registry;

fn percent(maximum: u32) -> impl Strategy<Value = String> {
    (0..=maximum * 10).prop_map(|tenths| format!("{}%", f64::from(tenths) / 10.0))
}

fn any_loss() -> impl Strategy<Value = String> {
    prop_oneof![
        percent(30).prop_map(|p| format!("\"{p}\"")),
        (2_u32..40).prop_map(|every| format!(r#"{{"every": {every}}}"#)),
        prop::collection::btree_set(1_u64..60, 1..8)
            .prop_map(|set| set.into_iter().collect::<Vec<_>>())
            .prop_map(|list| format!(r#"{{"packets": {list:?}}}"#)),
    ]
}

prop_compose! {
    fn any_path()(
        rate_kbit in 1_000_u32..100_000,
        delay_us in 0_u32..50_000,
        jitter_share in 0_u32..=100,
        loss in any_loss(),
        duplicate in percent(20),
        corrupt in percent(20),
        reorder in percent(20),
        queue in 1_u32..100,
    ) -> String {
        let jitter_us = delay_us * jitter_share / 100;
        format!(
            r#"{{"rate": "{rate_kbit}kbit/s", "delay": "{delay_us}us", "jitter": "{jitter_us}us", "loss": {loss},
                "duplicate": "{duplicate}", "corrupt": "{corrupt}", "reorder": {{"probability": "{reorder}", "delay": "5ms"}}, "queue": "{queue}pkt"}}"#
        )
    }
}

/// Returns the names of the registered congestion controllers.
fn controllers() -> Vec<String> {
    let registry = Registry::builtin();
    registry.iter().map(|entry| entry.name().to_owned()).collect()
}

fn any_protocol() -> impl Strategy<Value = String> {
    let window = prop_oneof![
        (1_u32..60).prop_map(|w| w.to_string()),
        Just("\"auto\"".to_owned())
    ];
    let timeout = prop_oneof![
        Just("adaptive".to_owned()),
        (50_u32..500).prop_map(|ms| format!("{ms}ms"))
    ];
    let controller = prop::sample::select(controllers());
    (0..3_usize, window, timeout, any::<bool>(), controller, 1_u32..8).prop_map(
        |(kind, window, rto, early, controller, every)| {
            let auto = window == "\"auto\"";
            let congestion = if auto {
                format!(r#", "congestion": "{controller}""#)
            } else {
                String::new()
            };
            let rest = match kind {
                0 => r#""kind": "stop-and-wait""#.to_owned(),
                1 => format!(
                    r#""kind": "go-back-n", "window": {window}, "fast_retransmit": {early}{congestion}"#
                ),
                _ => format!(
                    r#""kind": "selective-repeat", "window": {window}, "gap_retransmit": {early}{congestion}"#
                ),
            };
            format!(r#"{{{rest}, "rto": "{rto}", "acknowledge_every": {every}}}"#)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    /// The simulated host asserts that it reads data in order and without gaps.
    #[test]
    fn all_data_arrives_or_the_trial_reports_an_error(
        path in any_path(), protocol in any_protocol(), size in 1_u64..60_000, seed in any::<u64>(),
    ) {
        let json = format!(
            r#"{{"path": {path}, "protocol": {protocol}, "workload": {{"kind": "file", "size": "{size}B"}}, "seed": {seed}}}"#
        );
        let spec = TrialSpec::from_json(&json).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let (record, mut world) = run_watched(&spec, None, (), None).unwrap();
        match (&record.error, &record.metrics) {
            (None, Some(metrics)) => {
                prop_assert_eq!(world.outcomes()[0].delivered[0], size, "{}", json);
                let efficiency = metrics["efficiency"].unwrap();
                prop_assert!(efficiency > 0.0 && efficiency <= 1.0);
            }
            (Some(error), None) => prop_assert!(["silent", "no answer", "acknowledged no packet"].iter().any(|word| error.contains(word)), "{}", error),
            other => prop_assert!(false, "{:?}", other),
        }
        // When the network is empty, each link has delivered or dropped all its packets.
        let network = world.network_mut();
        network.handle_timeout(Instant::MAX);
        while network.poll_delivery().is_some() || network.poll_too_big().is_some() {}
        prop_assert_eq!(network.packets_inside(), 0);
        for link in network.links() {
            let c = network.counters(link);
            let out = c.delivered + c.lost + c.queue_dropped + c.mtu_dropped;
            prop_assert_eq!(out, c.entered + c.duplicated);
        }
        prop_assert_eq!(run(&spec, None).unwrap(), record, "the same specification gives the same record");
    }
}

#[test]
fn a_path_without_delivery_fails_with_a_reason() {
    let json = r#"{"path": {"loss": "100%"}, "protocol": {"kind": "go-back-n"},
                   "workload": {"kind": "file", "size": "1kB"}, "seed": 1}"#;
    let record = run(&TrialSpec::from_json(json).unwrap(), None).unwrap();
    assert_eq!(record.metrics, None);
    assert_eq!(record.error.as_deref(), Some("no answer from the peer for 30s"));
}

#[test]
fn packets_above_the_mtu_never_arrive() {
    let json = r#"{"path": {"mtu": "500B"}, "protocol": {"kind": "selective-repeat", "mss": "1000B"},
                   "workload": {"kind": "file", "size": "5kB"}, "seed": 1}"#;
    let record = run(&TrialSpec::from_json(json).unwrap(), None).unwrap();
    assert!(record.error.unwrap().contains("MTU"));
}

#[test]
fn compared_protocols_have_the_same_losses() {
    // Both protocols lose the same packets: with a window of one and the same timer, records of Go-Back-N and selective
    // repeat are bit-identical to those of stop-and-wait.
    let run_with = |protocol: &str| {
        let json = format!(
            r#"{{"path": {{"rate": "10Mbit/s", "delay": "5ms", "loss": "5%"}}, "protocol": {{{protocol}}},
                "workload": {{"kind": "file", "size": "500kB"}}, "seed": 3, "trial": 2}}"#
        );
        run(&TrialSpec::from_json(&json).unwrap(), None).unwrap()
    };
    let saw = run_with(r#""kind": "stop-and-wait""#);
    assert_eq!(run_with(r#""kind": "go-back-n", "window": 1"#), saw);
    assert_eq!(run_with(r#""kind": "selective-repeat", "window": 1"#), saw);
}

#[test]
fn goodput_over_loss_and_window() {
    // A reviewed table: changes here affect the results of all studies.
    let mut table =
        String::from("Mbit/s at 10 Mbit/s, 5 ms each way; 2 MB of 1024 bytes a packet; BDP 12 packets\n");
    for protocol in [
        r#""kind": "go-back-n", "fast_retransmit": false, "window": "#,
        r#""kind": "go-back-n", "fast_retransmit": true, "window": "#,
        r#""kind": "selective-repeat", "gap_retransmit": false, "window": "#,
        r#""kind": "selective-repeat", "gap_retransmit": true, "window": "#,
    ] {
        table += &format!("\n{protocol}\n  loss   window 1      4     12     36   auto\n");
        for loss in ["0%", "1%", "5%", "10%"] {
            table += &format!("{loss:>6}        ");
            for window in ["1", "4", "12", "36", "\"auto\""] {
                let json = format!(
                    r#"{{"path": {{"rate": "10Mbit/s", "delay": "5ms", "loss": "{loss}", "queue": "100pkt"}},
                        "protocol": {{{protocol}{window}}}, "workload": {{"kind": "file", "size": "2MB"}}, "seed": 1}}"#
                );
                let record = run(&TrialSpec::from_json(&json).unwrap(), None).unwrap();
                table += &format!("{:7.3}", record.metrics.unwrap()["goodput_bps"].unwrap() / 1e6);
            }
            table.push('\n');
        }
    }
    insta::assert_snapshot!(table);
}
