//! Foresight, the project's own policy: the paths on which a flow is expected to be done first.
//!
//! Of each path the host knows its round trip with the queue, the rate at which all of its connections together are
//! acknowledged there, the share of segments lost of late, and the bytes that its connections mean to send there and
//! that are not acknowledged. A flow of `s` bytes over path `p` alone is expected to take
//!
//! rtt + max(rounds(s) rtt, s / rate + rtt / 2) + max(0, unfinished - rate rtt) / rate
//!     + P(handshake lost) T + P(tail lost) RTO + P(others lost) rtt,
//!
//! with rounds(s) = ceil(log2(1 + s / (segment x initial window))) of slow start. It starts on the path of the least such
//! time, and further ones join as long as each makes the time shorter by `gain`. What it is expected to bring over each
//! stands in the host's account from then on, so that the next flow sees it: flows do not herd.

use foundation::{Duration, Generator, Probability, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::expected::{Assumptions, Outlook};
use super::{HostPaths, Join, Opening, PathIndex, PathPolicy, Progress, Settings, Tail};

/// The paths on which a flow is expected to be done first, by an account of all of the host's flows (the project's own).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Foresight {
    /// Whether sizes are used where they are known; else every flow starts on one path and joins others as it grows. Default: true.
    pub sizes: bool,
    /// Whether bytes that were assigned to a path and are not acknowledged count. Default: true.
    pub backlog: bool,
    /// Whether losses of late count. Default: true.
    pub losses: bool,
    /// A further path is joined where it makes the expected time shorter by at least this share. Default: "10%".
    pub gain: Probability,
    /// Segments at the end of a flow that leave on another path too when their acknowledgement is late; 0 for none, at most 16. Default: 3; over Linux's MPTCP 0, which is all that it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 16))]
    pub tail: Option<u32>,
    /// When it is late: so many smoothed round-trip times after the last data left, 1 to 10; not over Linux's MPTCP. Default: 1.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 10.0))]
    pub tail_after: Option<f64>,
    /// Flows up to this size count as short, of larger ones paths of short flows are kept free. Default: "800kB".
    pub short: Size,
    /// Whether long flows leave out the paths of least round-trip time, as many of them as short flows fill. Default: true.
    pub steer: bool,
    /// The first window of connections, in segments, 1 to 100. Default: 10.
    #[schemars(range(min = 1, max = 100))]
    pub initial_window: u32,
    /// The least retransmission timeout of connections. Default: "200ms".
    pub min_rto: Duration,
    /// The timeout of a handshake. Default: "1s".
    pub initial_rto: Duration,
}

impl Default for Foresight {
    fn default() -> Self {
        Self {
            sizes: true,
            backlog: true,
            losses: true,
            gain: Probability::new(0.1).unwrap_or(Probability::ZERO),
            tail: None,
            tail_after: None,
            short: Size::from_bytes(800_000),
            steer: true,
            initial_window: 10,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
        }
    }
}

/// Segments at the end of a flow that are sent twice, and when, where the study does not say.
const TAIL: u32 = 3;
const TAIL_AFTER: f64 = 1.5;
/// The most paths that a flow is planned over.
const MOST: usize = 64;
/// A flow of unknown size is taken to be once more as large as what it has sent, but of this size at first.
const FIRST_GUESS: u64 = 14_000;

impl Settings for Foresight {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |key: &'static str, fine: bool, value: String, allowed: &str| {
            if !fine {
                problems.push(Problem::new(key, format!("{value} is out of range: {allowed}")));
            }
        };
        let tail = self.tail.unwrap_or(TAIL);
        check("tail", tail <= 16, tail.to_string(), "0 to 16");
        let after = self.tail_after.unwrap_or(TAIL_AFTER);
        check(
            "tail_after",
            (1.0..=10.0).contains(&after),
            after.to_string(),
            "1 to 10",
        );
        let window = self.initial_window;
        check(
            "initial_window",
            (1..=100).contains(&window),
            window.to_string(),
            "1 to 100",
        );
        problems
    }

    fn beyond_linux(&self) -> Vec<Problem> {
        let message = "Linux's MPTCP protects no tail: leave the key out";
        let tail = self.tail.is_some_and(|segments| segments > 0).then_some("tail");
        let after = self.tail_after.is_some().then_some("tail_after");
        let asked = tail.into_iter().chain(after);
        asked.map(|key| Problem::new(key, message)).collect()
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(Planner {
            settings: self.clone(),
            grows: false,
            ask_at: FIRST_GUESS / 2,
        })
    }
}

/// The policy of one connection.
#[derive(Clone, Debug)]
struct Planner {
    settings: Foresight,
    /// Its size is not known: it joins paths as it grows.
    grows: bool,
    /// The bytes acknowledged at which it is looked at next.
    ask_at: u64,
}

impl Foresight {
    fn assumptions(&self) -> Assumptions {
        Assumptions {
            initial_window: f64::from(self.initial_window),
            data_timeout: self.min_rto.as_secs_f64(),
            handshake_timeout: self.initial_rto.as_secs_f64(),
            backlog: self.backlog,
            losses: self.losses,
        }
    }

