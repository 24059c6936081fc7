//! Validation of workloads: keys that do not apply, missing keys, and values out of range.

use foundation::{Duration, Probability, Problem};
use serde_json::{Map, Value};

use super::Place::Measured;
use super::WorkloadKind::{AllReduce, Arrivals, Bulk, File, Frames, OnOff, RequestResponse, WebPage};
use super::{PARETO_MAX, PARETO_MIN, READ, Sizes, WorkloadConfig, WorkloadKind};

/// A petabyte: no larger trial completes.
const MAX_SIZE: u64 = 1_000_000_000_000_000;
/// Limit of flows per pair of hosts.
const MAX_FLOWS: u32 = 100_000;
/// Highest priority.
const MAX_PRIORITY: u8 = 7;
/// Limit of repeated all-reduces.
const MAX_ROUNDS: u32 = 1_000_000;
/// Limit of bounds of size classes.
const MAX_BOUNDS: usize = 15;
/// A day: longer times are mistakes.
const MAX_TIME: Duration = Duration::from_secs(86_400);
/// Minimum sampling interval.
const MIN_SAMPLE: Duration = Duration::from_millis(1);

impl WorkloadConfig {
    /// Returns all problems of the measured workload.
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

    /// Returns all problems of the workload of background traffic, for which duration is optional.
    #[must_use]
    pub fn validate_traffic(&self) -> Vec<Problem> {
        let mut problems = self.check();
        let given = self.given();
        for (key, ..) in READ.iter().filter(|(_, _, place)| *place == Measured) {
            if given.contains_key(*key) {
                problems.push(Problem::new(
                    *key,
                    "traffic has no such key: set it in [workload]",
                ));
            }
        }
        if self.kind == WorkloadKind::Bulk && self.duration.is_some() && self.rate.is_none() {
            let message =
                "bulk traffic without a rate lasts as long as the trial: remove duration, or set rate";
            problems.push(Problem::new("duration", message));
        }
        problems
    }

