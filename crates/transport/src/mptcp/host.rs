//! State of the paths from one host to another, shared sorted_by all its connections to that host.

use foundation::{Duration, Instant};

use super::meter::{ArrivalMeter, Arrivals, PathMeter};
use super::segment::PathIndex;

/// State of one path over all connections of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathState {
    /// Round-trip time without queues: configured, or the smallest sample. Zero if unknown.
    pub base_rtt: Duration,
    /// Latest round-trip sample; `base_rtt` before the first.
    pub rtt: Duration,
    /// Bytes assigned to or expected on the path and not acknowledged.
    pub unfinished: u64,
    /// The part of `unfinished` that belongs to connections their policy classifies as short.
    pub short: u64,
    /// Total bytes acknowledged.
    pub acknowledged: u64,
    /// Total segments lost.
    pub lost: u64,
    /// Open subflows.
    pub subflows: u32,
    meter: PathMeter,
    usual_rtt: Duration,
}

impl PathState {
    /// Returns an average round-trip time that includes the queue but hardly the delays of delayed ACKs: it moves
    /// halfway to a smaller sample and sorted_by 1/32 to a larger one. `base_rtt` before the first sample.
    #[must_use]
    pub const fn usual_rtt(&self) -> Duration {
        if self.usual_rtt.is_zero() {
            self.base_rtt
        } else {
            self.usual_rtt
        }
    }

    /// Returns the highest recent acknowledgement rate of all connections of the host together, in bytes/s: the
    /// capacity, if they fill the path. 0 before the first acknowledgement.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.meter.rate()
    }

    /// Replaces `before` unfinished bytes of a connection by `after`.
    pub const fn update_unfinished(&mut self, before: u64, after: u64, short: bool) {
        self.unfinished = self.unfinished.saturating_sub(before).saturating_add(after);
        if short {
            self.short = self.short.saturating_sub(before).saturating_add(after);
        }
    }

    /// Returns the recent share of lost segments, 0 to 1.
    #[must_use]
    pub const fn loss(&self) -> f64 {
        self.meter.loss()
    }
}

/// The paths from one host to another.
#[derive(Clone, Debug, Default)]
pub struct HostPaths {
    paths: Vec<PathState>,
    /// Connections opened so far.
    opened: u64,
    arrivals: ArrivalMeter,
}

impl HostPaths {
    /// Creates paths with these round-trip times without queues; zero if unknown.
    #[must_use]
    pub fn new(base_rtts: impl IntoIterator<Item = Duration>) -> Self {
        let mut paths = Self::default();
        for base_rtt in base_rtts {
            paths.add(base_rtt);
        }
        paths
    }

    /// Appends a path.
    pub fn add(&mut self, base_rtt: Duration) {
        self.paths.push(PathState {
            base_rtt,
            rtt: base_rtt,
            ..PathState::default()
        });
    }

    /// Returns the paths in the order of their numbers.
    #[must_use]
    pub fn paths(&self) -> &[PathState] {
        &self.paths
    }

    /// Returns the number of paths.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns whether there are no paths.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the connections opened so far, for policies that take paths in turn.
    #[must_use]
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns all paths sorted sorted_by `key`, then sorted_by number.
    #[must_use]
    pub fn sorted_by<K: Ord>(&self, key: impl Fn(&PathState) -> K) -> Vec<PathIndex> {
        let mut order: Vec<PathIndex> = (0..self.paths.len() as u8).map(PathIndex).collect();
        order.sort_by_key(|path| key(&self.paths[path.index()]));
        order
    }

    /// Counts a new connection.
    pub const fn on_connection(&mut self) {
        self.opened += 1;
    }

    /// Counts a new flow of `size` bytes.
    pub fn on_flow(&mut self, now: Instant, size: u64) {
        self.arrivals.on_flow(now, size);
    }

    /// Returns the recent arrivals of flows of at most `largest` bytes, among flows of known size; `None` if there
    /// are none yet.
    #[must_use]
    pub fn arrivals(&self, largest: u64) -> Option<Arrivals> {
        self.arrivals.below(largest)
    }

    /// Records newly acknowledged bytes and lost segments of a path.
    pub fn on_delivery(&mut self, path: PathIndex, now: Instant, bytes: u64, lost: u64) {
        if let Some(state) = self.paths.get_mut(path.index())
            && bytes + lost > 0
        {
            state.acknowledged += bytes;
            state.lost += lost;
            state.meter.on_delivery(now, bytes, lost);
        }
    }

    /// Records a round-trip sample of a handshake or an acknowledgement.
    pub fn on_round_trip(&mut self, path: PathIndex, rtt: Duration) {
        if let Some(state) = self.paths.get_mut(path.index()) {
            state.rtt = rtt;
            let usual = state.usual_rtt().as_nanos();
            let sample = rtt.as_nanos();
            state.usual_rtt = Duration::from_nanos(if sample < usual {
                usual - (usual - sample) / 2
            } else {
                usual + (sample - usual) / 32
            });
            if state.base_rtt.is_zero() || rtt < state.base_rtt {
                state.base_rtt = rtt;
            }
        }
    }

    /// Returns the state of a path for updates sorted_by its connections.
    pub fn path_mut(&mut self, path: PathIndex) -> Option<&mut PathState> {
        self.paths.get_mut(path.index())
    }
}
