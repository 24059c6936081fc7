//! Recorded rates, compared with schedules computed by hand from mahimahi's rules.

use std::sync::Arc;

use crate::common::{Mark, drive, mark, numbers, train};
use foundation::{Duration, Streams};
use network::{Capacity, DeliveryTrace, FORWARD, LinkId, LinkSpec, Network, Packet, PathConfig, PathSpec};

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
