//! Decisions of Foresight for one connection: paths, handshake retries and tail protection.

use foundation::{Duration, Generator};

use super::completion_time::{FlowModel, PathForecast};
use super::settings::{Foresight, HANDSHAKE_AFTER, TAIL, TAIL_AFTER};
use crate::mptcp::host::PathState;
use crate::mptcp::policy::{
    ConnectionPlan, HandshakeAttempt, HostPaths, Join, PathIndex, PathPolicy, Progress, StartParameters, Tail,
};

/// Maximum number of paths of a flow.
const MAX_PATHS: usize = 64;
/// Initially assumed size of a flow of unknown size; later it is assumed to send as much again as it has sent.
const FIRST_GUESS: u64 = 14_000;
/// Maximum number of handshake retries.
const MAX_RETRIES: usize = 4;
/// Added to multiples of the round-trip time, for the processing time of hosts and for jitter.
const RETRY_MARGIN: Duration = Duration::from_millis(10);

/// Policy of one connection.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    settings: Foresight,
    start: StartParameters,
    /// The size is unknown: paths join as the flow grows.
    grows: bool,
    /// Acknowledged bytes at which the plan is next revised.
    next_revision: u64,
}

impl Planner {
    /// Creates the policy of a new connection.
    pub(super) fn new(settings: Foresight) -> Self {
        Self {
            settings,
            start: StartParameters::default(),
            grows: false,
            next_revision: FIRST_GUESS / 2,
        }
    }

    fn flow_model(&self) -> FlowModel {
        FlowModel {
            initial_window: f64::from(self.start.initial_window),
            data_timeout: self.start.min_rto.as_secs_f64(),
            handshake_timeout: self.start.initial_rto.as_secs_f64(),
            backlog: self.settings.backlog,
            losses: self.settings.losses,
        }
    }

    /// Returns all paths in the order of the expected completion time of `bytes`.
    fn ranked(&self, bytes: u64, host: &HostPaths) -> Vec<PathForecast> {
        let flow_model = self.flow_model();
        let forecast = |(number, account)| flow_model.forecast(PathIndex(number as u8), account);
        let paths = host.paths().iter().enumerate().map(forecast);
        let mut ranked: Vec<(f64, PathForecast)> = paths
            .map(|on| (flow_model.single_path_time(&on, bytes), on))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.into_iter().map(|(_, on)| on).collect()
    }

    /// Returns the number of paths that long_flow_paths flows leave to short ones: the load of short flows over the
    /// rate of one path, at most half of all paths.
    fn reserved_paths(&self, host: &HostPaths) -> usize {
        if !self.settings.steer {
            return 0;
        }
        let Some(short) = host.arrivals(self.settings.short.bytes()) else {
            return 0;
        };
        let rates = host.paths().iter().map(PathState::rate);
        let rate = rates.fold(0.0, f64::max);
        if rate <= 0.0 {
            return 0;
        }
        let filled = (short.rate * short.mean / rate).round() as usize;
        filled.min(host.len() / 2)
    }

    /// Returns the paths of a flow of `bytes` in the order of joining, with the expected bytes of each.
    fn plan(&self, bytes: u64, ranked: &[PathForecast]) -> Vec<(PathIndex, u64)> {
        let flow_model = self.flow_model();
        let Some((first, others)) = ranked.split_first() else {
            return Vec::new();
        };
        let mut plan = vec![*first];
        let mut time = flow_model.multipath_time(&plan, bytes);
        for on in others.iter().take(MAX_PATHS - 1) {
            if flow_model.first_delivery(first, on) <= time * (1.0 + self.settings.slack) {
                plan.push(*on);
                time = flow_model.multipath_time(&plan, bytes);
            }
        }
        flow_model.shares(&plan, bytes)
    }

    /// Returns the paths of a long_flow_paths flow: all but those left to short flows.
    fn long_flow_paths(&self, host: &HostPaths) -> Vec<PathIndex> {
        let free = self.reserved_paths(host);
        host.sorted_by(|path| path.base_rtt).split_off(free)
    }

