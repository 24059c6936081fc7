//! Changes of links that carry packets.

use crate::common::path;
use foundation::{Duration, Instant, Streams};
use network::{FORWARD, HostId, LinkId, LinkSpec, Network, Packet, QueueInUse};
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
        let network = Network::two_hosts(&path(keys), Streams::new(3, 0));
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

    fn change(&mut self, micros: u64, keys: &str) -> Result<(), QueueInUse> {
        self.until(at(micros));
        self.network.change_link(at(micros), LINK, &link(keys))
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
    run.change(500, r#"{"rate": "1Mbit/s", "delay": "20ms"}"#)
        .unwrap();
    assert_eq!(run.network.link_spec(LINK).delay, Duration::from_millis(20));
    run.send(500, 1250, 3);
    // The first three are unaffected; transmission of the fourth starts at 3 ms and takes 10 ms.
    assert_eq!(run.arrivals(), [(6000, 0), (7000, 1), (8000, 2), (33_000, 3)]);
}

#[test]
fn a_shorter_delay_does_not_reorder_packets() {
    let mut run = Run::start(r#"{"delay": "50ms"}"#);
    run.send(0, 100, 0);
    run.change(10, r#"{"delay": "1ms"}"#).unwrap();
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
    run.change(0, r#"{"rate": "1Mbit/s", "queue": "8pkt"}"#).unwrap();
    assert_eq!(send(&mut run), 5 + 7);
    assert_eq!(run.arrivals().len(), 8);
}

#[test]
fn an_empty_queue_can_change_its_kind() {
    let mut run = Run::start(r#"{"rate": "1Mbit/s"}"#);
    let codel = r#"{"rate": "1Mbit/s", "queue": "codel"}"#;
    run.send(0, 1000, 0);
    assert_eq!(run.change(0, codel), Err(QueueInUse));
    assert_eq!(
        run.network.link_spec(LINK),
        &link(r#"{"rate": "1Mbit/s"}"#),
        "nothing has changed"
    );
    run.change(8000, codel).unwrap();
    for number in 1..4 {
        run.send(8000, 1000, number);
    }
    assert_eq!(run.change(8000, r#"{"rate": "1Mbit/s"}"#), Err(QueueInUse));
    run.change(8000, r#"{"rate": "8Mbit/s", "queue": "codel"}"#)
        .unwrap();
    // One packet was in transmission at the old rate.
    assert_eq!(run.arrivals(), [(8000, 0), (16_000, 1), (17_000, 2), (18_000, 3)]);
}

#[test]
fn unchanged_losses_continue_their_random_stream() {
    let losses_with = |change: Option<&str>| {
        let mut run = Run::start(r#"{"loss": "30%"}"#);
        for number in 0..100 {
            if number == 50
                && let Some(keys) = change
            {
                run.change(0, keys).unwrap();
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
    run.network.change_link(at(0), LINK, &spec).unwrap();
    run.send(0, 1500, 1);
    // 1500 bytes at 1 Mbit/s take until 12 ms; the next opportunity is at 15 ms.
    assert_eq!(run.arrivals(), [(12_000, 0), (15_000, 1)]);
}

fn keys() -> impl Strategy<Value = String> {
    let rate = prop_oneof![
        Just(String::new()),
        (1_u32..100).prop_map(|rate| format!(r#""rate": "{rate}Mbit/s", "#))
    ];
    (rate, 0_u32..50, 1_u32..20)
        .prop_map(|(rate, delay, queue)| format!(r#"{{{rate}"delay": "{delay}ms", "queue": "{queue}pkt"}}"#))
}

proptest! {
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
                Ok(keys) => run.change(when, keys).unwrap(),
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
}