    /// All paths, those of the least expected time for `bytes` first.
    fn ranked(&self, bytes: u64, host: &HostPaths) -> Vec<Outlook> {
        let assumptions = self.assumptions();
        let outlook = |(number, account)| assumptions.outlook(PathIndex(number as u8), account);
        let paths = host.paths().iter().enumerate().map(outlook);
        let mut ranked: Vec<(f64, Outlook)> = paths.map(|on| (assumptions.alone(&on, bytes), on)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.into_iter().map(|(_, on)| on).collect()
    }

    /// How many of the paths of least round-trip time short flows fill: their load over what one path carries, so that
    /// long flows leave out as many.
    fn kept_free(&self, host: &HostPaths) -> usize {
        if !self.steer {
            return 0;
        }
        let Some(short) = host.arrivals(self.short.bytes()) else {
            return 0;
        };
        let rates = host.paths().iter().map(super::super::host::PathAccount::rate);
        let rate = rates.fold(0.0, f64::max);
        if rate <= 0.0 {
            return 0;
        }
        let filled = (short.rate * short.mean / rate).round() as usize;
        filled.min(host.len() / 2)
    }

    /// The paths that a flow of `bytes` is to use, in the order in which they join.
    fn plan(&self, bytes: u64, host: &HostPaths) -> Vec<Outlook> {
        let assumptions = self.assumptions();
        let mut ranked = self.ranked(bytes, host);
        ranked.truncate(MOST);
        let mut plan: Vec<Outlook> = Vec::with_capacity(4);
        let mut time = f64::INFINITY;
        for on in ranked {
            plan.push(on);
            let with = assumptions.together(&plan, bytes);
            if plan.len() > 1 && with > time * (1.0 - self.gain.value()) {
                plan.pop();
                break;
            }
            time = with;
        }
        plan
    }

    fn long(&self, host: &HostPaths) -> Opening {
        let order = host.by(|path| path.base_rtt);
        let free = self.kept_free(host);
        Opening::over(order[free..].iter().copied())
    }
}

impl PathPolicy for Planner {
    fn open(&mut self, size: Option<u64>, host: &HostPaths, _: &mut Generator) -> Opening {
        let settings = &self.settings;
        let size = size.filter(|_| settings.sizes);
        self.grows = size.is_none();
        let mut opening = match size {
            Some(size) if size > settings.short.bytes() => settings.long(host),
            _ => {
                let bytes = size.unwrap_or(FIRST_GUESS);
                let mut plan = settings.plan(bytes, host);
                if self.grows {
                    plan.truncate(1);
                }
                let each = bytes / plan.len().max(1) as u64;
                let mut opening = Opening::over(plan.iter().map(|on| on.path));
                opening.expected = plan.iter().map(|on| (on.path, each)).collect();
                opening.short = true;
                opening
            }
        };
        let segments = settings.tail.unwrap_or(TAIL);
        if segments > 0 {
            let mut next = settings.ranked(FIRST_GUESS, host).into_iter().map(|on| on.path);
            opening.tail = Some(Tail {
                segments,
                after: (settings.tail_after.unwrap_or(TAIL_AFTER) * 100.0) as u32,
                path: next.find(|&path| path != opening.first),
            });
        }
        opening
    }

    fn follows_progress(&self) -> bool {
        self.grows
    }

