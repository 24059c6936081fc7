//! Recorded rates, compared with schedules computed by hand from mahimahi's rules.

use std::sync::Arc;

use crate::common::{Mark, drive, mark, numbers, train};
use foundation::{Duration, Streams};
use network::{
    Capacity, DeliveryTrace, FORWARD, LinkId, LinkSpec, Network, Packet, PathConfig, PathSpec, REVERSE,
    TraceStart,
};

const MS: u64 = 1_000_000;

fn traced(trace: &str) -> Network<Mark> {
    let forward = LinkSpec {
        capacity: Capacity::Trace(Arc::new(DeliveryTrace::parse(trace).unwrap())),
        ..LinkSpec::default()
    };
    let path = PathSpec {
        forward,
        reverse: LinkSpec::default(),
    };
    Network::two_hosts(&path, Streams::new(1, 0))
}

fn times(trace: &str, sends: &[(u64, u32)]) -> Vec<u64> {
    let sends = sends
        .iter()
        .map(|&(millis, size)| (millis * MS, Packet::new(FORWARD, size, mark(0))));
    let arrivals = drive(&mut traced(trace), sends);
    arrivals.iter().map(|arrival| arrival.at / MS).collect()
}

#[test]
fn full_packets_take_one_opportunity_each() {
    assert_eq!(
        times("2\n5\n9\n", &[(0, 1500), (0, 1500), (0, 1500), (0, 1500)]),
        [2, 5, 9, 11]
    );
}

#[test]
fn the_last_time_is_the_period() {
    // 4, 4 + 4, …; a time listed twice gives two opportunities per period.
    assert_eq!(times("4", &[(0, 1500); 3]), [4, 8, 12]);
    assert_eq!(times("4\n4", &[(0, 1500); 5]), [4, 4, 8, 8, 12]);
    // Time 0 coincides with the end of the previous period.
    assert_eq!(times("0\n10", &[(1, 1500); 3]), [10, 10, 20]);
}

#[test]
fn small_packets_share_an_opportunity() {
    assert_eq!(
        times("3\n7", &[(0, 500), (0, 500), (0, 500), (0, 1)]),
        [3, 3, 3, 7]
    );
}

#[test]
fn a_packet_may_span_opportunities() {
    // 1000 bytes leave at 3. The second packet sends 500 bytes at 3 and 500 at 7, which leaves 1000 for the third.
    assert_eq!(
        times("3\n7\n8", &[(0, 1000), (0, 1000), (0, 1000), (0, 400)]),
        [3, 7, 7, 8]
    );
    assert_eq!(times("3\n7\n8", &[(0, 4000)]), [8]);
}

#[test]
fn unused_opportunities_are_lost() {
    // At 3 there is nothing to send; a packet that arrives at the time of an opportunity misses it.
    assert_eq!(
        times("3\n7\n10", &[(4, 1500), (7, 1500), (10, 1500)]),
        [7, 10, 13]
    );
    assert_eq!(times("3\n7\n10", &[(3, 1500)]), [7]);
    assert_eq!(times("3\n7\n10", &[(0, 500), (3, 500)]), [3, 7]);
    // 500 bytes of the opportunity at 3 are used; the rest is lost at 4.
    assert_eq!(times("3\n7\n10", &[(0, 500), (4, 1500)]), [3, 7]);
    // A long idle time spans many periods: period 100 ends at 1000, and the next opportunity is 3 later.
    assert_eq!(times("3\n7\n10", &[(1000, 1500)]), [1003]);
    assert_eq!(times("3\n7\n10", &[(1009, 1500)]), [1010]);
}

#[test]
fn a_saturated_link_delivers_all_opportunities() {
    // An uneven trace of 1000 opportunities in 4 s: 3 Mbit/s.
    let mut events: Vec<u64> = (1..1000).map(|number: u64| number * number % 4000).collect();
    events.push(4000);
    events.sort_unstable();
    let text: Vec<String> = events.iter().map(u64::to_string).collect();
    let trace = DeliveryTrace::parse(&text.join("\n")).unwrap();
    assert_eq!(trace.period(), Duration::from_secs(4));
    assert_eq!(trace.mean_rate().unwrap().to_string(), "3Mbit/s");
    let mut network = traced(&text.join("\n"));
    // Offered load of 24 Mbit/s in packets of 700 bytes for three periods; the queue holds 1000 packets.
    let arrivals = drive(
        &mut network,
        train(3 * 4 * 24_000_000 / 5600, 5600 * 1000 / 24, 700),
    );
    assert!(numbers(&arrivals).is_sorted());
    let first = 4_000 * MS;
    let bytes = arrivals
        .iter()
        .filter(|arrival| arrival.at > first && arrival.at <= 3 * first)
        .map(|arrival| u64::from(arrival.packet.size))
        .sum::<u64>();
    // Two periods of 1,500,000 bytes, ± one packet at either end.
    assert!(bytes.abs_diff(3_000_000) <= 1400, "{bytes}");
    assert_eq!(network.counters(LinkId(0)).max_queue_packets, 1000);
    // All losses of queue and link are counted.
    let counters = network.counters(LinkId(0));
    assert_eq!(
        counters.entered.packets,
        counters.delivered.packets + counters.queue_dropped.packets
    );
}

