//! The thread that starts flows, reads counters and ends the trial.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration as StdDuration;

use experiment::TrialSpec;
use experiment::metrics::GoodputWindow;
use experiment::observation::{self, Observation};
use experiment::plan::Group;
use experiment::trace::Sampling;
use experiment::workload::WorkloadKind;
use foundation::{Duration, Instant};
use network::{LinkId, Network, Topology};

use super::context::{TrialClock, TrialContext};
use super::flow::{Flow, Identity, Recording};
use super::start::{Launcher, choose_ways, shares_threads, start};
use super::trace::Tracing;
use crate::emulation::Emulation;
use crate::packet::IpPacket;
use crate::tap::Tap;

/// Interval between RTT samples.
const SAMPLE: Duration = Duration::from_millis(10);

/// A scheduled action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Control {
    Mark,
    GoodputWindow,
    Sample,
    Series,
    Start { group: u32, pair: u32, successors: u32 },
    Arrive { group: u32, pair: u32 },
    End,
}

/// The schedule of a trial.
pub(super) struct Trial<'e> {
    pub(super) emulation: &'e Emulation,
    pub(super) clock: TrialClock,
    topology: &'e Topology,
    controls: BTreeSet<(Instant, u64, Control)>,
    planned: u64,
    pub(super) flows: Vec<Arc<Flow>>,
    /// The observed links.
    pub(super) bottlenecks: Vec<LinkId>,
    before: Vec<Observation>,
    pub(super) after: Vec<Observation>,
    /// Packets marked by all links: before the measured time, then in it.
    pub(super) marked: u64,
    pub(super) windows: Vec<GoodputWindow>,
    last: Vec<u64>,
    pub(super) measured_from: Instant,
    pub(super) ended_at: Instant,
    window: Option<Duration>,
    arriving: bool,
    /// Index of the path account of each group and pair.
    pub(super) account_of: Vec<Vec<u32>>,
    /// Measured flows that are still to start.
    to_start: u64,
    /// Flows with a number of successors.
    followed: Vec<(Arc<Flow>, u32)>,
    /// Samples connections and queues for charts.
    pub(super) sampling: Option<Sampling>,
    /// Whether flows record events for the trace.
    pub(super) traces: bool,
}

impl<'e> Trial<'e> {
    pub(super) fn new(
        emulation: &'e Emulation,
        clock: TrialClock,
        spec: &TrialSpec,
        topology: &'e Topology,
        tracing: Option<Tracing>,
    ) -> Self {
        let sampling = tracing.and_then(|tracing| tracing.interval);
        let kind = spec.workload.kind;
        Self {
            emulation,
            clock,
            controls: BTreeSet::new(),
            planned: 0,
            flows: Vec::new(),
            before: vec![Observation::default(); topology.observed().count()],
            marked: 0,
            after: Vec::new(),
            bottlenecks: topology.observed().collect(),
            topology,
            windows: Vec::new(),
            last: Vec::new(),
            measured_from: Instant::ZERO,
            ended_at: Instant::ZERO,
            window: matches!(kind, WorkloadKind::Bulk | WorkloadKind::OnOff).then(|| spec.workload.sample()),
            arriving: false,
            account_of: Vec::new(),
            to_start: 0,
            followed: Vec::new(),
            sampling: sampling.map(|interval| Sampling::new(interval, topology)),
            traces: tracing.is_some(),
        }
    }

    fn plan(&mut self, at: Instant, control: Control) {
        self.planned += 1;
        self.controls.insert((at, self.planned, control));
    }