    /// Returns the keys that are set, with their values.
    pub(crate) fn given(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(keys)) => keys,
            _ => unreachable!("a workload is a table of JSON"),
        }
    }

    /// Returns the problems common to all sections.
    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let given = self.given();
        for &(key, kinds, _) in READ.iter().filter(|(key, ..)| given.contains_key(*key)) {
            if !kinds.contains(&self.kind) {
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
        let count = match self.kind {
            AllReduce => ("rounds", self.rounds, "all-reduce"),
            _ => ("requests", self.requests, "request"),
        };
        if let (key, None, single) = count
            && self.think.is_some()
            && matches!(self.kind, RequestResponse | AllReduce)
        {
            let message = format!("requires {key}: a single {single} has no pause");
            problems.push(Problem::new("think", message));
        }
        problems.extend(self.load.and_then(|load| {
            let valid = load > Probability::ZERO;
            Problem::range(
                "load",
                format_args!("\"{load}\""),
                valid,
                "above \"0%\" to \"100%\"",
            )
        }));
        if self.arrivals.is_some() && self.load.is_some() {
            problems.push(Problem::new("load", "excludes arrivals: remove one of the two"));
        }
        if self.barrier == Some(true) && self.reconnect == Some(true) {
            problems.push(Problem::new(
                "barrier",
                "excludes reconnect: remove one of the two",
            ));
        }
        if self.kind == RequestResponse && self.size.is_some() {
            for (key, given) in [
                ("request_size", self.request_size),
                ("response_size", self.response_size),
            ] {
                if given.is_some() {
                    problems.push(Problem::new(key, "excludes size: remove one of the two"));
                }
            }
        }
        let sizes = self.sizes.unwrap_or_default();
        let needs_size = matches!(sizes, Sizes::Fixed | Sizes::Exponential);
        let required: &[(&str, bool)] = match self.kind {
            File | AllReduce | Frames => &[("size", self.size.is_none())],
            Arrivals => &[
                ("size", self.size.is_none() && needs_size),
                ("sizes_file", self.sizes_file.is_none() && sizes == Sizes::Table),
                ("arrivals", self.arrivals.is_none() && self.load.is_none()),
            ],
            OnOff => &[("rate", self.rate.is_none())],
            WebPage => &[("objects", self.objects.is_none())],
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
        self.check_exchanges(&mut problems);
        if self.kind == Frames {
            self.check_frames(&mut problems);
        }
        problems
    }

    /// Checks the keys of the size distribution.
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
        let shape = self.shape.and_then(|shape| {
            let valid = (0.01..=100.0).contains(&shape);
            Problem::range("shape", shape, valid, "0.01 to 100")
        });
        problems.extend(shape);
        let least = match sizes {
            Sizes::BoundedPareto => self.size.map_or(PARETO_MIN, |size| size.bytes()),
            _ => 1,
        };
        let largest = match sizes {
            Sizes::BoundedPareto => Some(self.largest.map_or(PARETO_MAX, |largest| largest.bytes())),
            _ => self.largest.map(|largest| largest.bytes()),
        };
        if let Some(largest) = largest
            && largest <= least
        {
            let message = format!("\"{largest}B\" is out of range: above the minimum size, {least}B");
            problems.push(Problem::new("largest", message));
        }
    }

    fn check_classes(&self, problems: &mut Vec<Problem>) {
        let Some(classes) = &self.classes else { return };
        if !(1..=MAX_BOUNDS).contains(&classes.len()) {
            let message = format!("{} bounds are out of range: 1 to {MAX_BOUNDS}", classes.len());
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
        let allowed = format!("1B to {MAX_SIZE}B");
        for (key, size) in sizes {
            problems.extend(size.and_then(|size| {
                let valid = (1..=MAX_SIZE).contains(&size.bytes());
                Problem::range(key, format_args!("\"{size}\""), valid, &allowed)
            }));
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
            problems.extend(time.and_then(|time| {
                let (valid, allowed) = (
                    (least..=MAX_TIME).contains(&time),
                    format!("\"{least}\" to \"{MAX_TIME}\""),
                );
                Problem::range(key, format_args!("\"{time}\""), valid, &allowed)
            }));
        }
        for (key, count, most) in [
            ("flows", self.flows, MAX_FLOWS),
            ("requests", self.requests, u32::MAX),
            ("rounds", self.rounds, MAX_ROUNDS),
        ] {
            problems.extend(count.and_then(|count| {
                Problem::range(key, count, (1..=most).contains(&count), &format!("1 to {most}"))
            }));
        }
        let is_priority = self.priority() <= MAX_PRIORITY;
        problems.extend(Problem::range("priority", self.priority(), is_priority, "0 to 7"));
        let (bytes, rounds) = self.all_reduces();
        if self.kind == AllReduce && bytes <= MAX_SIZE && bytes.saturating_mul(rounds) > MAX_SIZE {
            let message = format!("{rounds} are out of range: at most {MAX_SIZE}B in all");
            problems.push(Problem::new("rounds", message));
        }
        if self.from.is_some() != self.to.is_some() && self.pattern.is_none() && self.kind != AllReduce {
            let (key, other) = if self.from.is_some() {
                ("from", "to")
            } else {
                ("to", "from")
            };
            problems.push(Problem::new(key, format!("requires {other:?}")));
        }
    }
}

fn missing(key: &str, kind: WorkloadKind) -> Problem {
    Problem::new(
        key,
        format!(
            "the key is missing: a workload of kind {:?} needs it",
            kind.name()
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Place::Anywhere;
    use super::super::{ALL, Place};
    use super::*;

    /// Returns a valid value of a key, for any kind.
    fn value(key: &str) -> Value {
        match key {
            "size" | "request_size" | "response_size" => json!("5kB"),
            "largest" => json!("1MB"),
            "sizes" => json!("bounded-pareto"),
            "shape" => json!(1.5),
            "sizes_file" => json!("sizes.csv"),
            "classes" => json!(["100kB"]),
            "arrivals" => json!("10/s"),
            "rate" => json!("1Mbit/s"),
            "duration" => json!("10s"),
            "requests" | "flows" | "rounds" => json!(2),
            "algorithm" => json!("ring"),
            "streams" => json!(3),
            "objects" => json!([{"size": "5kB"}]),
            "reconnect" | "each_path" | "barrier" => json!(true),
            "from" => json!("a"),
            "to" => json!(["b", "c"]),
            "pattern" => json!("random"),
            "load" => json!("80%"),
            "frame_rate" => json!("25/s"),
            "priority" => json!(5),
            _ => json!("1s"),
        }
    }

    /// Returns the problems of one additional key in a workload of a kind, in [workload] or in [[traffic]].
    fn problems_of(kind: WorkloadKind, key: &str, place: Place) -> Vec<String> {
        let keys = json!({"kind": kind.name(), key: value(key)});
        let workload: WorkloadConfig = serde_json::from_value(keys).unwrap();
        let problems = match place {
            Measured => workload.validate(),
            Anywhere => workload.validate_traffic(),
        };
        let of_key = problems.into_iter().filter(|problem| problem.key == key);
        of_key.map(|problem| problem.message).collect()
    }

    #[test]
    fn keys_of_other_kinds_are_errors() {
        for &(key, kinds, place) in READ {
            for &kind in ALL {
                let refused =
                    |found: Vec<String>| found.iter().any(|message| message.contains("no such key"));
                // Keys of a single size distribution have a separate check.
                let of_sizes = kind == Arrivals && ["shape", "sizes_file", "largest"].contains(&key);
                let is_read = kinds.contains(&kind);
                assert_eq!(
                    refused(problems_of(kind, key, Measured)),
                    !is_read || of_sizes,
                    "{key}, {kind:?}"
                );
                let in_traffic = is_read && place == Anywhere;
                assert_eq!(
                    refused(problems_of(kind, key, Anywhere)),
                    !in_traffic || of_sizes,
                    "{key}, {kind:?}"
                );
            }
        }
    }

    #[test]
    fn size_sets_request_and_response_size() {
        let of = |keys: Value| -> WorkloadConfig { serde_json::from_value(keys).unwrap() };
        let same = of(json!({"kind": "request-response", "size": "64B"}));
        assert_eq!((same.validate(), same.exchange()), (vec![], (64, 64)));
        let both = of(json!({"kind": "request-response", "size": "64B", "response_size": "1kB"}));
        assert!(both.validate()[0].message.contains("excludes size"));
    }

    #[test]
    fn a_load_is_above_zero() {
        let of = |load: &str| -> Vec<String> {
            let keys = json!({"kind": "arrivals", "size": "1kB", "duration": "1s", "load": load});
            let workload: WorkloadConfig = serde_json::from_value(keys).unwrap();
            workload.validate().iter().map(ToString::to_string).collect()
        };
        assert_eq!(of("0.1%"), [""; 0]);
        assert_eq!(
            of("0%"),
            ["load: \"0%\" is out of range: above \"0%\" to \"100%\""]
        );
    }

    #[test]
    fn think_requires_requests() {
        let found = problems_of(RequestResponse, "think", Measured);
        assert!(found[0].contains("requires requests"), "{found:?}");
        assert_eq!(problems_of(RequestResponse, "requests", Measured), [""; 0]);
    }
}
