//! Changing paths and applications, and the test cases of draft-ietf-ccwg-bbr, appendix A.

use foundation::{Duration, Rate};
use transport::congestion::{CongestionConfig, Controller};

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Flow, Loop, Path, SEGMENT, Workload};

fn mbit(value: f64) -> Rate {
    Rate::from_bits_per_second((value * 1e6) as u64).unwrap()
}

fn bbr() -> Box<dyn Controller> {
    CongestionConfig::named("bbr").unwrap().build(SEGMENT)
}

fn bulk(path: Path, controller: Box<dyn Controller>) -> Loop {
    Loop::new(path, 5, vec![(controller, Workload::BULK)])
}

/// Returns the goodput in Mbit/s between two times in s.
fn goodput(run: &mut Loop, from: f64, until: f64) -> f64 {
    run.run(at(from));
    let before = run.flows[0].delivered();
    run.reset();
    run.run(at(until));
    (run.flows[0].delivered() - before) as f64 * 8.0 / (until - from) / 1e6
}

const STARTUP: f64 = 0.0;
const PROBE_RTT: f64 = 6.0;

fn state(flow: &Flow) -> f64 {
    flow.metric("state")
}

#[test]
fn every_controller_follows_rate_changes() {
    for name in ["bbr", "cubic", "reno"] {
        let mut path = Path::new(96.0, 20.0, 164, 0.0);
        path.rates.push((at(10.0), mbit(9.6)));
        path.rates.push((at(30.0), mbit(96.0)));
        let mut run = bulk(path, CongestionConfig::named(name).unwrap().build(SEGMENT));
        let before = goodput(&mut run, 5.0, 10.0);
        let low = goodput(&mut run, 15.0, 30.0);
        let ratio = run.flows[0].sent as f64 * SEGMENT as f64 * 8.0 / 15e6 / low;
        let high = goodput(&mut run, 40.0, 60.0);
        assert!(
            before >= 90.0 && low >= 9.0 && high >= 86.0,
            "{name}: {before:.1}, {low:.2}, {high:.1}"
        );
        assert!(ratio <= 1.05, "{name}: {ratio:.3}");
    }
}

/// Appendix A.17: two cycles after the bandwidth drops to a tenth, the model has adapted and the queue is empty. A.16:
/// a tenfold increase is found within a few cycles of 2 to 3 s.
#[test]
fn bbr_adapts_to_tenfold_changes_of_bandwidth() {
    let mut path = Path::new(96.0, 20.0, 164, 0.0);
    path.rates.push((at(10.0), mbit(9.6)));
    path.rates.push((at(30.0), mbit(96.0)));
    let mut run = bulk(path, bbr());
    run.run(at(22.0));
    let bandwidth = run.flows[0].metric("max_bandwidth_bps");
    assert!((9.4e6..10.2e6).contains(&bandwidth), "{bandwidth}");
    goodput(&mut run, 22.0, 30.0);
    assert!(run.mean_queue() < 40.0, "{}", run.mean_queue());
    let found = (0..100).find(|i| {
        run.run(at(30.0 + f64::from(*i) / 10.0));
        run.flows[0].metric("max_bandwidth_bps") > 94e6
    });
    assert!(
        found.is_some_and(|tenths| tenths <= 60),
        "{found:?} tenths of a second"
    );
}

/// Appendix A.1: Startup ends on a plateau within 2 % of the bandwidth. From 10 packets to 164 it takes four rounds
/// of doubling and three of plateau, with few losses at a queue of one bandwidth-delay product.
#[test]
fn bbr_startup_finds_bandwidth_with_few_losses() {
    for (rate, rtt) in [
        (1.0, 100.0),
        (10.0, 20.0),
        (96.0, 20.0),
        (96.0, 200.0),
        (1000.0, 10.0),
        (10_000.0, 1.0),
    ] {
        let bdp = (rate * rtt * 1e3 / 8.0 / SEGMENT as f64) as usize;
        let mut run = bulk(Path::new(rate, rtt, bdp.max(10), 0.0), bbr());
        let rounds = (bdp as f64 / 10.0).max(1.0).log2().ceil() + 8.0;
        run.run(at(rounds * 1.5 * rtt / 1e3));
        let flow = &run.flows[0];
        let bandwidth = flow.metric("max_bandwidth_bps");
        assert!(
            (0.98..1.02).contains(&(bandwidth / rate / 1e6)),
            "{rate} Mbit/s, {rtt} ms: {bandwidth}"
        );
        assert!(state(flow) != STARTUP, "{rate} Mbit/s, {rtt} ms");
        assert!(
            run.overflowed() <= 16 + bdp as u64 / 4,
            "{rate} Mbit/s, {rtt} ms: {}",
            run.overflowed()
        );
    }
}

