//! LEDBAT++ in a closed loop (draft-irtf-iccrg-ledbat-plus-plus).

use transport::congestion::CongestionConfig;

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

/// Returns a run of a LEDBAT++ flow and another one that starts at `later` s.
fn beside(path: Path, other: &str, later: f64) -> Loop {
    let build = |name: &str| CongestionConfig::named(name).unwrap().build(SEGMENT);
    let second = Workload {
        start: at(later),
        ..Workload::BULK
    };
    let flows = vec![(build("ledbat++"), Workload::BULK), (build(other), second)];
    Loop::new(path, 3, flows)
}

/// Returns the shares of two flows until `until` s.
fn shares(run: &mut Loop, until: f64) -> (f64, f64) {
    let before = [run.flows[0].delivered(), run.flows[1].delivered()];
    run.run(at(until));
    let [first, second] = [0, 1].map(|i| (run.flows[i].delivered() - before[i]) as f64);
    (first / (first + second), second / (first + second))
}

/// Sections 4.3 and 4.4: a queueing delay of 60 ms, and a tenth of the time in slowdowns.
#[test]
fn keeps_the_target_alone() {
    for (rate, rtt) in [(24.0, 20.0), (48.0, 50.0), (12.0, 100.0)] {
        let controller = CongestionConfig::named("ledbat++").unwrap().build(SEGMENT);
        let mut run = Loop::new(
            Path::new(rate, rtt, 2000, 0.0),
            1,
            vec![(controller, Workload::BULK)],
        );
        run.run(at(30.0));
        let before = run.flows[0].delivered();
        let mut delays = Vec::new();
        for i in 0..6000 {
            run.run(at(30.0 + f64::from(i) * 0.01));
            if run.flows[0].controller.phase() == "congestion-avoidance" {
                delays.push(run.flows[0].metric("queueing_delay_seconds"));
            }
        }
        let what = format!("{rate} Mbit/s, {rtt} ms");
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((0.059..0.0605).contains(&mean), "{what}: {mean} s");
        let most = delays.iter().fold(0.0, |most: f64, delay| most.max(*delay));
        assert!(most < 0.061, "{what}: at most {most} s");
        let slow = 1.0 - delays.len() as f64 / 6000.0;
        assert!((0.08..0.12).contains(&slow), "{what}: {slow} of the time");
        let used = (run.flows[0].delivered() - before) as f64 * 8.0 / 60.0 / rate / 1e6;
        assert!((0.92..0.96).contains(&used), "{what}: {used}");
        assert_eq!(run.flows[0].lost, 0, "{what}");
    }
}

/// Section 3: the flow leaves the link to others if the queue is longer than the target, 123 packets here.
#[test]
fn yields_to_tcp() {
    for (rival, queue, most) in [
        ("reno", 164, 0.03),
        ("reno", 328, 0.01),
        ("cubic", 164, 0.03),
        ("cubic", 328, 0.01),
    ] {
        let mut run = beside(Path::new(24.0, 20.0, queue, 0.0), rival, 5.0);
        run.run(at(30.0));
        let (share, _) = shares(&mut run, 90.0);
        assert!(share < most, "{rival}, {queue} packets: {share}");
        assert!(share > 0.0, "{rival}, {queue} packets");
    }
}

/// Sections 3.1 and 4.4: a flow that starts late measures the path in a slowdown, so that it does not add its own target to the
/// queue of the first one, and the shares approach one half.
#[test]
fn a_late_flow_has_no_lasting_advantage() {
    for (rate, rtt) in [(24.0, 20.0), (48.0, 50.0)] {
        let mut run = beside(Path::new(rate, rtt, 3000, 0.0), "ledbat++", 30.0);
        run.run(at(60.0));
        let what = format!("{rate} Mbit/s, {rtt} ms");
        let base = run.flows[1].metric("base_rtt_seconds") * 1e3 - rtt;
        assert!((0.0..3.0).contains(&base), "{what}: {base} ms above the path");
        let (early, _) = shares(&mut run, 120.0);
        run.run(at(180.0));
        run.reset();
        let (late, _) = shares(&mut run, 240.0);
        assert!((late - 0.5).abs() < 0.06, "{what}: {late}");
        assert!(
            (late - 0.5).abs() < (early - 0.5).abs(),
            "{what}: {early}, {late}"
        );
        let delay = run.mean_queue() * SEGMENT as f64 * 8.0 / rate / 1e6;
        assert!((0.05..0.06).contains(&delay), "{what}: {delay} s in the queue");
    }
}