    fn prepare(&mut self, groups: &mut [Group], spec: &TrialSpec) {
        self.measured_from = Instant::ZERO + spec.workload.warm_up.unwrap_or_default();
        if spec.workload.kind.is_timed() {
            self.plan(self.measured_from, Control::Mark);
        }
        for (number, group) in groups.iter_mut().enumerate() {
            let successors = if shares_threads(group) {
                0
            } else {
                group.successors()
            };
            for (at, pair) in group.starts() {
                self.to_start += u64::from(group.is_measured());
                let action = Control::Start {
                    group: number as u32,
                    pair,
                    successors,
                };
                self.plan(at, action);
            }
            if group.workload.kind == WorkloadKind::Arrivals {
                self.arriving |= group.is_measured();
                let start = Instant::ZERO + group.workload.start.unwrap_or_default();
                self.plan_arrival(group, number, start);
            }
        }
        if let Some(duration) = spec.workload.duration.filter(|_| spec.workload.kind.is_timed()) {
            let factor = if spec.workload.kind == WorkloadKind::Arrivals {
                2
            } else {
                1
            };
            self.plan(Instant::ZERO + duration * factor, Control::End);
        }
        if let Some(window) = self.window {
            self.plan(Instant::ZERO + window, Control::GoodputWindow);
        }
        self.plan(Instant::ZERO + SAMPLE, Control::Sample);
        let interval = self.sampling.as_ref().map(Sampling::interval);
        if let Some(interval) = interval {
            self.plan(Instant::ZERO + interval, Control::Series);
        }
    }

    fn plan_arrival(&mut self, group: &mut Group, number: usize, after: Instant) {
        let (gap, pair) = group.next_arrival();
        let at = after + gap;
        if at < group.stop_at() {
            self.plan(
                at,
                Control::Arrive {
                    group: number as u32,
                    pair,
                },
            );
        } else if group.is_measured() {
            self.arriving = false;
        }
    }

