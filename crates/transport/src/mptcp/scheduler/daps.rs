//! DAPS, delay-aware packet scheduling (N. Kuhn, E. Lochin, A. Mifdaoui, G. Sarwar, O. Mehani and R. Boreli, "DAPS:
//! intelligent delay-aware packet scheduling for multipath transport", ICC 2014): plans the subflow of each segment
//! for a period, after which the round trips of all subflows start together again, so that the data arrives in order.
//!
//! Here round-trip times are rounded to multiples of the fastest subflow's. A period is at most [`MAX_PERIOD`] if the
//! least common multiple is larger.

use std::collections::VecDeque;

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, eligible, fastest_ready};

/// Maximum period in round trips of the fastest subflow.
const MAX_PERIOD: u64 = 64;

/// Plans the subflows of all segments of a period so that they arrive in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Daps {}

impl SchedulerSettings for Daps {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(DapsScheduler {
            turns: VecDeque::new(),
        })
    }
}

/// Planned subflows in the order of arrival, with the bytes of each.
#[derive(Debug)]
struct DapsScheduler {
    turns: VecDeque<(u8, u64)>,
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

impl DapsScheduler {
    /// Plans a period: each subflow sends a window at the start of each of its round trips.
    fn plan(&mut self, subflows: &[SubflowView]) {
        let usable = || eligible(subflows).map(|(_, subflow)| subflow);
        let known = usable().map(|subflow| subflow.srtt.as_nanos().max(1));
        let Some(least) = known.min() else { return };
        let rounds = |subflow: &SubflowView| (subflow.srtt.as_nanos() + least / 2) / least;
        let rounds = |subflow: &SubflowView| rounds(subflow).clamp(1, MAX_PERIOD);
        let multiple = |a: u64, b: u64| a / greatest_common_divisor(a, b) * b;
        let period = usable()
            .map(rounds)
            .fold(1, |all, one| multiple(all, one).min(MAX_PERIOD));
        let mut turns = Vec::new();
        for subflow in usable() {
            let rounds = rounds(subflow);
            for begin in (0..period).step_by(rounds as usize) {
                // Arrival in half round trips of the fastest subflow: half of the own round trip after sending.
                turns.push((
                    2 * begin + rounds,
                    subflow.srtt,
                    subflow.id,
                    subflow.window.max(1),
                ));
            }
        }
        turns.sort_unstable();
        self.turns = turns.into_iter().map(|(_, _, id, bytes)| (id, bytes)).collect();
    }

    /// Returns the index of the next subflow of the plan.
    fn next(&mut self, subflows: &[SubflowView]) -> Option<usize> {
        if self.turns.is_empty() {
            self.plan(subflows);
        }
        while let Some((id, bytes)) = self.turns.front_mut() {
            let place = eligible(subflows).find(|(_, s)| s.id == *id && (s.room || s.timeouts == 0));
            // The plan skips closed and unresponsive subflows.
            let Some((place, subflow)) = place else {
                self.turns.pop_front();
                continue;
            };
            *bytes = bytes.saturating_sub(u64::from(subflow.segment));
            if *bytes == 0 {
                self.turns.pop_front();
            }
            return Some(place);
        }
        None
    }
}

impl Scheduler for DapsScheduler {
    fn choose(&mut self, _: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice {
        let Some((place, _)) = fastest_ready(subflows) else {
            return Choice::Wait;
        };
        if data.reinjection {
            return Choice::Take(place);
        }
        Choice::Take(self.next(subflows).unwrap_or(place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::subflow;
    use super::*;

    /// 20 ms with 3 packets, 60 ms with 2: the period is 60 ms. The fast subflow sends at 0, 20 and 40 ms, with
    /// arrivals at 10, 30 and 50 ms. The slow one sends at 0 ms, with an arrival at 30 ms, after the second window of
    /// the fast one.
    #[test]
    fn plans_segments_in_order_of_arrival() {
        let with_window = |view: SubflowView, window| SubflowView { window, ..view };
        let fast = with_window(subflow(0, 20, true), 3000);
        let slow = with_window(subflow(1, 60, true), 2000);
        let mut daps = Daps {}.build();
        let mut choose =
            |subflows: &[SubflowView]| daps.choose(Instant::ZERO, &DataView::default(), subflows);
        let order: Vec<_> = (0..11).map(|_| choose(&[fast, slow])).collect();
        let expected = [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0].map(Choice::Take);
        assert_eq!(order, expected);
        // Without room on the fast subflow, six segments are queued there before those of the slow one.
        let full = SubflowView { room: false, ..fast };
        let order: Vec<_> = (0..8).map(|_| choose(&[full, slow])).collect();
        assert_eq!(order, [0, 0, 0, 0, 0, 0, 1, 1].map(Choice::Take));
        // The plan skips an unresponsive subflow. Without any room, nothing is queued.
        let silent = SubflowView { timeouts: 1, ..full };
        assert_eq!(choose(&[silent, slow]), Choice::Take(1));
        assert_eq!(choose(&[full, SubflowView { room: false, ..slow }]), Choice::Wait);
    }

    #[test]
    fn period_is_bounded_common_multiple_of_round_trips() {
        let shares = |rtts: &[u64]| {
            let subflows: Vec<_> = (0_u8..)
                .zip(rtts)
                .map(|(id, &rtt)| subflow(id, rtt, true))
                .collect();
            let mut schedule = DapsScheduler {
                turns: VecDeque::new(),
            };
            schedule.plan(&subflows);
            let count = |id| schedule.turns.iter().filter(|turn| turn.0 == id).count();
            (0_u8..).zip(rtts).map(|(id, _)| count(id)).collect::<Vec<_>>()
        };
        assert_eq!(shares(&[20, 40, 60]), [6, 3, 2]);
        assert_eq!(shares(&[10, 110, 130]), [64, 6, 5], "cut at 64");
        assert_eq!(shares(&[1, 1000]), [64, 1]);
    }
}
