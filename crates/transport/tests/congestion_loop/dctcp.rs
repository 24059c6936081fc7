//! DCTCP over a marking queue, compared with the closed forms of Alizadeh et al., SIGCOMM 2010, section 3.3.

use transport::congestion::CongestionConfig;

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

/// Packets of the path: 100 Mbit/s for 10 ms.
const PIPE: f64 = 100e6 / 8.0 * 0.01 / SEGMENT as f64;

/// Runs `flows` flows over a queue that marks above `threshold` packets and returns the loop after 10 s, measured over the
/// last 8.
fn run(controller: &str, flows: usize, threshold: usize) -> Loop {
    let controller: CongestionConfig = serde_json::from_str(controller).unwrap();
    let path = Path {
        mark: threshold,
        ..Path::new(100.0, 10.0, 1000, 0.0)
    };
    let flows = (0..flows).map(|_| (controller.build(SEGMENT), Workload::BULK));
    let mut run = Loop::new(path, 1, flows.collect());
    run.run(at(2.0));
    run.reset();
    run.run(at(10.0));
    run
}

/// Returns the mean of alpha over the next 2 s.
fn mean_alpha(run: &mut Loop) -> f64 {
    let mut sum = 0.0;
    for step in 0..2000 {
        run.run(at(10.0 + f64::from(step) * 1e-3));
        sum += run.flows[0].metric("alpha");
    }
    sum / 2000.0
}

const DCTCP: [&str; 2] = [r#""dctcp""#, r#"{"kind": "dctcp", "rules": "linux"}"#];

/// Section 3.3: W* = (C RTT + K) / N, and alpha = sqrt(2 / W*) for large windows. Linux rounds the decay of alpha down, which
/// raises its average, and forgets the acknowledged packets at a reduction, which lowers it.
#[test]
fn alpha_is_the_root_of_two_over_the_window() {
    for (controller, tolerances) in [(DCTCP[0], -0.06..0.06), (DCTCP[1], -0.06..0.12)] {
        for threshold in [20, 40, 80] {
            let mut run = run(controller, 1, threshold);
            let alpha = mean_alpha(&mut run);
            let expected = (2.0 / (PIPE + threshold as f64)).sqrt();
            let error = alpha / expected - 1.0;
            assert!(
                tolerances.contains(&error),
                "{controller}, K = {threshold}: alpha {alpha:.4}, expected {expected:.4}"
            );
        }
    }
}

/// Section 3.3: the queue reaches K + N, and oscillates by A = sqrt(2 N (C RTT + K)) / 2 below. Packets are whole, so the
/// oscillation is up to one packet smaller, and another one with the rules of Linux, which grow later.
#[test]
fn the_queue_oscillates_by_the_published_amplitude() {
    for (controller, below) in [(DCTCP[0], 1.5), (DCTCP[1], 2.5)] {
        for (flows, threshold) in [(1, 40), (1, 80), (2, 40)] {
            let run = run(controller, flows, threshold);
            // The queue that a packet finds, without itself.
            let (least, most) = run.links[0].queue_range;
            let expected = (2.0 * flows as f64 * (PIPE + threshold as f64)).sqrt() / 2.0;
            let amplitude = (most - least) as f64;
            assert_eq!(
                most + 1,
                threshold + flows,
                "{controller}, N = {flows}, K = {threshold}"
            );
            assert!(
                (expected - below..expected + 0.5).contains(&amplitude),
                "{controller}, N = {flows}, K = {threshold}: {amplitude}, expected {expected:.1}"
            );
            assert_eq!(run.overflowed(), 0);
        }
    }
}

/// Without marks DCTCP is Reno: in a drop-tail queue both fill it.
#[test]
fn without_marks_it_is_reno() {
    let goodput = |controller| run(controller, 1, usize::MAX).flows[0].delivered();
    assert_eq!(goodput(DCTCP[0]), goodput(r#""reno""#));
}