#[test]
fn drop_head_continues_within_an_opportunity() {
    let path: PathConfig = serde_json::from_str(
        r#"{"trace": "cell.down", "queue": {"kind": "drop-head"}, "reverse": {"rate": "1Mbit/s"}}"#,
    )
    .unwrap();
    let mut requested = Vec::new();
    let mut load = |file: &str| {
        requested.push(file.to_owned());
        Ok("3\n7\n".to_owned())
    };
    let path = path.resolve(&mut load).unwrap();
    assert_eq!(requested, ["cell.down"]);
    let mut network = Network::two_hosts(&path, Streams::new(1, 0));
    let sends = (0..4).map(|number| (0, Packet::new(FORWARD, 500, mark(number))));
    let arrivals = drive(&mut network, sends);
    let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at / MS).collect();
    assert_eq!(times, [3, 3, 3, 7]);
}

#[test]
fn errors_name_the_line() {
    let message = |text: &str| DeliveryTrace::parse(text).unwrap_err().to_string();
    assert!(message("").contains("empty"));
    assert!(message("0\n0\n").contains("above 0"));
    assert!(
        message("1\ntwo\n").starts_with("line 2: \"two\""),
        "{}",
        message("1\ntwo\n")
    );
    assert!(message("1\n\n2").starts_with("line 2"));
    assert!(message("1.5").contains("whole"));
    assert!(message("5\n4").contains("must not decrease"));
    assert!(message("99999999999999999").contains("too long"));
    assert!(DeliveryTrace::parse("1\r\n2\r\n").is_ok());
}

#[test]
fn unreadable_traces_are_problems_of_their_key() {
    let config: PathConfig = serde_json::from_str(r#"{"trace": "a", "reverse": {"trace": "b"}}"#).unwrap();
    let mut load = |file: &str| {
        if file == "a" {
            Ok("x".into())
        } else {
            Err("no such file".into())
        }
    };
    let problems = config.resolve(&mut load).unwrap_err();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].starts_with("trace: \"a\": line 1"), "{texts:?}");
    assert_eq!(texts[1], "reverse.trace: \"b\": no such file");
}

#[test]
fn bytes_between_counts_across_periods() {
    let trace = DeliveryTrace::parse("0\n2\n2\n5\n10").unwrap();
    let at = |millis: u64| foundation::Instant::from_nanos(millis * MS);
    let packets = |from: u64, until: u64| trace.bytes_between(at(from), at(until)) / 1500;
    assert_eq!(packets(0, 1), 0);
    assert_eq!(packets(0, 2), 2);
    assert_eq!(packets(2, 10), 3); // 5, 10, and the 0 of the next period
    assert_eq!(packets(0, 10), 5);
    assert_eq!(packets(3, 1_002), 5 * 100);
    assert_eq!(packets(7, 7), 0);
}

fn starting(trace: &str, start: TraceStart, streams: Streams) -> Network<Mark> {
    let forward = LinkSpec {
        capacity: Capacity::Trace(Arc::new(DeliveryTrace::parse(trace).unwrap().starting(start))),
        ..LinkSpec::default()
    };
    let path = PathSpec {
        reverse: forward.clone(),
        forward,
    };
    Network::two_hosts(&path, streams)
}

#[test]
fn a_trace_starts_later_and_wraps_around() {
    let trace = "2\n5\n9\n";
    let sends = || [0, 0, 0, 1].map(|millis| (millis * MS, Packet::new(FORWARD, 1500, mark(0))));
    for start in [0, 3, 4, 8, 9, 9 * 1000 + 3] {
        let at = TraceStart::At(Duration::from_millis(start));
        let arrivals = drive(&mut starting(trace, at, Streams::new(1, 0)), sends());
        // The same packets that much later, over the trace from its start.
        let late = sends().map(|(time, packet)| (time + start * MS, packet));
        let expected = drive(&mut traced(trace), late);
        let expected: Vec<u64> = expected.iter().map(|arrival| arrival.at - start * MS).collect();
        let found: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
        assert_eq!(found, expected, "{start} ms");
        let shifted = DeliveryTrace::parse(trace).unwrap().starting(at);
        let whole = DeliveryTrace::parse(trace).unwrap();
        let instant = |millis: u64| foundation::Instant::from_nanos(millis * MS);
        assert_eq!(
            shifted.bytes_between(instant(1), instant(7)),
            whole.bytes_between(instant(1 + start), instant(7 + start)),
        );
    }
}

/// Returns the drawn start of a trace, from its first opportunity after time 0.
fn drawn(trace: &DeliveryTrace, trial: u64) -> u64 {
    let drawn = trace.drawn(Streams::new(7, trial).component("network"));
    let until = |millis: u64| {
        let zero = foundation::Instant::ZERO;
        drawn.bytes_between(zero, foundation::Instant::from_nanos(millis * MS))
    };
    // One opportunity per period, at its end.
    let period = trace.period().as_nanos() / MS;
    period - (1..=period).find(|&millis| until(millis) > 0).unwrap()
}

