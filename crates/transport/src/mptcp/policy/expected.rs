//! When a flow will be done, by what the host knows of its paths.

use crate::mptcp::host::PathAccount;
use crate::mptcp::segment::PathIndex;

/// Bytes of a segment.
const SEGMENT: f64 = 1400.0;
/// Segments at the end of a flow whose loss no later acknowledgement shows.
const TAIL: f64 = 3.0;
/// A path that nobody has used: what it is taken to carry, in bytes a second.
const UNKNOWN_RATE: f64 = 1.25e6;

/// What is assumed of every connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Assumptions {
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
pub(super) struct Outlook {
    pub path: PathIndex,
    rtt: f64,
    /// Time to drain what is assigned to the path beyond what is in flight.
    wait: f64,
    rate: f64,
    loss: f64,
}

impl Assumptions {
    /// The path as one more flow finds it.
    pub fn outlook(&self, path: PathIndex, account: &PathAccount) -> Outlook {
        let rtt = account.usual_rtt().as_secs_f64();
        let rate = if account.rate() > 0.0 {
            account.rate()
        } else {
            UNKNOWN_RATE
        };
        // What a round trip carries is in flight, and its queue in the round trip.
        let beyond = (account.unfinished as f64 - rate * rtt).max(0.0);
        Outlook {
            path,
            rtt,
            wait: if self.backlog { beyond / rate } else { 0.0 },
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
    fn cost_of_losses(&self, on: &Outlook, bytes: f64) -> f64 {
        let segments = (bytes / SEGMENT).ceil();
        let some = |count: f64| 1.0 - (1.0 - on.loss).powf(count);
        let tail = some(segments.min(TAIL));
        let middle = some((segments - TAIL).max(0.0));
        on.loss * self.handshake_timeout + tail * self.data_timeout + middle * on.rtt
    }

    /// The time from the beginning to the last acknowledgement of `bytes` over one path alone.
    pub fn alone(&self, on: &Outlook, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let sending = (self.rounds(bytes) * on.rtt).max(bytes / on.rate + on.rtt / 2.0);
        on.rtt + sending + on.wait + self.cost_of_losses(on, bytes)
    }

    /// Bytes that a subflow which can send from `ready` on has brought by `time`.
    fn brought(&self, on: &Outlook, ready: f64, time: f64) -> f64 {
        let left = time - ready - on.wait;
        if left < on.rtt {
            return 0.0;
        }
        let rounds = (left / on.rtt).floor().min(40.0);
        let window = SEGMENT * self.initial_window * (rounds.exp2() - 1.0);
        window.min(on.rate * (left - on.rtt / 2.0))
    }

    /// The time over several paths, whose first one is used first. A subflow joins when the first data is acknowledged, and
    /// sends after two round trips of its own path (RFC 8684, sections 3.1 and 3.2).
    pub fn together(&self, paths: &[Outlook], bytes: u64) -> f64 {
        let Some((first, others)) = paths.split_first() else {
            return f64::INFINITY;
        };
        let alone = self.alone(first, bytes);
        if others.is_empty() {
            return alone;
        }
        let size = bytes as f64;
        let cost = self.cost_of_losses(first, size);
        let all_by = |time: f64| {
            let of_others = |on: &Outlook| self.brought(on, 2.0 * first.rtt + 2.0 * on.rtt, time);
            self.brought(first, first.rtt, time) + others.iter().map(of_others).sum::<f64>() >= size
        };
        let (mut low, mut high) = (0.0, (alone - cost).max(first.rtt));
        if !all_by(high) {
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
        high + cost
    }
}