    /// Runs until all measured flows are over or the workload's duration has passed. Returns whether it was cancelled.
    pub(super) fn run<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        groups: &mut [Group],
        shared: &'scope [Group],
        contexts: &'scope [TrialContext<'scope>],
        spec: &TrialSpec,
        cancel: Option<&AtomicBool>,
    ) -> bool
    where
        'e: 'scope,
    {
        self.prepare(groups, spec);
        let mut threads: Vec<ScopedJoinHandle<'scope, ()>> = Vec::new();
        let mut start_flow = |trial: &mut Self, groups: &mut [Group], group: u32, pair: u32| {
            let (own, context) = (&shared[group as usize], &contexts[group as usize]);
            let size = groups[group as usize].next_size();
            let account = trial.account_of[group as usize][pair as usize];
            let choice = choose_ways(
                context,
                trial.emulation,
                &mut groups[group as usize],
                pair,
                account,
                size,
            );
            threads.retain(|thread| !thread.is_finished());
            let id = Identity {
                number: trial.flows.len() as u32,
                group,
                pair,
                size,
                way: choice.first_way(own, pair),
                opened_at: trial.clock.now(),
            };
            let recording = Recording {
                round_trips: own.records_rtt,
                notes: trial.traces,
            };
            let flow = Arc::new(Flow::new(id, trial.clock, recording));
            trial.flows.push(Arc::clone(&flow));
            let launcher = Launcher {
                scope,
                emulation: trial.emulation,
                threads: &mut threads,
            };
            start(launcher, context, own, &flow, choice);
            flow
        };
        loop {
            if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                return true;
            }
            self.follow(groups);
            if self.is_done(groups) {
                break;
            }
            let Some(&(at, _, control)) = self.controls.first() else {
                break;
            };
            let left = at.saturating_since(self.clock.now());
            if !left.is_zero() {
                // Successors must start without delay.
                let look = if self.followed.is_empty() {
                    StdDuration::from_millis(20)
                } else {
                    StdDuration::from_millis(1)
                };
                std::thread::sleep(StdDuration::from_nanos(left.as_nanos()).min(look));
                continue;
            }
            self.controls.pop_first();
            match control {
                Control::Mark => self.mark(),
                Control::GoodputWindow => self.take_window(),
                Control::Sample => {
                    for flow in &self.flows {
                        flow.sample();
                    }
                    self.plan(at + SAMPLE, Control::Sample);
                }
                Control::Series => self.take_series(at, groups),
                Control::Start {
                    group,
                    pair,
                    successors,
                } => {
                    let counts = u64::from(groups[group as usize].is_measured());
                    self.to_start -= counts;
                    let flow = start_flow(self, groups, group, pair);
                    if successors > 0 {
                        self.to_start += counts;
                        self.followed.push((flow, successors));
                    }
                }
                Control::Arrive { group, pair } => {
                    start_flow(self, groups, group, pair);
                    self.plan_arrival(&mut groups[group as usize], group as usize, at);
                }
                Control::End => break,
            }
        }
        self.ended_at = self.clock.now();
        let seen = self.observe(Observation::take);
        self.marked = self.marked_so_far() - self.marked;
        self.after = seen
            .into_iter()
            .zip(&self.before)
            .map(|(now, before)| now.since(before))
            .collect();
        false
    }

    /// Schedules the successors of finished flows.
    fn follow(&mut self, groups: &[Group]) {
        let (over, going): (Vec<_>, Vec<_>) = std::mem::take(&mut self.followed)
            .into_iter()
            .partition(|(flow, _)| flow.over.load(Ordering::Relaxed));
        self.followed = going;
        for (flow, successors) in over {
            let group = &groups[flow.id.group as usize];
            self.to_start -= u64::from(group.is_measured());
            if flow.finished.load(Ordering::Relaxed) {
                self.to_start += u64::from(group.is_measured());
                let next = Control::Start {
                    group: flow.id.group,
                    pair: flow.id.pair,
                    successors: successors - 1,
                };
                self.plan(self.clock.now() + group.workload.think.unwrap_or_default(), next);
            }
        }
    }

    fn is_done(&self, groups: &[Group]) -> bool {
        let kind = groups[0].workload.kind;
        let ends_by_itself = !kind.is_timed() || kind == WorkloadKind::Arrivals;
        let mut own = self.flows.iter().filter(|flow| flow.id.group == 0);
        ends_by_itself
            && self.to_start == 0
            && !self.arriving
            && own.all(|flow| flow.over.load(Ordering::Relaxed))
    }

    /// Observes the observed links with `look`.
    fn observe(
        &self,
        look: impl Fn(Instant, &mut Network<IpPacket, Tap>, LinkId) -> Observation + Send + 'static,
    ) -> Vec<Observation> {
        let links = self.bottlenecks.clone();
        self.emulation
            .with_network(move |network, now| links.iter().map(|&link| look(now, network, link)).collect())
    }

    /// Returns the packets marked by all links since the start.
    fn marked_so_far(&self) -> u64 {
        let links = self.topology.links().len();
        self.emulation
            .with_network(move |network, _| observation::marked(network, links))
    }

    /// Starts the measurement.
    fn mark(&mut self) {
        for flow in &self.flows {
            flow.mark();
        }
        self.before = self.observe(Observation::mark);
        self.marked = self.marked_so_far();
        self.measured_from = self.clock.now();
    }

    fn take_window(&mut self) {
        let now = self.clock.now();
        let mut delivered = Vec::with_capacity(self.flows.len());
        self.last.resize(self.flows.len(), 0);
        for (flow, last) in self.flows.iter().zip(&mut self.last) {
            let total = flow.delivered[0].load(Ordering::Relaxed);
            delivered.push((flow.id.number, total - *last));
            *last = total;
        }
        self.windows.push(GoodputWindow { at: now, delivered });
        if let Some(window) = self.window {
            self.plan(now + window, Control::GoodputWindow);
        }
    }

    /// Samples connections and queues. A late sample is not repeated.
    fn take_series(&mut self, at: Instant, groups: &[Group]) {
        let links = self.bottlenecks.clone();
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let queues: Vec<(u64, u64)> = self.emulation.with_network(move |network, now| {
            let queues = links.iter().map(|&link| network.queue(link, now));
            queues.map(|waiting| (waiting.packets, waiting.bytes)).collect()
        });
        let now = self.clock.now();
        for flow in &self.flows {
            let id = flow.id;
            let group = &groups[id.group as usize];
            let to = group.data_receiver();
            if let Some(probe) = flow.probe(to.other()) {
                let name = || group.flow_name(id.pair, self.topology);
                let delivered = flow.delivered_to(to);
                sampling.take_flow(now, id.number, name, &probe, delivered);
            }
        }
        sampling.take_queues(now, queues);
        let next = (at + sampling.interval()).max(now);
        self.plan(next, Control::Series);
    }
}
