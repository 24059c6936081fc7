//! Changes of links that carry packets.

use crate::common::path;
use foundation::{Duration, Instant, Streams};
use network::{FORWARD, HostId, LinkId, LinkSpec, Network, NetworkBuilder, Packet};
use proptest::prelude::*;

const LINK: LinkId = LinkId(0);

fn link(keys: &str) -> LinkSpec {
    path(keys).forward
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// A network of one link, and its arrivals: time in microseconds, and packet number.
struct Run {
    network: Network<Vec<u8>>,
    arrived: Vec<(u64, u8)>,
}

impl Run {
    fn start(keys: &str) -> Self {
        let mut builder = NetworkBuilder::chain(&[path(keys)], Streams::new(3, 0));
        builder.record_waits(LINK);
        let network = builder.build();
        let arrived = Vec::new();
        Self { network, arrived }
    }

    fn until(&mut self, when: Instant) {
        while let Some(due) = self.network.handle_timeouts_until_delivery(when) {
            self.take(due);
        }
    }

    fn take(&mut self, due: Instant) {
        while let Some((host, packet)) = self.network.poll_delivery() {
            assert_eq!(host, HostId(1));
            self.arrived.push((due.as_nanos() / 1000, packet.body[0]));
        }
    }

    fn send(&mut self, micros: u64, size: u32, number: u8) {
        self.until(at(micros));
        self.network
            .send(at(micros), Packet::new(FORWARD, size, vec![number]));
        self.take(at(micros));
    }

    fn change(&mut self, micros: u64, keys: &str) {
        self.until(at(micros));
        self.network.change_link(at(micros), LINK, &link(keys));
    }

    fn arrivals(&mut self) -> Vec<(u64, u8)> {
        self.until(at(3_600_000_000));
        std::mem::take(&mut self.arrived)
    }
}

#[test]
fn a_new_rate_and_delay_apply_to_later_packets() {
    // 1250 bytes at 10 Mbit/s take 1 ms.
    let mut run = Run::start(r#"{"rate": "10Mbit/s", "delay": "5ms"}"#);
    for number in 0..3 {
        run.send(0, 1250, number);
    }
    run.change(500, r#"{"rate": "1Mbit/s", "delay": "20ms"}"#);
    assert_eq!(run.network.link_spec(LINK).delay, Duration::from_millis(20));
    run.send(500, 1250, 3);
    // The first three are unaffected; transmission of the fourth starts at 3 ms and takes 10 ms.
    assert_eq!(run.arrivals(), [(6000, 0), (7000, 1), (8000, 2), (33_000, 3)]);
}

#[test]
fn a_shorter_delay_does_not_reorder_packets() {
    let mut run = Run::start(r#"{"delay": "50ms"}"#);
    run.send(0, 100, 0);
    run.change(10, r#"{"delay": "1ms"}"#);
    run.send(10, 100, 1);
    run.send(50_000, 100, 2);
    assert_eq!(run.arrivals(), [(50_000, 0), (50_000, 1), (51_000, 2)]);
}

#[test]
fn a_drop_tail_limit_changes_immediately() {
    let mut run = Run::start(r#"{"rate": "1Mbit/s", "queue": "5pkt"}"#);
    let send = |run: &mut Run| {
        for number in 0..10 {
            run.send(0, 1000, number);
        }
        run.network.counters(LINK).queue_dropped.packets
    };
    assert_eq!(send(&mut run), 5);
    run.change(0, r#"{"rate": "1Mbit/s", "queue": "8pkt"}"#);
    assert_eq!(send(&mut run), 5 + 7);
    assert_eq!(run.arrivals().len(), 8);
}

#[test]
fn waiting_packets_move_to_another_discipline_in_order() {
    let kinds = [
        r#""50pkt""#,
        r#"{"kind": "drop-head", "limit": "50pkt"}"#,
        r#""codel""#,
        r#""fq-codel""#,
        r#""pie""#,
        r#""pi2""#,
        r#""dualpi2""#,
    ];
    for from in kinds {
        for to in kinds {
            let keys = |queue: &str| format!(r#"{{"rate": "10Mbit/s", "delay": "3ms", "queue": {queue}}}"#);
            let mut run = Run::start(&keys(from));
            for number in 0..5 {
                run.send(0, 1250, number);
            }
            run.change(1500, &keys(to));
            assert_eq!(run.network.queue(LINK, at(1500)).packets, 4, "{from} to {to}");
            run.send(1500, 1250, 5);
            let expected: Vec<(u64, u8)> = (0..6)
                .map(|number| (4000 + 1000 * u64::from(number), number))
                .collect();
            assert_eq!(run.arrivals(), expected, "{from} to {to}");
            let counters = run.network.counters(LINK);
            assert_eq!((counters.entered.packets, counters.delivered.packets), (6, 6));
            assert_eq!(run.network.packets_inside(), 0);
        }
    }
}

#[test]
fn packets_beyond_the_limit_of_another_discipline_are_dropped() {
    let mut run = Run::start(r#"{"rate": "10Mbit/s"}"#);
    for number in 0..6 {
        run.send(0, 1250, number);
    }
    // Drop-head keeps the newest packets next to the one in transmission.
    run.change(
        0,
        r#"{"rate": "10Mbit/s", "queue": {"kind": "drop-head", "limit": "3pkt"}}"#,
    );
    assert_eq!(run.network.counters(LINK).queue_dropped.packets, 3);
    // Drop-tail keeps the oldest.
    run.change(0, r#"{"rate": "10Mbit/s", "queue": "2pkt"}"#);
    assert_eq!(run.arrivals(), [(1000, 0), (2000, 4)]);
    assert_eq!(run.network.counters(LINK).queue_dropped.packets, 4);
}

/// CoDel measures the whole time in the queue: the packets that waited under drop-tail exceed its target at once.
#[test]
fn queueing_delays_count_from_the_first_queue() {
    let mut run = Run::start(r#"{"rate": "1Mbit/s", "queue": "100pkt"}"#);
    for number in 0..40 {
        run.send(0, 1250, number);
    }
    run.change(95_000, r#"{"rate": "1Mbit/s", "queue": "codel"}"#);
    run.until(at(250_000));
    assert!(run.network.counters(LINK).queue_dropped.packets > 0);
    run.arrivals();
    let longest = run.network.waits(LINK).unwrap().max();
    assert!(longest > 250_000_000, "{longest} ns");
}

#[test]
fn settings_of_a_discipline_change_while_packets_wait() {
    let mut run = Run::start(r#"{"rate": "10Mbit/s", "queue": {"kind": "codel", "limit": "9pkt"}}"#);
    for number in 0..9 {
        run.send(0, 1250, number);
    }
    run.change(
        0,
        r#"{"rate": "20Mbit/s", "queue": {"kind": "codel", "limit": "4pkt"}}"#,
    );
    assert_eq!(run.network.counters(LINK).queue_dropped.packets, 5);
    // The first packet is in transmission at the old rate.
    assert_eq!(run.arrivals(), [(1000, 0), (1500, 1), (2000, 2), (2500, 3)]);
}

#[test]
fn packets_scheduled_before_an_unlimited_rate_leave_as_scheduled() {
    let mut run = Run::start(r#"{"rate": "10Mbit/s"}"#);
    for number in 0..3 {
        run.send(0, 1250, number);
    }
    run.change(0, "{}");
    run.send(0, 1250, 3);
    run.change(0, r#"{"rate": "10Mbit/s", "queue": "codel"}"#);
    run.send(0, 1250, 4);
    assert_eq!(
        run.arrivals(),
        [(1000, 0), (2000, 1), (3000, 2), (3000, 3), (4000, 4)]
    );
}

#[test]
fn unchanged_losses_continue_their_random_stream() {
    let losses_with = |change: Option<&str>| {
        let mut run = Run::start(r#"{"loss": "30%"}"#);
        for number in 0..100 {
            if number == 50
                && let Some(keys) = change
            {
                run.change(0, keys);
            }
            run.send(0, 100, number);
        }
        run.arrivals()
            .into_iter()
            .map(|(_, number)| number)
            .collect::<Vec<u8>>()
    };
    let plain = losses_with(None);
    assert_eq!(losses_with(Some(r#"{"loss": "30%", "delay": "2ms"}"#)), plain);
    assert_eq!(
        losses_with(Some(r#"{"loss": "30%", "duplicate": "0%", "mtu": "1500B"}"#)),
        plain
    );
    let other = losses_with(Some(r#"{"loss": "60%"}"#));
    assert_ne!(other, plain);
    assert_eq!(other, losses_with(Some(r#"{"loss": "60%"}"#)), "reproducible");
    let none = losses_with(Some("{}"));
    assert_eq!(none.iter().filter(|&&number| number >= 50).count(), 50);
}

#[test]
fn a_recorded_rate_starts_after_accepted_packets() {
    let mut run = Run::start(r#"{"rate": "1Mbit/s"}"#);
    run.send(0, 1500, 0);
    let mut spec = link("{}");
    spec.capacity =
        network::Capacity::Trace(std::sync::Arc::new(network::DeliveryTrace::parse("5\n").unwrap()));
    run.network.change_link(at(0), LINK, &spec);
    run.send(0, 1500, 1);
    // 1500 bytes at 1 Mbit/s take until 12 ms; the next opportunity is at 15 ms.
    assert_eq!(run.arrivals(), [(12_000, 0), (15_000, 1)]);
}

fn keys() -> impl Strategy<Value = String> {
    let rate = prop_oneof![
        Just(String::new()),
        (1_u32..100).prop_map(|rate| format!(r#""rate": "{rate}Mbit/s", "#))
    ];
    let kind = prop::sample::select(vec![
        "drop-tail",
        "drop-head",
        "red",
        "codel",
        "fq-codel",
        "pie",
        "pi2",
        "dualpi2",
        "step",
    ]);
    (rate, 0_u32..50, kind, 1_u32..20).prop_map(|(rate, delay, kind, limit)| {
        let rate = match kind {
            "pi2" | "dualpi2" if rate.is_empty() => r#""rate": "7Mbit/s", "#.to_owned(),
            _ => rate,
        };
        // The default step threshold exceeds such short queues.
        let more = if kind == "dualpi2" {
            r#", "step": "1us""#
        } else {
            ""
        };
        format!(
            r#"{{{rate}"delay": "{delay}ms", "queue": {{"kind": "{kind}", "limit": "{limit}pkt"{more}}}}}"#
        )
    })
}

/// Arrivals, and the length and the delays of the queue.
#[derive(Debug, PartialEq)]
struct Measured {
    arrived: Vec<(u64, u8)>,
    occupancy: network::Occupancy,
    /// Queueing delays in nanoseconds, and their counts.
    waits: Vec<(u64, u64)>,
}

fn measured(mut run: Run, end: u64) -> Measured {
    let arrived = run.arrivals();
    let waits = run.network.waits(LINK).unwrap();
    let waits = waits
        .iter_recorded()
        .map(|one| (one.value_iterated_to(), one.count_at_value()));
    Measured {
        arrived,
        occupancy: run.network.occupancy(LINK, at(end)),
        waits: waits.collect(),
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

    #[test]
    fn packets_arrive_once_in_order_or_are_counted_despite_changes(
        first in keys(),
        changes in proptest::collection::vec((0_u64..20_000, keys()), 0..6),
        sent in proptest::collection::vec((0_u64..20_000, 40_u32..1500), 1..100),
    ) {
        let mut run = Run::start(&first);
        let mut events: Vec<(u64, Result<&str, u32>)> =
            changes.iter().map(|(when, keys)| (*when, Ok(keys.as_str()))).collect();
        events.extend(sent.iter().map(|&(when, size)| (when, Err(size))));
        events.sort_by_key(|&(when, _)| when);
        let mut number = 0;
        for (when, event) in events {
            match event {
                Ok(keys) => run.change(when, keys),
                Err(size) => {
                    run.send(when, size, number);
                    number += 1;
                }
            }
        }
        let arrived = run.arrivals();
        prop_assert!(arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        let dropped = run.network.counters(LINK).queue_dropped.packets;
        prop_assert_eq!(arrived.len() as u64 + dropped, sent.len() as u64);
        prop_assert_eq!(run.network.packets_inside(), 0);
    }

    /// Drop-tail computes departures in advance, drop-head stores packets. Without drops both behave alike, and so does a link
    /// that changes between them.
    #[test]
    fn moves_between_disciplines_without_drops_have_no_effect(
        jitter in prop::option::of(prop::bool::ANY),
        changes in prop::collection::vec(0_u64..30_000, 1..6),
        sent in prop::collection::vec((0_u64..20_000, 1_u32..12), 1..60),
    ) {
        let impaired = jitter.map_or(String::new(), |keep_order| {
            format!(r#""jitter": {{"spread": "2ms", "keep_order": {keep_order}}}, "reorder": {{"probability": "10%", "delay": "3ms"}}, "#)
        });
        let queues = [r#""1000pkt""#, r#"{"kind": "drop-head", "limit": "1000pkt"}"#];
        let keys = |queue: usize| format!(r#"{{"rate": "10Mbit/s", "delay": "5ms", {impaired}"queue": {}}}"#, queues[queue % 2]);
        let mut events: Vec<(u64, Option<u32>)> = changes.iter().map(|&when| (when, None)).collect();
        events.extend(sent.iter().map(|&(when, size)| (when, Some(size * 125))));
        events.sort_unstable();
        let run = |changing: bool| {
            let (mut run, mut queue, mut number) = (Run::start(&keys(0)), 0, 0);
            for &(when, event) in &events {
                if let Some(size) = event {
                    run.send(when, size, number);
                    number += 1;
                } else if changing {
                    queue += 1;
                    run.change(when, &keys(queue));
                }
            }
            measured(run, 3_600_000_000)
        };
        prop_assert_eq!(run(true), run(false));
    }
}
