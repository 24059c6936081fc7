//! Flows of every workload, alone and in shared networks.

use experiment::{TrialRecord, TrialSpec};
use simulation::run;

const DUMBBELL: &str = r#""topology": {"kind": "dumbbell", "pairs": 3,
    "bottleneck": {"rate": "30Mbit/s", "delay": "10ms", "queue": "75pkt"},
    "access": {"rate": "1Gbit/s", "delay": "1ms"}}"#;
const PATH: &str = r#""path": {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt"}"#;

fn record(network: &str, protocol: &str, workload: &str, rest: &str) -> TrialRecord {
    let json =
        format!(r#"{{{network}, "protocol": {{{protocol}}}, "workload": {{{workload}}}, "seed": 5{rest}}}"#);
    let spec = TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let first = run(&spec, None).unwrap();
    assert_eq!(
        run(&spec, None).unwrap(),
        first,
        "the same specification gives the same record"
    );
    assert_eq!(first.error, None, "{json}");
    first
}

fn figure(record: &TrialRecord, name: &str) -> f64 {
    let metrics = record.metrics.as_ref().unwrap();
    metrics
        .get(name)
        .unwrap_or_else(|| panic!("no metric {name}"))
        .unwrap_or_else(|| panic!("{name} is null"))
}

fn is_null(record: &TrialRecord, name: &str) -> bool {
    record.metrics.as_ref().unwrap()[name].is_none()
}

const TCP: &str = r#""kind": "tcp", "congestion": "reno""#;
const SR: &str = r#""kind": "selective-repeat", "congestion": "reno", "mss": "1400B""#;

#[test]
fn bulk_flows_share_a_bottleneck_and_fill_it() {
    for protocol in [TCP, SR] {
        let workload = r#""kind": "bulk", "duration": "40s", "warm_up": "10s", "start_jitter": "1s""#;
        let record = record(DUMBBELL, protocol, workload, "");
        let goodput = figure(&record, "goodput_bps");
        assert!((26e6..29e6).contains(&goodput), "{protocol}: {goodput}");
        assert!(figure(&record, "utilisation") > 0.95 && figure(&record, "utilisation") <= 1.0001);
        assert!(
            figure(&record, "jain") > 0.85,
            "{protocol}: {}",
            figure(&record, "jain")
        );
        assert!((figure(&record, "flow_goodput_bps") * 3.0 / goodput - 1.0).abs() < 1e-9);
        let hosts: f64 = (1..=3)
            .map(|i| figure(&record, &format!("goodput_bps@s{i}")))
            .sum();
        assert!((hosts / goodput - 1.0).abs() < 1e-9);
        // 22 ms of propagation, up to 30 ms of queueing (75 packets of 1500 bytes at 30 Mbit/s), and up to 40 ms for
        // TCP's delayed ACKs.
        let (minimum, late) = (figure(&record, "rtt_min_s"), figure(&record, "rtt_p99_s"));
        assert!(minimum > 0.022 && late < 0.094, "{protocol}: {minimum} {late}");
        assert!(figure(&record, "queueing_delay_p99_s") <= 0.0305);
        let mean = figure(&record, "queue_mean_packets");
        assert!(mean > 1.0 && mean < 75.0, "{mean}");
        assert!(figure(&record, "drops") > 0.0);
        assert_eq!(record.flows.len(), 3);
        assert!(is_null(&record, "fct_mean_s") && is_null(&record, "share"));
    }
}

#[test]
fn data_before_the_measurement_does_not_count() {
    // The last 10 of 20 s are measured: the goodput excludes earlier data.
    let workload = r#""kind": "bulk", "duration": "20s", "warm_up": "10s""#;
    let record = record(PATH, TCP, workload, "");
    let goodput = figure(&record, "goodput_bps");
    assert!((9.4e6..9.7e6).contains(&goodput), "{goodput}");
    let packets = figure(&record, "packets_sent");
    assert!(
        (packets - goodput * 10.0 / 8.0 / 1448.0).abs() < 120.0,
        "{packets}"
    );
}

#[test]
fn constant_rate_traffic_leaves_the_rest_to_other_flows() {
    let traffic = r#", "traffic": [{"name": "cross", "protocol": {"kind": "udp", "mss": "1472B"},
        "workload": {"kind": "bulk", "rate": "4Mbit/s"}}]"#;
    let workload = r#""kind": "bulk", "duration": "30s", "warm_up": "5s""#;
    let with = record(PATH, TCP, workload, traffic);
    let cross = figure(&with, "traffic_goodput_bps");
    assert!((3.5e6..=4.01e6).contains(&cross), "{cross}");
    assert!((cross - figure(&with, "goodput_bps@cross")).abs() < 1e-3);
    let own = figure(&with, "goodput_bps");
    assert!((4.8e6..5.9e6).contains(&own), "{own}");
    assert!((figure(&with, "share") - own / (own + cross)).abs() < 1e-9);
}

