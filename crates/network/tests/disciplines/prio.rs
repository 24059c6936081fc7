//! Strict priorities: RFC 2474, section 4.2.2.2.

use super::*;
use crate::common::numbers;

/// Returns packets of 1250 bytes at these times in ms, numbered from 0, with their priorities.
fn packets(sends: &[(u64, u8)]) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    let sends = sends.iter().copied().zip(0..);
    sends.map(|((at, priority), number)| {
        let body = Mark {
            priority,
            ..mark(number)
        };
        (at * MILLI, Packet::new(FORWARD, 1250, body))
    })
}

/// Packets leave by priority, and in order within one. The packet in transmission is not interrupted.
#[test]
fn higher_priorities_leave_first() {
    let mut network = network(r#""prio""#);
    let sends = [(0, 0), (0, 1), (0, 7), (0, 1), (0, 7), (1, 7), (2, 3), (2, 9)];
    let arrivals = drive(&mut network, packets(&sends));
    // Packet 0 is in transmission; a priority above 7 counts as 7.
    assert_eq!(numbers(&arrivals), [0, 2, 4, 5, 7, 6, 1, 3]);
}

/// A packet of the highest priority waits for one transmission at most, at any load of others; those of the lowest priority
/// get what is left.
#[test]
fn a_priority_flow_sees_no_other_load() {
    let bulk = (0..2000).map(|number| (number / 2, 0)).collect::<Vec<_>>();
    let urgent = (0..250).map(|number| (number * 4, 5)).collect::<Vec<_>>();
    let mut sends = [bulk, urgent].concat();
    sends.sort_by_key(|&(at, _)| at);
    let mut network = network(r#"{"kind": "prio", "limit": "5000pkt"}"#);
    let arrivals = drive(&mut network, packets(&sends));
    let of = |priority| {
        let of = arrivals.iter();
        of.filter(move |arrival| arrival.packet.body.priority == priority)
    };
    let delay = |arrival: &Arrival<Mark>| arrival.at - sends[arrival.packet.body.number as usize].0 * MILLI;
    assert!(of(5).map(delay).max() <= Some(2 * PACKET_TIME));
    assert_eq!(of(5).count(), 250);
    // 750 of 1000 ms are left for them.
    let early = of(0).filter(|arrival| arrival.at <= 1000 * MILLI).count();
    assert!((749..=751).contains(&early), "{early}");
}

/// A packet that finds the queue full replaces the last one of the lowest priority below its own, or else is dropped.
#[test]
fn a_full_queue_drops_the_lowest_priority() {
    for limit in ["4pkt", "5000B"] {
        let mut network = network(&format!(r#"{{"kind": "prio", "limit": "{limit}"}}"#));
        // Packet 0 is in transmission, 1 to 3 wait. 4 replaces 2, 5 replaces 1, 6 replaces 3, and 7 finds only its own priority.
        let sends = [
            (0, 0),
            (0, 1),
            (0, 1),
            (0, 2),
            (0, 7),
            (0, 7),
            (0, 7),
            (0, 7),
            (0, 0),
        ];
        let arrivals = drive(&mut network, packets(&sends));
        assert_eq!(numbers(&arrivals), [0, 4, 5, 6], "{limit}");
        let drops: Vec<u64> = network
            .observer()
            .drops(DropReason::Queue)
            .into_iter()
            .map(|(_, id)| id - 1)
            .collect();
        assert_eq!(drops, [2, 1, 3, 7, 8], "{limit}");
    }
}

/// A packet that would not fit next to those of its priority and above displaces no other.
#[test]
fn a_packet_that_cannot_fit_replaces_none() {
    let mut network = network(r#"{"kind": "prio", "limit": "3000B"}"#);
    let large = Packet::new(
        FORWARD,
        2000,
        Mark {
            priority: 7,
            ..mark(2)
        },
    );
    let sends = packets(&[(0, 0), (0, 0)]).chain([(0, large)]);
    assert_eq!(numbers(&drive(&mut network, sends)), [0, 1]);
}
