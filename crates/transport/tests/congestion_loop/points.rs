//! Steady states of controllers: rate, queue, window after a loss.

use foundation::{Duration, Instant};
use transport::congestion::{CongestionConfig, ConnectionContext, Controller, Rules};

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

fn build(text: &str) -> Box<dyn Controller> {
    let config: CongestionConfig = serde_json::from_str(text).unwrap();
    config.build(SEGMENT)
}

/// Returns a bandwidth-delay product in packets.
fn bdp(mbit: f64, rtt_ms: f64) -> f64 {
    mbit * rtt_ms * 1e3 / 8.0 / SEGMENT as f64
}

/// Returns the utilisation of the link between two times in s.
fn used(run: &mut Loop, mbit: f64, from: f64, until: f64) -> f64 {
    let delivered = |run: &Loop| run.flows.iter().map(|flow| flow.delivered()).sum::<u64>();
    run.run(at(from));
    let before = delivered(run);
    run.reset();
    run.run(at(until));
    (delivered(run) - before) as f64 * 8.0 / (until - from) / mbit / 1e6
}

/// Each connection keeps between alpha and beta extra packets in the network: 1 to 3 in the paper, 2 to 4 in Linux
/// and ns-3 (Brakmo and Peterson 1995, section 3.2). With whole packets Linux shrinks above beta: one packet more at
/// most.
#[test]
fn vegas_keeps_alpha_to_beta_packets_queued_per_flow() {
    let context = |rules| ConnectionContext {
        rules,
        ..ConnectionContext::new(SEGMENT)
    };
    for (rules, alpha, beta) in [
        (Rules::Rfc, 1.0, 3.0),
        (Rules::Linux, 2.0, 5.0),
        (Rules::Ns3, 2.0, 4.0),
    ] {
        for flows in [1_u32, 2, 4, 8] {
            let all = (0..u64::from(flows))
                .map(|i| {
                    let start = Instant::ZERO + Duration::from_millis(i * 7);
                    let vegas = CongestionConfig::named("vegas").unwrap();
                    (
                        vegas.build_for(&context(rules)),
                        Workload {
                            start,
                            ..Workload::BULK
                        },
                    )
                })
                .collect();
            let mut run = Loop::new(Path::new(96.0, 20.0, 2000, 0.0), 3, all);
            let used = used(&mut run, 96.0, 30.0, 60.0);
            let queue = run.mean_queue() / f64::from(flows);
            assert!(
                (alpha..=beta).contains(&queue) && used > 0.999 && run.overflowed() == 0,
                "{rules:?}, {flows} flows: {queue:.2} packets each, {used:.4} of the link"
            );
        }
    }
}

