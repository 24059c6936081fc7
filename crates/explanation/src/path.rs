//! The path of a direction: round trips, the rate of the bottleneck, its queue, losses, and where the capture was made.

use foundation::{Duration, Instant};
use serde::Serialize;

use crate::direction::Direction;
use crate::path_changes::{PathChange, path_changes};
use crate::rates::Distribution;
use crate::round_trips::Position;
use crate::slices::{Slice, State};

/// Packets that an estimate needs.
const ENOUGH: u64 = 50;
/// The rate of a bottleneck is at least this share of the rate over any round trip.
const LEAST_OF_PEAK: f64 = 0.8;
/// Arrivals show the bottleneck if they come in bursts this much faster than the flow.
const BURSTS: f64 = 1.5;

/// Packets that a queue at a receiver holds at least, at its rate: a shorter one is the time until an application writes.
const LEAST_PACKETS: f64 = 1.5;

/// Share of the RTT from which a queue before a loss counts as one.
pub const LEAST_LOSS_QUEUE: f64 = 0.1;

/// How the rate of the bottleneck is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// From round trips in which the queue never emptied.
    Queue,
    /// From trains of packets that waited in a queue.
    Trains,
    /// From arrivals at the receiver.
    Arrivals,
}

/// Figures of a path; times in seconds, rates in bit/s of payload.
#[derive(Clone, Debug, Serialize)]
pub struct PathFigures {
    /// Where the capture was made.
    pub position: Position,
    /// Smallest RTT.
    pub base_rtt_s: Option<f64>,
    /// Smallest RTT of data.
    pub data_rtt_s: Option<f64>,
    /// Median of the RTT.
    pub rtt_p50_s: Option<f64>,
    /// 95th percentile of the RTT.
    pub rtt_p95_s: Option<f64>,
    /// Rate of the bottleneck, in payload.
    pub rate_bps: Option<f64>,
    /// How it is known.
    pub rate_from: Option<RateSource>,
    /// Largest rate over a round trip, in payload.
    pub peak_bps: f64,
    /// Time that the queue adds while it does not empty: the 20th percentile over such round trips.
    pub standing_queue_s: Option<f64>,
    /// Largest time that the queue added, without pauses of the path or a host.
    pub most_queue_s: Option<f64>,
    /// Time that a full queue adds at least to be the cause of a loss: the losses of a shorter one have no visible cause.
    pub least_loss_queue_s: Option<f64>,
    /// Share of the packets that were retransmitted.
    pub repeated_share: f64,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Largest window of the receiver in bytes.
    pub window: u64,
    /// Its median in bytes over the time in which it limits the flight.
    pub limiting_window: Option<u64>,
    /// Largest flight in bytes.
    pub flight: u64,
    /// Steps of the RTT.
    pub changes: Vec<PathChange>,
    /// Largest time that the queue adds in most round trips. Unlike the maximum, it has no ACKs that were delayed once.
    #[serde(skip)]
    pub usual_queue_s: Option<f64>,
    /// Whether RTTs above the idle one show a queue.
    #[serde(skip)]
    shows_queue: bool,
    /// Smallest RTT of data in the times between the steps.
    #[serde(skip)]
    idle_s: Vec<f64>,
}

/// Time that a queue adds at least to count as one: a share of the RTT, and a time.
const QUEUE_SHARE: f64 = 0.03;
const QUEUE_S: f64 = 0.0003;
/// The same seen from afar, where the RTT is a sum of two measurements, one of which has the clock of timestamps.
const DISTANT_SHARE: f64 = 0.08;
const DISTANT_S: f64 = 0.002;

/// Share of the round trips with at most the usual queue and rate.
const USUAL: f64 = 0.9;

impl PathFigures {
    /// Derives the figures of a direction from its slices.
    #[must_use]
    pub fn of(direction: &Direction, slices: &[Slice], origin: Instant) -> Self {
        let found = Self::derived(direction, slices, (Vec::new(), Vec::new()));
        // From afar, the RTT is a sum of two, which do not change at the same time.
        if !matches!(found.position, Position::Sender | Position::Unknown) {
            return found;
        }
        let rate = found
            .rate_bps
            .map_or_else(|| usual_rate(slices), |rate| rate / 8.0);
        let changes = path_changes(slices, rate, origin);
        if changes.is_empty() {
            return found;
        }
        // Queues are those above the RTT of the idle path at their time.
        let idle_s = idle_rtts(slices, &changes);
        Self::derived(direction, slices, (changes, idle_s))
    }