/// Appendix A.10: ProbeRTT starts after 5 s without a lower sample, lasts 200 ms and a round trip, and returns to
/// ProbeBW.
#[test]
fn bbr_probes_rtt_every_five_seconds() {
    let mut run = bulk(Path::new(96.0, 20.0, 656, 0.0), bbr());
    let (mut entered, mut left) = (None, None);
    for step in 0..8000 {
        run.run(at(f64::from(step) / 1000.0));
        let probing = state(&run.flows[0]) == PROBE_RTT;
        if probing && entered.is_none() {
            entered = Some(step);
        }
        if !probing && entered.is_some() && left.is_none() {
            left = Some(step);
        }
    }
    let (entered, left) = (entered.unwrap(), left.unwrap());
    assert!((5000..5300).contains(&entered), "{entered} ms");
    assert!((200..260).contains(&(left - entered)), "{} ms", left - entered);
    // Half of the pipe stays full during ProbeRTT, which costs at most 2 % of the rate, 3 % with the pacing margin.
    let rate = goodput(&mut run, 10.0, 30.0);
    assert!(rate >= 0.965 * 96.0, "{rate}");
}

/// Appendix A.7: a sender without data stays in Startup, and its model stays correct.
#[test]
fn bbr_ignores_application_limited_samples() {
    let workload = Workload {
        application: Some(mbit(10.0)),
        ..Workload::BULK
    };
    let mut run = Loop::new(Path::new(96.0, 20.0, 164, 0.0), 5, vec![(bbr(), workload)]);
    let rate = goodput(&mut run, 1.0, 4.5);
    assert!((9.9..10.1).contains(&rate), "{rate}");
    assert_eq!(state(&run.flows[0]), STARTUP);
    assert!(run.mean_queue() < 1.0 && run.overflowed() == 0);
    // Slow start does not inflate an unused window either.
    for name in ["cubic", "reno"] {
        let controller = CongestionConfig::named(name).unwrap().build(SEGMENT);
        let mut run = Loop::new(Path::new(96.0, 20.0, 164, 0.0), 5, vec![(controller, workload)]);
        let rate = goodput(&mut run, 1.0, 10.0);
        let window = run.flows[0].controller.window() / SEGMENT;
        assert!(
            (9.9..10.1).contains(&rate) && window < 60,
            "{name}: {rate} Mbit/s, {window} packets"
        );
    }
}

/// Appendix A.12 and A.13: aggregated ACKs.
#[test]
fn bbr_fills_path_with_aggregated_acks() {
    let mut path = Path::new(48.0, 20.0, 400, 0.0);
    path.ack_slots = Duration::from_millis(10);
    let mut run = bulk(path, bbr());
    let rate = goodput(&mut run, 2.0, 5.0);
    let flow = &run.flows[0];
    let bdp = 48e6 * flow.metric("min_rtt_seconds") / 8.0;
    assert!(flow.metric("extra_acked_bytes") > 0.25 * 48e6 * 0.01 / 8.0);
    assert!(flow.controller.window() as f64 > 2.0 * bdp);
    assert!(rate >= 0.95 * 48.0, "{rate}");
}

/// Appendix A.14: with less than one packet on the path, four packets keep it busy.
#[test]
fn bbr_keeps_four_packets_on_short_path() {
    let mut run = bulk(Path::new(0.064, 10.0, 30, 0.0), bbr());
    let rate = goodput(&mut run, 30.0, 120.0);
    assert!(rate >= 0.062, "{rate}");
    assert!(run.flows[0].controller.window() >= 4 * SEGMENT);
}

/// On loopback the round trip is shorter than any timer, and ACKs arrive in trains.
#[test]
fn bbr_is_not_slowed_by_coarse_timers() {
    for (rate, rtt, slot, late) in [
        (10_000.0, 0.03, 0, 60),
        (10_000.0, 0.03, 20, 100),
        (30_000.0, 0.1, 0, 100),
        (30_000.0, 0.05, 20, 60),
        (1000.0, 1.0, 0, 1000),
        (100.0, 2.0, 0, 1000),
    ] {
        let mut path = Path::new(rate, rtt, 1000, 0.0);
        path.ack_slots = Duration::from_micros(slot);
        path.timer_lateness = Duration::from_micros(late);
        let mut run = bulk(path, bbr());
        let found = goodput(&mut run, 0.1, 0.4);
        assert!(found >= 0.95 * rate, "{rate} Mbit/s, {rtt} ms: {found}");
    }
}

/// An idle period increases neither the next burst nor the window.
#[test]
fn bbr_resumes_at_bandwidth_after_idle() {
    let mut run = bulk(Path::new(96.0, 20.0, 164, 0.0), bbr());
    run.run(at(3.0));
    run.pause(0, at(9.0));
    let rate = goodput(&mut run, 9.1, 10.0);
    assert!(rate >= 90.0, "{rate}");
    assert!(run.overflowed() == 0);
    assert!(
        state(&run.flows[0]) != PROBE_RTT,
        "appendix A.11: the pause replaced ProbeRTT"
    );
}
