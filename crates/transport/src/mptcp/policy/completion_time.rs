//! When a flow will be done, by what the host knows of its paths.

use crate::mptcp::host::PathState;
use crate::mptcp::segment::PathIndex;

/// Bytes of a segment.
const SEGMENT: f64 = 1400.0;
/// Segments at the end of a flow whose loss no later acknowledgement shows.
const TAIL: f64 = 3.0;
/// A path that nobody has used: what it is taken to carry, in bytes a second.
const UNKNOWN_RATE: f64 = 1.25e6;

/// What is assumed of every connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FlowModel {
    /// The first window, in segments.
    pub initial_window: f64,
    /// The timeout of data and of a handshake, in seconds.
    pub data_timeout: f64,
    pub handshake_timeout: f64,
    /// Whether bytes that are assigned to a path count, and its losses.
    pub backlog: bool,
    pub losses: bool,
}

/// A path as one more flow would find it: times in seconds, rates in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathForecast {
    pub path: PathIndex,
    rtt: f64,
    /// Bytes assigned to the path beyond what is in flight, and the subflows that they are of.
    unfinished: f64,
    subflows: f64,
    rate: f64,
    loss: f64,
}

impl PathForecast {
    /// How long the others hold up a flow of `bytes`: they share the path evenly, so that none takes more of it than the
    /// flow does itself, or than it has left.
    fn wait(&self, bytes: f64) -> f64 {
        self.unfinished.min(self.subflows * bytes) / self.rate
    }
}

impl FlowModel {
    /// The path as one more flow finds it.
    pub fn forecast(&self, path: PathIndex, account: &PathState) -> PathForecast {
        let rtt = account.usual_rtt().as_secs_f64();
        let rate = if account.rate() > 0.0 {
            account.rate()
        } else {
            UNKNOWN_RATE
        };
        // What a round trip carries is in flight, and its queue in the round trip.
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

    /// Rounds of slow start in which `bytes` leave.
    fn rounds(&self, bytes: f64) -> f64 {
        (bytes / (SEGMENT * self.initial_window) + 1.0)
            .log2()
            .ceil()
            .max(1.0)
    }

    /// The mean time that losses cost a flow of `bytes` on a path: a timeout where the handshake or the tail is lost, a
    /// round trip for any other.
    fn cost_of_losses(&self, on: &PathForecast, bytes: f64) -> f64 {
        let segments = (bytes / SEGMENT).ceil();
        let some = |count: f64| 1.0 - (1.0 - on.loss).powf(count);
        let tail = some(segments.min(TAIL));
        let middle = some((segments - TAIL).max(0.0));
        on.loss * self.handshake_timeout + tail * self.data_timeout + middle * on.rtt
    }

    /// The time from the beginning to the last acknowledgement of `bytes` over one path alone.
    pub fn alone(&self, on: &PathForecast, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let sending = (self.rounds(bytes) * on.rtt).max(bytes / on.rate + on.rtt / 2.0);
        on.rtt + sending + on.wait(bytes) + self.cost_of_losses(on, bytes)
    }

    /// Bytes that a subflow which can send from `ready` on has brought by `time`.
    fn brought(&self, on: &PathForecast, ready: f64, time: f64, bytes: f64) -> f64 {
        let left = time - ready - on.wait(bytes);
        if left < on.rtt {
            return 0.0;
        }
        let rounds = (left / on.rtt).floor().min(40.0);
        let window = SEGMENT * self.initial_window * (rounds.exp2() - 1.0);
        window.min(on.rate * (left - on.rtt / 2.0))
    }

    /// When a further path can first have brought something: a subflow joins when the first data is acknowledged, and sends
    /// after two round trips of its own path (RFC 8684, sections 3.1 and 3.2).
    pub fn first_bytes(&self, first: &PathForecast, on: &PathForecast) -> f64 {
        joined(first, on) + on.rtt
    }

    /// What each path has brought by `time`, the first one used first.
    fn brought_by(&self, paths: &[PathForecast], time: f64, bytes: f64) -> Vec<f64> {
        let first = &paths[0];
        let ready = |place: usize, on: &PathForecast| if place == 0 { first.rtt } else { joined(first, on) };
        let paths = paths.iter().enumerate();
        paths
            .map(|(place, on)| self.brought(on, ready(place, on), time, bytes))
            .collect()
    }

    /// The time over several paths without what losses cost.
    fn undisturbed(&self, paths: &[PathForecast], bytes: u64) -> f64 {
        let first = &paths[0];
        let size = bytes as f64;
        let alone = self.alone(first, bytes) - self.cost_of_losses(first, size);
        let all_by = |time: f64| self.brought_by(paths, time, size).iter().sum::<f64>() >= size;
        let (mut low, mut high) = (0.0, alone.max(first.rtt));
        if paths.len() == 1 || !all_by(high) {
            return alone;
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

    /// The time over several paths, of which there is one at least.
    pub fn together(&self, paths: &[PathForecast], bytes: u64) -> f64 {
        self.undisturbed(paths, bytes) + self.cost_of_losses(&paths[0], bytes as f64)
    }

    /// What each of the paths is expected to bring of `bytes`.
    pub fn shares(&self, paths: &[PathForecast], bytes: u64) -> Vec<(PathIndex, u64)> {
        let time = self.undisturbed(paths, bytes);
        let brought = self.brought_by(paths, time, bytes as f64);
        let sum: f64 = brought.iter().sum();
        let share = |(place, on): (usize, &PathForecast)| {
            let part = if sum > 0.0 {
                brought[place] / sum
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

/// When a further path's subflow can send.
fn joined(first: &PathForecast, on: &PathForecast) -> f64 {
    2.0 * first.rtt + 2.0 * on.rtt
}
