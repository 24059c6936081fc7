//! Losses that the caller requests.

use crate::common::{Log, drive, mark, numbers, path, train};
use foundation::{Instant, Streams};
use network::{DropReason, FORWARD, LinkId, Network, NetworkBuilder, Packet};

const MS: u64 = 1_000_000;

fn network(queue: &str) -> Network<crate::common::Mark, Log> {
    let json = format!(r#"{{"rate": "10Mbit/s", "delay": "5ms", "queue": {queue}}}"#);
    NetworkBuilder::chain(&[path(&json)], Streams::new(1, 0)).build_observed(Log::default())
}

#[test]
fn a_packet_keeps_its_transmission_time_and_is_lost_at_the_far_end() {
    for queue in [r#""10pkt""#, r#""fq-codel""#] {
        let mut network = network(queue);
        // Each packet of 1250 bytes takes 1 ms.
        let ids: Vec<u64> = (1..=4)
            .map(|number| network.send(Instant::ZERO, Packet::new(FORWARD, 1250, mark(number))))
            .collect();
        assert!(network.lose(ids[1]), "it waits in the queue");
        assert!(network.lose(ids[1]), "a second request has no effect");
        assert!(!network.lose(99));
        let arrivals = drive(&mut network, []);
        assert_eq!(numbers(&arrivals), [1, 3, 4], "{queue}");
        let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
        assert_eq!(times, [6 * MS, 8 * MS, 9 * MS], "{queue}");
        assert_eq!(
            network.observer().drops(DropReason::Requested),
            [(7 * MS, ids[1])]
        );
        let counters = network.counters(LinkId(0));
        assert_eq!((counters.lost.packets, counters.delivered.packets), (1, 3));
        assert!(!network.lose(ids[1]), "it is gone");
    }
}

#[test]
fn each_request_for_the_next_packet_takes_one() {
    let mut network = network(r#""10pkt""#);
    for _ in 0..2 {
        network.lose_next(|packet| packet.body.number % 2 == 0);
    }
    let arrivals = drive(&mut network, train(8, MS, 1250));
    assert_eq!(numbers(&arrivals), [1, 3, 5, 6, 7, 8]);
}

#[test]
fn duplicates_of_a_requested_packet_are_lost_too() {
    let json = r#"{"rate": "10Mbit/s", "delay": "5ms", "duplicate": "100%"}"#;
    let network = NetworkBuilder::chain(&[path(json)], Streams::new(1, 0));
    let mut network: Network<crate::common::Mark, Log> = network.build_observed(Log::default());
    let id = network.send(Instant::ZERO, Packet::new(FORWARD, 1250, mark(1)));
    assert!(network.lose(id));
    assert!(drive(&mut network, []).is_empty());
    assert_eq!(network.observer().drops(DropReason::Requested).len(), 2);
}
