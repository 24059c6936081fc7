//! What a host knows of its paths to another one: the account that all its connections there share.

use foundation::{Duration, Instant};

use super::meter::{ArrivalMeter, Arrivals, PathMeter};
use super::segment::PathIndex;

/// One path, as all connections of the host over it have seen it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathState {
    /// The round trip without queues: what the owner knows of the path, or the least that was seen. Zero where
    /// nothing is known.
    pub base_rtt: Duration,
    /// The round trip as the last handshake or acknowledgement on the path saw it; `base_rtt` before the first.
    pub rtt: Duration,
    /// Bytes that connections have given to the path, or mean to, and that are not acknowledged.
    pub unfinished: u64,
    /// The part of `unfinished` of connections that their policy takes for short.
    pub short: u64,
    /// Bytes acknowledged on the path, ever.
    pub acknowledged: u64,
    /// Segments lost on the path, ever.
    pub lost: u64,
    /// Subflows that are open.
    pub subflows: u32,
    meter: PathMeter,
    usual_rtt: Duration,
}

impl PathState {
    /// The round trip with its queue and without the delays of delayed acknowledgements: an average that falls halfway to
    /// a shorter sample, and rises by a 32nd towards a longer one. `base_rtt` before the first.
    #[must_use]
    pub const fn usual_rtt(&self) -> Duration {
        if self.usual_rtt.is_zero() {
            self.base_rtt
        } else {
            self.usual_rtt
        }
    }

    /// The highest rate at which the host's connections together were acknowledged on the path of late, in bytes a
    /// second: what it carries, where they fill it. 0 before anything was.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.meter.rate()
    }

    /// The share of segments that the path loses, of late: 0 to 1.
    #[must_use]
    pub const fn loss(&self) -> f64 {
        self.meter.loss()
    }
}

/// The paths from one host to another.
#[derive(Clone, Debug, Default)]
pub struct HostPaths {
    paths: Vec<PathState>,
    /// Connections that were ever opened.
    opened: u64,
    arrivals: ArrivalMeter,
}

impl HostPaths {
    /// Paths of which the round trips without queues are known; zero for one of which nothing is.
    #[must_use]
    pub fn new(base_rtts: impl IntoIterator<Item = Duration>) -> Self {
        let mut paths = Self::default();
        for base_rtt in base_rtts {
            paths.add(base_rtt);
        }
        paths
    }

    /// A further path, behind the others, as [`new`](Self::new) takes them.
    pub fn add(&mut self, base_rtt: Duration) {
        self.paths.push(PathState {
            base_rtt,
            rtt: base_rtt,
            ..PathState::default()
        });
    }

    /// The paths, in the order of their numbers.
    #[must_use]
    pub fn paths(&self) -> &[PathState] {
        &self.paths
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Connections that were opened before: whose turn it is, for policies that take paths in turn.
    #[must_use]
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// All paths, those of the smallest `key` first; equal ones in the order of their numbers.
    #[must_use]
    pub fn by<K: Ord>(&self, key: impl Fn(&PathState) -> K) -> Vec<PathIndex> {
        let mut order: Vec<PathIndex> = (0..self.paths.len() as u8).map(PathIndex).collect();
        order.sort_by_key(|path| key(&self.paths[path.index()]));
        order
    }

    /// A connection was opened.
    pub const fn on_connection(&mut self) {
        self.opened += 1;
    }

    /// A flow of `size` bytes begins.
    pub fn on_flow(&mut self, now: Instant, size: u64) {
        self.arrivals.on_flow(now, size);
    }

    /// The flows of at most `largest` bytes that began of late, where their sizes were known; `None` where nothing is known.
    #[must_use]
    pub fn arrivals(&self, largest: u64) -> Option<Arrivals> {
        self.arrivals.below(largest)
    }

    /// On the path `bytes` were newly acknowledged, and `lost` segments taken for lost.
    pub fn on_delivery(&mut self, path: PathIndex, now: Instant, bytes: u64, lost: u64) {
        if let Some(account) = self.paths.get_mut(path.index())
            && bytes + lost > 0
        {
            account.acknowledged += bytes;
            account.lost += lost;
            account.meter.on_delivery(now, bytes, lost);
        }
    }

    /// A handshake or an acknowledgement saw this round trip.
    pub fn on_round_trip(&mut self, path: PathIndex, rtt: Duration) {
        if let Some(account) = self.paths.get_mut(path.index()) {
            account.rtt = rtt;
            let usual = account.usual_rtt().as_nanos();
            let sample = rtt.as_nanos();
            account.usual_rtt = Duration::from_nanos(if sample < usual {
                usual - (usual - sample) / 2
            } else {
                usual + (sample - usual) / 32
            });
            if account.base_rtt.is_zero() || rtt < account.base_rtt {
                account.base_rtt = rtt;
            }
        }
    }

    /// The account of a path, to be moved by what connections do.
    pub fn path_mut(&mut self, path: PathIndex) -> Option<&mut PathState> {
        self.paths.get_mut(path.index())
    }
}
