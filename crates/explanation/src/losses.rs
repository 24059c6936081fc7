//! Why packets were lost: at random, by a full queue, by a burst, by a policer, or not at all.

use foundation::{Duration, Instant};

use crate::causes::Cause;
use crate::path::{LEAST_LOSS_QUEUE, PathFigures};
use crate::rates::Distribution;
use crate::round_trips::Position;
use crate::slices::Slice;

/// Share of the largest queue above which a loss is one of a full queue.
const OVERFLOW: f64 = 0.5;
/// Share of the usual queue above which a full queue lost a packet of a burst.
const BURST_OVERFLOW: f64 = 0.9;
/// Losses of bursts that show a pattern, and their share of all losses.
const BURSTS: usize = 3;
const BURSTY: f64 = 0.8;
/// Share of the path's capacity below which a flight fits it without a queue.
const FITS: f64 = 0.9;
/// Slices in which the receiver reports that a retransmission was unnecessary.
const REPORTED: usize = 3;
/// Losses closer than this many RTTs are one event.
const APART: f64 = 2.0;
/// Intervals between losses that show a policer.
const ENOUGH: usize = 5;
/// Difference of the rate of such an interval from that of the policer.
const CONSTANT: f64 = 0.15;
/// Share of the time in intervals with at most the rate of the policer.
const HIGH: f64 = 0.75;
/// Share of the time in intervals with the rate of the policer, and above it.
const MOST: f64 = 0.6;
const FEW: f64 = 0.05;
/// A bucket of tokens first lets a sender exceed the rate by this ratio, and then drops this many packets of a window.
const EXCESS: f64 = 1.3;
const DROPPED: f64 = 3.0;

/// What all losses of a transfer have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Whether a full queue loses packets of flights that fit the path.
    is_bursty: bool,
    /// Rate of a policer, in bit/s of payload.
    pub policer_bps: Option<f64>,
}

impl Losses {
    /// Derives it from a transfer.
    #[must_use]
    pub fn of(slices: &[Slice], path: &PathFigures) -> Self {
        // From afar, neither queues nor the times of losses are known well enough.
        if path.position != Position::Sender {
            return Self::default();
        }
        let lossy: Vec<usize> = (0..slices.len())
            .filter(|&place| slices[place].losses > 0)
            .collect();
        let bursts = lossy
            .iter()
            .filter(|&&place| is_burst(slices, place, path))
            .count();
        let mut found = Self {
            is_bursty: bursts >= BURSTS && bursts as f64 > BURSTY * lossy.len() as f64,
            policer_bps: None,
        };
        found.policer_bps = policer(slices, path, found);
        found
    }

    /// Returns the cause of the losses of a slice.
    #[must_use]
    pub fn cause(self, slices: &[Slice], place: usize, path: &PathFigures) -> Cause {
        let slice = &slices[place];
        if path.is_changing(slice) {
            return Cause::PathChange;
        }
        let end = slices.len().min(place + REPORTED);
        let (spurious, repeated) = slices[place..end]
            .iter()
            .fold((0, 0), |(spurious, repeated), one| {
                (spurious + one.spurious, repeated + one.repeated)
            });
        if 2 * spurious > repeated {
            return Cause::Reordering;
        }
        if self.is_bursty && is_burst(slices, place, path) {
            return Cause::Burst;
        }
        if is_full(slice, path) {
            Cause::QueueOverflow
        } else if self.policer_bps.is_some() {
            Cause::Policer
        } else {
            Cause::RandomLoss
        }
    }
}

/// Returns the time that the queue added when a packet of a slice was lost.
pub fn loss_queue_s(slice: &Slice, path: &PathFigures) -> Option<f64> {
    Some(slice.loss_rtt?.as_secs_f64() - path.idle_rtt_s(slice)?)
}

/// Whether the queue was more than half full when a packet of a slice was lost.
fn is_full(slice: &Slice, path: &PathFigures) -> bool {
    let (Some(queue), Some(most)) = (loss_queue_s(slice, path), path.most_queue_s) else {
        return false;
    };
    let least = LEAST_LOSS_QUEUE * path.idle_rtt_s(slice).unwrap_or(0.0);
    queue > least.max(path.margin(slice)) && queue > OVERFLOW * most
}

