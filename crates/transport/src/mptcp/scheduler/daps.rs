//! DAPS, delay-aware packet scheduling (N. Kuhn, E. Lochin, A. Mifdaoui, G. Sarwar, O. Mehani and R. Boreli, "DAPS:
//! intelligent delay-aware packet scheduling for multipath transport", ICC 2014): who takes which segment is laid down
//! for a whole period, after which the round trips of all subflows begin together again, such that the data arrives in
//! order.
//!
//! Round-trip times are here counted in whole ones of the fastest subflow; a period is cut short where their least
//! common multiple is longer than [`LONGEST`].

use std::collections::VecDeque;

use foundation::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choice, DataView, Scheduler, SchedulerSettings, SubflowView, eligible, fastest_ready};

/// The longest period, in round trips of the fastest subflow.
const LONGEST: u64 = 64;

/// Lays down for a whole period who takes which segment, such that they arrive in order.
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

/// Subflows in the order of arrival, and how many bytes each has there.
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
    /// A new period: each subflow sends a window at the begin of each of its round trips.
    fn plan(&mut self, subflows: &[SubflowView]) {
        let usable = || eligible(subflows).map(|(_, subflow)| subflow);
        let known = usable().map(|subflow| subflow.srtt.as_nanos().max(1));
        let Some(least) = known.min() else { return };
        let rounds = |subflow: &SubflowView| (subflow.srtt.as_nanos() + least / 2) / least;
        let rounds = |subflow: &SubflowView| rounds(subflow).clamp(1, LONGEST);
        let multiple = |a: u64, b: u64| a / greatest_common_divisor(a, b) * b;
        let period = usable()
            .map(rounds)
            .fold(1, |all, one| multiple(all, one).min(LONGEST));
        let mut turns = Vec::new();
        for subflow in usable() {
            let rounds = rounds(subflow);
            for begin in (0..period).step_by(rounds as usize) {
                // In half round trips of the fastest: it arrives half of its own later.
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

    /// Whose turn it is.
    fn next(&mut self, subflows: &[SubflowView]) -> Option<usize> {
        if self.turns.is_empty() {
            self.plan(subflows);
        }
        while let Some((id, bytes)) = self.turns.front_mut() {
            let place = eligible(subflows).find(|(_, s)| s.id == *id && (s.room || s.timeouts == 0));
            // The turns of one that is gone, or does not answer, pass.
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

    /// 20 ms with 3 packets, 60 ms with 2: a period is 60 ms. Windows leave at 0, 20 and 40 ms and arrive at 10, 30 and
    /// 50; the slow one's leaves at 0 and arrives at 30, after the second of the fast one.
    #[test]
    fn segments_are_laid_down_in_the_order_of_arrival() {
        let with_window = |view: SubflowView, window| SubflowView { window, ..view };
        let fast = with_window(subflow(0, 20, true), 3000);
        let slow = with_window(subflow(1, 60, true), 2000);
        let mut daps = Daps {}.build();
        let mut choose =
            |subflows: &[SubflowView]| daps.choose(Instant::ZERO, &DataView::default(), subflows);
        let order: Vec<_> = (0..11).map(|_| choose(&[fast, slow])).collect();
        let expected = [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0].map(Choice::Take);
        assert_eq!(order, expected);
        // The fast one without room: six wait there, and then the slow one's are at hand.
        let full = SubflowView { room: false, ..fast };
        let order: Vec<_> = (0..8).map(|_| choose(&[full, slow])).collect();
        assert_eq!(order, [0, 0, 0, 0, 0, 0, 1, 1].map(Choice::Take));
        // The turns of one that does not answer pass; nobody is ready: nothing is laid aside.
        let silent = SubflowView { timeouts: 1, ..full };
        assert_eq!(choose(&[silent, slow]), Choice::Take(1));
        assert_eq!(choose(&[full, SubflowView { room: false, ..slow }]), Choice::Wait);
    }

    #[test]
    fn periods_are_multiples_of_all_round_trips_but_not_without_end() {
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
