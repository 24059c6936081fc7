//! Expected flow completion times, given the state of the host's paths.

use crate::mptcp::host::PathState;
use crate::mptcp::segment::PathIndex;

/// Bytes per segment.
const SEGMENT: f64 = 1400.0;
/// Tail segments, whose loss no later ACK reveals.
const TAIL: f64 = 3.0;
/// Assumed rate of an unused path in bytes/s.
const DEFAULT_RATE: f64 = 1.25e6;

/// Parameters of the model of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FlowModel {
    /// Initial window in segments.
    pub initial_window: f64,
    /// Timeouts of data and of the handshake in seconds.
    pub data_timeout: f64,
    pub handshake_timeout: f64,
    /// Whether assigned bytes and losses of a path count.
    pub backlog: bool,
    pub losses: bool,
}

/// Expected state of a path for a further flow: times in seconds, rates in bytes/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathForecast {
    pub path: PathIndex,
    rtt: f64,
    /// Bytes assigned to the path beyond those in flight, and the number of their subflows.
    unfinished: f64,
    subflows: f64,
    rate: f64,
    loss: f64,
}

impl PathForecast {
    /// Returns the delay that other flows cause to a flow of `bytes`. They share the path evenly, so that none of
    /// them sends more than the flow itself or than it has left.
    fn queueing_delay(&self, bytes: f64) -> f64 {
        self.unfinished.min(self.subflows * bytes) / self.rate
    }
}

impl FlowModel {
    /// Returns the forecast of a path for a further flow.
    pub fn forecast(&self, path: PathIndex, account: &PathState) -> PathForecast {
        let rtt = account.usual_rtt().as_secs_f64();
        let rate = if account.rate() > 0.0 {
            account.rate()
        } else {
            DEFAULT_RATE
        };
        // One bandwidth-delay product is in flight, and its queue is part of the round-trip time.
        let beyond = (account.unfinished as f64 - rate * rtt).max(0.0);
        PathForecast {
            path,
            rtt,
            unfinished: if self.backlog { beyond } else { 0.0 },
            subflows: f64::from(account.subflows),
            rate,
            loss: if self.losses { account.loss() } else { 0.0 },
        }
    }

    /// Returns the rounds of slow start that send `bytes`.
    fn rounds(&self, bytes: f64) -> f64 {
        (bytes / (SEGMENT * self.initial_window) + 1.0)
            .log2()
            .ceil()
            .max(1.0)
    }

    /// Returns the mean delay that losses cause: a timeout for a lost handshake or tail, a round trip for any other
    /// loss.
    fn loss_delay(&self, on: &PathForecast, bytes: f64) -> f64 {
        let segments = (bytes / SEGMENT).ceil();
        let some = |count: f64| 1.0 - (1.0 - on.loss).powf(count);
        let tail = some(segments.min(TAIL));
        let middle = some((segments - TAIL).max(0.0));
        on.loss * self.handshake_timeout + tail * self.data_timeout + middle * on.rtt
    }

    /// Returns the completion time of `bytes` over one path.
    pub fn single_path_time(&self, on: &PathForecast, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let sending = (self.rounds(bytes) * on.rtt).max(bytes / on.rate + on.rtt / 2.0);
        on.rtt + sending + on.queueing_delay(bytes) + self.loss_delay(on, bytes)
    }

    /// Returns the bytes that a subflow, ready at time `ready`, delivers by `time`.
    fn delivered(&self, on: &PathForecast, ready: f64, time: f64, bytes: f64) -> f64 {
        let left = time - ready - on.queueing_delay(bytes);
        if left < on.rtt {
            return 0.0;
        }
        let rounds = (left / on.rtt).floor().min(40.0);
        let window = SEGMENT * self.initial_window * (rounds.exp2() - 1.0);
        window.min(on.rate * (left - on.rtt / 2.0))
    }

    /// Returns when a further path can first have delivered data: its subflow joins after the first acknowledgement
    /// and sends after two round trips of its own path (RFC 8684, sections 3.1 and 3.2).
    pub fn first_delivery(&self, first: &PathForecast, on: &PathForecast) -> f64 {
        ready_time(first, on) + on.rtt
    }

    /// Returns the bytes that each path delivers by `time`; the first path starts at once.
    fn delivered_by(&self, paths: &[PathForecast], time: f64, bytes: f64) -> Vec<f64> {
        let first = &paths[0];
        let ready = |place: usize, on: &PathForecast| {
            if place == 0 {
                first.rtt
            } else {
                ready_time(first, on)
            }
        };
        let paths = paths.iter().enumerate();
        paths
            .map(|(place, on)| self.delivered(on, ready(place, on), time, bytes))
            .collect()
    }

    /// Returns the completion time over several paths without losses.
    fn lossless_time(&self, paths: &[PathForecast], bytes: u64) -> f64 {
        let first = &paths[0];
        let size = bytes as f64;
        let single = self.single_path_time(first, bytes) - self.loss_delay(first, size);
        let all_by = |time: f64| self.delivered_by(paths, time, size).iter().sum::<f64>() >= size;
        let (mut low, mut high) = (0.0, single.max(first.rtt));
        if paths.len() == 1 || !all_by(high) {
            return single;
        }
        for _ in 0..24 {
            let middle = f64::midpoint(low, high);
            if all_by(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// Returns the completion time over several paths, at least one.
    pub fn multipath_time(&self, paths: &[PathForecast], bytes: u64) -> f64 {
        self.lossless_time(paths, bytes) + self.loss_delay(&paths[0], bytes as f64)
    }

    /// Returns the expected bytes of each path.
    pub fn shares(&self, paths: &[PathForecast], bytes: u64) -> Vec<(PathIndex, u64)> {
        let time = self.lossless_time(paths, bytes);
        let delivered = self.delivered_by(paths, time, bytes as f64);
        let sum: f64 = delivered.iter().sum();
        let share = |(place, on): (usize, &PathForecast)| {
            let part = if sum > 0.0 {
                delivered[place] / sum
            } else if place == 0 {
                1.0
            } else {
                0.0
            };
            (on.path, (bytes as f64 * part).round() as u64)
        };
        paths.iter().enumerate().map(share).collect()
    }
}

/// Returns when the subflow of a further path can send.
fn ready_time(first: &PathForecast, on: &PathForecast) -> f64 {
    2.0 * first.rtt + 2.0 * on.rtt
}
