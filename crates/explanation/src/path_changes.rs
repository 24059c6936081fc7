//! Changes of the path: steps of the RTT that no queue causes.
//!
//! While a bottleneck of constant rate is busy, the RTT is the flight divided by this rate. A sudden and lasting step of the
//! RTT is therefore a change of the path if the longer RTT also exceeds this quotient.

use foundation::Instant;
use serde::Serialize;

use crate::slices::Slice;

/// Ratio of RTTs from which a step counts, and the difference in seconds.
const STEP: f64 = 1.25;
const STEP_S: f64 = 0.002;
/// An RTT within this share of that of an idle path is the same.
const SAME: f64 = 1.1;
/// Slices whose RTT no queue explains.
const UNEXPLAINED: usize = 2;
/// Slices after a retransmission whose flights are not known well.
const REPAIR: usize = 3;
/// Slices that must have the same RTT on both sides of a step.
const ENOUGH: usize = 6;

/// A step of the RTT.
#[derive(Clone, Debug, Serialize)]
pub struct PathChange {
    /// End of the old RTT, in seconds since the first packet of the connection.
    pub time_s: f64,
    /// Smallest RTT before it.
    pub before_s: f64,
    /// Smallest RTT after it.
    pub after_s: f64,
    /// End of the last slice with the old RTT.
    #[serde(skip)]
    pub from: Instant,
    /// End of the second slice with the new RTT.
    #[serde(skip)]
    pub until: Instant,
    /// Start of the first slice with the new RTT.
    #[serde(skip)]
    pub start: Instant,
}

/// RTTs of a slice, with the flight that its packets met: that of the slice before.
struct Round<'a> {
    slice: &'a Slice,
    rtt: f64,
    /// Unknown while lost packets are repaired.
    flight: Option<u64>,
}

/// Finds the changes of a path, in order.
///
/// `rate` is that of the bottleneck in bytes per second, or one that few round trips exceed.
#[must_use]
pub fn path_changes(slices: &[Slice], rate: f64, origin: Instant) -> Vec<PathChange> {
    let mut flight = None;
    let mut since_repair = REPAIR;
    let mut rounds = Vec::new();
    for slice in slices {
        if let Some((least, _)) = slice.rtt {
            rounds.push(Round {
                slice,
                rtt: least.as_secs_f64(),
                flight,
            });
        }
        since_repair = if slice.repeated > 0 { 0 } else { since_repair + 1 };
        if since_repair < REPAIR {
            flight = None;
        } else if slice.sent > 0 {
            flight = Some(slice.flight);
        }
    }
    let mut found = Vec::new();
    split(&rounds, rate, origin, &mut found);
    found.sort_by_key(|one: &PathChange| one.start);
    found
}

/// Finds the largest step, and those on both sides of it.
fn split(rounds: &[Round<'_>], rate: f64, origin: Instant, found: &mut Vec<PathChange>) {
    if rounds.len() < 2 * ENOUGH {
        return;
    }
    let least = |a: f64, one: &Round<'_>| a.min(one.rtt);
    let before: Vec<f64> = scan(rounds.iter(), least);
    let mut after: Vec<f64> = scan(rounds.iter().rev(), least);
    after.reverse();
    let ratio = |place: usize| (after[place] / before[place - 1]).ln();
    let steps: Vec<usize> = (ENOUGH..=rounds.len() - ENOUGH)
        .filter(|&place| is_step(rounds, place, (before[place - 1], after[place]), rate))
        .collect();
    let Some(&best) = steps
        .iter()
        .max_by(|&&a, &&b| ratio(a).abs().total_cmp(&ratio(b).abs()))
    else {
        return;
    };
    // Queues blur the ratio: the first slice with the long RTT, or the last one, is the step.
    let mut alike = steps
        .iter()
        .filter(|&&place| (ratio(place) - ratio(best)).abs() < SAME.ln());
    let nearest = if ratio(best) > 0.0 {
        alike.next()
    } else {
        alike.next_back()
    };
    let Some(&place) = nearest else { return };
    let first = rounds[place].slice;
    let second = rounds.get(place + 1).map_or(first, |one| one.slice);
    found.push(PathChange {
        time_s: rounds[place - 1]
            .slice
            .sampled
            .saturating_since(origin)
            .as_secs_f64(),
        before_s: before[place - 1],
        after_s: after[place],
        from: rounds[place - 1].slice.end,
        until: second.end,
        start: first.start,
    });
    split(&rounds[..place], rate, origin, found);
    split(&rounds[place..], rate, origin, found);
}

fn scan<'a>(rounds: impl Iterator<Item = &'a Round<'a>>, least: impl Fn(f64, &Round<'_>) -> f64) -> Vec<f64> {
    rounds
        .scan(f64::INFINITY, |lowest, one| {
            *lowest = least(*lowest, one);
            Some(*lowest)
        })
        .collect()
}

fn is_step(rounds: &[Round<'_>], place: usize, (before, after): (f64, f64), rate: f64) -> bool {
    let (low, high) = (before.min(after), before.max(after));
    if high < STEP * low || high - low < STEP_S {
        return false;
    }
    let (short, long) = if before < after {
        (&rounds[..place], &rounds[place..])
    } else {
        (&rounds[place..], &rounds[..place])
    };
    let in_queue = |one: &Round<'_>| one.flight.map(|flight| SAME * flight as f64 / rate);
    // The step is sudden: next to it, the RTT is the short one and that of a queue.
    let nearest = if before < after {
        short.last()
    } else {
        short.first()
    };
    if nearest.is_none_or(|one| one.rtt > f64::max(SAME * low, in_queue(one).unwrap_or(f64::INFINITY))) {
        return false;
    }
    // The flight of a round trip with the long RTT waits in no queue.
    long.iter()
        .filter(|one| in_queue(one).is_some_and(|queue| queue < one.rtt))
        .count()
        >= UNEXPLAINED
}
