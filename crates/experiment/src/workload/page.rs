//! Requests and responses that depend on one another: web pages, and requests in progress at once.

use foundation::{Duration, Problem, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{WorkloadConfig, WorkloadKind};

/// Limit of groups of objects.
const MAX_GROUPS: usize = 1000;
/// Limit of objects of a page.
const MAX_OBJECTS: u64 = 10_000;
/// Limit of requests in progress at once.
const MAX_STREAMS: u32 = 1000;
/// Limit of requests of a flow with `streams`.
const MAX_REQUESTS: u64 = 1_000_000;
/// Limit of the size of an object in bytes.
const MAX_SIZE: u64 = 1_000_000_000;

omit_unset! {
    /// Objects of a web page that are requested together.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct PageObjects {
        /// Size of each response with its headers, from "1B" to "1GB".
        pub size: Size,
        /// Number of objects, from 1 to 10000; default 1.
        #[schemars(range(min = 1, max = 10_000))]
        pub count: Option<u32>,
        /// Number of the group, from 0, whose objects must have arrived before these are requested; it must be an earlier one; default: requested at the start.
        pub after: Option<u32>,
        /// Time between that arrival, or the start, and the requests, such as the time to parse a script, at most "60min"; default "0s".
        pub pause: Option<Duration>,
        /// Size of each request with its headers, from "1B" to "1GB"; default: request_size of the workload.
        pub request: Option<Size>,
        /// Time that the server takes for each response, such as that of a database, at most "60min"; default "0s".
        pub work: Option<Duration>,
    }
}

/// Requests that are sent together once others are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchanges {
    /// Bytes of each request.
    pub request: u64,
    /// Bytes of each response.
    pub response: u64,
    /// Number of requests.
    pub count: u32,
    /// How often they are sent, each time once those before are answered.
    pub rounds: u32,
    /// Time between an answer and the next round.
    pub think: Duration,
    /// Index of the exchanges that must be complete before.
    pub after: Option<usize>,
    /// Time from then on, or from the start of the flow.
    pub pause: Duration,
    /// Time that the server takes for each response.
    pub work: Duration,
}

impl WorkloadConfig {
    /// Returns whether its flows have several requests in progress at once.
    #[must_use]
    pub const fn has_exchanges(&self) -> bool {
        matches!(self.kind, WorkloadKind::WebPage) || self.streams.is_some()
    }

    /// Returns the requests of a flow that has several in progress at once; `None` for other workloads.
    #[must_use]
    pub fn exchanges(&self) -> Option<Vec<Exchanges>> {
        let (request, response) = self.exchange();
        match self.kind {
            WorkloadKind::WebPage => {
                let groups = self.objects.iter().flatten().map(|objects| Exchanges {
                    request: objects.request.map_or(request, Size::bytes),
                    response: objects.size.bytes(),
                    count: objects.count.unwrap_or(1),
                    rounds: 1,
                    think: Duration::ZERO,
                    after: objects.after.map(|group| group as usize),
                    pause: objects.pause.unwrap_or_default(),
                    work: objects.work.unwrap_or_default(),
                });
                Some(groups.collect())
            }
            WorkloadKind::RequestResponse => {
                let one = Exchanges {
                    request,
                    response,
                    count: 1,
                    rounds: self.requests.unwrap_or(1),
                    think: self.think.unwrap_or_default(),
                    after: None,
                    pause: Duration::ZERO,
                    work: Duration::ZERO,
                };
                Some(vec![one; self.streams? as usize])
            }
            _ => None,
        }
    }