    /// Plans handshake retries and tail protection on other paths than the first, in the order of their expected
    /// time.
    fn plan_retries(&self, opening: &mut ConnectionPlan, host: &HostPaths) {
        let settings = &self.settings;
        let ranked = self.ranked(FIRST_GUESS, host);
        let mut others = ranked.iter().filter(|on| on.path != opening.first);
        let segments = settings.tail.unwrap_or(TAIL);
        if segments > 0 {
            opening.tail = Some(Tail {
                segments,
                after: (settings.tail_after.unwrap_or(TAIL_AFTER) * 100.0) as u32,
                path: others.clone().next().map(|on| on.path),
            });
        }
        let multiple = settings.handshake_after.unwrap_or(HANDSHAKE_AFTER);
        if multiple > 0.0 {
            let rtt = |path: PathIndex| {
                let account = host.paths().get(path.index());
                account.map_or(Duration::ZERO, PathState::usual_rtt)
            };
            let mut before = opening.first;
            for on in others.by_ref().take(MAX_RETRIES) {
                let expected = rtt(before);
                // Without a known round-trip time, TCP's timer applies.
                if expected.is_zero() {
                    break;
                }
                let after = expected.mul_f64(multiple) + RETRY_MARGIN;
                opening.attempts.push(HandshakeAttempt { path: on.path, after });
                before = on.path;
            }
        }
    }
}

impl PathPolicy for Planner {
    fn set_start_parameters(&mut self, start: &StartParameters) {
        self.start = *start;
    }

    fn open(&mut self, size: Option<u64>, host: &HostPaths, _: &mut Generator) -> ConnectionPlan {
        let size = size.filter(|_| self.settings.sizes);
        self.grows = size.is_none();
        let mut opening = match size {
            Some(size) if size > self.settings.short.bytes() => {
                ConnectionPlan::over(self.long_flow_paths(host))
            }
            _ => {
                let bytes = size.unwrap_or(FIRST_GUESS);
                let mut plan = self.plan(bytes, &self.ranked(bytes, host));
                if self.grows {
                    plan.truncate(1);
                }
                let mut opening = ConnectionPlan::over(plan.iter().map(|(path, _)| *path));
                opening.expected = plan;
                opening.short = true;
                opening
            }
        };
        self.plan_retries(&mut opening, host);
        opening
    }

    fn follows_progress(&self) -> bool {
        self.grows
    }

