//! Metrics follow the direction of the data.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

fn run_spec(network: &str, protocol: &str, workload: &str, traffic: &str) -> TrialRecord {
    let json = format!(
        r#"{{{network}, "protocol": {{{protocol}}}, "workload": {{{workload}}}, "traffic": [{traffic}], "seed": 3}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let record = run(&spec, None).unwrap();
    assert_eq!(record.error, None, "{json}");
    record
}

fn figure(record: &TrialRecord, name: &str) -> f64 {
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}

/// One direction of a link, without randomness, because random streams depend on the names of links, which differ.
const UP: &str = r#""rate": "2Mbit/s", "delay": "10ms", "queue": "40pkt", "loss": {"every": 400}"#;
const DOWN: &str = r#""rate": "20Mbit/s", "delay": "14ms", "queue": "100pkt""#;
const FAR: &str = r#""rate": "50Mbit/s", "delay": "1ms""#;

/// Returns hosts a and b with a router between them. The link of a starts or ends at a.
fn network(drawn_from_a: bool) -> String {
    let access = match drawn_from_a {
        true => format!(r#"{{"from": "a", "to": "x", {UP}, "reverse": {{{DOWN}, "loss": "0%"}}}}"#),
        false => format!(r#"{{"from": "x", "to": "a", {DOWN}, "reverse": {{{UP}}}}}"#),
    };
    format!(
        r#""topology": {{"kind": "free", "hosts": ["a", "b"], "routers": ["x"], "links": [{access},
            {{"from": "x", "to": "b", {FAR}}}]}}"#
    )
}

const WORKLOADS: &[&str] = &[
    r#""kind": "bulk", "duration": "20s", "warm_up": "5s", "flows": 3, "stagger": "300ms""#,
    r#""kind": "on-off", "rate": "3Mbit/s", "duration": "10s", "warm_up": "1s""#,
    r#""kind": "file", "size": "500kB", "flows": 2"#,
    r#""kind": "arrivals", "size": "60kB", "arrivals": "3/s", "duration": "5s""#,
    r#""kind": "request-response", "requests": 5, "response_size": "200kB""#,
    r#""kind": "request-response", "requests": 5, "request_size": "200kB""#,
];

