//! Cut-through changes neither arrivals nor exact counters.

use crate::common::{Mark, drive, mark, path};
use foundation::{Instant, Streams};
use network::{LinkId, LinkSpec, Network, NetworkBuilder, Packet, RouteId};
use proptest::prelude::*;

const PAIRS: usize = 3;

/// Returns a dumbbell of three pairs with two links in the middle, and the first of these links.
fn dumbbell(specs: &[LinkSpec], seed: u64) -> (NetworkBuilder, LinkId) {
    let mut builder = NetworkBuilder::new(Streams::new(seed, 0));
    let first = builder.link("first", &specs[0]);
    let second = builder.link("second", &specs[1]);
    for pair in 0..PAIRS {
        let there = builder.link(format!("there/{pair}"), &specs[2 + pair]);
        let away = builder.link(format!("away/{pair}"), &specs[2 + PAIRS + pair]);
        let host = builder.host();
        builder.route(&[there, first, second, away], host);
    }
    (builder, first)
}

fn spec() -> impl Strategy<Value = LinkSpec> {
    let rate = prop_oneof![
        Just(""),
        Just(r#""rate": "10Mbit/s","#),
        Just(r#""rate": "7Mbit/s","#)
    ];
    let other = prop_oneof![
        6 => Just(""),
        1 => Just(r#""loss": "20%","#),
        1 => Just(r#""jitter": "2ms","#),
        1 => Just(r#""reorder": {"probability": "30%", "delay": "3ms"},"#),
        1 => Just(r#""mtu": "1000B","#),
    ];
    let queue = prop_oneof![Just("\"3pkt\""), Just("\"50pkt\""), Just(r#"{"kind": "codel"}"#)];
    (rate, other, queue, 0_u32..4).prop_map(|(rate, other, queue, delay)| {
        let other = if delay < 2 {
            other.replace("2ms", "0ms")
        } else {
            other.to_owned()
        };
        path(&format!(
            r#"{{{rate}{other}"queue": {queue}, "delay": "{delay}ms"}}"#
        ))
        .forward
    })
}

/// Returns the counters of a link at a time.
fn counters_at(network: &mut Network<Mark>, link: LinkId, at: u64) -> network::LinkCounters {
    network.handle_timeout(Instant::from_nanos(at));
    network.counters(link)
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

    #[test]
    fn arrivals_and_exact_counters_are_the_same(
        specs in prop::collection::vec(spec(), 2 + 2 * PAIRS),
        sends in prop::collection::vec((0_u64..20, 0..PAIRS as u32, prop::sample::select(vec![100_u32, 1250])), 1..60),
        seed in 0_u64..100,
    ) {
        let mut sends: Vec<(u64, u32, u32)> = sends;
        sends.sort_unstable();
        let packets = || {
            let sends = sends.clone();
            sends.into_iter().zip(1..).map(|((at, route, size), number)| {
                (at * 400_000, Packet::new(RouteId(route), size, mark(number)))
            })
        };
        let (plain, first) = dumbbell(&specs, seed);
        let (cut, _) = dumbbell(&specs, seed);
        let mut plain: Network<Mark> = plain.build();
        let mut cut: Network<Mark> = cut.cut_through(&[first]).build();
        prop_assert_eq!(drive(&mut plain, packets()), drive(&mut cut, packets()));
        prop_assert_eq!(plain.counters(first), cut.counters(first));

        // Counters while packets are in the network.
        let (plain, _) = dumbbell(&specs, seed);
        let (cut, _) = dumbbell(&specs, seed);
        let mut plain: Network<Mark> = plain.build();
        let mut cut: Network<Mark> = cut.cut_through(&[first]).build();
        for (at, packet) in packets() {
            prop_assert_eq!(counters_at(&mut plain, first, at), counters_at(&mut cut, first, at));
            plain.send(Instant::from_nanos(at), packet.clone());
            cut.send(Instant::from_nanos(at), packet);
            prop_assert_eq!(plain.queue(first, Instant::from_nanos(at)), cut.queue(first, Instant::from_nanos(at)));
        }
        for step in 0..100 {
            let at = 8_000_000 + step * 317_000;
            prop_assert_eq!(counters_at(&mut plain, first, at), counters_at(&mut cut, first, at));
            prop_assert_eq!(plain.occupancy(first, Instant::from_nanos(at)), cut.occupancy(first, Instant::from_nanos(at)));
        }
    }
}

#[test]
fn packets_cross_two_links_with_one_event() {
    let spec = path(r#"{"rate": "10Mbit/s", "delay": "1ms"}"#).forward;
    let specs = vec![spec; 2 + 2 * PAIRS];
    let events = |cut: bool| {
        let (builder, first) = dumbbell(&specs, 1);
        let builder = if cut {
            builder.cut_through(&[first])
        } else {
            builder
        };
        let mut network: Network<Mark> = builder.build();
        network.send(Instant::ZERO, Packet::new(RouteId(0), 1250, mark(1)));
        let mut events = 0;
        while let Some(due) = network.poll_timeout() {
            network.handle_timeout(due);
            events += 1;
        }
        events
    };
    // The packet enters `first` on time, and `second` and the last link in the same step.
    assert_eq!((events(false), events(true)), (4, 2));
}