#[test]
fn random_starts_are_uniform_over_the_trace() {
    let trace = DeliveryTrace::parse("1000").unwrap().starting(TraceStart::Random);
    let (trials, bins) = (20_000_u64, 10_usize);
    let mut counts = vec![0_u64; bins];
    for trial in 0..trials {
        counts[drawn(&trace, trial) as usize * bins / 1000] += 1;
    }
    let mean = trials as f64 / bins as f64;
    let squares = counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean);
    // The 99.99 % quantile of chi-squared with 9 degrees of freedom.
    assert!(squares.sum::<f64>() < 33.72, "{counts:?}");
}

#[test]
fn a_trial_has_one_start_at_the_same_part_of_all_traces() {
    let short = DeliveryTrace::parse("1000").unwrap().starting(TraceStart::Random);
    let long = DeliveryTrace::parse("3000").unwrap().starting(TraceStart::Random);
    let mut starts = std::collections::BTreeSet::new();
    for trial in 0..50 {
        let (one, other) = (drawn(&short, trial), drawn(&long, trial));
        assert!((other / 3).abs_diff(one) <= 1, "{one} {other}");
        assert_eq!(one, drawn(&short, trial));
        starts.insert(one);
    }
    assert!(starts.len() > 40, "{starts:?}");
}

#[test]
fn both_directions_of_a_network_start_together() {
    let lines: Vec<String> = [3, 7, 20, 21, 50, 60].iter().map(u64::to_string).collect();
    let send = |route| [(0, Packet::new(route, 1500, mark(0)))];
    let mut seen = std::collections::BTreeSet::new();
    for trial in 0..20 {
        let mut network = starting(&lines.join("\n"), TraceStart::Random, Streams::new(1, trial));
        let there = drive(&mut network, send(FORWARD))[0].at;
        let mut network = starting(&lines.join("\n"), TraceStart::Random, Streams::new(1, trial));
        let back = drive(&mut network, send(REVERSE))[0].at;
        assert_eq!(there, back);
        seen.insert(there);
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn a_change_of_another_key_keeps_a_drawn_start() {
    for trial in 0..20 {
        let streams = Streams::new(1, trial);
        let path = |delay| PathSpec {
            forward: LinkSpec {
                capacity: Capacity::Trace(Arc::new(
                    DeliveryTrace::parse("3\n7\n60")
                        .unwrap()
                        .starting(TraceStart::Random),
                )),
                delay: Duration::from_millis(delay),
                ..LinkSpec::default()
            },
            reverse: LinkSpec::default(),
        };
        let mut changed: Network<Mark> = Network::two_hosts(&path(0), streams);
        changed.change_link(foundation::Instant::ZERO, LinkId(0), &path(5).forward);
        let sends = || [0, 0, 9].map(|millis| (millis * MS, Packet::new(FORWARD, 1500, mark(0))));
        let found: Vec<u64> = drive(&mut changed, sends()).iter().map(|one| one.at).collect();
        let expected = drive(&mut Network::two_hosts(&path(5), streams), sends());
        assert_eq!(found, expected.iter().map(|one| one.at).collect::<Vec<_>>());
    }
}

#[test]
fn a_start_needs_a_trace_and_is_inherited_with_it() {
    let read = |json: &str| -> PathConfig { serde_json::from_str(json).unwrap() };
    let problems = |json: &str| -> Vec<String> {
        let found = read(json).validate();
        found.iter().map(ToString::to_string).collect()
    };
    let missing = "trace_start: requires trace or cell: set one of them, or remove trace_start";
    assert_eq!(problems(r#"{"trace_start": "random"}"#), [missing]);
    assert_eq!(
        problems(r#"{"trace": "a", "trace_start": "2s"}"#),
        Vec::<String>::new()
    );
    assert_eq!(
        problems(r#"{"cell": {"traces": ["a"]}, "trace_start": "random"}"#),
        Vec::<String>::new()
    );
    let error =
        serde_json::from_str::<PathConfig>(r#"{"trace": "a", "trace_start": "sometimes"}"#).unwrap_err();
    assert!(error.to_string().contains("or \"random\""), "{error}");
    // A direction with another trace inherits the start, one with a rate does not.
    let mut load = |_: &str| Ok("1\n5".to_owned());
    let path = read(r#"{"trace": "a", "trace_start": "random", "reverse": {"trace": "b"}}"#);
    let links = path.resolve(&mut load).unwrap();
    assert_eq!(links.forward.capacity, links.reverse.capacity);
    let path = read(r#"{"trace": "a", "trace_start": "random", "reverse": {"rate": "1Mbit/s"}}"#);
    assert!(matches!(
        path.resolve(&mut load).unwrap().reverse.capacity,
        Capacity::Rate(_)
    ));
}