    /// Checks the keys of exchanges.
    pub(super) fn check_exchanges(&self, problems: &mut Vec<Problem>) {
        if let Some(streams) = self.streams {
            let valid = (1..=MAX_STREAMS).contains(&streams);
            problems.extend(Problem::range("streams", streams, valid, "1 to 1000"));
            for (key, given) in [("reconnect", self.reconnect), ("barrier", self.barrier)] {
                if given == Some(true) {
                    let message = format!("excludes {key}: remove one of the two");
                    problems.push(Problem::new("streams", message));
                }
            }
            let requests = u64::from(streams) * u64::from(self.requests.unwrap_or(1));
            if requests > MAX_REQUESTS {
                let message =
                    format!("{requests} requests of all streams are out of range: at most {MAX_REQUESTS}");
                problems.push(Problem::new("requests", message));
            }
        }
        let Some(groups) = &self.objects else { return };
        let objects: u64 = groups
            .iter()
            .map(|group| u64::from(group.count.unwrap_or(1)))
            .sum();
        if !(1..=MAX_GROUPS).contains(&groups.len()) || !(1..=MAX_OBJECTS).contains(&objects) {
            let message = format!(
                "{} groups with {objects} objects are out of range: 1 to {MAX_GROUPS} groups with 1 to {MAX_OBJECTS} objects",
                groups.len()
            );
            problems.push(Problem::new("objects", message));
        }
        for (number, group) in groups.iter().enumerate() {
            let mut report = |key: &str, message: String| {
                problems.push(Problem::new(key, message).within(&format!("objects[{number}]")));
            };
            for (key, size) in [("size", Some(group.size)), ("request", group.request)] {
                if let Some(size) = size
                    && !(1..=MAX_SIZE).contains(&size.bytes())
                {
                    report(key, format!("\"{size}\" is out of range: \"1B\" to \"1GB\""));
                }
            }
            if group.count == Some(0) {
                report("count", format!("0 is out of range: 1 to {MAX_OBJECTS}"));
            }
            if group.after.is_some_and(|after| after as usize >= number) {
                report(
                    "after",
                    format!("must be the number of an earlier group, below {number}"),
                );
            }
            for (key, time) in [("pause", group.pause), ("work", group.work)] {
                if time.is_some_and(|time| time > Duration::from_secs(3600)) {
                    report(key, "is out of range: at most \"60min\"".to_owned());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(keys: serde_json::Value) -> Vec<String> {
        let workload: WorkloadConfig = serde_json::from_value(keys).unwrap();
        let problems = workload.validate();
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn reports_each_invalid_group() {
        let page = |objects| problems(json!({"kind": "web-page", "objects": objects}));
        assert_eq!(
            page(json!([{"size": "1kB"}, {"size": "1kB", "count": 9999, "after": 0}])),
            [""; 0]
        );
        assert!(page(json!([]))[0].starts_with("objects: 0 groups with 0 objects are out of range"));
        let many = page(json!([{"size": "1kB", "count": 10_001}]));
        assert!(
            many[0].starts_with("objects: 1 groups with 10001 objects"),
            "{many:?}"
        );
        let found = page(
            json!([{"size": "2GB", "after": 0, "count": 0, "pause": "61min", "request": "2GB", "work": "61min"},
            {"size": "1kB"}]),
        );
        let keys = ["size", "request", "count", "after", "pause", "work"];
        for (key, found) in keys.into_iter().zip(&found) {
            assert!(found.starts_with(&format!("objects[0].{key}: ")), "{found}");
        }
        assert_eq!(found.len(), keys.len());
        let missing = problems(json!({"kind": "web-page"}));
        assert!(
            missing[0].starts_with("objects: the key is missing"),
            "{missing:?}"
        );
    }

    #[test]
    fn streams_exclude_other_orders_of_requests() {
        let requests = |keys: &str| {
            let text = format!(r#"{{"kind": "request-response", "streams": 4{keys}}}"#);
            problems(serde_json::from_str(&text).unwrap())
        };
        assert_eq!(requests(""), [""; 0]);
        assert!(requests(r#", "reconnect": true"#)[0].starts_with("streams: excludes reconnect"));
        assert!(requests(r#", "barrier": true"#)[0].starts_with("streams: excludes barrier"));
        assert!(requests(r#", "requests": 250001"#)[0].starts_with("requests: 1000004 requests"));
    }

    #[test]
    fn each_stream_has_one_request_after_the_other() {
        let keys = json!({"kind": "request-response", "streams": 2, "requests": 3, "think": "5ms"});
        let workload: WorkloadConfig = serde_json::from_value(keys).unwrap();
        let exchanges = workload.exchanges().unwrap();
        let found: Vec<_> = exchanges
            .iter()
            .map(|one| (one.after, one.count, one.rounds, one.pause, one.think))
            .collect();
        let think = Duration::from_millis(5);
        assert_eq!(found, [(None, 1, 3, Duration::ZERO, think); 2]);
    }
}