/// The thresholds are configurable.
#[test]
fn vegas_follows_configured_thresholds() {
    let mut run = Loop::new(
        Path::new(96.0, 20.0, 2000, 0.0),
        3,
        vec![(
            build(r#"{"kind": "vegas", "alpha": 20, "beta": 24}"#),
            Workload::BULK,
        )],
    );
    run.run(at(30.0));
    run.reset();
    run.run(at(60.0));
    assert!((20.0..=24.0).contains(&run.mean_queue()), "{}", run.mean_queue());
}

/// With Reno on the same link, which fills the queue, Vegas reduces its window and gets little (Mo, La, Anantharam
/// and Walrand, "Analysis and comparison of TCP Reno and Vegas", 1999).
#[test]
fn vegas_yields_to_reno() {
    let flows = vec![
        (build("\"vegas\""), Workload::BULK),
        (build("\"reno\""), Workload::BULK),
    ];
    let mut run = Loop::new(Path::new(96.0, 20.0, 164, 0.0), 3, flows);
    run.run(at(10.0));
    let before = [0, 1].map(|i: usize| run.flows[i].delivered());
    run.run(at(70.0));
    let [vegas, reno] = [0, 1].map(|i: usize| (run.flows[i].delivered() - before[i]) as f64);
    assert!(vegas / (vegas + reno) < 0.3, "{:.3}", vegas / (vegas + reno));
}

/// After a loss the window is the bandwidth times the minimum round-trip time, so that the link stays full with an
/// almost empty queue (Grieco and Mascolo 2004, equation 1).
#[test]
fn westwood_resumes_at_bdp_after_loss() {
    for rules in ["rfc", "linux"] {
        for (mbit, rtt, queue) in [(96.0, 20.0, 164), (10.0, 100.0, 85), (48.0, 60.0, 100)] {
            let westwood = build(&format!(r#"{{"kind": "westwood", "rules": "{rules}"}}"#));
            let mut run = Loop::new(
                Path::new(mbit, rtt, queue, 0.0),
                3,
                vec![(westwood, Workload::BULK)],
            );
            let mut reductions = 1.0;
            let mut seen = 0;
            // The first loss happens in slow start, before the estimate is stable.
            for step in 0..60_000 {
                run.run(at(20.0 + f64::from(step) / 1000.0));
                let flow = &run.flows[0];
                if flow.metric("reductions") > reductions {
                    reductions = flow.metric("reductions");
                    seen += 1;
                    let window = flow.controller.ssthresh().unwrap() as f64 / SEGMENT as f64;
                    let ratio = window / bdp(mbit, rtt);
                    assert!(
                        (0.97..1.03).contains(&ratio),
                        "{mbit} Mbit/s, {rtt} ms: {ratio:.3}"
                    );
                }
            }
            assert!(seen >= 2, "{mbit} Mbit/s, {rtt} ms: {seen} losses");
        }
    }
}

/// With random loss that reduces Reno to a twentieth, Westwood+ uses most of the link.
#[test]
fn westwood_withstands_random_loss() {
    let part = |name: &str| {
        let mut run = Loop::new(
            Path::new(96.0, 20.0, 164, 0.01),
            3,
            vec![(build(name), Workload::BULK)],
        );
        used(&mut run, 96.0, 5.0, 30.0)
    };
    let (westwood, reno) = (part("\"westwood\""), part("\"reno\""));
    assert!(westwood > 3.0 * reno, "{westwood:.3} and {reno:.3}");
}

/// The model equals the bottleneck rate and the minimum round-trip time; at most two bandwidth-delay products are in
/// flight (plus three bursts, draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.2), with a queue of a
/// quarter while probing and of three bursts; ProbeRTT takes 200 ms of 10 s (Cardwell et al. 2016).
#[test]
fn bbr1_works_at_the_bandwidth_with_a_short_queue() {
    for queue in [164, 656] {
        let (mbit, rtt) = (96.0, 20.0);
        let mut run = Loop::new(
            Path::new(mbit, rtt, queue, 0.0),
            3,
            vec![(build("\"bbr1\""), Workload::BULK)],
        );
        run.run(at(5.0));
        let bursts = 3.0 * mbit * 1.25 * 1e3 / 8.0 / SEGMENT as f64;
        for step in 0..10_000 {
            run.run(at(5.0 + f64::from(step) / 1000.0));
            let window = run.flows[0].controller.window() as f64 / SEGMENT as f64;
            assert!(window <= 2.0 * bdp(mbit, rtt) + bursts + 5.0, "{window}");
        }
        let used = used(&mut run, mbit, 20.0, 60.0);
        let flow = &run.flows[0];
        let rate = flow.metric("bandwidth_bps") / mbit / 1e6;
        assert!((0.999..1.001).contains(&rate), "{rate}");
        assert!(used >= 0.975, "{used}");
        let min_rtt = flow.metric("min_rtt_seconds") * 1e3 / rtt;
        assert!((1.0..1.02).contains(&min_rtt), "{min_rtt}");
        assert!(
            run.mean_queue() <= bdp(mbit, rtt) / 4.0 + bursts && run.overflowed() == 0,
            "{}",
            run.mean_queue()
        );
    }
}

/// ProbeRTT: four packets for 200 ms and a round trip, once in 10 s (section 4.3.5).
#[test]
fn bbr1_probes_rtt_every_ten_seconds() {
    let mut run = Loop::new(
        Path::new(96.0, 20.0, 656, 0.0),
        5,
        vec![(build("\"bbr1\""), Workload::BULK)],
    );
    let mut spans = Vec::new();
    let mut since = None;
    for step in 0..35_000_u32 {
        run.run(at(f64::from(step) / 1000.0));
        let flow = &run.flows[0];
        match (flow.metric("state") == 3.0, since) {
            (true, None) => since = Some(step),
            (true, Some(_)) => assert!(flow.controller.window() == 4 * SEGMENT),
            (false, Some(start)) => {
                spans.push((start, step - start));
                since = None;
            }
            (false, None) => {}
        }
    }
    assert_eq!(spans.len(), 3, "{spans:?}");
    for pair in spans.windows(2) {
        assert!((10_000..10_600).contains(&(pair[1].0 - pair[0].0)), "{spans:?}");
    }
    assert!(
        spans.iter().all(|(_, length)| (200..300).contains(length)),
        "{spans:?}"
    );
}

/// Throughput stays near the link rate minus losses up to 5 %, and collapses before 20 %, where probing at 1.25 times
/// the rate delivers no more than the rate (Cardwell et al. 2016, figure 8).
#[test]
fn bbr1_ignores_loss_up_to_its_probing_gain() {
    let part = |loss: f64| {
        let mut run = Loop::new(
            Path::new(96.0, 20.0, 164, loss),
            3,
            vec![(build("\"bbr1\""), Workload::BULK)],
        );
        used(&mut run, 96.0, 5.0, 30.0)
    };
    for loss in [0.001, 0.01, 0.02, 0.05] {
        let part = part(loss);
        assert!(part >= 0.95 * (1.0 - loss), "{loss}: {part:.3}");
    }
    let part = part(0.25);
    assert!(part < 0.2, "{part:.3}");
}
