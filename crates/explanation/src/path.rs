//! The path of a direction: round trips, the rate of the bottleneck, its queue, losses, and where the capture was made.

use foundation::Duration;
use serde::Serialize;

use crate::direction::Direction;
use crate::rates::Distribution;
use crate::slices::Slice;

/// Packets that an estimate needs.
const ENOUGH: u64 = 50;
/// Shares of the way between sender and receiver that count as its ends.
const NEAR_END: f64 = 0.1;
/// The rate of a bottleneck is at least this share of the rate over any round trip.
const LEAST_OF_PEAK: f64 = 0.8;
/// Arrivals show the bottleneck if they come in bursts this much faster than the flow.
const BURSTS: f64 = 1.5;

/// Where the capture was made, seen from the sender of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// At the sender.
    Sender,
    /// Between both.
    Between,
    /// At the receiver.
    Receiver,
    /// Not known: neither a handshake nor timestamps.
    Unknown,
}

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
    /// Largest time that the queue added.
    pub most_queue_s: Option<f64>,
    /// Share of the packets that were sent again.
    pub repeated_share: f64,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Largest window of the receiver in bytes.
    pub window: u64,
    /// Largest flight in bytes.
    pub flight: u64,
}

/// Time that a queue adds at least to count as one: a share of the RTT, and a time.
const QUEUE_SHARE: f64 = 0.03;
const QUEUE_S: f64 = 0.0003;
/// The same seen from afar, where the RTT is a sum of two measurements, one of which has the clock of timestamps.
const DISTANT_SHARE: f64 = 0.08;
const DISTANT_S: f64 = 0.002;

impl PathFigures {
    /// Derives the figures of a direction from its slices.
    #[must_use]
    pub fn of(direction: &Direction, slices: &[Slice]) -> Self {
        let base = match (direction.far, direction.near) {
            (Some(far), near) => Some((far + near.unwrap_or(Duration::ZERO)).as_secs_f64()),
            _ => None,
        };
        let position = position(direction);
        let data = direction.least_data_rtt.map(Duration::as_secs_f64);
        let mut queued = Distribution::default();
        let mut standing = Distribution::default();
        let mut most = None;
        for slice in slices {
            let (Some((least, largest)), Some(idle)) = (slice.rtt, data) else {
                continue;
            };
            most = Some(f64::max(most.unwrap_or(0.0), largest.as_secs_f64() - idle));
            let queue = least.as_secs_f64() - idle;
            let is_round = slice.arrival.as_secs_f64() > 0.5 * idle;
            if queue > margin(position, idle) && is_round && slice.repeated == 0 {
                queued.add(slice.rate(), slice.delivered / u64::from(direction.mss));
                standing.add(queue, slice.duration().as_nanos() / 1000);
            }
        }
        let trains = &direction.trains;
        let found = if queued.total() >= ENOUGH {
            queued.quantile(0.5).map(|rate| (rate, RateSource::Queue))
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
            _ => rate > LEAST_OF_PEAK * peak,
        });
        let totals = &direction.totals;
        Self {
            position,
            base_rtt_s: base,
            data_rtt_s: data,
            rtt_p50_s: direction.rtts.quantile(0.5),
            rtt_p95_s: direction.rtts.quantile(0.95),
            rate_bps: found.map(|(rate, _)| 8.0 * rate),
            rate_from: found.map(|(_, source)| source),
            peak_bps: 8.0 * peak,
            standing_queue_s: standing.quantile(0.2),
            most_queue_s: most,
            repeated_share: totals.repeated_packets as f64 / totals.data_packets.max(1) as f64,
            mss: direction.mss,
            window: direction.most_window,
            flight: slices.iter().map(|slice| slice.flight).max().unwrap_or(0),
        }
    }

    /// Whether the queue did not empty during a slice.
    #[must_use]
    pub fn is_queued(&self, slice: &Slice) -> bool {
        match (slice.rtt, self.data_rtt_s) {
            (Some((least, _)), Some(idle)) => least.as_secs_f64() - idle > margin(self.position, idle),
            _ => false,
        }
    }
}

fn margin(position: Position, idle: f64) -> f64 {
    match position {
        Position::Sender => (QUEUE_SHARE * idle).max(QUEUE_S),
        _ => (DISTANT_SHARE * idle).max(DISTANT_S),
    }
}

fn position(direction: &Direction) -> Position {
    let (Some(far), Some(near)) = (direction.far, direction.near) else {
        return Position::Unknown;
    };
    let share = near.as_secs_f64() / (near + far).as_secs_f64().max(1e-9);
    if share < NEAR_END {
        Position::Sender
    } else if share > 1.0 - NEAR_END {
        Position::Receiver
    } else {
        Position::Between
    }
}
