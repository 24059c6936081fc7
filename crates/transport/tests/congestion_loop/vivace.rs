//! PCC Vivace in a closed loop, compared with its paper (Dong et al., NSDI 2018).

use transport::congestion::CongestionConfig;

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

/// Runs flows of controllers over 40 ms, each from 2 s after the one before, and returns their shares of the link from 20 s to 80 s.
/// `pacing_limits`: whether pacing counts as a limit of the window.
fn shares(mbit: f64, loss: f64, pacing_limits: bool, names: &[&str]) -> Vec<f64> {
    let flow = |(index, name): (usize, &&str)| {
        let workload = Workload {
            start: at(2.0 * index as f64),
            ..Workload::BULK
        };
        (CongestionConfig::named(name).unwrap().build(SEGMENT), workload)
    };
    let flows = names.iter().enumerate().map(flow).collect();
    let mut run = Loop::new(Path::new(mbit, 40.0, 1000, loss), 3, flows);
    for flow in &mut run.flows {
        flow.pacing_limits = pacing_limits;
    }
    run.run(at(20.0));
    let before: Vec<u64> = run.flows.iter().map(|flow| flow.delivered()).collect();
    run.run(at(80.0));
    let possible = mbit * 1e6 / 8.0 * 60.0;
    let flows = run.flows.iter().zip(before);
    flows
        .map(|(flow, before)| (flow.delivered() - before) as f64 / possible)
        .collect()
}

/// In Linux pacing is no limit of the window, so that a paced sender is rarely limited. The rate must not depend on this.
#[test]
fn one_flow_uses_the_link_with_and_without_limits_by_pacing() {
    for pacing_limits in [false, true] {
        for mbit in [40.0, 50.0, 60.0] {
            let share = shares(mbit, 0.0, pacing_limits, &["vivace"])[0];
            assert!(share > 0.9, "{mbit} Mbit/s, {pacing_limits}: {share}");
        }
    }
}

/// Section 4.2: senders with the same utility converge to equal rates.
#[test]
fn two_flows_are_fair() {
    for pacing_limits in [false, true] {
        let found = shares(50.0, 0.0, pacing_limits, &["vivace", "vivace"]);
        assert!((found[0] - found[1]).abs() < 0.1, "{found:?}");
        assert!(found[0] + found[1] > 0.9, "{found:?}");
    }
}

/// Section 4.1: random loss below 5 % is tolerated, while CUBIC halves.
#[test]
fn random_loss_costs_less_than_with_cubic() {
    for pacing_limits in [false, true] {
        let rate = |name| shares(50.0, 0.02, pacing_limits, &[name])[0] * 50.0;
        let (vivace, cubic) = (rate("vivace"), rate("cubic"));
        assert!(vivace > 2.0 * cubic, "{vivace} and {cubic} Mbit/s");
    }
}
