//! The schedule of a trial, driven without a world.

use experiment::plan::Plan;
use experiment::schedule::{Action, FlowStart, Sample, Schedule};
use experiment::spec::TrialSpec;
use foundation::{Duration, Instant};
use proptest::prelude::*;

fn planned(workload: &str) -> (TrialSpec, Plan) {
    let json = format!(
        r#"{{"path": {{"rate": "1Mbit/s", "delay": "1ms"}}, "protocol": {{"kind": "tcp"}}, "workload": {workload}, "seed": 3}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap();
    let plan = Plan::of(&spec).unwrap();
    (spec, plan)
}

proptest! {
    /// Flows end in any order, after any time, some with a failure.
    #[test]
    fn ends_with_the_last_measured_flow(
        requests in 1_u32..5,
        flows in 1_u32..5,
        lengths in prop::collection::vec((0_u64..50, prop::bool::weighted(0.1)), 30),
    ) {
        let think = Duration::from_millis(7);
        let (spec, mut plan) = planned(&format!(
            r#"{{"kind": "request-response", "requests": {requests}, "flows": {flows}, "reconnect": true, "think": "7ms"}}"#
        ));
        let mut schedule = Schedule::of(&spec, &mut plan.groups, &[]);
        let mut open: Vec<(Instant, FlowStart, bool)> = Vec::new();
        let (mut started, mut given_up) = (0, 0);
        let mut previous_end = None;
        while !schedule.is_over() {
            open.sort_by_key(|flow| std::cmp::Reverse(flow.0));
            let end = open.last().map_or(Instant::MAX, |flow| flow.0);
            let next = schedule.next_at();
            prop_assert!(end < Instant::MAX || next < Instant::MAX, "nothing is left to do");
            if end <= next {
                let (at, flow, failed) = open.pop().unwrap();
                given_up += if failed { flow.successors } else { 0 };
                schedule.ended(at, flow, &plan.groups[0], failed);
                previous_end = Some(at);
                continue;
            }
            let Some((at, Action::Start(flow))) = schedule.pop(next, &mut plan.groups) else {
                panic!("only flows are planned");
            };
            if flow.successors + 1 < requests && flows == 1 {
                prop_assert_eq!(Some(at), previous_end.map(|end| end + think), "a successor starts after the pause");
            }
            let (length, failed) = lengths[started as usize % lengths.len()];
            started += 1;
            open.push((at + Duration::from_millis(length), flow, failed));
        }
        prop_assert!(open.is_empty(), "{} flows are open", open.len());
        prop_assert_eq!(started + given_up, requests * flows);
    }
}

#[test]
fn arrivals_stop_at_the_duration_and_have_as_long_to_complete() {
    let workload = r#"{"kind": "arrivals", "size": "1kB", "arrivals": "100/s", "duration": "2s"}"#;
    let (spec, mut plan) = planned(workload);
    let mut schedule = Schedule::of(&spec, &mut plan.groups, &[]);
    let mut starts = 0;
    while !schedule.is_over() {
        let (at, action) = schedule.pop(Instant::MAX, &mut plan.groups).unwrap();
        match action {
            Action::Start(flow) => {
                assert!(at < Instant::ZERO + Duration::from_secs(2));
                assert_eq!(flow.size, Some(1000));
                starts += 1;
            }
            Action::End => assert_eq!(at, Instant::ZERO + Duration::from_secs(4)),
            Action::Mark => assert_eq!(at, Instant::ZERO),
            Action::Sample(_) | Action::Release(_) => panic!("neither is planned"),
        }
    }
    assert!((120..290).contains(&starts), "{starts} of about 200");
}

#[test]
fn background_traffic_does_not_delay_the_end() {
    let json = r#"{"path": {"rate": "1Mbit/s", "delay": "1ms"}, "protocol": {"kind": "tcp"},
        "workload": {"kind": "file", "size": "1kB"}, "seed": 3,
        "traffic": [{"name": "other", "protocol": {"kind": "tcp"}, "workload": {"kind": "file", "size": "1GB"}}]}"#;
    let spec = TrialSpec::from_json(json).unwrap();
    let mut plan = Plan::of(&spec).unwrap();
    let samples = [(Sample::RoundTrips, Some(Duration::from_millis(10)))];
    let mut schedule = Schedule::of(&spec, &mut plan.groups, &samples);
    while let Some((at, Action::Start(flow))) = schedule.pop(Instant::ZERO, &mut plan.groups) {
        if flow.group == 0 {
            assert!(!schedule.is_over());
            schedule.ended(at, flow, &plan.groups[0], false);
        }
    }
    assert!(schedule.is_over());
    assert!(schedule.has_samples_only());
}