#[test]
fn a_reversed_link_gives_the_same_record() {
    let traffic = |from: &str, to: &str| {
        format!(
            r#"{{"name": "rival", "protocol": {{"kind": "tcp"}}, "workload": {{"kind": "bulk", "from": "{from}", "to": "{to}"}}}},
            {{"name": "pages", "protocol": {{"kind": "tcp"}}, "workload": {{"kind": "request-response", "requests": 3, "from": "{from}", "to": "{to}"}}}}"#
        )
    };
    for workload in WORKLOADS {
        for protocol in [
            r#""kind": "tcp", "congestion": "reno""#,
            r#""kind": "selective-repeat", "window": 16"#,
        ] {
            for (from, to) in [("a", "b"), ("b", "a")] {
                let workload = format!(r#"{workload}, "from": "{from}", "to": "{to}""#);
                for traffic in [String::new(), traffic(from, to)] {
                    let records = [true, false]
                        .map(|drawn_from_a| run_spec(&network(drawn_from_a), protocol, &workload, &traffic));
                    assert_eq!(records[0], records[1], "{workload}: {traffic}");
                }
            }
        }
    }
}

/// Returns the metrics that name no host.
fn without_hosts(record: TrialRecord) -> Vec<(String, Option<f64>)> {
    let metrics = record.metrics.unwrap().into_iter();
    metrics.filter(|(name, _)| !name.contains('@')).collect()
}

#[test]
fn an_uplink_is_the_same_forward_and_in_reverse() {
    let mirrored = [
        (
            format!(r#""path": {{{UP}, "reverse": {{{DOWN}, "loss": "0%"}}}}"#),
            r#""from": "sender", "to": "receiver""#,
        ),
        (
            format!(r#""path": {{{DOWN}, "reverse": {{{UP}}}}}"#),
            r#""from": "receiver", "to": "sender""#,
        ),
        (
            format!(
                r#""topology": {{"kind": "dumbbell", "pairs": 1, "bottleneck": {{{UP}, "reverse": {{{DOWN}, "loss": "0%"}}}}}}"#
            ),
            r#""from": "s1", "to": "r1""#,
        ),
        (
            format!(
                r#""topology": {{"kind": "dumbbell", "pairs": 1, "bottleneck": {{{DOWN}, "reverse": {{{UP}}}}}}}"#
            ),
            r#""from": "r1", "to": "s1""#,
        ),
    ];
    for protocol in [
        r#""kind": "tcp", "congestion": "cubic""#,
        r#""kind": "go-back-n", "window": 8"#,
    ] {
        let records = mirrored.each_ref().map(|(network, ends)| {
            let workload = format!(r#""kind": "bulk", "duration": "20s", "warm_up": "2s", {ends}"#);
            without_hosts(run_spec(network, protocol, &workload, ""))
        });
        for other in &records[1..] {
            assert_eq!(&records[0], other, "{protocol}");
        }
    }
}

#[test]
fn an_upload_has_the_delay_of_its_full_queue() {
    // 40 packets of 1500 bytes at 2 Mbit/s are 240 ms.
    let network =
        format!(r#""path": {{{DOWN}, "reverse": {{"rate": "2Mbit/s", "delay": "10ms", "queue": "40pkt"}}}}"#);
    let workload =
        r#""kind": "bulk", "duration": "30s", "warm_up": "5s", "from": "receiver", "to": "sender""#;
    let record = run_spec(&network, r#""kind": "tcp", "congestion": "reno""#, workload, "");
    let delay = figure(&record, "queueing_delay_p99_s");
    assert!((0.2..0.24).contains(&delay), "{delay}");
    assert!(figure(&record, "utilisation") > 0.97);
    assert!(figure(&record, "drops") > 0.0);
    assert!(figure(&record, "queue_mean_packets") > 10.0);
}

/// Metrics are not averaged with idle links.
#[test]
fn only_links_that_the_data_crosses_are_measured() {
    let lot = r#""topology": {"kind": "parking-lot", "hops": 3, "bottleneck": {"rate": "5Mbit/s", "delay": "5ms", "queue": "20pkt"}}"#;
    let workload = r#""kind": "bulk", "duration": "20s", "warm_up": "5s", "from": "s2", "to": "r2""#;
    let record = run_spec(lot, r#""kind": "tcp""#, workload, "");
    assert!(
        figure(&record, "utilisation") > 0.95,
        "{}",
        figure(&record, "utilisation")
    );
}

/// Concurrent senders to one host share its access link (incast).
#[test]
fn leaves_of_a_star_share_the_link_of_its_hub() {
    let star = r#""topology": {"kind": "star", "leaves": 8, "leaf": {"rate": "10Mbit/s", "delay": "1ms", "queue": "30pkt"}}"#;
    let workload = r#""kind": "bulk", "duration": "20s", "warm_up": "5s", "start_jitter": "100ms""#;
    let record = run_spec(star, r#""kind": "tcp""#, workload, "");
    let goodput = figure(&record, "goodput_bps");
    assert!((9e6..9.66e6).contains(&goodput), "{goodput}");
    assert!(figure(&record, "drops") > 0.0);
    assert!(figure(&record, "utilisation") > 0.95);
}

#[test]
fn efficiency_is_at_most_one() {
    let path = r#""path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt"}"#;
    let several = r#""topology": {"kind": "multipath", "paths": 2, "path": {"rate": "5Mbit/s", "delay": "20ms", "queue": "100pkt"}}"#;
    for (network, protocol) in [
        (path, r#""kind": "tcp", "congestion": "vegas""#),
        (path, r#""kind": "tcp", "congestion": "cubic""#),
        (path, r#""kind": "selective-repeat", "window": 100"#),
        (several, r#""kind": "mptcp""#),
    ] {
        for warm_up in ["0s", "1s", "2500ms"] {
            let workload = format!(r#""kind": "bulk", "duration": "3s", "warm_up": "{warm_up}""#);
            let efficiency = figure(&run_spec(network, protocol, &workload, ""), "efficiency");
            assert!(
                (0.5..=1.0).contains(&efficiency),
                "{protocol} after {warm_up}: {efficiency}"
            );
        }
    }
}

#[test]
fn a_saturated_trace_has_full_utilisation() {
    // 10 opportunities of 1500 bytes in 10 ms, then none for 10 ms: 6 Mbit/s on average.
    let file = std::env::temp_dir().join(format!("longfat-trace-{}", std::process::id()));
    let times: String = (1..=10).map(|at| format!("{at}\n")).collect();
    std::fs::write(&file, format!("{times}20\n")).unwrap();
    let path = format!(
        r#""path": {{"trace": {:?}, "delay": "10ms", "queue": "50pkt", "reverse": {{"rate": "10Mbit/s"}}}}"#,
        file.to_str().unwrap()
    );
    for warm_up in ["0s", "5s", "5003ms"] {
        let workload = format!(r#""kind": "bulk", "duration": "10s", "warm_up": "{warm_up}""#);
        let record = run_spec(&path, r#""kind": "tcp", "congestion": "reno""#, &workload, "");
        let used = figure(&record, "utilisation");
        assert!(used > 0.9 && used <= 1.0, "{warm_up}: {used}");
    }
    std::fs::remove_file(file).unwrap();
}
