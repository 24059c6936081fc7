//! What the hosts do: the vocabulary of `[workload]`.

mod check;

use foundation::{Duration, Frequency, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sizes::Sizes;

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// One file of `size` a flow.
    File,
    /// As much as the transport takes, for `duration`.
    Bulk,
    /// Times of sending at `rate` and of silence, of random length, for `duration`.
    OnOff,
    /// Requests and responses that take turns.
    RequestResponse,
    /// Flows that begin at random (a Poisson process), each with a file, for `duration`.
    Arrivals,
}

impl WorkloadKind {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Bulk => "bulk",
            Self::OnOff => "on-off",
            Self::RequestResponse => "request-response",
            Self::Arrivals => "arrivals",
        }
    }

    /// Whether it goes on for a time that is given, rather than until something is done.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        matches!(self, Self::Bulk | Self::OnOff | Self::Arrivals)
    }
}

/// What is sent. Which keys apply depends on the kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadConfig {
    /// The kind: file, bulk, on-off, request-response or arrivals.
    pub kind: WorkloadKind,
    /// file, arrivals: size of a flow, e.g. "2MB"; request-response: size of requests and responses alike, in the place of request_size and response_size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// arrivals: how sizes are distributed. Default: "fixed" (every flow has `size`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// arrivals: larger sizes are drawn again. Default: none, but "100MB" for sizes = "bounded-pareto".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Size>,
    /// arrivals with sizes = "bounded-pareto": its shape. Default: 1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 100.0))]
    pub shape: Option<f64>,
    /// arrivals with sizes = "table": a CSV file with a size in bytes and the share of flows of at most that size on each line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_file: Option<String>,
    /// file, arrivals: bounds of classes of size, e.g. ["100kB", "300kB"]: metrics are also told of each, as `fct_mean_s@G0`, `fct_mean_s@G1`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<Size>>,
    /// arrivals: flows that begin a second on average, in all, e.g. "1000/s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Frequency>,
    /// bulk, on-off, arrivals: how long it goes on from the trial's beginning, e.g. "30s". Optional in [[traffic]], which else lasts as long as the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// bulk, on-off, arrivals: time at the beginning that is not measured; not in [[traffic]]. Default: "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Duration>,
    /// on-off: rate while on; bulk: no faster than this, e.g. "2Mbit/s". Default for bulk: as fast as the transport takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// on-off: mean time of sending, exponentially distributed. Default: "1s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Duration>,
    /// on-off: mean time of silence, exponentially distributed. Default: "1s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Duration>,
    /// request-response: how many a flow. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u32>,
    /// request-response: size of a request; over udp and icmp it is one datagram. Default: "100B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_size: Option<Size>,
    /// request-response: size of a response. Default: "10kB".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_size: Option<Size>,
    /// request-response: pause between a response and the next request. Default: "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Duration>,
    /// request-response: a connection (udp, icmp: a socket) of its own for each request. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<bool>,
    /// Flows from each sender to its receiver (not for arrivals). Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub flows: Option<u32>,
    /// Whether each path between two hosts has flows of its own, as many as flows says. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_path: Option<bool>,
    /// When the first flow begins. Default: "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Duration>,
    /// How much later each next flow begins (not for arrivals). Default: "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stagger: Option<Duration>,
    /// Each flow begins up to so much later, at random, so that flows do not march in step (not for arrivals). Default: "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_jitter: Option<Duration>,
    /// The host that sends. Default: the senders of the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The host that receives. Default: the receivers of the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// bulk, on-off: how often goodput is sampled, to see when flows have converged. Default: "500ms".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Duration>,
}

impl WorkloadConfig {
    /// Flows of a pair of hosts.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.flows.unwrap_or(1)
    }

    /// Bytes of a request and of its response.
    #[must_use]
    pub fn exchange(&self) -> (u64, u64) {
        let bytes = |size: Option<Size>, default| size.or(self.size).map_or(default, Size::bytes);
        (bytes(self.request_size, 100), bytes(self.response_size, 10_000))
    }

    /// The class that a size is in, from 0: its bounds belong to the class below them.
    #[must_use]
    pub fn class_of(&self, size: u64) -> Option<usize> {
        let bounds = self.classes.as_ref()?;
        Some(bounds.partition_point(|bound| bound.bytes() < size))
    }

    /// How often goodput is sampled.
    #[must_use]
    pub fn sample(&self) -> Duration {
        self.sample.unwrap_or(Duration::from_millis(500))
    }
}
