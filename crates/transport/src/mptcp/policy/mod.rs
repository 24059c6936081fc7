//! Path policies: which paths a connection uses, and when its subflows start.
//!
//! A policy is one file with a struct of settings that implements [`PolicySettings`] and a struct that implements
//! [`PathPolicy`], and a line in `kinds!` below (beside its `mod`). The same code serves simulation and the path manager
//! of a kernel's connections.

mod all;
mod choice;
mod completion_time;
mod delayed;
mod foresight;
mod freeway;
mod fsfs;
mod in_kernel;
mod mmptcp;
mod planner;
mod single;

use foundation::{Duration, Generator, Problem};

use super::host::HostPaths;
use super::kinds::kinds;
use super::segment::PathIndex;

pub use choice::{PathChoice, RttSource};

/// When a subflow is to be opened, counted from the moment from which on the connection can join subflows to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinTime {
    /// At once.
    Immediately,
    /// When so many bytes of data have been acknowledged.
    AfterBytes(u64),
    /// When so much time has passed.
    AfterTime(Duration),
}

/// A subflow beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Its path.
    pub path: PathIndex,
    /// When it is opened.
    pub when: JoinTime,
    /// Use it only where no other can be used.
    pub backup: bool,
}

impl Join {
    /// A subflow that is opened as soon as it can be.
    #[must_use]
    pub const fn immediately(path: PathIndex) -> Self {
        Self {
            path,
            when: JoinTime::Immediately,
            backup: false,
        }
    }
}

/// How a connection begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionPlan {
    /// The path of the first subflow.
    pub first: PathIndex,
    /// The other subflows, in the order in which they are opened.
    pub joins: Vec<Join>,
    /// Bytes that each path is expected to carry of this connection: they stand in the host's account
    /// ([`PathState::unfinished`](super::host::PathState)) from the beginning. Paths that are not named carry what is
    /// given to them.
    pub expected: Vec<(PathIndex, u64)>,
    /// Whether the account counts the connection among the short ones.
    pub short: bool,
    /// The first subflow's segments go over several paths.
    pub scatter: Option<Scatter>,
    /// The end of the data is sent twice where its acknowledgement is late.
    pub tail: Option<Tail>,
    /// Where the handshake goes next when its answer is late, in this order; the last one keeps TCP's own timer.
    pub attempts: Vec<HandshakeAttempt>,
}

/// A further path for the handshake: the connection is opened anew there once the attempt before it has waited in vain
/// (as RFC 8305 does among addresses, and RobE_TIMER of draft-amend-tcpm-mptcp-robe among paths).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeAttempt {
    /// Its path.
    pub path: PathIndex,
    /// How long the attempt before it waits.
    pub after: Duration,
}

/// A subflow whose segments leave on any of several paths, each by chance: one window, one sequence of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// The paths.
    pub paths: Vec<PathIndex>,
    /// Bytes after which it takes no more data, as soon as another subflow can.
    pub bytes: u64,
    /// Duplicate acknowledgements that are taken for reordering.
    pub duplicates: u32,
}

/// What protects the end of the data: where no acknowledgement came for `after` hundredths of the smoothed round-trip
/// time since all data left, the first `segments` that are not acknowledged leave on another path too, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Segments at most.
    pub segments: u32,
    /// Hundredths of the smoothed round-trip time of the subflow that has the oldest of them.
    pub after: u32,
    /// Where there is no other subflow: the path of one that is opened for it.
    pub path: Option<PathIndex>,
}

impl ConnectionPlan {
    /// The first of these paths at once, and the others as soon as they can be joined.
    ///
    /// # Panics
    /// Where there are none.
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

/// How the TCP of a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartParameters {
    /// The first congestion window, in segments.
    pub initial_window: u32,
    /// The least retransmission timeout.
    pub min_rto: Duration,
    /// The timeout of a handshake.
    pub initial_rto: Duration,
}

impl Default for StartParameters {
    /// Linux's.
    fn default() -> Self {
        Self {
            initial_window: 10,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
        }
    }
}

/// How far a connection has come, for policies that decide as it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Bytes of which a DATA_ACK was seen.
    pub acknowledged: u64,
    /// Bytes written and not acknowledged.
    pub backlog: u64,
    /// Time since the connection was opened.
    pub age: Duration,
    /// The paths that have a subflow, or will have one.
    pub paths: &'a [PathIndex],
}

/// Which paths a connection uses.
pub trait PathPolicy: std::fmt::Debug + Send {
    /// How the connection's TCP begins, told before it is opened; Linux's way where it is not told.
    fn set_start_parameters(&mut self, _beginning: &StartParameters) {}
    /// A connection is opened. `size`: the bytes that it will send, where they are known.
    fn open(&mut self, size: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan;
    /// Whether [`progress`](Self::progress) is to be asked whenever data was acknowledged.
    fn follows_progress(&self) -> bool {
        false
    }
    /// Subflows to be opened now, beside those of the opening.
    fn progress(&mut self, _progress: &Progress<'_>, _host: &HostPaths) -> Vec<Join> {
        Vec::new()
    }
}

/// The settings of a kind of policy.
pub trait PolicySettings {
    /// What is out of range, by key; empty where all is well.
    fn validate(&self) -> Vec<Problem> {
        Vec::new()
    }
    /// What was asked for and cannot be had where a kernel keeps the connection and is given orders about whole subflows
    /// alone, by key; empty where all of it can.
    fn beyond_linux(&self) -> Vec<Problem> {
        Vec::new()
    }
    /// The policy of one connection.
    fn build(&self) -> Box<dyn PathPolicy>;
}

kinds! {
    /// Which paths a connection uses: a kind such as `"all"`, or a table with its kind and keys.
    PolicyConfig, Table, PolicySettings, Box<dyn PathPolicy>, "Policy";
    /// All paths, the first chosen blindly unless told otherwise.
    "all" => all::All,
    /// One path.
    "single" => single::Single,
    /// The more paths the larger the flow, those of the least round-trip times (MPTCP-FSFS).
    "fsfs" => fsfs::Fsfs,
    /// One path at first; the others join after so many bytes, or so much time.
    "delayed" => delayed::Delayed,
    /// Segments over all paths at random under one window at first, then a subflow on each path (MMPTCP, INFOCOM 2016).
    "mmptcp" => mmptcp::Mmptcp,
    /// Some paths of low latency for short flows, the others for long ones (Freeway, TNSM 2016).
    "freeway" => freeway::Freeway,
    /// The paths on which a flow is expected to be done first, by an account of all of the host's flows (the project's own).
    "foresight" => foresight::Foresight,
    /// All paths, beginning with the first: Linux's own path manager, which in world netns decides itself.
    "in-kernel" => in_kernel::InKernel,
}

impl PolicyConfig {
    /// What of it Linux's MPTCP cannot do, by key: see [`PolicySettings::beyond_linux`].
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
