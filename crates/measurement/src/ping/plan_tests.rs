use super::plan::*;
use foundation::{Duration, Instant};
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_millis(100);

fn schedule(sizes: &[u32], count: u32, pace: Pace, window: u32) -> Schedule {
    Schedule {
        sizes: sizes.to_vec(),
        count,
        pace,
        window,
        timeout: TIMEOUT,
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Sends all requests due at `now`; returns their sizes.
fn send(plan: &mut Plan, now: Instant) -> Vec<u32> {
    let mut sizes = Vec::new();
    while let Some(probe) = plan.poll_send(now) {
        plan.sent(now);
        sizes.push(probe.size);
    }
    sizes
}

#[test]
fn sizes_take_turns_at_the_interval() {
    let pace = Pace::Interval(Duration::from_millis(10));
    let mut plan = Plan::new(at(0), schedule(&[8, 100], 2, pace, 10));
    let mut sent = Vec::new();
    let mut now = at(0);
    while plan.total() > sent.len() as u32 {
        for size in send(&mut plan, now) {
            sent.push((now, size));
        }
        now = plan.poll_timeout().unwrap().max(now);
    }
    assert_eq!(sent, [(at(0), 8), (at(10), 100), (at(20), 8), (at(30), 100)]);
}

#[test]
fn answers_are_first_duplicate_late_or_unknown() {
    let pace = Pace::Interval(Duration::from_millis(10));
    let mut plan = Plan::new(at(0), schedule(&[8], 3, pace, 10));
    send(&mut plan, at(0));
    send(&mut plan, at(10));
    assert_eq!(plan.handle_answer(at(20), 0), Match::First);
    assert_eq!(plan.handle_answer(at(21), 0), Match::Duplicate);
    assert_eq!(plan.handle_answer(at(21), 2), Match::Unknown);
    plan.handle_timeout(at(110));
    assert_eq!(plan.unanswered(), 1);
    plan.handle_timeout(at(111));
    assert_eq!(plan.unanswered(), 0);
    assert_eq!(plan.handle_answer(at(150), 1), Match::Late);
    assert_eq!(plan.handle_answer(at(151), 1), Match::Duplicate);
    assert!(!plan.is_finished());
    send(&mut plan, at(200));
    plan.handle_failure(2);
    assert!(plan.is_finished());
    let states: Vec<_> = plan.states().collect();
    assert_eq!(states, [State::Answered, State::Late, State::Failed]);
}

#[test]
fn an_answer_after_the_timeout_is_late_without_a_check_in_between() {
    let mut plan = Plan::new(at(0), schedule(&[8], 1, Pace::Interval(Duration::ZERO), 1));
    send(&mut plan, at(0));
    assert_eq!(plan.handle_answer(at(101), 0), Match::Late);
    assert!(plan.is_finished());
}

#[test]
fn a_flood_waits_for_answers_up_to_a_limit_and_keeps_its_rate() {
    let pace = Pace::Flood {
        least: Duration::from_millis(2),
        most: Duration::from_millis(10),
    };
    let mut plan = Plan::new(at(0), schedule(&[8], 9, pace, 1));
    assert_eq!(send(&mut plan, at(0)).len(), 1);
    plan.handle_answer(at(1), 0);
    assert_eq!(send(&mut plan, at(1)).len(), 0);
    assert_eq!(plan.poll_timeout(), Some(at(2)));
    assert_eq!(send(&mut plan, at(2)).len(), 1);
    assert_eq!(send(&mut plan, at(11)).len(), 0);
    assert_eq!(plan.poll_timeout(), Some(at(12)));
    assert_eq!(send(&mut plan, at(12)).len(), 1);
}

#[test]
fn a_stopped_plan_waits_for_what_it_has_sent_and_sends_nothing() {
    let mut plan = Plan::new(at(0), schedule(&[8], 9, Pace::Interval(Duration::ZERO), 2));
    assert_eq!(send(&mut plan, at(0)).len(), 2);
    plan.stop();
    plan.handle_answer(at(1), 0);
    assert_eq!(send(&mut plan, at(1)).len(), 0);
    assert!(!plan.is_finished());
    plan.handle_timeout(at(101));
    assert!(plan.is_finished());
    assert_eq!(plan.poll_timeout(), None);
}

#[test]
fn numbers_of_sixteen_bits_identify_the_latest_request() {
    let mut plan = Plan::new(
        at(0),
        schedule(&[8], 70_000, Pace::Interval(Duration::ZERO), 70_000),
    );
    assert_eq!(plan.latest_with(0), None);
    assert_eq!(send(&mut plan, at(0)).len(), 70_000);
    assert_eq!(plan.latest_with(69_999_u32 as u16), Some(69_999));
    assert_eq!(plan.latest_with(69_000_u32 as u16), Some(69_000));
    // 70_000 itself was not sent; its low bits equal those of the request 65,536 before.
    assert_eq!(plan.latest_with(70_000_u32 as u16), Some(70_000 - 65_536));
}

proptest! {
    /// Under any losses, repetitions and delays each request ends once, and the bounds are respected.
    #[test]
    fn every_plan_finishes(
        sizes in prop::collection::vec(0..2000_u32, 1..4), count in 0..30_u32, window in 0..5_u32, flood: bool,
        step in 0..20_u64, fates in prop::collection::vec((0..4_u8, 0..150_u64), 120),
    ) {
        let pace = match flood {
            true => Pace::Flood { least: Duration::from_millis(step), most: Duration::from_millis(20) },
            false => Pace::Interval(Duration::from_millis(step)),
        };
        let mut plan = Plan::new(at(0), schedule(&sizes, count, pace, window));
        let (mut now, mut last, mut answers) = (at(0), None, Vec::new());
        let mut steps = 0;
        while !plan.is_finished() {
            steps += 1;
            prop_assert!(steps < 10_000);
            plan.handle_timeout(now);
            while let Some(probe) = plan.poll_send(now) {
                if flood && let Some(last) = last {
                    prop_assert!(now - last >= Duration::from_millis(step));
                }
                last = Some(now);
                plan.sent(now);
                let (fate, delay) = fates[probe.number as usize];
                if fate == 3 {
                    plan.handle_failure(probe.number);
                }
                for _ in 0..fate % 3 {
                    answers.push((now + Duration::from_millis(delay), probe.number));
                }
            }
            let next = answers.iter().map(|answer| answer.0).chain(plan.poll_timeout()).min();
            now = next.unwrap_or(now).max(now);
            for answer in answers.extract_if(.., |answer| answer.0 <= now) {
                prop_assert!(plan.handle_answer(answer.0, answer.1) != Match::Unknown || fates[answer.1 as usize].0 == 3);
            }
        }
        prop_assert_eq!(plan.states().count() as u32, plan.total());
        prop_assert!(plan.states().all(|state| state != State::Waiting));
    }
}
