//! Path policies: the paths of a connection and the start of its subflows.
//!
//! A policy is one file with a settings struct that implements [`PolicySettings`] and a type that implements
//! [`PathPolicy`], and a line in `kinds!` below. Simulation and the kernel's path manager use the same
//! policies.

mod choice;

use foundation::extension::Configured;
use foundation::{Duration, Generator, Problem};

use super::host::HostPaths;
use super::kinds::kinds;
use super::segment::PathIndex;

pub use choice::{PathChoice, RttSource};

/// When to open a subflow, relative to the moment when the connection can have further subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinTime {
    /// At that moment.
    Immediately,
    /// After this many acknowledged bytes.
    AfterBytes(u64),
    /// After this time.
    AfterTime(Duration),
}

/// A planned further subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Path of the subflow.
    pub path: PathIndex,
    /// When to open it.
    pub when: JoinTime,
    /// Whether it is a backup.
    pub backup: bool,
}

impl Join {
    /// Returns a subflow to open as soon as possible.
    #[must_use]
    pub const fn immediately(path: PathIndex) -> Self {
        Self {
            path,
            when: JoinTime::Immediately,
            backup: false,
        }
    }
}

/// Plan of a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionPlan {
    /// Path of the first subflow.
    pub first: PathIndex,
    /// Further subflows, in the order of their opening.
    pub joins: Vec<Join>,
    /// Expected bytes of this connection on each path, added to [`PathState::unfinished`](super::host::PathState) at
    /// once. For other paths only assigned bytes count.
    pub expected: Vec<(PathIndex, u64)>,
    /// Whether its bytes count as those of a short connection.
    pub short: bool,
    /// Packet scatter of the first subflow.
    pub scatter: Option<Scatter>,
    /// Tail protection.
    pub tail: Option<Tail>,
    /// Further attempts of the handshake, in order; the last one relies on TCP's timer.
    pub attempts: Vec<HandshakeAttempt>,
}

/// Handshake attempt on a further path, after the earlier one was not answered in time (as RFC 8305 does among
/// addresses, and RobE_TIMER of draft-amend-tcpm-mptcp-robe among paths).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeAttempt {
    /// Path of the attempt.
    pub path: PathIndex,
    /// Time after the start of the earlier attempt.
    pub after: Duration,
}

/// Packet scatter: each segment of one subflow takes a random path, with one window and one sequence space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// Paths.
    pub paths: Vec<PathIndex>,
    /// Bytes after which the subflow accepts no more data, once another one is usable.
    pub bytes: u64,
    /// Duplicate ACKs that count as reordering.
    pub duplicates: u32,
}

/// Tail protection: if no DATA_ACK arrives within `after` hundredths of the SRTT since the last data was sent, the
/// first `segments` unacknowledged segments are retransmitted once on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Maximum number of segments.
    pub segments: u32,
    /// Delay in hundredths of the SRTT of the subflow that carries the oldest of them.
    pub after: u32,
    /// Path of a subflow to open if there is no other one.
    pub path: Option<PathIndex>,
}

impl ConnectionPlan {
    /// Plans the first of these paths at once and the others as soon as possible.
    ///
    /// # Panics
    /// If there are no paths.
    #[must_use]
    pub fn over(paths: impl IntoIterator<Item = PathIndex>) -> Self {
        let mut paths = paths.into_iter();
        Self {
            first: paths.next().expect("a connection has a path"),
            joins: paths.map(Join::immediately).collect(),
            expected: Vec::new(),
            short: false,
            scatter: None,
            tail: None,
            attempts: Vec::new(),
        }
    }
}

/// TCP parameters of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartParameters {
    /// Initial window in segments.
    pub initial_window: u32,
    /// Minimum RTO.
    pub min_rto: Duration,
    /// Initial RTO, which applies to the handshake.
    pub initial_rto: Duration,
}

impl Default for StartParameters {
    /// Linux's values.
    fn default() -> Self {
        Self {
            initial_window: 10,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
        }
    }
}

/// Progress of a connection, for policies that add paths later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Bytes covered by DATA_ACKs.
    pub acknowledged: u64,
    /// Bytes written and not acknowledged.
    pub backlog: u64,
    /// Time since the connection was opened.
    pub age: Duration,
    /// Paths with an open or planned subflow.
    pub paths: &'a [PathIndex],
}

/// Path policy of one connection.
pub trait PathPolicy: std::fmt::Debug + Send {
    /// Receives the TCP parameters before [`open`](Self::open); Linux's values otherwise.
    fn set_start_parameters(&mut self, _beginning: &StartParameters) {}
    /// Plans a new connection that will send `size` bytes, if known.
    fn open(&mut self, size: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan;
    /// Returns whether [`progress`](Self::progress) must be called after each acknowledgement of data.
    fn follows_progress(&self) -> bool {
        false
    }
    /// Returns further subflows to open.
    fn progress(&mut self, _progress: &Progress<'_>, _host: &HostPaths) -> Vec<Join> {
        Vec::new()
    }
}

/// Settings of a kind of policy.
pub trait PolicySettings: Send + Sync {
    /// Returns the keys that are out of range.
    fn validate(&self) -> Vec<Problem> {
        Vec::new()
    }
    /// Returns the keys that Linux's MPTCP does not support: its kernel owns the connection, and a path manager
    /// controls whole subflows only.
    fn beyond_linux(&self) -> Vec<Problem> {
        Vec::new()
    }
    /// Builds the policy of one connection.
    fn build(&self) -> Box<dyn PathPolicy>;
}

foundation::role!(PolicySettings, "path policy", "nearest.py:Nearest");

impl PolicySettings for Configured<dyn PolicySettings> {
    fn validate(&self) -> Vec<Problem> {
        Self::validate(self)
    }

    fn beyond_linux(&self) -> Vec<Problem> {
        self.settings().beyond_linux()
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        self.settings().build()
    }
}

kinds! {
    /// Path policy: a kind such as `"all"`, or a table with its kind and keys.
    pub enum PolicyConfig: PolicySettings, Box<dyn PathPolicy>, "Policy", &[];
    "all" => All in all,
    "single" => Single in single,
    "fsfs" => Fsfs in fsfs,
    "delayed" => Delayed in delayed,
    "mmptcp" => Mmptcp in mmptcp,
    "freeway" => Freeway in freeway,
    "foresight" => Foresight in foresight,
    "in-kernel" => InKernel in in_kernel,
}

impl PolicyConfig {
    /// Returns the keys that Linux's MPTCP does not support ([`PolicySettings::beyond_linux`]).
    #[must_use]
    pub fn beyond_linux(&self) -> Vec<Problem> {
        self.settings().beyond_linux()
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self::All(All::default())
    }
}