/// Whether the queue is full in the round trip of a loss, although the flight would fit the path.
fn is_burst(slices: &[Slice], place: usize, path: &PathFigures) -> bool {
    let slice = &slices[place];
    let nearest = &slices[place.saturating_sub(1)..=place];
    let longest = nearest
        .iter()
        .filter_map(|one| one.rtt)
        .map(|(_, most)| most)
        .max();
    queue_share(slice, longest, path.usual_queue_s, path) > BURST_OVERFLOW && fits(slice, path)
}

/// Returns the queue that an RTT shows, as a share of another one; 0 without a queue.
fn queue_share(slice: &Slice, rtt: Option<Duration>, most: Option<f64>, path: &PathFigures) -> f64 {
    let (Some(rtt), Some(idle), Some(most)) = (rtt, path.idle_rtt_s(slice), most) else {
        return 0.0;
    };
    let queue = rtt.as_secs_f64() - idle;
    if queue > path.margin(slice) {
        queue / most
    } else {
        0.0
    }
}

/// Whether the flight with the lost packet would fit the path without a queue, if it were sent evenly.
fn fits(slice: &Slice, path: &PathFigures) -> bool {
    let (Some(flight), Some(rate), Some(idle)) = (slice.loss_flight, path.rate_bps, path.idle_rtt_s(slice))
    else {
        return false;
    };
    (flight as f64) < FITS * rate * idle / 8.0
}

/// Returns the rate of a policer, in bit/s of payload: a bucket of tokens that drops packets without a queue.
///
/// A policer passes the same rate between any two losses, whatever the sender's window does, because its bucket is empty at
/// both. (Flach et al., "An Internet-wide analysis of traffic policing", SIGCOMM 2016, infer the rate from losses, too.)
fn policer(slices: &[Slice], path: &PathFigures, known: Losses) -> Option<f64> {
    let rtt = path.base_rtt_s?;
    let mut delivered = 0;
    let mut last: Option<(Instant, u64)> = None;
    let mut intervals: Vec<(Duration, f64)> = Vec::new();
    let (mut events, mut repeated) = (0, 0);
    for (place, slice) in slices.iter().enumerate() {
        if slice.losses > 0 && known.cause(slices, place, path) == Cause::RandomLoss {
            let now = (slice.start, delivered);
            match last {
                None => last = Some(now),
                Some((start, before)) => {
                    let time = now.0.saturating_since(start);
                    if time.as_secs_f64() > APART * rtt {
                        intervals.push((time, (now.1 - before) as f64 / time.as_secs_f64()));
                        last = Some(now);
                    }
                }
            }
        }
        events += slice.losses;
        repeated += slice.repeated;
        delivered += slice.delivered;
    }
    if intervals.len() < ENOUGH {
        return None;
    }
    let total: f64 = intervals.iter().map(|one| one.0.as_secs_f64()).sum();
    // Below it are intervals in which the bucket overflowed.
    let mut rates = Distribution::default();
    for (time, rate) in &intervals {
        rates.add(*rate, time.as_nanos() / 1000);
    }
    let rate = rates.quantile(HIGH)?;
    let time_of = |is_wanted: &dyn Fn(f64) -> bool| {
        let chosen = intervals.iter().filter(|one| is_wanted(one.1 / rate));
        chosen.map(|one| one.0.as_secs_f64()).sum::<f64>() / total
    };
    let is_constant = time_of(&|ratio| (ratio - 1.0).abs() < CONSTANT) > MOST;
    let is_bound = time_of(&|ratio| ratio > 1.0 + CONSTANT) < FEW;
    let is_exceeded =
        path.peak_bps > EXCESS * 8.0 * rate || f64::from(repeated) > DROPPED * f64::from(events);
    (is_constant && is_bound && is_exceeded).then_some(8.0 * rate)
}
