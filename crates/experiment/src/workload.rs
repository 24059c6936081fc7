//! What the hosts do: the vocabulary of `[workload]`.

use foundation::{Duration, Frequency, Problem, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sizes::{PARETO_LARGEST, PARETO_LEAST, Sizes};

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
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

impl Kind {
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
    pub kind: Kind,
    /// file, arrivals: size of a flow, e.g. "2MB".
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
    /// request-response: size of a request. Default: "100B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_size: Option<Size>,
    /// request-response: size of a response. Default: "10kB".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_size: Option<Size>,
    /// request-response: pause between a response and the next request. Default: "0s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Duration>,
    /// request-response: a connection of its own for each request. Default: false.
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

/// A petabyte: more would overflow nothing, but no trial of it would end.
const MAX_SIZE: u64 = 1_000_000_000_000_000;
/// The most flows of a pair of hosts.
const MAX_FLOWS: u32 = 100_000;
/// The most bounds between classes of size.
const MOST_BOUNDS: usize = 15;
/// A day: more is a slip of the pen.
const MAX_TIME: Duration = Duration::from_secs(86_400);
/// The finest sampling.
const MIN_SAMPLE: Duration = Duration::from_millis(1);

impl WorkloadConfig {
    /// Everything that is wrong with the measured workload.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = self.check();
        if self.kind.is_timed() && self.duration.is_none() {
            problems.push(missing("duration", self.kind));
        }
        if let (Some(warm_up), Some(duration)) = (self.warm_up, self.duration)
            && warm_up >= duration
        {
            problems.push(Problem::new(
                "warm_up",
                format!("\"{warm_up}\" leaves nothing to measure: it must be shorter than duration = \"{duration}\""),
            ));
        }
        problems
    }

    /// Everything that is wrong with the workload of background traffic, which may do without a duration.
    #[must_use]
    pub fn validate_traffic(&self) -> Vec<Problem> {
        let mut problems = self.check();
        for (key, is_given) in [
            ("warm_up", self.warm_up.is_some()),
            ("sample", self.sample.is_some()),
        ] {
            if is_given {
                problems.push(Problem::new(
                    key,
                    "traffic has no such key: [workload] says what is measured",
                ));
            }
        }
        if self.kind == Kind::Bulk && self.duration.is_some() && self.rate.is_none() {
            let message =
                "bulk traffic without a rate lasts as long as the trial: leave it out, or write a rate";
            problems.push(Problem::new("duration", message));
        }
        problems
    }

    /// What is wrong with a workload wherever it stands.
    fn check(&self) -> Vec<Problem> {
        use Kind::{Arrivals, Bulk, File, OnOff, RequestResponse};
        let mut problems = Vec::new();
        let given: [(&str, bool, &[Kind]); 21] = [
            ("size", self.size.is_some(), &[File, Arrivals]),
            ("sizes", self.sizes.is_some(), &[Arrivals]),
            ("largest", self.largest.is_some(), &[Arrivals]),
            ("shape", self.shape.is_some(), &[Arrivals]),
            ("sizes_file", self.sizes_file.is_some(), &[Arrivals]),
            ("classes", self.classes.is_some(), &[File, Arrivals]),
            ("arrivals", self.arrivals.is_some(), &[Arrivals]),
            ("duration", self.duration.is_some(), &[Bulk, OnOff, Arrivals]),
            ("warm_up", self.warm_up.is_some(), &[Bulk, OnOff, Arrivals]),
            ("rate", self.rate.is_some(), &[Bulk, OnOff]),
            ("on", self.on.is_some(), &[OnOff]),
            ("off", self.off.is_some(), &[OnOff]),
            ("requests", self.requests.is_some(), &[RequestResponse]),
            ("request_size", self.request_size.is_some(), &[RequestResponse]),
            ("response_size", self.response_size.is_some(), &[RequestResponse]),
            ("think", self.think.is_some(), &[RequestResponse]),
            ("reconnect", self.reconnect.is_some(), &[RequestResponse]),
            (
                "flows",
                self.flows.is_some(),
                &[File, Bulk, OnOff, RequestResponse],
            ),
            (
                "stagger",
                self.stagger.is_some(),
                &[File, Bulk, OnOff, RequestResponse],
            ),
            (
                "start_jitter",
                self.start_jitter.is_some(),
                &[File, Bulk, OnOff, RequestResponse],
            ),
            ("sample", self.sample.is_some(), &[Bulk, OnOff]),
        ];
        for (key, is_given, kinds) in given {
            if is_given && !kinds.contains(&self.kind) {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                problems.push(Problem::new(
                    key,
                    format!(
                        "a workload of kind {:?} has no such key (only {})",
                        self.kind.name(),
                        kinds.join(", ")
                    ),
                ));
            }
        }
        let sizes = self.sizes.unwrap_or_default();
        let needs_size = matches!(sizes, Sizes::Fixed | Sizes::Exponential);
        let required: &[(&str, bool)] = match self.kind {
            File => &[("size", self.size.is_none())],
            Arrivals => &[
                ("size", self.size.is_none() && needs_size),
                ("sizes_file", self.sizes_file.is_none() && sizes == Sizes::Table),
                ("arrivals", self.arrivals.is_none()),
            ],
            OnOff => &[("rate", self.rate.is_none())],
            Bulk | RequestResponse => &[],
        };
        for &(key, is_missing) in required {
            if is_missing {
                problems.push(missing(key, self.kind));
            }
        }
        self.check_ranges(&mut problems);
        if self.kind == Arrivals {
            self.check_sizes(sizes, &mut problems);
        }
        self.check_classes(&mut problems);
        problems
    }

    /// What does not go with the distribution of sizes.
    fn check_sizes(&self, sizes: Sizes, problems: &mut Vec<Problem>) {
        let given = [
            ("size", self.size.is_some(), sizes.takes_size()),
            ("largest", self.largest.is_some(), sizes != Sizes::Fixed),
            ("shape", self.shape.is_some(), sizes == Sizes::BoundedPareto),
            ("sizes_file", self.sizes_file.is_some(), sizes == Sizes::Table),
        ];
        for (key, is_given, is_read) in given {
            if is_given && !is_read {
                let message = format!("sizes = {:?} has no such key", sizes.name());
                problems.push(Problem::new(key, message));
            }
        }
        if let Some(shape) = self.shape
            && !(0.01..=100.0).contains(&shape)
        {
            problems.push(Problem::new(
                "shape",
                format!("{shape} is out of range: 0.01 to 100"),
            ));
        }
        let least = match sizes {
            Sizes::BoundedPareto => self.size.map_or(PARETO_LEAST, |size| size.bytes()),
            _ => 1,
        };
        let largest = match sizes {
            Sizes::BoundedPareto => Some(self.largest.map_or(PARETO_LARGEST, |largest| largest.bytes())),
            _ => self.largest.map(|largest| largest.bytes()),
        };
        if let Some(largest) = largest
            && largest <= least
        {
            let message = format!("\"{largest}B\" is out of range: above the least size, {least}B");
            problems.push(Problem::new("largest", message));
        }
    }

    fn check_classes(&self, problems: &mut Vec<Problem>) {
        let Some(classes) = &self.classes else { return };
        if !(1..=MOST_BOUNDS).contains(&classes.len()) {
            let message = format!("{} bounds are out of range: 1 to {MOST_BOUNDS}", classes.len());
            problems.push(Problem::new("classes", message));
        }
        if !classes.windows(2).all(|two| two[0] < two[1]) {
            problems.push(Problem::new(
                "classes",
                "each bound must be above the one before it",
            ));
        }
    }

    fn check_ranges(&self, problems: &mut Vec<Problem>) {
        let sizes = [
            ("size", self.size),
            ("request_size", self.request_size),
            ("response_size", self.response_size),
            ("largest", self.largest),
        ];
        for (key, size) in sizes {
            if let Some(size) = size
                && !(1..=MAX_SIZE).contains(&size.bytes())
            {
                problems.push(Problem::new(
                    key,
                    format!("\"{size}\" is out of range: 1B to {MAX_SIZE}B"),
                ));
            }
        }
        let times = [
            ("duration", self.duration, Duration::from_nanos(1)),
            ("warm_up", self.warm_up, Duration::ZERO),
            ("on", self.on, Duration::from_nanos(1)),
            ("off", self.off, Duration::ZERO),
            ("think", self.think, Duration::ZERO),
            ("start", self.start, Duration::ZERO),
            ("stagger", self.stagger, Duration::ZERO),
            ("start_jitter", self.start_jitter, Duration::ZERO),
            ("sample", self.sample, MIN_SAMPLE),
        ];
        for (key, time, least) in times {
            if let Some(time) = time
                && !(least..=MAX_TIME).contains(&time)
            {
                problems.push(Problem::new(
                    key,
                    format!("\"{time}\" is out of range: \"{least}\" to \"{MAX_TIME}\""),
                ));
            }
        }
        for (key, count, most) in [
            ("flows", self.flows, MAX_FLOWS),
            ("requests", self.requests, u32::MAX),
        ] {
            if let Some(count) = count
                && !(1..=most).contains(&count)
            {
                problems.push(Problem::new(key, format!("{count} is out of range: 1 to {most}")));
            }
        }
        if self.from.is_some() != self.to.is_some() {
            let (key, other) = if self.from.is_some() {
                ("from", "to")
            } else {
                ("to", "from")
            };
            problems.push(Problem::new(key, format!("it needs {other:?} beside it")));
        }
    }

    /// Flows of a pair of hosts.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.flows.unwrap_or(1)
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

fn missing(key: &str, kind: Kind) -> Problem {
    Problem::new(
        key,
        format!(
            "the key is missing: a workload of kind {:?} needs it",
            kind.name()
        ),
    )
}