#[test]
fn on_and_off_times_have_their_means() {
    let workload =
        r#""kind": "on-off", "rate": "2Mbit/s", "on": "200ms", "off": "300ms", "duration": "400s""#;
    let record = record(PATH, r#""kind": "udp", "mss": "500B""#, workload, "");
    // 800 cycles: the standard error of the share of on-time is below 2 %.
    let share = figure(&record, "goodput_bps") / 2e6;
    assert!((share / 0.4 - 1.0).abs() < 0.08, "{share}");
}

#[test]
fn a_request_takes_a_round_trip_and_transmission_times() {
    for protocol in [TCP, SR] {
        let workload = r#""kind": "request-response", "requests": 20, "request_size": "100B", "response_size": "1000B", "think": "5ms""#;
        let kept = record(PATH, protocol, workload, "");
        assert_eq!(figure(&kept, "flows_completed"), 20.0);
        // 20 ms plus 1 ms for about 1200 bytes at 10 Mbit/s. The first request waits for the connection.
        let median = figure(&kept, "fct_p50_s");
        assert!((0.0208..0.0225).contains(&median), "{protocol}: {median}");
        let reconnecting = record(PATH, protocol, &format!(r#"{workload}, "reconnect": true"#), "");
        assert_eq!(figure(&reconnecting, "flows_completed"), 20.0);
        assert_eq!(reconnecting.flows.len(), 20);
        let median = figure(&reconnecting, "fct_p50_s");
        assert!(
            (0.0405..0.0435).contains(&median),
            "{protocol}: one more round trip: {median}"
        );
    }
}

#[test]
fn flows_arrive_at_random_and_all_finish() {
    let workload = r#""kind": "arrivals", "duration": "20s", "warm_up": "2s", "arrivals": "50/s", "size": "15kB", "sizes": "exponential""#;
    for protocol in [TCP, SR] {
        let record = record(PATH, protocol, workload, "");
        // Poisson, mean 1000, standard deviation 32.
        assert!(
            (850..1150).contains(&record.flows.len()),
            "{}",
            record.flows.len()
        );
        assert_eq!(figure(&record, "flows_unfinished"), 0.0);
        let counted = record.flows.iter().filter(|flow| flow.opened_s >= 2.0).count();
        assert_eq!(figure(&record, "flows_completed"), counted as f64);
        assert!(
            record
                .flows
                .iter()
                .all(|flow| flow.fct_s.is_some_and(|fct| fct > 0.03))
        );
        let sizes: Vec<f64> = record
            .flows
            .iter()
            .filter_map(|flow| flow.size_bytes)
            .map(|s| s as f64)
            .collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((mean / 15e3 - 1.0).abs() < 0.15, "{mean}");
    }
}

#[test]
fn files_start_at_their_stagger() {
    let workload = r#""kind": "file", "size": "200kB", "flows": 2, "start": "1s", "stagger": "500ms""#;
    let record = record(DUMBBELL, TCP, workload, "");
    let starts: Vec<f64> = record.flows.iter().map(|flow| flow.opened_s).collect();
    assert_eq!(starts, [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
    assert_eq!(figure(&record, "flows_completed"), 6.0);
}

#[test]
fn compared_protocols_have_the_same_arrivals() {
    let workload =
        r#""kind": "arrivals", "duration": "5s", "arrivals": "50/s", "size": "15kB", "sizes": "exponential""#;
    let of = |protocol: &str| -> Vec<(f64, Option<u64>)> {
        let record = record(PATH, protocol, workload, "");
        record
            .flows
            .iter()
            .map(|flow| (flow.opened_s, flow.size_bytes))
            .collect()
    };
    assert_eq!(of(TCP), of(SR));
}

#[test]
fn invalid_specifications_are_refused() {
    for (network, protocol, workload, said) in [
        (
            PATH,
            r#""kind": "udp""#,
            r#""kind": "file", "size": "1kB""#,
            "workload.kind: udp cannot carry \"file\"",
        ),
        (
            PATH,
            TCP,
            r#""kind": "bulk""#,
            "workload.duration: the key is missing",
        ),
        (
            PATH,
            TCP,
            r#""kind": "file""#,
            "workload.size: the key is missing",
        ),
        (
            PATH,
            TCP,
            r#""kind": "file", "size": "1kB", "on": "1s""#,
            "workload.on: a workload of kind \"file\" has no such key",
        ),
        (
            PATH,
            TCP,
            r#""kind": "bulk", "duration": "1s", "warm_up": "1s""#,
            "leaves nothing to measure",
        ),
        (
            DUMBBELL,
            TCP,
            r#""kind": "file", "size": "1kB", "from": "s9", "to": "r1""#,
            "workload.from: there is no host \"s9\": allowed: s1",
        ),
        (
            DUMBBELL,
            TCP,
            r#""kind": "file", "size": "1kB", "from": "s1""#,
            "requires \"to\"",
        ),
        (
            PATH,
            r#""kind": "tpc""#,
            r#""kind": "file", "size": "1kB""#,
            "did you mean \"tcp\"",
        ),
    ] {
        let json =
            format!(r#"{{{network}, "protocol": {{{protocol}}}, "workload": {{{workload}}}, "seed": 5}}"#);
        let error = match TrialSpec::from_json(&json) {
            Err(error) => error.to_string(),
            Ok(spec) => run(&spec, None).unwrap_err().to_string(),
        };
        assert!(error.contains(said), "{json}\n{error}");
    }
}

#[test]
fn keys_without_effect_are_refused() {
    let traffic = |workload: &str| {
        format!(r#", "traffic": [{{"name": "x", "protocol": {{"kind": "tcp"}}, "workload": {workload}}}]"#)
    };
    let file = r#"{"kind": "file", "size": "1kB"}"#;
    for (workload, rest, said) in [
        (
            r#"{"kind": "arrivals", "arrivals": "5/s", "size": "1kB", "duration": "1s", "stagger": "1s"}"#,
            String::new(),
            "workload.stagger: ",
        ),
        (
            r#"{"kind": "file", "size": "1kB", "sample": "1s"}"#,
            String::new(),
            "workload.sample: ",
        ),
        (
            file,
            traffic(r#"{"kind": "on-off", "rate": "1Mbit/s", "warm_up": "1s"}"#),
            "traffic.0.workload.warm_up: ",
        ),
        (
            file,
            traffic(r#"{"kind": "bulk", "duration": "1s"}"#),
            "traffic.0.workload.duration: ",
        ),
    ] {
        let json = format!(r#"{{{PATH}, "protocol": {{{TCP}}}, "workload": {workload}, "seed": 5{rest}}}"#);
        let error = TrialSpec::from_json(&json).unwrap_err().to_string();
        assert!(error.starts_with(said), "{json}\n{error}");
    }
}

#[test]
fn tcp_adapts_to_a_smaller_path_mtu() {
    // The MTU of the sender's link is 1500 bytes, that of the next one 1000, which a router reports (RFC 1191).
    let network = r#""topology": {"kind": "free", "hosts": ["a", "b"], "routers": ["r"], "links": [
        {"from": "a", "to": "r", "rate": "10Mbit/s", "delay": "5ms"},
        {"from": "r", "to": "b", "rate": "10Mbit/s", "delay": "5ms", "mtu": "1000B"}]}"#;
    let record = record(network, TCP, r#""kind": "file", "size": "1MB""#, "");
    let completion = figure(&record, "completion_s");
    assert!((0.85..1.1).contains(&completion), "{completion}");
    // 948 bytes of payload per packet, and the first window twice.
    let packets = figure(&record, "packets_sent");
    assert!((1055.0..1080.0).contains(&packets), "{packets}");
}

#[test]
fn queues_mark_instead_of_dropping_with_ecn() {
    for queue in [
        r#"{"kind": "codel", "ecn": true}"#,
        r#"{"kind": "fq-codel", "ecn": true}"#,
        r#"{"kind": "pie", "ecn": true}"#,
        r#"{"kind": "red", "ecn": true}"#,
        r#""pi2""#,
        r#""dualpi2""#,
    ] {
        let network = format!(r#""path": {{"rate": "10Mbit/s", "delay": "10ms", "queue": {queue}}}"#);
        let workload = r#""kind": "bulk", "duration": "30s", "warm_up": "5s""#;
        let with = record(&network, &format!(r#"{TCP}, "ecn": true"#), workload, "");
        assert!(figure(&with, "marks") > 5.0, "{queue}");
        assert_eq!(figure(&with, "retransmissions"), 0.0, "{queue}");
        assert_eq!(figure(&with, "drops"), 0.0, "{queue}");
        let without = record(&network, TCP, workload, "");
        assert_eq!(figure(&without, "marks"), 0.0, "{queue}");
        assert!(figure(&without, "drops") > 5.0, "{queue}");
    }
}

#[test]
fn short_queues_keep_delay_short() {
    let delay = |queue: &str| {
        let network = format!(r#""path": {{"rate": "10Mbit/s", "delay": "20ms", "queue": {queue}}}"#);
        let workload = r#""kind": "bulk", "duration": "60s", "warm_up": "10s""#;
        let record = record(&network, r#""kind": "tcp", "congestion": "cubic""#, workload, "");
        assert!(
            figure(&record, "utilisation") > 0.8,
            "{queue}: {}",
            figure(&record, "utilisation")
        );
        figure(&record, "queueing_delay_p50_s")
    };
    let full = delay(r#""200pkt""#);
    assert!(full > 0.1, "{full}");
    for queue in [
        r#"{"kind": "codel"}"#,
        r#"{"kind": "fq-codel"}"#,
        r#"{"kind": "pie"}"#,
    ] {
        let managed = delay(queue);
        assert!(managed < 0.030, "{queue}: {managed}");
    }
}

/// A file of a higher priority passes the standing queue of other flows; both directions have its priority.
#[test]
fn a_priority_passes_the_queue_of_others() {
    let completion = |queue: &str, priority: &str| {
        let network = format!(r#""path": {{"rate": "10Mbit/s", "delay": "10ms", "queue": "{queue}"}}"#);
        let workload = format!(r#""kind": "file", "size": "200kB", "start": "5s"{priority}"#);
        let bulk = |from: &str, to: &str| {
            format!(
                r#"{{"name": "{from}", "protocol": {{"kind": "tcp", "congestion": "cubic"}},
                    "workload": {{"kind": "bulk", "flows": 2, "from": "{from}", "to": "{to}"}}}}"#
            )
        };
        let both = format!("{}, {}", bulk("sender", "receiver"), bulk("receiver", "sender"));
        let record = record(&network, TCP, &workload, &format!(r#", "traffic": [{both}]"#));
        figure(&record, "completion_s")
    };
    let alone = 0.16 + 6.0 * 0.02;
    let urgent = completion("prio", r#", "priority": 5"#);
    assert!(urgent < 1.3 * alone, "{urgent}");
    for (queue, priority) in [("prio", ""), ("1000pkt", r#", "priority": 5"#)] {
        let equal = completion(queue, priority);
        assert!(equal > 3.0 * urgent, "{queue}: {equal} {urgent}");
    }
}

/// CAKE gives a host with one flow half of the link next to a host with eight; FQ-CoDel gives it a ninth. Its shaper keeps
/// the rate of the link free of a queue.
#[test]
fn cake_is_fair_to_hosts() {
    let shared = |queue: &str| {
        let network = format!(
            r#""topology": {{"kind": "dumbbell", "pairs": 2, "access": {{"rate": "1Gbit/s", "delay": "1ms"}},
                "bottleneck": {{"rate": "20Mbit/s", "delay": "10ms", "queue": {queue}}}}}"#
        );
        let workload = r#""kind": "bulk", "duration": "20s", "warm_up": "5s", "from": "s1", "to": "r1""#;
        let traffic = r#", "traffic": [{"name": "others", "protocol": {"kind": "tcp", "congestion": "cubic"},
            "workload": {"kind": "bulk", "flows": 8, "from": "s2", "to": "r2", "start_jitter": "1s"}}]"#;
        let record = record(
            &network,
            r#""kind": "tcp", "congestion": "cubic""#,
            workload,
            traffic,
        );
        (figure(&record, "share"), figure(&record, "goodput_bps"))
    };
    let fair = |(share, _): (f64, f64)| share;
    assert!(
        (0.44..0.52).contains(&fair(shared(r#""cake""#))),
        "{:?}",
        shared(r#""cake""#)
    );
    let flows = fair(shared(r#""fq-codel""#));
    assert!((0.09..0.13).contains(&flows), "{flows}");
    let (share, goodput) = shared(r#"{"kind": "cake", "rate": "10Mbit/s"}"#);
    assert!((0.44..0.52).contains(&share), "{share}");
    assert!((4.2e6..5e6).contains(&goodput), "{goodput}");
}

#[test]
fn size_classes_have_separate_metrics() {
    let workload = r#""kind": "arrivals", "duration": "10s", "arrivals": "50/s", "sizes": "bounded-pareto",
        "size": "1kB", "largest": "1MB", "classes": ["10kB", "100kB"]"#;
    let record = record(DUMBBELL, TCP, workload, "");
    let mut completed = 0.0;
    for class in 0..3 {
        let times: Vec<f64> = record
            .flows
            .iter()
            .filter(|flow| flow.class == Some(class))
            .filter_map(|flow| flow.fct_s)
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((figure(&record, &format!("fct_mean_s@G{class}")) / mean - 1.0).abs() < 1e-9);
        completed += figure(&record, &format!("flows_completed@G{class}"));
        assert!(
            figure(&record, &format!("fct_p95_s@G{class}"))
                >= figure(&record, &format!("fct_p50_s@G{class}"))
        );
    }
    assert_eq!(completed, figure(&record, "flows_completed"));
    let short = record.flows.iter().filter(|flow| flow.size_bytes <= Some(10_000));
    assert!(short.clone().count() > 100 && short.clone().all(|flow| flow.class == Some(0)));
}

/// Pacing counts as a limit of the window in the profile "rfc" and not in "linux". PCC Vivace, which is paced, learns with both.
#[test]
fn vivace_uses_the_link_in_both_profiles() {
    for profile in ["rfc", "linux"] {
        for rate in [40, 60] {
            let path = format!(r#""path": {{"rate": "{rate}Mbit/s", "delay": "20ms", "queue": "1000pkt"}}"#);
            let protocol = format!(r#""kind": "tcp", "congestion": "vivace", "profile": "{profile}""#);
            let workload = r#""kind": "bulk", "duration": "20s", "warm_up": "10s""#;
            let goodput = figure(&record(&path, &protocol, workload, ""), "goodput_bps");
            assert!(
                goodput > 0.9e6 * f64::from(rate),
                "{profile}, {rate} Mbit/s: {goodput}"
            );
        }
    }
}