    fn derived(
        direction: &Direction,
        slices: &[Slice],
        (changes, idle_s): (Vec<PathChange>, Vec<f64>),
    ) -> Self {
        let round_trips = &direction.round_trips;
        let base = round_trips.base_s(None);
        let position = round_trips.position();
        let data = round_trips.least_data.map(Duration::as_secs_f64);
        let mut queued = Distribution::default();
        let mut standing = Distribution::default();
        let mut usual = Distribution::default();
        let mut most: Option<f64> = None;
        for (place, slice) in slices.iter().enumerate() {
            let (Some((least, largest)), Some(idle)) = (slice.rtt, idle_at(slice, &changes, &idle_s, data))
            else {
                continue;
            };
            if let Some(rtt) = slice.steady_rtt {
                let queue = rtt.as_secs_f64() - idle;
                most = Some(most.map_or(queue, |most| most.max(queue)));
            }
            usual.add(largest.as_secs_f64() - idle, 1);
            let queue = least.as_secs_f64() - idle;
            let is_round = slice.arrival.as_secs_f64() > 0.5 * idle;
            let is_queued = |one: &Slice| {
                let idle = idle_at(one, &changes, &idle_s, data);
                exceeds(one, idle, position)
            };
            if is_confirmed(slices, place, is_queued) && is_round && slice.repeated == 0 {
                queued.add(slice.rate(), slice.delivered / u64::from(direction.mss));
                standing.add(queue, slice.duration().as_nanos() / 1000);
            }
        }
        let trains = &direction.trains;
        let is_link = |rate: f64| {
            let packet = f64::from(direction.mss) / rate;
            most.is_some_and(|queue| queue > LEAST_PACKETS * packet)
        };
        let of_queue = queued.quantile(0.5).filter(|_| queued.total() >= ENOUGH);
        let shows_queue = position != Position::Receiver || of_queue.is_none_or(is_link);
        let found = if let Some(rate) = of_queue.filter(|_| shows_queue) {
            Some((rate, RateSource::Queue))
        } else if trains.queued.total() >= ENOUGH {
            trains.queued.quantile(0.5).map(|rate| (rate, RateSource::Trains))
        } else if position == Position::Receiver && trains.all.total() >= ENOUGH {
            trains.all.quantile(0.75).map(|rate| (rate, RateSource::Arrivals))
        } else {
            None
        };
        let peak = slices
            .iter()
            .filter(|slice| base.is_some_and(|base| slice.arrival.as_secs_f64() > 0.5 * base))
            .map(Slice::rate)
            .fold(0.0, f64::max);
        // A rate below that of a whole round trip is not that of the bottleneck: the train was sent slowly.
        let found = found.filter(|&(rate, source)| match source {
            // Packets that arrive as evenly as the whole flow show its rate, not that of the bottleneck.
            RateSource::Arrivals => rate > BURSTS * peak,
            // The largest rate can be that of ACKs that were held up and came together.
            RateSource::Queue => rate > LEAST_OF_PEAK * usual_rate(slices),
            RateSource::Trains => rate > LEAST_OF_PEAK * peak,
        });
        let totals = &direction.totals;
        let behind_link = found
            .map(|(rate, _)| rate)
            .filter(|&rate| position == Position::Receiver && is_link(rate));
        let base = round_trips.base_s(behind_link);
        Self {
            position,
            base_rtt_s: base,
            data_rtt_s: data,
            rtt_p50_s: round_trips.all.quantile(0.5),
            rtt_p95_s: round_trips.all.quantile(0.95),
            rate_bps: found.map(|(rate, _)| 8.0 * rate),
            rate_from: found.map(|(_, source)| source),
            peak_bps: 8.0 * peak,
            standing_queue_s: standing.quantile(0.2),
            most_queue_s: most,
            least_loss_queue_s: base.map(|rtt| LEAST_LOSS_QUEUE * rtt),
            repeated_share: totals.repeated_packets as f64 / totals.data_packets.max(1) as f64,
            mss: direction.mss,
            window: direction.most_window,
            limiting_window: limiting_window(slices),
            flight: slices.iter().map(|slice| slice.flight).max().unwrap_or(0),
            changes,
            usual_queue_s: usual.quantile(USUAL),
            shows_queue,
            idle_s,
        }
    }

