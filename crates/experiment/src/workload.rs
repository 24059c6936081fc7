//! The keys of `[workload]`: the data that hosts send.

mod check;
mod frames;
mod hosts;
mod page;
mod sizes;

use crate::all_reduce::Algorithm;
use foundation::{Duration, Frequency, Probability, Rate, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use hosts::{HOST_KEYS, Hosts, Pattern};
pub use page::{Exchanges, PageObjects};
pub use sizes::{PARETO_MAX, PARETO_MIN, PARETO_SHAPE, Sizes};

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// One file of `size` per flow.
    File,
    /// Unlimited data, or data at `rate`, for `duration`.
    Bulk,
    /// Random on periods at `rate` and off periods, for `duration`.
    OnOff,
    /// Alternating requests and responses.
    RequestResponse,
    /// Flows that start as a Poisson process, each with a file, for `duration`. The trial then goes on until all flows have
    /// completed, at most for as long again; its measured time includes this.
    Arrivals,
    /// All-reduce: each of several hosts has a vector of `size`, and receives the sum of all.
    AllReduce,
    /// A web page: `objects` with dependencies, requested over one connection.
    WebPage,
    /// Real-time frames of `size` at `frame_rate` for `duration`, each due `deadline` after it was sent.
    Frames,
}

impl WorkloadKind {
    /// Returns the name in study files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Bulk => "bulk",
            Self::OnOff => "on-off",
            Self::RequestResponse => "request-response",
            Self::Arrivals => "arrivals",
            Self::AllReduce => "all-reduce",
            Self::WebPage => "web-page",
            Self::Frames => "frames",
        }
    }

    /// Returns whether it runs for a given duration instead of until completion.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        matches!(self, Self::Bulk | Self::OnOff | Self::Arrivals | Self::Frames)
    }
}

/// The sections in which a key applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// [workload] and the workload of [[traffic]].
    Anywhere,
    /// [workload] only, since it controls the measurement.
    Measured,
}

use Place::{Anywhere, Measured};
use WorkloadKind::{AllReduce, Arrivals, Bulk, File, Frames, OnOff, RequestResponse, WebPage};

const ALL: &[WorkloadKind] = &[
    File,
    Bulk,
    OnOff,
    RequestResponse,
    Arrivals,
    AllReduce,
    WebPage,
    Frames,
];
const PAIRED: &[WorkloadKind] = &[File, Bulk, OnOff, RequestResponse, Arrivals, WebPage, Frames];
const PLANNED: &[WorkloadKind] = &[File, Bulk, OnOff, RequestResponse, WebPage, Frames];
const TIMED: &[WorkloadKind] = &[Bulk, OnOff, Arrivals, Frames];

