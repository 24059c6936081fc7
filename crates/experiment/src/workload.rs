//! The keys of `[workload]`: the data that hosts send.

mod check;

use foundation::{Duration, Frequency, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sizes::Sizes;

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
    /// Flows that start as a Poisson process, each with a file, for `duration`.
    Arrivals,
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
        }
    }

    /// Returns whether it runs for a given duration instead of until completion.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        matches!(self, Self::Bulk | Self::OnOff | Self::Arrivals)
    }
}

/// The workload. The kind determines which keys apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadConfig {
    /// Kind: file, bulk, on-off, request-response or arrivals.
    pub kind: WorkloadKind,
    /// file, arrivals: flow size, e.g. "2MB"; request-response: size of both requests and responses. From "1B" to 1 PB. Excludes request_size and response_size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// arrivals: distribution of flow sizes; default "fixed" (every flow has size).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// arrivals: maximum flow size, e.g. "10MB"; larger sizes are drawn again; default: none, "100MB" for sizes = "bounded-pareto".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Size>,
    /// arrivals with sizes = "bounded-pareto": shape of the distribution, from 0.01 to 100; default 1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 100.0))]
    pub shape: Option<f64>,
    /// arrivals with sizes = "table": CSV file; each line has a size in bytes and the share of flows of at most that size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_file: Option<String>,
    /// file, arrivals: upper bounds of size classes, e.g. ["100kB", "300kB"], from 1 to 15; each class has separate metrics `fct_mean_s@G0`, `fct_mean_s@G1`, …; default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<Size>>,
    /// arrivals: mean rate of flow starts over all pairs of hosts, e.g. "1000/s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Frequency>,
    /// bulk, on-off, arrivals: duration from the start of the trial, e.g. "30s", at most 1 day; in [[traffic]] default: that of the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// bulk, on-off, arrivals: initial time without measurement, shorter than duration; not in [[traffic]]; default "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Duration>,
    /// on-off: rate of on periods; bulk: rate limit; e.g. "2Mbit/s"; default for bulk: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// on-off: mean length of on periods, exponentially distributed; default "1s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Duration>,
    /// on-off: mean length of off periods, exponentially distributed; default "1s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Duration>,
    /// request-response: requests per flow, at least 1; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u32>,
    /// request-response: request size; one datagram over udp and icmp (at most "65507B"); default "100B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_size: Option<Size>,
    /// request-response: response size; default "10kB".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_size: Option<Size>,
    /// request-response: pause between a response and the next request; default "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Duration>,
    /// request-response: separate connection (udp, icmp: socket) for each request; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<bool>,
    /// Flows from each sender to its receiver, from 1 to 100000; not for arrivals; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub flows: Option<u32>,
    /// Separate flows on each path between two hosts; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_path: Option<bool>,
    /// Start of the first flow; default "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Duration>,
    /// Interval between the starts of successive flows; not for arrivals; default "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stagger: Option<Duration>,
    /// Maximum of a random delay of each flow's start, which desynchronizes flows; not for arrivals; default "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_jitter: Option<Duration>,
    /// Sender, a host of the topology; requires to; default: the senders of the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Receiver, a host of the topology; requires from; default: the receivers of the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// bulk, on-off: interval of goodput samples for convergence_s, at least "1ms"; not in [[traffic]]; default "500ms".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Duration>,
}

impl WorkloadConfig {
    /// Returns the number of flows per pair of hosts.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.flows.unwrap_or(1)
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

    /// Returns the interval of goodput samples.
    #[must_use]
    pub fn sample(&self) -> Duration {
        self.sample.unwrap_or(Duration::from_millis(500))
    }
}