    /// Whether the queue did not empty during a slice.
    #[must_use]
    pub fn is_queued(&self, slices: &[Slice], place: usize) -> bool {
        self.shows_queue
            && is_confirmed(slices, place, |one| {
                exceeds(one, self.idle_rtt_s(one), self.position)
            })
    }

    /// Returns the smallest time that the queue adds in a slice in which it did not empty.
    #[must_use]
    pub fn queue_s(&self, slices: &[Slice], place: usize) -> Option<f64> {
        let (least, _) = slices[place].rtt.filter(|_| self.is_queued(slices, place))?;
        Some(least.as_secs_f64() - self.idle_rtt_s(&slices[place])?)
    }

    /// Returns the RTT of data on the idle path at the time of a slice.
    #[must_use]
    pub fn idle_rtt_s(&self, slice: &Slice) -> Option<f64> {
        idle_at(slice, &self.changes, &self.idle_s, self.data_rtt_s)
    }

    /// Returns the time that a queue adds at least to count as one.
    #[must_use]
    pub fn margin(&self, slice: &Slice) -> f64 {
        margin(self.position, self.idle_rtt_s(slice).unwrap_or(0.0))
    }

    /// Whether the path changes during a slice.
    #[must_use]
    pub fn is_changing(&self, slice: &Slice) -> bool {
        self.changes
            .iter()
            .any(|one| slice.end > one.from && slice.start < one.until)
    }
}

/// Returns a rate that few round trips exceed, in bytes per second: the largest one can be that of ACKs that came together.
fn usual_rate(slices: &[Slice]) -> f64 {
    let mut rates = Distribution::default();
    for slice in slices {
        rates.add(slice.rate(), slice.arrival.as_nanos() / 1000);
    }
    rates.quantile(USUAL).unwrap_or(f64::INFINITY)
}

/// Returns the median of the receiver's window over the time in which it limits the flight.
fn limiting_window(slices: &[Slice]) -> Option<u64> {
    let limited = slices
        .iter()
        .map(|slice| (slice.window, slice.time(State::WindowLimited)));
    let mut windows: Vec<(u64, Duration)> = limited.filter(|(_, time)| !time.is_zero()).collect();
    windows.sort_unstable();
    let half = windows.iter().fold(Duration::ZERO, |sum, &(_, time)| sum + time) / 2;
    let mut sum = Duration::ZERO;
    windows.into_iter().find_map(|(window, time)| {
        sum += time;
        (sum >= half).then_some(window)
    })
}

/// Returns the smallest RTT of data before, between and after changes.
fn idle_rtts(slices: &[Slice], changes: &[PathChange]) -> Vec<f64> {
    let mut found = vec![f64::INFINITY; changes.len() + 1];
    for slice in slices {
        if let Some((least, _)) = slice.rtt {
            let place = changes.partition_point(|one| one.start <= slice.start);
            found[place] = found[place].min(least.as_secs_f64());
        }
    }
    found
}

fn idle_at(slice: &Slice, changes: &[PathChange], idle_s: &[f64], all: Option<f64>) -> Option<f64> {
    if changes.is_empty() {
        return all;
    }
    let place = changes.partition_point(|one| one.start <= slice.start);
    idle_s.get(place).copied().filter(|idle| idle.is_finite()).or(all)
}

/// Whether all RTTs of a slice exceed that of the idle path by a queue.
fn exceeds(slice: &Slice, idle: Option<f64>, position: Position) -> bool {
    match (slice.rtt, idle) {
        (Some((least, _)), Some(idle)) => least.as_secs_f64() - idle > margin(position, idle),
        _ => false,
    }
}

/// Whether a slice has a queue. One RTT alone is no evidence of it: the receiver may have delayed the ACK. The RTTs of a
/// slice next to it are.
fn is_confirmed(slices: &[Slice], place: usize, is_queued: impl Fn(&Slice) -> bool) -> bool {
    if !is_queued(&slices[place]) {
        return false;
    }
    if slices[place].samples > 1 {
        return true;
    }
    let before = slices[..place].iter().rev().find(|one| one.samples > 0);
    let after = slices[place + 1..].iter().find(|one| one.samples > 0);
    before.into_iter().chain(after).any(is_queued)
}

fn margin(position: Position, idle: f64) -> f64 {
    match position {
        Position::Sender => (QUEUE_SHARE * idle).max(QUEUE_S),
        _ => (DISTANT_SHARE * idle).max(DISTANT_S),
    }
}
