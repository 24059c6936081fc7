//! What Foresight decides for one connection: its paths, where its handshake goes on, and how its tail is protected.

use foundation::{Duration, Generator};

use super::completion_time::{FlowModel, PathForecast};
use super::foresight::{Foresight, HANDSHAKE_AFTER, TAIL, TAIL_AFTER};
use super::{
    ConnectionPlan, HandshakeAttempt, HostPaths, Join, PathIndex, PathPolicy, Progress, StartParameters, Tail,
};
use crate::mptcp::host::PathState;

/// The most paths that a flow is planned over.
const MOST: usize = 64;
/// A flow of unknown size is taken to be once more as large as what it has sent, but of this size at first.
const FIRST_GUESS: u64 = 14_000;
/// Further paths that a handshake tries.
const ATTEMPTS: usize = 4;
/// What a handshake waits beyond multiples of the round trip: hosts and delayed packets take some time as well.
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

/// The policy of one connection.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    settings: Foresight,
    start: StartParameters,
    /// Its size is not known: it joins paths as it grows.
    grows: bool,
    /// The bytes acknowledged at which it is looked at next.
    ask_at: u64,
}

impl Planner {
    /// The policy of a connection that is yet to be opened.
    pub(super) fn new(settings: Foresight) -> Self {
        Self {
            settings,
            start: StartParameters::default(),
            grows: false,
            ask_at: FIRST_GUESS / 2,
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

    /// All paths, those of the least expected time for `bytes` first.
    fn ranked(&self, bytes: u64, host: &HostPaths) -> Vec<PathForecast> {
        let flow_model = self.flow_model();
        let forecast = |(number, account)| flow_model.forecast(PathIndex(number as u8), account);
        let paths = host.paths().iter().enumerate().map(forecast);
        let mut ranked: Vec<(f64, PathForecast)> =
            paths.map(|on| (flow_model.alone(&on, bytes), on)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.into_iter().map(|(_, on)| on).collect()
    }

    /// How many of the paths of least round-trip time short flows fill: their load over what one path carries, so that
    /// long flows leave out as many.
    fn kept_free(&self, host: &HostPaths) -> usize {
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

    /// The paths that a flow of `bytes` is to use, in the order in which they join, and what each is expected to bring.
    fn plan(&self, bytes: u64, ranked: &[PathForecast]) -> Vec<(PathIndex, u64)> {
        let flow_model = self.flow_model();
        let Some((first, others)) = ranked.split_first() else {
            return Vec::new();
        };
        let mut plan = vec![*first];
        let mut time = flow_model.together(&plan, bytes);
        for on in others.iter().take(MOST - 1) {
            if flow_model.first_bytes(first, on) <= time * (1.0 + self.settings.slack) {
                plan.push(*on);
                time = flow_model.together(&plan, bytes);
            }
        }
        flow_model.shares(&plan, bytes)
    }

    /// The paths of a long flow: all but those that short flows fill.
    fn long(&self, host: &HostPaths) -> Vec<PathIndex> {
        let free = self.kept_free(host);
        host.by(|path| path.base_rtt).split_off(free)
    }

    /// Where the handshake goes on, and the tail of the data: other paths than the first, the best one first.
    fn protect(&self, opening: &mut ConnectionPlan, host: &HostPaths) {
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
            for on in others.by_ref().take(ATTEMPTS) {
                let expected = rtt(before);
                // Nothing is known of the path: TCP's own timer it is.
                if expected.is_zero() {
                    break;
                }
                let after = expected.mul_f64(multiple) + LEAST_PATIENCE;
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
            Some(size) if size > self.settings.short.bytes() => ConnectionPlan::over(self.long(host)),
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
        self.protect(&mut opening, host);
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
        let wanted: Vec<PathIndex> = if sent > self.settings.short.bytes() {
            self.long(host)
        } else {
            // What has sent so much is taken to send as much again, and at least what waits.
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
    use super::super::PolicySettings as _;
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

    fn paths(opening: &ConnectionPlan) -> Vec<u8> {
        let joins = opening.joins.iter().map(|join| join.path.0);
        std::iter::once(opening.first.0).chain(joins).collect()
    }

    fn open(settings: Foresight, size: Option<u64>, host: &HostPaths) -> ConnectionPlan {
        let mut policy = settings.build();
        policy.open(size, host, &mut Streams::new(1, 0).stream("paths"))
    }

    /// One that joins paths only for what they bring in time.
    fn frugal() -> Foresight {
        Foresight {
            slack: 0.0,
            ..Foresight::default()
        }
    }

    #[test]
    fn short_flows_take_the_path_on_which_they_end_first() {
        let mut host = host();
        let opening = open(frugal(), Some(50_000), &host);
        assert_eq!(paths(&opening), [1]);
        assert_eq!(opening.expected, [(PathIndex(1), 50_000)]);
        let tail = opening.tail.unwrap();
        assert_eq!(
            (tail.segments, tail.after, tail.path),
            (10, 150, Some(PathIndex(2)))
        );
        // 1 MB waits there, of twenty flows: 64 ms at 12.5 MB/s beyond what a round trip carries.
        let account = host.path_mut(PathIndex(1)).unwrap();
        (account.unfinished, account.subflows) = (1_000_000, 20);
        assert_eq!(paths(&open(frugal(), Some(50_000), &host)), [2]);
        let blind = Foresight {
            backlog: false,
            ..frugal()
        };
        assert_eq!(paths(&open(blind, Some(50_000), &host)), [1]);
        // They share the path with a flow of 1 kB, which holds none of them up for longer than it takes itself.
        assert_eq!(paths(&open(frugal(), Some(1000), &host)), [1]);
    }

    /// Expected to be done after 100 ms: by 400 ms a second path can have brought something, the slowest cannot.
    #[test]
    fn paths_join_that_could_help_if_things_go_wrong() {
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
    fn a_late_handshake_tries_the_others_in_their_order() {
        let host = host();
        let attempts = |settings| {
            let opening = open(settings, Some(50_000), &host);
            let attempts = opening.attempts.iter();
            attempts
                .map(|attempt| (attempt.path.0, attempt.after.as_nanos() / 1_000_000))
                .collect::<Vec<_>>()
        };
        // Twice the round trip of the path before, and 10 ms.
        assert_eq!(attempts(Foresight::default()), [(2, 50), (0, 70), (3, 90)]);
        let patient = Foresight {
            handshake_after: Some(0.0),
            ..Foresight::default()
        };
        assert_eq!(attempts(patient), []);
    }

    /// The first window and the timers are those of the connection: with a first window of one segment 14 kB take four round
    /// trips, and a path that carries less is no slower.
    #[test]
    fn the_connection_says_how_it_begins() {
        let host = host();
        let planner = |initial_window| Planner {
            settings: frugal(),
            start: StartParameters {
                initial_window,
                ..StartParameters::default()
            },
            grows: false,
            ask_at: 0,
        };
        let time = |planner: Planner| {
            let ranked = planner.ranked(14_000, &host);
            planner.flow_model().alone(&ranked[0], 14_000)
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(time(planner(10)), 0.020 + 0.020) && close(time(planner(1)), 0.020 + 4.0 * 0.020));
    }

    #[test]
    fn losses_drive_away() {
        let mut host = host();
        // One segment in ten: a timeout of 200 ms for three flows in ten, one of a second for one in ten.
        host.on_delivery(PathIndex(1), at(100), 0, 1500);
        assert_eq!(paths(&open(frugal(), Some(50_000), &host)), [2]);
        let blind = Foresight {
            losses: false,
            ..frugal()
        };
        assert_eq!(paths(&open(blind, Some(50_000), &host)), [1]);
    }

    #[test]
    fn long_flows_leave_paths_to_short_ones_in_proportion() {
        let mut host = host();
        let steering = Foresight {
            steer: true,
            ..Foresight::default()
        };
        let long = |host: &HostPaths| paths(&open(steering.clone(), Some(5_000_000), host));
        assert_eq!(long(&host), [1, 2, 0, 3]);
        // 10 flows/s of 800 kB are two thirds of 12.5 MB/s.
        for step in 0..50 {
            host.on_flow(at(step * 10), 800_000);
        }
        assert_eq!(long(&host), [2, 0, 3]);
        assert_eq!(
            paths(&open(Foresight::default(), Some(5_000_000), &host)),
            [1, 2, 0, 3]
        );
    }

    /// A delayed acknowledgement is not a queue; many long round trips are one.
    #[test]
    fn one_late_acknowledgement_says_little() {
        let mut host = host();
        host.on_round_trip(PathIndex(1), Duration::from_millis(220));
        assert_eq!(paths(&open(frugal(), Some(10_000), &host)), [1]);
        for _ in 0..100 {
            host.on_round_trip(PathIndex(1), Duration::from_millis(45));
        }
        assert_eq!(paths(&open(frugal(), Some(10_000), &host)), [2]);
    }

    #[test]
    fn flows_of_unknown_size_join_as_they_grow() {
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
                ..frugal()
            },
            Some(5_000_000),
            &host,
        );
        assert_eq!(paths(&known), [1], "as if it were not known");
    }
}