    fn progress(&mut self, progress: &Progress<'_>, host: &HostPaths) -> Vec<Join> {
        let sent = progress.acknowledged;
        if sent < self.ask_at {
            return Vec::new();
        }
        self.ask_at = sent * 2;
        let settings = &self.settings;
        let wanted: Vec<PathIndex> = if sent > settings.short.bytes() {
            let all = host.by(|path| path.base_rtt);
            all.into_iter().skip(settings.kept_free(host)).collect()
        } else {
            // What has sent so much is taken to send as much again, and at least what waits.
            let plan = settings.plan(progress.backlog.max(sent), host);
            let more = plan.len().saturating_sub(progress.paths.len());
            let others = plan.into_iter().map(|on| on.path);
            others
                .filter(|path| !progress.paths.contains(path))
                .take(more)
                .collect()
        };
        let new = wanted.into_iter().filter(|path| !progress.paths.contains(path));
        new.map(Join::at_once).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::{Instant, Streams};

    fn host() -> HostPaths {
        let mut host = HostPaths::new([40, 20, 30, 200].map(Duration::from_millis));
        for step in 0..100 {
            for path in 0..4 {
                host.on_delivery(PathIndex(path), at(step), 125_000, 0);
            }
        }
        host
    }

    /// A hundredth of a second.
    fn at(step: u64) -> Instant {
        Instant::from_nanos(step * 10_000_000)
    }

    fn paths(opening: &Opening) -> Vec<u8> {
        let joins = opening.joins.iter().map(|join| join.path.0);
        std::iter::once(opening.first.0).chain(joins).collect()
    }

    fn open(settings: Foresight, size: Option<u64>, host: &HostPaths) -> Opening {
        let mut policy = settings.build();
        policy.open(size, host, &mut Streams::new(1, 0).stream("paths"))
    }

    #[test]
    fn short_flows_take_the_path_on_which_they_end_first() {
        let mut host = host();
        let opening = open(Foresight::default(), Some(50_000), &host);
        assert_eq!(paths(&opening), [1]);
        assert_eq!(opening.expected, [(PathIndex(1), 50_000)]);
        let tail = opening.tail.unwrap();
        assert_eq!(
            (tail.segments, tail.after, tail.path),
            (3, 150, Some(PathIndex(2)))
        );
        // 1 MB waits there: 64 ms at 12.5 MB/s beyond what a round trip carries.
        host.account_mut(PathIndex(1)).unwrap().unfinished = 1_000_000;
        assert_eq!(paths(&open(Foresight::default(), Some(50_000), &host)), [2]);
        let blind = Foresight {
            backlog: false,
            ..Foresight::default()
        };
        assert_eq!(paths(&open(blind, Some(50_000), &host)), [1]);
    }

    #[test]
    fn losses_drive_away() {
        let mut host = host();
        // One segment in ten: a timeout of 200 ms for three flows in ten, one of a second for one in ten.
        host.on_delivery(PathIndex(1), at(100), 0, 1500);
        assert_eq!(paths(&open(Foresight::default(), Some(50_000), &host)), [2]);
        let blind = Foresight {
            losses: false,
            ..Foresight::default()
        };
        assert_eq!(paths(&open(blind, Some(50_000), &host)), [1]);
    }

    #[test]
    fn long_flows_leave_paths_to_short_ones_in_proportion() {
        let mut host = host();
        let long = |host: &HostPaths| paths(&open(Foresight::default(), Some(5_000_000), host));
        assert_eq!(long(&host), [1, 2, 0, 3]);
        // 10 flows/s of 800 kB are two thirds of 12.5 MB/s.
        for step in 0..50 {
            host.on_flow(at(step * 10), 800_000);
        }
        assert_eq!(long(&host), [2, 0, 3]);
        let still = Foresight {
            steer: false,
            ..Foresight::default()
        };
        assert_eq!(paths(&open(still, Some(5_000_000), &host)), [1, 2, 0, 3]);
    }

    /// A delayed acknowledgement is not a queue; many long round trips are one.
    #[test]
    fn one_late_acknowledgement_says_little() {
        let mut host = host();
        host.on_round_trip(PathIndex(1), Duration::from_millis(220));
        assert_eq!(paths(&open(Foresight::default(), Some(10_000), &host)), [1]);
        for _ in 0..100 {
            host.on_round_trip(PathIndex(1), Duration::from_millis(45));
        }
        assert_eq!(paths(&open(Foresight::default(), Some(10_000), &host)), [2]);
    }

    #[test]
    fn flows_of_unknown_size_join_as_they_grow() {
        let host = host();
        let mut policy = Foresight::default().build();
        let opening = policy.open(None, &host, &mut Streams::new(1, 0).stream("paths"));
        assert_eq!(paths(&opening), [1]);
        assert!(policy.follows_progress());
        let mut joined = |acknowledged, backlog| {
            let progress = Progress {
                acknowledged,
                backlog,
                age: Duration::ZERO,
                paths: &[PathIndex(1)],
            };
            let joins = policy.progress(&progress, &host);
            joins.iter().map(|join| join.path.0).collect::<Vec<_>>()
        };
        assert_eq!(joined(10_000, 0), [] as [u8; 0], "nothing is gained");
        assert_eq!(
            joined(15_000, 20_000_000),
            [] as [u8; 0],
            "not asked at every byte"
        );
        assert_eq!(joined(30_000, 20_000_000), [2, 0]);
        assert_eq!(joined(900_000, 0), [2, 0, 3]);
        let known = open(
            Foresight {
                sizes: false,
                ..Foresight::default()
            },
            Some(5_000_000),
            &host,
        );
        assert_eq!(paths(&known), [1], "as if it were not known");
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let wrong = Foresight {
            tail: Some(17),
            tail_after: Some(0.5),
            initial_window: 0,
            ..Foresight::default()
        };
        let problems: Vec<String> = wrong.validate().iter().map(Problem::to_string).collect();
        assert_eq!(
            problems,
            [
                "tail: 17 is out of range: 0 to 16",
                "tail_after: 0.5 is out of range: 1 to 10",
                "initial_window: 0 is out of range: 1 to 100"
            ]
        );
    }

    #[test]
    fn only_what_is_asked_for_is_beyond_linux() {
        let named = |settings: Foresight| -> Vec<String> {
            let problems = settings.beyond_linux();
            problems.iter().map(|problem| problem.key.clone()).collect()
        };
        let of = |tail, tail_after| Foresight {
            tail,
            tail_after,
            ..Foresight::default()
        };
        assert!(named(of(None, None)).is_empty());
        assert!(named(of(Some(0), None)).is_empty(), "Linux does just that");
        assert_eq!(named(of(Some(3), Some(1.5))), ["tail", "tail_after"]);
    }
}
