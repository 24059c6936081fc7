//! Observation of queues: length, mean over time, utilisation and delay.

use crate::common::{Arrival, Mark, drive, mark, path};
use foundation::{Duration, Instant, Streams};
use network::{Count, FORWARD, LinkId, Network, NetworkBuilder, Occupancy, Packet};
use proptest::prelude::*;

const LINK: LinkId = LinkId(0);
/// 1250 bytes at 10 Mbit/s.
const MILLI: u64 = 1_000_000;

fn network(queue: &str) -> Network<Mark> {
    let path = path(&format!(
        r#"{{"rate": "10Mbit/s", "delay": "7ms", "queue": {queue}}}"#
    ));
    let mut builder = NetworkBuilder::chain(&[path], Streams::new(1, 0));
    builder.record_waits(LINK);
    builder.build()
}

/// Drop-tail computes departures in advance, drop-head stores packets; neither drops here.
const QUEUES: [&str; 2] = [r#""1000pkt""#, r#"{"kind": "drop-head", "limit": "1000pkt"}"#];

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn occupancy_of_three_packets_matches_hand_calculation() {
    for queue in QUEUES {
        let mut network = network(queue);
        for number in 0..3 {
            network.send(at(0), Packet::new(FORWARD, 1250, mark(number)));
        }
        let count = |packets| Count {
            packets,
            bytes: packets * 1250,
        };
        let mut see = |nanos: u64| {
            network.handle_timeout(at(nanos));
            (network.queue(LINK, at(nanos)), network.occupancy(LINK, at(nanos)))
        };
        let packets = |sum: Occupancy| sum.packet_nanos as u64;
        let (length, sum) = see(0);
        assert_eq!((length, sum), (count(3), Occupancy::default()), "{queue}");
        let (length, sum) = see(MILLI / 2);
        assert_eq!((length, packets(sum)), (count(3), 3 * MILLI / 2));
        assert_eq!(sum.busy, Duration::from_nanos(MILLI / 2));
        let (length, sum) = see(MILLI);
        assert_eq!((length, packets(sum)), (count(2), 3 * MILLI));
        let (length, half) = see(2 * MILLI + 1);
        assert_eq!((length, packets(half)), (count(1), 5 * MILLI + 1));
        let (length, sum) = see(12 * MILLI);
        assert_eq!((length, packets(sum)), (count(0), 6 * MILLI));
        assert_eq!(sum.busy, Duration::from_millis(3));
        assert_eq!(packets(sum.since(&half)), MILLI - 1);

        let waits = network.waits(LINK).unwrap();
        let expected = [0, MILLI, 2 * MILLI];
        assert_eq!(waits.len(), 3);
        assert!(expected.iter().all(|&wait| waits.count_at(wait) == 1), "{queue}");
        assert!(network.waits(LinkId(1)).is_none());
        network.reset_waits(LINK);
        assert!(network.waits(LINK).unwrap().is_empty());
    }
}

#[test]
fn an_infinitely_fast_link_has_no_queue() {
    let mut builder = NetworkBuilder::chain(&[path(r#"{"delay": "5ms"}"#)], Streams::new(1, 0));
    builder.record_waits(LINK);
    let mut network: Network<Mark> = builder.build();
    drive(
        &mut network,
        (0..9).map(|number| (0, Packet::new(FORWARD, 1250, mark(number)))),
    );
    assert_eq!(network.occupancy(LINK, at(MILLI)), Occupancy::default());
    assert_eq!(network.waits(LINK).unwrap().max(), 0);
    assert_eq!(network.waits(LINK).unwrap().len(), 9);
}

/// Packets dropped from the head count until they are dropped.
#[test]
fn dropped_packets_count_in_the_occupancy() {
    let mut network = network(r#"{"kind": "drop-head", "limit": "2pkt"}"#);
    network.send(at(0), Packet::new(FORWARD, 1250, mark(0)));
    network.send(at(0), Packet::new(FORWARD, 1250, mark(1)));
    network.send(at(MILLI / 2), Packet::new(FORWARD, 1250, mark(2)));
    network.handle_timeout(at(9 * MILLI));
    // The packets wait 1 ms, 0.5 ms and 1.5 ms.
    assert_eq!(
        network.occupancy(LINK, at(9 * MILLI)).packet_nanos,
        u128::from(3 * MILLI)
    );
    assert_eq!(network.waits(LINK).unwrap().len(), 2);
}

fn schedule(gaps: &[(u64, u32)]) -> Vec<(u64, Packet<Mark>)> {
    let mut now = 0;
    (0..)
        .zip(gaps)
        .map(|(number, &(gap, size))| {
            now += gap;
            (now, Packet::new(FORWARD, size, mark(number)))
        })
        .collect()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

    /// At any time, the integral of the queue length equals the sum of the packets' times in the queue (Little's law).
    #[test]
    fn occupancy_is_the_sum_over_packets(
        gaps in proptest::collection::vec((0..2 * MILLI, 1_u32..1500), 1..40), moment in 0..60 * MILLI
    ) {
        let sent = schedule(&gaps);
        for queue in QUEUES {
            let mut network = network(queue);
            let left: Vec<Arrival<Mark>> = drive(&mut network, sent.clone());
            let end = left.last().unwrap().at - 7 * MILLI;
            let mut total = Occupancy::default();
            let mut until = Occupancy::default();
            let mut length = Count::default();
            let mut free = 0;
            for ((joined, packet), arrival) in sent.iter().zip(&left) {
                let departure = arrival.at - 7 * MILLI;
                let begin = free.max(*joined);
                free = departure;
                let add = |sum: &mut Occupancy, moment: u64| {
                    let stood = departure.min(moment).saturating_sub(*joined);
                    sum.packet_nanos += u128::from(stood);
                    sum.busy += Duration::from_nanos(departure.min(moment).saturating_sub(begin));
                };
                add(&mut total, end);
                add(&mut until, moment);
                if *joined <= moment && departure > moment {
                    length.packets += 1;
                    length.bytes += u64::from(packet.size);
                }
            }
            prop_assert_eq!(network.occupancy(LINK, at(end)), total);

            let mut network = self::network(queue);
            for (now, packet) in sent.iter().filter(|(now, _)| *now <= moment) {
                network.send(at(*now), packet.clone());
            }
            network.handle_timeout(at(moment));
            prop_assert_eq!(network.occupancy(LINK, at(moment)), until);
            prop_assert_eq!(network.queue(LINK, at(moment)), length);
        }
    }
}
