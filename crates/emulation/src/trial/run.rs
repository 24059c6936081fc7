//! The thread that starts flows, reads counters and ends the trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration as StdDuration;

use experiment::TrialSpec;
use experiment::goodput::GoodputSampler;
use experiment::observation::{Baseline, Observation};
use experiment::plan::Group;
use experiment::schedule::{Action, FlowStart, Sample, Schedule};
use experiment::trace::Sampling;
use foundation::{Duration, Instant};
use network::Topology;

use super::barrier::RequestBarrier;
use super::context::{TrialClock, TrialContext};
use super::flow::{Flow, Identity, Recording};
use super::start::{Launcher, choose_ways, start};
use super::trace::Tracing;
use crate::emulation::Emulation;

/// Interval between RTT samples.
const SAMPLE: Duration = Duration::from_millis(10);

/// A running trial.
pub(super) struct Trial<'e> {
    pub(super) emulation: &'e Emulation,
    pub(super) clock: TrialClock,
    topology: &'e Topology,
    pub(super) flows: Vec<Arc<Flow>>,
    baseline: Baseline,
    /// The observed links over the measured time.
    pub(super) links: Vec<Observation>,
    /// Packets marked by all links in the measured time.
    pub(super) marked: u64,
    pub(super) goodput: GoodputSampler,
    pub(super) measured_from: Instant,
    pub(super) ended_at: Instant,
    /// Index of the path account of each group and pair.
    pub(super) account_of: Vec<Vec<u32>>,
    /// By group.
    barriers: Vec<Option<Arc<RequestBarrier>>>,
    /// Flows whose opening thread runs.
    open: Vec<(FlowStart, Arc<Flow>)>,
    /// Samples connections and queues for charts.
    pub(super) sampling: Option<Sampling>,
    /// Whether flows record events for the trace.
    pub(super) traces: bool,
}

