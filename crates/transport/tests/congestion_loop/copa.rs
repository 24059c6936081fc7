//! Copa in a closed loop, compared with the equations of its paper (Arun and Balakrishnan, NSDI 2018).

use transport::congestion::{CongestionConfig, Controller, ControllerSettings, CopaSettings};

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

const RATE: f64 = 96e6;
const RTT: f64 = 0.02;

fn copa(delta: f64, competitive: bool) -> Box<dyn Controller> {
    let settings = CopaSettings {
        delta,
        competitive,
        ..CopaSettings::default()
    };
    settings.build(SEGMENT)
}

/// Runs flows over 96 Mbit/s and 20 ms to 20 s, each from 2 s after the one before.
fn run(queue: usize, controllers: Vec<Box<dyn Controller>>) -> Loop {
    let flow = |(index, controller)| {
        let workload = Workload {
            start: at(2.0 * index as f64),
            ..Workload::BULK
        };
        (controller, workload)
    };
    let flows = controllers.into_iter().enumerate().map(flow).collect();
    let mut run = Loop::new(Path::new(96.0, RTT * 1e3, queue, 0.0), 3, flows);
    run.run(at(20.0));
    run.reset();
    run
}

/// Returns the shares of the flows until `until` s.
fn shares(run: &mut Loop, until: f64) -> Vec<f64> {
    let start = run.now;
    let before: Vec<u64> = run.flows.iter().map(|flow| flow.delivered()).collect();
    run.run(at(until));
    let possible = RATE / 8.0 * (run.now - start).as_secs_f64();
    let flows = run.flows.iter().zip(before);
    flows
        .map(|(flow, before)| (flow.delivered() - before) as f64 / possible)
        .collect()
}

/// Section 3: the window oscillates in five round trips, and the queue between 0 and 2.5 / delta packets, 1.25 / delta on
/// average. The rate is 1 / (delta dq) for the measured queueing delay dq (section 2.1).
#[test]
fn queue_and_period_match_the_paper() {
    for competitive in [false, true] {
        for delta in [0.5, 0.25, 0.1] {
            let mut run = run(2000, vec![copa(delta, competitive)]);
            let before = run.flows[0].delivered();
            let samples: Vec<(f64, f64)> = (0..5000)
                .map(|i| {
                    run.run(at(20.0 + f64::from(i) * 1e-3));
                    let flow = &run.flows[0];
                    assert_eq!(flow.metric("velocity"), 1.0);
                    let window = flow.metric("window_bytes") / SEGMENT as f64;
                    (window, flow.metric("queueing_delay_seconds"))
                })
                .collect();
            let count = samples.len() as f64;
            let mean = samples.iter().map(|(window, _)| window).sum::<f64>() / count;
            let rises = samples
                .windows(2)
                .filter(|pair| pair[0].0 <= mean && pair[1].0 > mean)
                .count();
            let period = 5.0 / rises as f64 / RTT;
            assert!((5.0..5.4).contains(&period), "{delta}: {period} round trips");
            // An arriving packet finds half of the one in transmission in addition.
            let queue = (run.mean_queue() - 0.5) * delta;
            assert!((1.15..1.30).contains(&queue), "{delta}: {queue} / delta packets");
            let (least, most) = run.links[0].queue_range;
            assert!(least as f64 * delta < 0.15, "{delta}: at least {least} packets");
            let most = (most as f64 - 0.5) * delta;
            assert!(
                (2.1..2.6).contains(&most),
                "{delta}: at most {most} / delta packets"
            );
            let rate = (run.flows[0].delivered() - before) as f64 * 8.0 / 5.0 / RATE;
            assert!(rate > 0.998, "{delta}: {rate}");
            let delay = samples.iter().map(|(_, delay)| delay).sum::<f64>() / count;
            let target = 8.0 * SEGMENT as f64 / (delta * delay) / RATE;
            assert!((0.9..1.05).contains(&target), "{delta}: {target} of the rate");
        }
    }
}

/// Rates are 1 / (delta dq) with the same queueing delay: equal for equal deltas, and inverse to different ones.
#[test]
fn flows_share_by_their_deltas() {
    let halves = shares(&mut run(656, vec![copa(0.5, false), copa(0.5, false)]), 50.0);
    assert!((halves[0] - 0.5).abs() < 0.02, "{halves:?}");
    let thirds = shares(&mut run(656, vec![copa(0.1, false), copa(0.2, false)]), 50.0);
    let ratio = thirds[0] / thirds[1];
    assert!((1.8..2.2).contains(&ratio), "{thirds:?}");
    // With the competitive mode, which the joint oscillation of two flows starts at times.
    for queue in [82, 164, 656] {
        let found = shares(&mut run(queue, vec![copa(0.5, true), copa(0.5, true)]), 50.0);
        assert!((found[0] - 0.5).abs() < 0.03, "{queue}: {found:?}");
        assert!(found[0] + found[1] > 0.99, "{queue}: {found:?}");
    }
}

/// Section 2.2: beside flows that fill the queue, a delta that follows losses obtains a share like that of TCP.
#[test]
fn competitive_mode_obtains_a_share_beside_tcp() {
    for rival in ["reno", "cubic"] {
        for queue in [82, 656] {
            let share = |competitive: bool| {
                let rival = CongestionConfig::named(rival).unwrap().build(SEGMENT);
                let mut run = run(queue, vec![copa(0.5, competitive), rival]);
                let found = shares(&mut run, 50.0)[0];
                (found, run.flows[0].metric("delta"))
            };
            let (competitive, delta) = share(true);
            assert!(
                (0.15..0.55).contains(&competitive),
                "{rival}, {queue}: {competitive}"
            );
            assert!(delta < 0.5, "{rival}, {queue}: {delta}");
            let (default, delta) = share(false);
            assert!(default < 0.1, "{rival}, {queue}: {default}");
            assert_eq!(delta, 0.5);
        }
    }
}
