//! Metrics of measurements that start and end during packets, windows and recoveries.

use experiment::{TrialRecord, TrialSpec};
use proptest::prelude::*;
use simulation::run;

/// Bytes of a full TCP packet and of its payload, with timestamps.
const PACKET: (f64, f64) = (1500.0, 1448.0);

fn record(json: &str) -> TrialRecord {
    let spec = TrialSpec::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let record = run(&spec, None).unwrap();
    assert_eq!(record.error, None, "{json}");
    record
}

fn figure(record: &TrialRecord, name: &str) -> Option<f64> {
    record.metrics.as_ref().unwrap()[name]
}

#[test]
fn data_in_flight_does_not_reduce_the_efficiency() {
    for protocol in [
        r#""kind": "tcp", "congestion": "cubic", "receive_buffer": "60kB""#,
        r#""kind": "selective-repeat", "window": 40"#,
        r#""kind": "mptcp", "receive_buffer": "60kB""#,
    ] {
        for warm_up in ["0s", "1s", "2987ms"] {
            let found = record(&format!(
                r#"{{"path": {{"rate": "10Mbit/s", "delay": "20ms", "queue": "1000pkt"}}, "protocol": {{{protocol}}},
                    "workload": {{"kind": "bulk", "duration": "3s", "warm_up": "{warm_up}"}}, "seed": 1}}"#
            ));
            assert_eq!(figure(&found, "retransmissions"), Some(0.0), "{protocol}");
            assert_eq!(figure(&found, "efficiency"), Some(1.0), "{protocol} {warm_up}");
        }
    }
}

/// Filling a gap during the measurement releases bytes that arrived before it.
#[test]
fn bytes_behind_a_gap_count_at_their_arrival() {
    let goodput = |loss: &str, protocol: &str| {
        let found = record(&format!(
            r#"{{"path": {{"rate": "1Mbit/s", "delay": "100ms", "queue": "100pkt", "loss": {loss}}}, "protocol": {{{protocol}}},
                "workload": {{"kind": "bulk", "duration": "4s", "warm_up": "3s"}}, "seed": 1}}"#
        ));
        figure(&found, "goodput_bps").unwrap()
    };
    for protocol in [
        r#""kind": "tcp", "congestion": "bbr""#,
        r#""kind": "selective-repeat", "window": 60"#,
        r#""kind": "mptcp", "congestion": "bbr""#,
    ] {
        for lost in 150..230 {
            let found = goodput(&format!(r#"{{"packets": [{lost}]}}"#), protocol);
            assert!(found <= 980e3, "{protocol}: {found} with a loss of {lost}");
        }
    }
}

fn any_protocol() -> impl Strategy<Value = String> {
    let controller = prop::sample::select(vec!["reno", "cubic", "vegas", "bbr", "westwood"]);
    (controller, 1_u32..4, 0_usize..4).prop_map(|(controller, every, kind)| match kind {
        0 => format!(r#"{{"kind": "selective-repeat", "window": 64, "acknowledge_every": {every}}}"#),
        1 => r#"{"kind": "go-back-n", "window": 32}"#.to_owned(),
        _ => format!(r#"{{"kind": "tcp", "congestion": "{controller}"}}"#),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_link_carries_more_than_its_rate(
        protocol in any_protocol(),
        (rate_kbit, delay_ms, jitter_ms, queue) in (100_u32..5_000, 0_u32..100, 0_u32..30, 1_u32..60),
        (loss, duplicate) in (0_u32..50, 0_u32..20),
        (warm_up_ms, lasts_ms, flows) in (0_u32..4_000, 50_u32..2_000, 1_u32..4),
        seed in any::<u64>(),
    ) {
        let jitter_ms = jitter_ms.min(delay_ms);
        let json = format!(
            r#"{{"path": {{"rate": "{rate_kbit}kbit/s", "delay": "{delay_ms}ms", "jitter": "{jitter_ms}ms", "queue": "{queue}pkt",
                    "loss": "{}%", "duplicate": "{}%", "reverse": {{"loss": "0%", "jitter": "0ms"}}}},
                "protocol": {protocol}, "seed": {seed}, "workload": {{"kind": "bulk", "flows": {flows},
                    "duration": "{}ms", "warm_up": "{warm_up_ms}ms"}}}}"#,
            f64::from(loss) / 10.0, f64::from(duplicate) / 10.0, warm_up_ms + lasts_ms,
        );
        let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        let found = run(&spec, None).unwrap();
        prop_assume!(found.error.is_none());
        let rate = f64::from(rate_kbit) * 1e3;
        let used = figure(&found, "utilisation").unwrap();
        prop_assert!(used <= 1.0, "{used} {json}");
        prop_assert!(figure(&found, "throughput_bps").unwrap() <= rate, "{}", json);
        // Jitter delays packets into the measurement, and one packet is in transmission at its start.
        let seconds = f64::from(lasts_ms) / 1e3;
        let carried = rate * (seconds + 2.0 * f64::from(jitter_ms) / 1e3) / 8.0 + PACKET.0;
        let maximum = carried * PACKET.1 / PACKET.0 * 8.0 / seconds;
        let goodput = figure(&found, "goodput_bps").unwrap();
        prop_assert!(goodput <= maximum, "{goodput} > {maximum}: {json}");
        if let Some(efficiency) = figure(&found, "efficiency") {
            prop_assert!((0.0..=1.0).contains(&efficiency), "{efficiency} {json}");
        }
    }
}
