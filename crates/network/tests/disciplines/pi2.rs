//! PI2: De Schepper et al., "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT 2016.

use super::*;

/// Under unresponsive overload, drops keep the mean delay at the target.
#[test]
fn the_delay_stays_at_the_target() {
    for (target, load) in [(20, 1.05), (20, 1.25), (20, 2.0), (40, 1.25)] {
        let queue = format!(r#"{{"kind": "pi2", "target": "{target}ms"}}"#);
        let until = 80_000 * MILLI;
        let (queue, dropped) = mean_queue(&queue, steady(0, until, load), 20_000 * MILLI, until);
        // At 1 ms per packet, the queue length (with the packet in transmission) is the delay in milliseconds.
        let wait = queue - 0.5;
        assert!(
            (wait / f64::from(target) - 1.0).abs() < 0.1,
            "{target} ms at {load}: {wait} ms"
        );
        assert!((dropped - (1.0 - 1.0 / load)).abs() < 0.005, "{load}: {dropped}");
    }
}

/// CoNEXT 2016, section 4: scalable flows are marked with k times the root of the classic probability.
#[test]
fn marks_and_drops_follow_the_coupling_law() {
    follow_the_coupling_law(r#""kind": "pi2""#, 0.65, 0.4, 2.0);
    follow_the_coupling_law(r#""kind": "pi2""#, 0.8, 0.3, 1.2);
}

/// ECT(0) packets are marked with the same probability with which Not-ECT packets are dropped, and they stay in order.
#[test]
fn classic_packets_are_marked_or_dropped() {
    let until = 200_000 * MILLI;
    let packets = merge(
        poisson(1, until, 0.8, Ecn::NotEct),
        poisson(2, until, 0.3, Ecn::Ect0),
    );
    let packets: Vec<_> = packets.collect();
    let arrivals = drive(
        &mut network(&format!(r#"{{"kind": "pi2", {CALM}}}"#)),
        packets.iter().cloned(),
    );
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.packet.body.number));
    let sent = |ecn| {
        packets
            .iter()
            .filter(|(_, packet)| packet.body.ecn == ecn)
            .count() as f64
    };
    let arrived = |ecn| {
        arrivals
            .iter()
            .filter(move |arrival| arrival.packet.body.ecn == ecn)
    };
    let dropped = |ecn| 1.0 - arrived(ecn).count() as f64 / sent(ecn);
    let marks: u32 = arrived(Ecn::Ect0).map(|arrival| arrival.packet.body.marks).sum();
    let marked = f64::from(marks) / sent(Ecn::Ect0);
    let due = (packets.len() as f64 - 200_000.0) / sent(Ecn::NotEct);
    let not_ect = dropped(Ecn::NotEct);
    assert!((not_ect / due - 1.0).abs() < 0.05, "{not_ect} is not {due}");
    assert!((marked / due - 1.0).abs() < 0.05, "{marked} is not {due}");
    // Bursts cause short overloads.
    assert!(dropped(Ecn::Ect0) < 0.01, "{}", dropped(Ecn::Ect0));
    assert_eq!(
        arrived(Ecn::NotEct)
            .map(|arrival| arrival.packet.body.marks)
            .sum::<u32>(),
        0
    );
}

/// If marks do not end the overload, packets of all code points are dropped.
#[test]
fn unresponsive_marked_flows_are_dropped() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let until = 60_000 * MILLI;
        let packets = with_ecn(steady(0, until, 1.5), ecn);
        let (queue, dropped) = mean_queue(r#""pi2""#, packets, 20_000 * MILLI, until);
        assert!((queue / 20.5 - 1.0).abs() < 0.1, "{ecn:?}: {queue}");
        assert!((dropped - 1.0 / 3.0).abs() < 0.01, "{ecn:?}: {dropped}");
    }
}
