//! Throughput under random and periodic loss, compared with published response functions.

use foundation::{Duration, Streams};
use rand::seq::SliceRandom;
use transport::congestion::CongestionConfig;

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Dropping, Loop, Path, SEGMENT, Workload};

/// Returns the packets delivered per round-trip time on a path without bottleneck, from the `from`-th to the
/// `until`-th packet.
fn packets_per_rtt(controller: &str, rtt_ms: u64, loss: Dropping, from: f64, until: f64) -> f64 {
    let mut path = Path::new(1.0, rtt_ms as f64, 1, 0.0);
    path.rates.clear();
    path.loss = loss;
    let rtt = Duration::from_millis(rtt_ms).as_secs_f64();
    let controller: CongestionConfig = serde_json::from_str(controller).unwrap();
    let controller = controller.build(SEGMENT);
    let mut run = Loop::new(path, 7, vec![(controller, Workload::BULK)]);
    let mut now = 0.0;
    let mut reach = |packets: f64| {
        while ((run.flows[0].delivered() / SEGMENT) as f64) < packets {
            now += rtt;
            run.run(at(now));
        }
        (now, (run.flows[0].delivered() / SEGMENT) as f64)
    };
    let (start, before) = reach(from);
    let (end, after) = reach(until);
    (after - before) * rtt / (end - start)
}

/// Same with every `n`-th packet lost, over `cycles` losses after as many warm-up losses.
fn with_periodic_loss(controller: &str, rtt_ms: u64, n: u64, cycles: f64) -> f64 {
    let length = n as f64;
    packets_per_rtt(
        controller,
        rtt_ms,
        Dropping::EveryNth(n),
        cycles * length,
        2.0 * cycles * length,
    )
}

/// Warm-up losses before the average under random loss.
const WARM_UP: usize = 20;

/// Same under independent losses of probability `p`, over at least 60 of them.
///
/// The gaps between losses are the quantiles of their geometric distribution in random order. Their mean is exact,
/// and 60 losses are as precise as several thousand independent draws.
fn with_random_loss(controller: &str, rtt_ms: u64, p: f64) -> f64 {
    let losses = (600_000.0 * p).clamp(60.0, 1200.0) as usize;
    let quantile = |part: f64| ((1.0 - part).ln() / (1.0 - p).ln()).ceil().max(1.0) as u64;
    let middles = (0..losses).map(|i| (i as f64 + 0.5) / losses as f64);
    let mut gaps: Vec<u64> = middles.map(quantile).collect();
    gaps.shuffle(&mut Streams::new(7, 0).stream("gaps"));
    let warm_up = gaps[losses - WARM_UP..].to_vec();
    let numbers = warm_up.iter().chain(&gaps).scan(0, |number, gap| {
        *number += gap;
        Some(*number)
    });
    let numbers: Vec<u64> = numbers.collect();
    let (from, until) = (numbers[WARM_UP - 1], numbers[numbers.len() - 1]);
    packets_per_rtt(
        controller,
        rtt_ms,
        Dropping::Numbers(numbers.into()),
        from as f64,
        until as f64,
    )
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = found / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {found:.2} instead of {expected:.2}, {:+.1} %",
        error * 100.0
    );
}

/// A cycle of W/2 round trips carries 3/8 W² = 1/p packets, hence sqrt(3/2)/sqrt(p) per round trip (Mathis, Semke,
/// Mahdavi and Ott 1997, section 2). Fast recovery adds one round trip of W/2 packets to each cycle, which their
/// equation omits and which matters for small W.
fn mathis_with_recovery(p: f64) -> f64 {
    let window = (-0.5 + (0.25 + 1.5 / p).sqrt()) / 0.75;
    1.0 / p / (window / 2.0 + 1.0)
}

#[test]
fn reno_under_periodic_loss_matches_mathis() {
    // At 1 % the window is 8 to 15 packets, of which an unusable half is 4 %.
    for (n, tolerance) in [
        (100, 0.08),
        (300, 0.05),
        (1000, 0.05),
        (3000, 0.05),
        (10_000, 0.05),
    ] {
        let p = 1.0 / n as f64;
        let found = with_periodic_loss("\"reno\"", 100, n, 20.0);
        assert_near(
            found,
            mathis_with_recovery(p),
            tolerance,
            &format!("1 loss in {n}"),
        );
        if n >= 1000 {
            assert_near(
                found,
                (1.5 / p).sqrt(),
                0.05,
                &format!("1 loss in {n}, plain formula"),
            );
        }
    }
}

/// Under independent random losses the constant is 1.3098 (Ott, Kemperman and Mathis, "The stationary behavior of
/// ideal TCP congestion avoidance", 1996), for small p. The round trip in recovery, which they omit, costs 5 % of a
/// window of 13 packets and 1 % of one of 130. Each packet is acknowledged here; with delayed ACKs the constant is
/// the same if bytes are counted.
#[test]
fn reno_under_random_loss_matches_ott() {
    for reno in [r#"{"kind": "reno"}"#, r#"{"kind": "reno", "rules": "linux"}"#] {
        for (p, tolerance) in [
            (0.01, 0.08),
            (0.003, 0.05),
            (0.001, 0.03),
            (0.0003, 0.03),
            (0.0001, 0.03),
        ] {
            let found = with_random_loss(reno, 100, p);
            assert_near(found, 1.3098 / p.sqrt(), tolerance, &format!("{reno}, p = {p}"));
        }
    }
}

/// ns-3 counts ACKs, here as many as packets, so that its Reno differs only in the reduction: it halves the bytes in
/// flight without the lost packets, which keeps more than half of small windows.
#[test]
fn ns3_reno_is_reno_without_delayed_acks() {
    for p in [0.001, 0.0003] {
        let found = with_random_loss(r#"{"kind": "reno", "rules": "ns3"}"#, 100, p);
        assert_near(found, 1.3098 / p.sqrt(), 0.08, &format!("p = {p}"));
    }
}

/// Average windows for C = 0.4 in segments, at round-trip times of 100 and 10 ms (RFC 9438, section 5.1, tables 1 and
/// 2). The tables assume periodic loss in steady state, from which this starts (1.08 times the average, as the window
/// drops to 0.7 and rises with a cubic), because with a single flow the plateau approaches it by 0.1 % per loss only.
/// Fast convergence, meant for several flows, is off. Small windows show the round trip in recovery, which the tables
/// omit.
#[test]
fn cubic_under_periodic_loss_matches_rfc_9438() {
    for (rtt, n, expected, tolerance) in [
        (100, 100, 12.0, 0.1),
        (100, 1000, 38.0, 0.05),
        (100, 10_000, 187.0, 0.05),
        (100, 100_000, 1054.0, 0.05),
        (10, 100, 12.0, 0.1),
        (10, 1000, 38.0, 0.05),
        (10, 10_000, 120.0, 0.05),
        (10, 100_000, 379.0, 0.05),
    ] {
        for rules in ["rfc", "linux"] {
            if rules == "linux" && n < 1000 {
                // With whole packets and a curve evaluated every 31 ms, a window of 12 is too small.
                continue;
            }
            let initial = (expected * 1.08) as u64;
            let settings = format!(r#""rules": "{rules}", "initial_window": {initial}"#);
            let cubic = format!(r#"{{"kind": "cubic", "fast_convergence": false, {settings}}}"#);
            let found = with_periodic_loss(&cubic, rtt, n, 4.0);
            let what = format!("{rules}, RTT {rtt} ms, 1 loss in {n}");
            assert_near(found, expected, tolerance, &what);
        }
    }
}
