//! DualPI2: RFC 9332, appendix A, and Linux's `sch_dualpi2`.

use super::*;

/// Returns packets of a code point that arrive at 0.
fn burst(count: u64, first: u64, ecn: Ecn) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    let packets = (first..first + count).map(|number| (0, Packet::new(FORWARD, 1250, mark(number))));
    with_ecn(packets, ecn)
}

/// Packets of the low-latency queue are marked after a wait longer than the step threshold.
#[test]
fn long_waits_of_scalable_packets_are_marked() {
    for (keys, marked) in [("", 8), (r#", "step": "5ms""#, 4), (r#", "step": "0s""#, 9)] {
        let queue = format!(r#"{{"kind": "dualpi2"{keys}}}"#);
        let mut network = network(&queue);
        // Packet n of ten waits n ms. The probability is 0 until the first update at 16 ms.
        let arrivals = drive(&mut network, burst(10, 0, Ecn::Ect1));
        let marks: Vec<u32> = arrivals.iter().map(|arrival| arrival.packet.body.marks).collect();
        assert_eq!(marks.iter().sum::<u32>(), marked, "{keys}: {marks:?}");
        assert!(marks.is_sorted(), "{keys}: {marks:?}");
    }
    let mut network = network(r#""dualpi2""#);
    drive(&mut network, burst(10, 0, Ecn::Ect0));
    assert_eq!(network.counters(LINK).marked.packets, 0);
}

/// ECT(1) and CE packets overtake the others (RFC 9331, section 5.1).
#[test]
fn scalable_packets_have_a_queue() {
    for (ecn, overtakes) in [
        (Ecn::NotEct, false),
        (Ecn::Ect0, false),
        (Ecn::Ect1, true),
        (Ecn::Ce, true),
    ] {
        let packets = burst(5, 0, Ecn::NotEct).chain(burst(3, 5, ecn));
        let arrivals = drive(&mut network(r#""dualpi2""#), packets);
        let numbers = crate::common::numbers(&arrivals);
        // The first packet is in transmission when the others arrive.
        let expected = if overtakes {
            [0, 5, 6, 7, 1, 2, 3, 4]
        } else {
            [0, 1, 2, 3, 4, 5, 6, 7]
        };
        assert_eq!(numbers, expected, "{ecn:?}");
    }
}

/// While both queues have packets, the classic queue sends its share of bytes (Linux: credits of 10 % and 90 %).
#[test]
fn the_classic_queue_has_a_minimum_share() {
    for (protection, share) in [
        ("0%", 0.0),
        ("10%", 0.1),
        ("25%", 0.25),
        ("50%", 0.5),
        ("100%", 1.0),
    ] {
        let keys = r#""kind": "dualpi2", "drop_on_overload": false"#;
        let queue = format!(r#"{{{keys}, "protection": "{protection}"}}"#);
        let packets = burst(2000, 0, Ecn::Ect1).chain(burst(2000, 2000, Ecn::Ect0));
        let arrivals = drive(&mut network(&queue), packets);
        assert_eq!(arrivals.len(), 4000);
        let classic = arrivals[..1000]
            .iter()
            .filter(|arrival| arrival.packet.body.ecn == Ecn::Ect0)
            .count();
        // The first packet leaves before the others arrive, and a round of the credits is at most ten packets.
        let error = (classic as f64 / 1000.0 - share).abs();
        assert!(error < 0.012, "{protection}: {classic} of 1000");
    }
}

/// Credits count bytes: of packets of 250 and 1250 bytes, the classic queue sends five times as many small ones.
#[test]
fn the_minimum_share_counts_bytes() {
    let small = (0..4000).map(|number| (0, Packet::new(FORWARD, 250, mark(number))));
    let packets = burst(2000, 4000, Ecn::Ect1).chain(with_ecn(small, Ecn::Ect0));
    let queue = r#"{"kind": "dualpi2", "drop_on_overload": false}"#;
    let arrivals = drive(&mut network(queue), packets);
    let first = &arrivals[..1400];
    let of = |ecn| first.iter().filter(move |arrival| arrival.packet.body.ecn == ecn);
    let bytes = |ecn| of(ecn).map(|arrival| f64::from(arrival.packet.size)).sum::<f64>();
    let share = bytes(Ecn::Ect0) / (bytes(Ecn::Ect0) + bytes(Ecn::Ect1));
    assert!((share - 0.1).abs() < 0.012, "{share}");
}

#[test]
fn marks_and_drops_follow_the_coupling_law() {
    // The step threshold is out of reach, so that all marks are coupled.
    let kind = r#""kind": "dualpi2", "step": "9s""#;
    follow_the_coupling_law(kind, 0.65, 0.4, 2.0);
    follow_the_coupling_law(kind, 0.8, 0.3, 1.2);
}

/// Drops keep the delay of the classic queue at the target, while scalable packets hardly wait.
#[test]
fn only_classic_packets_wait() {
    for target in [15, 30] {
        let until = 200_000 * MILLI;
        let queue = format!(r#"{{"kind": "dualpi2", "target": "{target}ms"}}"#);
        let packets = merge(
            poisson(1, until, 0.8, Ecn::NotEct),
            poisson(2, until, 0.3, Ecn::Ect1),
        );
        let (_, arrivals) = outcomes(&queue, packets, 0);
        let of = |ecn| {
            let late = arrivals
                .iter()
                .filter(|arrival| arrival.packet.body.number > 20_000 * MILLI);
            let waits = late.filter(|arrival| arrival.packet.body.ecn == ecn);
            let mut waits: Vec<u64> = waits
                .map(|arrival| arrival.at - arrival.packet.body.number - PACKET_TIME)
                .collect();
            waits.sort_unstable();
            waits
        };
        let classic = of(Ecn::NotEct);
        let mean = classic.iter().sum::<u64>() as f64 / classic.len() as f64 / MILLI as f64;
        assert!((mean / f64::from(target) - 1.0).abs() < 0.1, "{mean} ms");
        // A scalable packet waits for one packet in transmission and for those of its own queue.
        let scalable = of(Ecn::Ect1);
        let percentile = |part: usize| scalable[scalable.len() * part / 100];
        assert!(percentile(50) < MILLI, "{}", percentile(50));
        assert!(percentile(99) < 4 * MILLI, "{}", percentile(99));
    }
}

/// An unresponsive scalable flow receives drops instead of the classic flow's share: on overload both queues drop with the
/// same probability (RFC 9332, section 4.2.3), and the classic queue keeps at least 10 % of the link.
#[test]
fn unresponsive_scalable_flows_do_not_starve_classic_ones() {
    for (classic, scalable) in [(0.3, 1.5), (0.5, 1.5), (0.5, 3.0)] {
        let until = 100_000 * MILLI;
        let packets = merge(
            poisson(1, until, classic, Ecn::NotEct),
            poisson(2, until, scalable, Ecn::Ect1),
        );
        let from = 20_000 * MILLI;
        let ([c, l], _) = outcomes(r#""dualpi2""#, packets, from);
        let due = 1.0 - 1.0 / (classic + scalable);
        for dropped in [c.dropped(), l.dropped()] {
            assert!(
                (dropped / due - 1.0).abs() < 0.05,
                "{classic} {scalable}: {dropped} is not {due}"
            );
        }
        assert!(l.marked > 0.9 * l.delivered, "{classic} {scalable}: {l:?}");
        let share = c.delivered * PACKET_TIME as f64 / (until - from) as f64;
        assert!(share > 0.1, "{classic} {scalable}: {share}");
    }
}

/// Without drops on overload, the queue fills up to its limit.
#[test]
fn overload_is_dropped_or_fills_the_queue() {
    let run = |keys: &str| {
        let queue = format!(r#"{{"kind": "dualpi2", "limit": "500pkt"{keys}}}"#);
        let until = 60_000 * MILLI;
        let packets = with_ecn(steady(0, until, 1.5), Ecn::Ect1);
        mean_queue(&queue, packets, 20_000 * MILLI, until)
    };
    let (queue, dropped) = run("");
    // Of the waiting packets a third takes no time, because packets are dropped at departure.
    let delay = (queue - 0.5) * (1.0 - dropped);
    assert!(
        (delay / 15.0 - 1.0).abs() < 0.1 && (dropped - 1.0 / 3.0).abs() < 0.01,
        "{queue} {dropped}"
    );
    let (queue, dropped) = run(r#", "drop_on_overload": false"#);
    assert!(
        queue > 490.0 && (dropped - 1.0 / 3.0).abs() < 0.01,
        "{queue} {dropped}"
    );
}