/// What the threads of flows need as long as they run.
#[derive(Clone, Copy)]
pub(super) struct Shared<'scope, 'env> {
    pub scope: &'scope Scope<'scope, 'env>,
    pub groups: &'scope [Group],
    pub contexts: &'scope [TrialContext<'scope>],
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
        Self {
            emulation,
            clock,
            flows: Vec::new(),
            baseline: Baseline::new(topology),
            marked: 0,
            links: Vec::new(),
            topology,
            goodput: GoodputSampler::new(&spec.workload),
            measured_from: Instant::ZERO,
            ended_at: Instant::ZERO,
            account_of: Vec::new(),
            barriers: Vec::new(),
            open: Vec::new(),
            sampling: sampling.map(|interval| Sampling::new(interval, topology)),
            traces: tracing.is_some(),
        }
    }

    /// Runs until all measured flows are over or the workload's duration has passed. Returns whether it was cancelled.
    pub(super) fn run<'scope>(
        &mut self,
        shared: Shared<'scope, '_>,
        groups: &mut [Group],
        spec: &TrialSpec,
        cancel: Option<&AtomicBool>,
    ) -> bool
    where
        'e: 'scope,
    {
        let samples = [
            (Sample::Goodput, self.goodput.interval()),
            (Sample::RoundTrips, Some(SAMPLE)),
            (Sample::Series, self.sampling.as_ref().map(Sampling::interval)),
        ];
        let mut schedule = Schedule::of(spec, groups, &samples);
        let barrier = |group: &Group| {
            let members = group.pairs.len() * group.workload.flows() as usize;
            (group.workload.barrier == Some(true)).then(|| Arc::new(RequestBarrier::new(members)))
        };
        self.barriers = groups.iter().map(barrier).collect();
        let mut threads: Vec<ScopedJoinHandle<'scope, ()>> = Vec::new();
        loop {
            if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                return true;
            }
            self.report_ended(&mut schedule, groups);
            if schedule.is_over() {
                break;
            }
            let Some((at, action)) = schedule.pop(self.clock.now(), groups) else {
                self.wait(&schedule);
                continue;
            };
            match action {
                Action::Mark => self.mark(),
                Action::Sample(sample) => {
                    let next = self.take(sample, at, groups);
                    schedule.add_sample(next, sample);
                }
                Action::Start(flow) => self.start_flow(shared, groups, flow, &mut threads),
                // Flows release each other.
                Action::Release(_) | Action::End => {}
            }
        }
        self.ended_at = self.clock.now();
        let baseline = self.baseline.clone();
        (self.links, self.marked) = self
            .emulation
            .with_network(move |network, now| baseline.take(now, network));
        false
    }

    /// Waits for the next action, at most until flows may have ended.
    fn wait(&self, schedule: &Schedule) {
        let left = schedule.next_at().saturating_since(self.clock.now());
        // Successors must start without delay.
        let has_successors = self.open.iter().any(|(start, _)| start.successors > 0);
        let look = StdDuration::from_millis(if has_successors { 1 } else { 20 });
        std::thread::sleep(StdDuration::from_nanos(left.as_nanos()).min(look));
    }

    /// Reports flows that have ended to the schedule.
    fn report_ended(&mut self, schedule: &mut Schedule, groups: &[Group]) {
        let now = self.clock.now();
        self.open.retain(|(start, flow)| {
            let is_over = flow.over.load(Ordering::Relaxed);
            if is_over {
                let failed = !flow.finished.load(Ordering::Relaxed);
                schedule.ended(now, *start, &groups[start.group as usize], failed);
            }
            !is_over
        });
    }

    /// Starts the threads of a flow.
    fn start_flow<'scope>(
        &mut self,
        shared: Shared<'scope, '_>,
        groups: &mut [Group],
        flow: FlowStart,
        threads: &mut Vec<ScopedJoinHandle<'scope, ()>>,
    ) where
        'e: 'scope,
    {
        let FlowStart {
            group, pair, size, ..
        } = flow;
        let (own, context) = (&shared.groups[group as usize], &shared.contexts[group as usize]);
        let account = self.account_of[group as usize][pair as usize];
        let choice = choose_ways(
            context,
            self.emulation,
            &mut groups[group as usize],
            pair,
            account,
            size,
        );
        threads.retain(|thread| !thread.is_finished());
        let id = Identity {
            number: self.flows.len() as u32,
            group,
            pair,
            size,
            way: choice.first_way(own, pair),
            opened_at: self.clock.now(),
        };
        let recording = Recording {
            round_trips: own.records_rtt,
            notes: self.traces,
        };
        let started = Arc::new(Flow::new(
            id,
            self.clock,
            recording,
            self.barriers[group as usize].clone(),
        ));
        self.flows.push(Arc::clone(&started));
        let launcher = Launcher {
            scope: shared.scope,
            emulation: self.emulation,
            threads,
        };
        start(launcher, context, own, &started, choice);
        self.open.push((flow, started));
    }

    /// Starts the measured time.
    fn mark(&mut self) {
        for flow in &self.flows {
            flow.mark();
        }
        let mut baseline = self.baseline.clone();
        self.baseline = self.emulation.with_network(move |network, now| {
            baseline.mark(now, network);
            baseline
        });
        self.measured_from = self.clock.now();
    }

    /// Takes a sample that was due at `at`. Returns the time of the next one; a late sample is not repeated.
    fn take(&mut self, sample: Sample, at: Instant, groups: &[Group]) -> Instant {
        let now = self.clock.now();
        match sample {
            Sample::RoundTrips => {
                for flow in &self.flows {
                    flow.sample();
                }
                at + SAMPLE
            }
            Sample::Goodput => {
                let flows = self.flows.iter();
                let delivered = flows.map(|flow| (flow.id.number, flow.delivered[0].load(Ordering::Relaxed)));
                self.goodput.take(now, delivered);
                now + self.goodput.interval().unwrap_or_default()
            }
            Sample::Series => self.take_series(at, groups),
        }
    }

    /// Samples connections and queues.
    fn take_series(&mut self, at: Instant, groups: &[Group]) -> Instant {
        let links: Vec<_> = self.topology.observed().collect();
        let Some(sampling) = &mut self.sampling else {
            return Instant::MAX;
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
        (at + sampling.interval()).max(now)
    }
}