    fn progress(&mut self, progress: &Progress<'_>, host: &HostPaths) -> Vec<Join> {
        let sent = progress.acknowledged;
        if sent < self.next_revision {
            return Vec::new();
        }
        self.next_revision = sent * 2;
        let wanted: Vec<PathIndex> = if sent > self.settings.short.bytes() {
            self.long_flow_paths(host)
        } else {
            // The remaining size is assumed to equal the bytes sent, and is at least the backlog.
            let bytes = progress.backlog.max(sent);
            let plan = self.plan(bytes, &self.ranked(bytes, host));
            let more = plan.len().saturating_sub(progress.paths.len());
            let others = plan.into_iter().map(|(path, _)| path);
            others
                .filter(|path| !progress.paths.contains(path))
                .take(more)
                .collect()
        };
        let new = wanted.into_iter().filter(|path| !progress.paths.contains(path));
        new.map(Join::immediately).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::policy::PolicySettings as _;
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

    /// Returns the time of a step of 10 ms.
    fn at(step: u64) -> Instant {
        Instant::from_nanos(step * 10_000_000)
    }

    fn paths(opening: &ConnectionPlan) -> Vec<u8> {
        let joins = opening.joins.iter().map(|join| join.path.0);
        std::iter::once(opening.first.0).chain(joins).collect()
    }

    fn open(settings: Foresight, size: Option<u64>, host: &HostPaths) -> ConnectionPlan {
        let mut policy = settings.build();
        policy.open(size, host, &mut Streams::new(1, 0).stream("paths"))
    }

    /// Adds paths only for what they deliver in time.
    fn frugal() -> Foresight {
        Foresight {
            slack: 0.0,
            ..Foresight::default()
        }
    }

    #[test]
    fn short_flow_takes_path_with_smallest_completion_time() {
        let mut host = host();
        let opening = open(frugal(), Some(50_000), &host);
        assert_eq!(paths(&opening), [1]);
        assert_eq!(opening.expected, [(PathIndex(1), 50_000)]);
        let tail = opening.tail.unwrap();
        assert_eq!(
            (tail.segments, tail.after, tail.path),
            (10, 150, Some(PathIndex(2)))
        );
        // 1 MB of twenty flows is queued there: 64 ms at 12.5 MB/s beyond one bandwidth-delay product.
        let account = host.path_mut(PathIndex(1)).unwrap();
        (account.unfinished, account.subflows) = (1_000_000, 20);
        assert_eq!(paths(&open(frugal(), Some(50_000), &host)), [2]);
        let blind = Foresight {
            backlog: false,
            ..frugal()
        };
        assert_eq!(paths(&open(blind, Some(50_000), &host)), [1]);
        // A flow of 1 kB shares the path: each of the others delays it by no more than its own transmission time.
        assert_eq!(paths(&open(frugal(), Some(1000), &host)), [1]);
    }

    /// The expected time is 100 ms: by 400 ms a second path can deliver data, the slowest one cannot.
    #[test]
    fn paths_within_slack_join() {
        let host = host();
        let opening = open(Foresight::default(), Some(50_000), &host);
        assert_eq!(paths(&opening), [1, 2, 0]);
        assert_eq!(
            opening.expected,
            [(PathIndex(1), 50_000), (PathIndex(2), 0), (PathIndex(0), 0)]
        );
        let generous = Foresight {
            slack: 100.0,
            ..Foresight::default()
        };
        assert_eq!(paths(&open(generous, Some(50_000), &host)), [1, 2, 0, 3]);
    }

    #[test]
    fn unanswered_handshake_retries_on_other_paths() {
        let host = host();
        let attempts = |settings| {
            let opening = open(settings, Some(50_000), &host);
            let attempts = opening.attempts.iter();
            attempts
                .map(|attempt| (attempt.path.0, attempt.after.as_nanos() / 1_000_000))
                .collect::<Vec<_>>()
        };
        // Twice the round-trip time of the previous path, plus 10 ms.
        assert_eq!(attempts(Foresight::default()), [(2, 50), (0, 70), (3, 90)]);
        let patient = Foresight {
            handshake_after: Some(0.0),
            ..Foresight::default()
        };
        assert_eq!(attempts(patient), []);
    }

    /// The model uses the connection's initial window and timers: 14 kB take four round trips with an initial window
    /// of one segment.
    #[test]
    fn model_uses_start_parameters() {
        let host = host();
        let planner = |initial_window| Planner {
            settings: frugal(),
            start: StartParameters {
                initial_window,
                ..StartParameters::default()
            },
            grows: false,
            next_revision: 0,
        };
        let time = |planner: Planner| {
            let ranked = planner.ranked(14_000, &host);
            planner.flow_model().single_path_time(&ranked[0], 14_000)
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(time(planner(10)), 0.020 + 0.020) && close(time(planner(1)), 0.020 + 4.0 * 0.020));
    }

    #[test]
    fn avoids_lossy_paths() {
        let mut host = host();
        // One segment in ten: a timeout of 200 ms for three flows in ten, of one second for one in ten.
        host.on_delivery(PathIndex(1), at(100), 0, 1500);
        assert_eq!(paths(&open(frugal(), Some(50_000), &host)), [2]);
        let blind = Foresight {
            losses: false,
            ..frugal()
        };
        assert_eq!(paths(&open(blind, Some(50_000), &host)), [1]);
    }

    #[test]
    fn steered_long_flows_leave_paths_to_short_ones() {
        let mut host = host();
        let steering = Foresight {
            steer: true,
            ..Foresight::default()
        };
        let long_flow_paths = |host: &HostPaths| paths(&open(steering.clone(), Some(5_000_000), host));
        assert_eq!(long_flow_paths(&host), [1, 2, 0, 3]);
        // 10 flows/s of 800 kB are two thirds of 12.5 MB/s.
        for step in 0..50 {
            host.on_flow(at(step * 10), 800_000);
        }
        assert_eq!(long_flow_paths(&host), [2, 0, 3]);
        assert_eq!(
            paths(&open(Foresight::default(), Some(5_000_000), &host)),
            [1, 2, 0, 3]
        );
    }

    /// One delayed ACK is no queue; many long_flow_paths round trips are.
    #[test]
    fn ignores_a_single_delayed_ack() {
        let mut host = host();
        host.on_round_trip(PathIndex(1), Duration::from_millis(220));
        assert_eq!(paths(&open(frugal(), Some(10_000), &host)), [1]);
        for _ in 0..100 {
            host.on_round_trip(PathIndex(1), Duration::from_millis(45));
        }
        assert_eq!(paths(&open(frugal(), Some(10_000), &host)), [2]);
    }

    #[test]
    fn flow_of_unknown_size_adds_paths_as_it_grows() {
        let host = host();
        let mut policy = frugal().build();
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
        assert_eq!(joined(10_000, 0), [] as [u8; 0], "no gain");
        assert_eq!(
            joined(15_000, 20_000_000),
            [] as [u8; 0],
            "not revised at every byte"
        );
        assert_eq!(joined(30_000, 20_000_000), [2, 0]);
        assert_eq!(joined(900_000, 0), [2, 0, 3]);
        let known = open(
            Foresight {
                sizes: false,
                ..frugal()
            },
            Some(5_000_000),
            &host,
        );
        assert_eq!(paths(&known), [1], "as for an unknown size");
    }
}