/// Declares the keys, each with the kinds and sections in which it applies; elsewhere it is an error.
macro_rules! keys {
    ($($(#[$help:meta])* $key:ident: $value:ty, $kinds:expr, $place:ident;)+) => {
        omit_unset! {
            /// The workload. The kind determines which keys apply.
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct WorkloadConfig {
                /// Kind: file, bulk, on-off, request-response, arrivals, all-reduce, web-page or frames.
                pub kind: WorkloadKind,
                $($(#[$help])* pub $key: Option<$value>,)+
            }
        }

        /// Every key except `kind`, and the kinds and sections in which it applies.
        const READ: &[(&str, &[WorkloadKind], Place)] = &[$((stringify!($key), $kinds, $place),)+];
    };
}

keys! {
    /// file, arrivals: flow size, e.g. "2MB"; request-response: size of both requests and responses; all-reduce: size of the vector, at least a byte for each host; frames: size of each frame, at most "10MB". From "1B" to 1 PB. Excludes request_size and response_size.
    size: Size, &[File, RequestResponse, Arrivals, AllReduce, Frames], Anywhere;
    /// arrivals: distribution of flow sizes; default "fixed" (every flow has size).
    sizes: Sizes, &[Arrivals], Anywhere;
    /// arrivals: maximum flow size, e.g. "10MB"; larger sizes are drawn again; default: none, "100MB" for sizes = "bounded-pareto".
    largest: Size, &[Arrivals], Anywhere;
    /// arrivals with sizes = "bounded-pareto": shape of the distribution, from 0.01 to 100; default 1.1.
    #[schemars(range(min = 0.01, max = 100.0))]
    shape: f64, &[Arrivals], Anywhere;
    /// arrivals with sizes = "table": CSV file; each line has a size in bytes and the share of flows of at most that size.
    sizes_file: String, &[Arrivals], Anywhere;
    /// file, arrivals: upper bounds of size classes, e.g. ["100kB", "300kB"], from 1 to 15; each class has separate metrics `fct_mean_s@G0`, `fct_mean_s@G1`, …; default: none.
    classes: Vec<Size>, &[File, Arrivals], Measured;
    /// arrivals: mean rate of flow starts over all pairs of hosts, e.g. "1000/s". Excludes load.
    arrivals: Frequency, &[Arrivals], Anywhere;
    /// arrivals: mean payload that the flows offer to their most loaded link, as a share of its rate, above 0 and at most 1, e.g. "80%"; flows with several paths count on each of them in equal parts. Excludes arrivals.
    load: Probability, &[Arrivals], Anywhere;
    /// bulk, on-off, arrivals, frames: duration from the start of the trial, e.g. "30s", at most 1 day; in [[traffic]] default: that of the trial. Arrivals end then, and the trial when all flows have completed, or after twice the duration.
    duration: Duration, TIMED, Anywhere;
    /// bulk, on-off, arrivals, frames: initial time without measurement, shorter than duration; not in [[traffic]]; default "0s".
    warm_up: Duration, TIMED, Measured;
    /// on-off: rate of on periods; bulk: rate limit; e.g. "2Mbit/s"; default for bulk: unlimited.
    rate: Rate, &[Bulk, OnOff], Anywhere;
    /// on-off: mean length of on periods, exponentially distributed; default "1s".
    on: Duration, &[OnOff], Anywhere;
    /// on-off: mean length of off periods, exponentially distributed; default "1s".
    off: Duration, &[OnOff], Anywhere;
    /// request-response: requests of each flow, or of each of its streams, at least 1; default 1.
    #[schemars(range(min = 1))]
    requests: u32, &[RequestResponse], Anywhere;
    /// request-response: request size; one datagram over udp and icmp (at most "65507B"); web-page: size of each request with its headers; default "100B".
    request_size: Size, &[RequestResponse, WebPage], Anywhere;
    /// request-response: response size; default "10kB".
    response_size: Size, &[RequestResponse], Anywhere;
    /// request-response: pause between a response and the next request; all-reduce: pause between two of them, such as the time of a computation; default "0s".
    think: Duration, &[RequestResponse, AllReduce], Anywhere;
    /// all-reduce: its steps, ring or halving-doubling; default "ring".
    algorithm: Algorithm, &[AllReduce], Anywhere;
    /// all-reduce: number of all-reduces one after the other, from 1 to 1000000, and at most 1 PB in all; the next one starts when all hosts have the result, after think; default 1.
    #[schemars(range(min = 1))]
    rounds: u32, &[AllReduce], Anywhere;
    /// request-response over TCP, Multipath TCP, QUIC and ARQ protocols: requests in progress at once, from 1 to 1000, each followed by the next one after think; over QUIC each on a stream of its own, otherwise in order on the connection; at most 1000000 requests in all; excludes reconnect and barrier; default 1.
    #[schemars(range(min = 1, max = 1000))]
    streams: u32, &[RequestResponse], Anywhere;
    /// web-page: its objects in groups, from 1 to 1000 groups with 10000 objects, e.g. [{ size = "30kB" }, { size = "20kB", count = 8, after = 0 }]; over QUIC each object on a stream of its own, otherwise in the order of the requests on the connection.
    objects: Vec<PageObjects>, &[WebPage], Anywhere;
    /// frames: frames per second, from "0.1/s" to "100000/s" and at most 1000000 in all; default "30/s".
    frame_rate: Frequency, &[Frames], Anywhere;
    /// frames: time from sending a frame until its last byte must have arrived, from "1ms" to "60s"; default "150ms" (ITU-T G.114). Metrics frame_in_time_share and frame_delay_p50_s, frame_delay_p95_s and frame_delay_p99_s.
    deadline: Duration, &[Frames], Measured;
    /// request-response: separate connection (udp, icmp: socket) for each request; default false.
    reconnect: bool, &[RequestResponse], Anywhere;
    /// request-response over TCP, Multipath TCP, QUIC and ARQ protocols: each request waits until all flows have the response to the one before, so that all flows send together (a barrier); excludes reconnect; default false. Metrics round_mean_s, round_p50_s and round_p99_s.
    barrier: bool, &[RequestResponse], Measured;
    /// Flows from each sender to its receiver, from 1 to 100000; not for arrivals; default 1.
    #[schemars(range(min = 1))]
    flows: u32, PLANNED, Anywhere;
    /// Separate flows on each path between two hosts; default false.
    each_path: bool, PAIRED, Anywhere;
    /// Start of the first flow; default "0s".
    start: Duration, ALL, Anywhere;
    /// Interval between the starts of successive flows; not for arrivals; default "0s".
    stagger: Duration, PLANNED, Anywhere;
    /// Maximum of a random delay of each flow's start, which desynchronizes flows; not for arrivals; default "0s".
    start_jitter: Duration, PLANNED, Anywhere;
    /// all-reduce: its hosts in the order of the ring, by default all. Otherwise the senders: a host of the topology, or a list; * stands for any characters, e.g. "leaf1-*"; requires to or pattern; default: the senders of the topology, with pattern all hosts.
    from: Hosts, ALL, Anywhere;
    /// Receivers, as from; requires from or pattern; default: the receivers of the topology, with pattern all hosts.
    to: Hosts, PAIRED, Anywhere;
    /// Receivers of each sender: all-to-all (every receiver), random (one, drawn in each trial) or permutation (one, drawn in each trial, each receiver at most once); default: all-to-all for from and to, else the pairs of the topology.
    pattern: Pattern, PAIRED, Anywhere;
    /// Priority of the packets of both directions, from 0 (best effort) to 7 (most urgent), which queues of kind prio read; default 0.
    #[schemars(range(max = 7))]
    priority: u8, ALL, Anywhere;
    /// bulk, on-off: interval of goodput samples for convergence_s, at least "1ms"; not in [[traffic]]; default "500ms".
    sample: Duration, &[Bulk, OnOff], Measured;
}

impl WorkloadConfig {
    /// Returns the number of flows per pair of hosts.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.flows.unwrap_or(1)
    }

    /// Returns the priority of packets.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or_default()
    }

    /// Returns the bytes of a request and of its response.
    #[must_use]
    pub fn exchange(&self) -> (u64, u64) {
        let bytes = |size: Option<Size>, default| size.or(self.size).map_or(default, Size::bytes);
        (bytes(self.request_size, 100), bytes(self.response_size, 10_000))
    }

    /// Returns the size class of a size, from 0; bounds belong to the class below them.
    #[must_use]
    pub fn class_of(&self, size: u64) -> Option<usize> {
        let bounds = self.classes.as_ref()?;
        Some(bounds.partition_point(|bound| bound.bytes() < size))
    }

    /// Returns the bytes of an all-reduce, and how often it is repeated.
    pub(crate) fn all_reduces(&self) -> (u64, u64) {
        let bytes = self.size.map_or(0, Size::bytes);
        (bytes, self.rounds.unwrap_or(1).into())
    }

    /// Returns the frames per second.
    #[must_use]
    pub fn frame_rate(&self) -> f64 {
        self.frame_rate.map_or(30.0, Frequency::per_second)
    }

    /// Returns the time from sending a frame until it must have arrived.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.unwrap_or(Duration::from_millis(150))
    }

    /// Returns the interval of goodput samples.
    #[must_use]
    pub fn sample(&self) -> Duration {
        self.sample.unwrap_or(Duration::from_millis(500))
    }
}
