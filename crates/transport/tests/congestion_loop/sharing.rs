//! Two flows over one bottleneck.

use foundation::{Duration, Instant};
use testing::rows;
use transport::congestion::CongestionConfig;

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

/// Returns the shares of two flows from 20 s on, the second of which starts `later` s after the first.
fn shares(first: &str, second: &str, queue: usize, later: f64) -> (f64, f64) {
    let build = |name: &str| CongestionConfig::named(name).unwrap().build(SEGMENT);
    let late = Workload {
        start: Instant::ZERO + Duration::from_secs_f64(later),
        ..Workload::BULK
    };
    let flows = vec![(build(first), Workload::BULK), (build(second), late)];
    let mut run = Loop::new(Path::new(96.0, 20.0, queue, 0.0), 3, flows);
    run.run(at(20.0));
    let before = [run.flows[0].delivered(), run.flows[1].delivered()];
    run.run(at(80.0));
    let share = |i: usize| (run.flows[i].delivered() - before[i]) as f64 * 8.0 / 60.0 / 96e6;
    (share(0), share(1))
}

/// Flows with the same controller get between a third and two thirds each, regardless of their start.
#[test]
fn equal_controllers_share() {
    let mut table = Vec::new();
    for name in ["bbr", "cubic", "reno"] {
        for queue in [41, 164, 656] {
            table.extend([0.0, 5.0].map(|later| (name, queue, later)));
        }
    }
    for (name, queue, later) in rows(table, 7) {
        let (first, second) = shares(name, name, queue, later);
        let part = first / (first + second);
        assert!(
            (0.33..0.67).contains(&part),
            "{name} over {queue} packets, {later} s apart: {first:.3} {second:.3}"
        );
        let minimum = if name == "reno" && queue < 164 { 0.85 } else { 0.93 };
        assert!(
            first + second >= minimum,
            "{name} over {queue} packets: {first:.3} {second:.3}"
        );
    }
}

/// CUBIC and Reno are equally fast on a short path (RFC 9438, section 4.3), and BBR and CUBIC leave each other a
/// share.
#[test]
fn different_controllers_coexist() {
    for (first, second, queue, range) in [
        ("cubic", "reno", 164, 0.4..0.8),
        ("bbr", "cubic", 41, 0.3..0.9),
        ("bbr", "cubic", 164, 0.2..0.8),
        ("bbr", "cubic", 656, 0.05..0.6),
        ("bbr", "reno", 164, 0.2..0.8),
    ] {
        let (a, b) = shares(first, second, queue, 0.0);
        let part = a / (a + b);
        assert!(
            range.contains(&part),
            "{first} {a:.3} next to {second} {b:.3} over {queue} packets"
        );
    }
}
