//! The schedule of a trial: starts of flows, samples, the start of the measured time, and the end. Worlds read it with their
//! clocks and report finished flows.

use std::collections::BTreeSet;

use foundation::{Duration, Instant};

use crate::barrier::Barrier;
use crate::plan::Group;
use crate::spec::TrialSpec;
use crate::workload::WorkloadKind;

/// A periodic sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sample {
    /// Bytes delivered per flow.
    Goodput,
    /// RTTs of connections that do not record all of them.
    RoundTrips,
    /// Machines and queues.
    Series,
}

/// The start of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStart {
    /// Index of its group.
    pub group: u32,
    /// Index of its pair of hosts.
    pub pair: u32,
    /// Bytes to send, if known.
    pub size: Option<u64>,
    /// Number of flows that follow it, each after the end of the one before (`reconnect`).
    pub successors: u32,
}

/// What a world does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Starts the measured time.
    Mark,
    /// Takes a sample.
    Sample(Sample),
    /// Starts a flow.
    Start(FlowStart),
    /// Sends the next requests of all flows of a group (`barrier`).
    Release(u32),
    /// Ends the trial.
    End,
}

/// A planned action, before the sizes of flows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Planned {
    Mark,
    Sample(Sample),
    Start {
        group: u32,
        pair: u32,
        successors: u32,
    },
    /// A start of a Poisson process; the next one is drawn.
    Arrive {
        group: u32,
        pair: u32,
    },
    Release(u32),
    End,
}

/// The actions of a trial in order of time, then in order of planning, and the measured flows that its end awaits.
#[derive(Debug)]
pub struct Schedule {
    planned: BTreeSet<(Instant, u64, Planned)>,
    /// Time of the first of them, which worlds read for every event; `MAX` for none.
    next_at: Instant,
    /// Number of actions planned so far.
    count: u64,
    /// Number of measured flows that are incomplete or have not started.
    outstanding: u64,
    /// Whether further measured flows will arrive.
    arriving: bool,
    /// Whether the trial ends with its last measured flow.
    ends_with_flows: bool,
    over: bool,
    /// By group.
    barriers: Vec<Barrier>,
}

impl Schedule {
    /// Plans a trial of `groups`, the measured one first, with the first of each periodic sample.
    #[must_use]
    pub fn of(spec: &TrialSpec, groups: &mut [Group], samples: &[(Sample, Option<Duration>)]) -> Self {
        let kind = spec.workload.kind;
        let mut schedule = Self {
            planned: BTreeSet::new(),
            next_at: Instant::MAX,
            count: 0,
            outstanding: 0,
            arriving: false,
            ends_with_flows: !kind.is_timed() || kind == WorkloadKind::Arrivals,
            over: false,
            barriers: Vec::new(),
        };
        if kind.is_timed() {
            schedule.add(spec.measured_from(), Planned::Mark);
        }
        for (number, group) in (0_u32..).zip(groups) {
            schedule.add_group(number, group);
        }
        if let Some(duration) = spec.workload.duration.filter(|_| kind.is_timed()) {
            // Arriving flows have the same time again to complete; the others count as unfinished.
            let factor = if kind == WorkloadKind::Arrivals { 2 } else { 1 };
            schedule.add(Instant::ZERO + duration * factor, Planned::End);
        }
        for &(sample, interval) in samples {
            if let Some(interval) = interval {
                schedule.add_sample(Instant::ZERO + interval, sample);
            }
        }
        schedule
    }

    fn add(&mut self, at: Instant, planned: Planned) {
        self.count += 1;
        self.planned.insert((at, self.count, planned));
        self.next_at = self.next_at.min(at);
    }

    fn add_group(&mut self, number: u32, group: &mut Group) {
        let successors = group.successors;
        let starts = group.starts();
        self.barriers.push(Barrier::new(starts.len()));
        for (at, pair) in starts {
            self.outstanding += u64::from(group.is_measured()) * u64::from(1 + successors);
            let start = Planned::Start {
                group: number,
                pair,
                successors,
            };
            self.add(at, start);
        }
        if group.workload.kind == WorkloadKind::Arrivals {
            self.arriving |= group.is_measured();
            let start = Instant::ZERO + group.workload.start.unwrap_or_default();
            self.add_arrival(number, group, start);
        }
    }

    fn add_arrival(&mut self, number: u32, group: &mut Group, after: Instant) {
        let (gap, pair) = group.next_arrival();
        let at = after + gap;
        if at < group.stop_at() {
            self.add(at, Planned::Arrive { group: number, pair });
        } else if group.is_measured() {
            self.arriving = false;
        }
    }

    /// Plans a sample.
    pub fn add_sample(&mut self, at: Instant, sample: Sample) {
        self.add(at, Planned::Sample(sample));
    }

    /// Adds a measured flow that the trial's end awaits and that the caller starts.
    pub const fn add_flow(&mut self) {
        self.outstanding += 1;
    }

    /// Returns the time of the next action; `MAX` if there is none.
    #[must_use]
    #[inline]
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Removes and returns the next action due by `now`, with its time. Draws the size of a flow, and the next arrival of its group.
    pub fn pop(&mut self, now: Instant, groups: &mut [Group]) -> Option<(Instant, Action)> {
        let &(at, _, planned) = self.planned.first().filter(|first| first.0 <= now)?;
        self.planned.pop_first();
        self.next_at = self.planned.first().map_or(Instant::MAX, |first| first.0);
        let action = match planned {
            Planned::Mark => Action::Mark,
            Planned::Sample(sample) => Action::Sample(sample),
            Planned::Start {
                group,
                pair,
                successors,
            } => Action::Start(FlowStart {
                group,
                pair,
                size: groups[group as usize].next_size(pair),
                successors,
            }),
            Planned::Arrive { group, pair } => {
                let own = &mut groups[group as usize];
                let size = own.next_size(pair);
                self.outstanding += u64::from(own.is_measured());
                self.add_arrival(group, own, at);
                Action::Start(FlowStart {
                    group,
                    pair,
                    size,
                    successors: 0,
                })
            }
            Planned::Release(group) => Action::Release(group),
            Planned::End => {
                self.over = true;
                Action::End
            }
        };
        Some((at, action))
    }

    /// Records the end of a flow, and plans its successor after the group's pause. No flow follows a failure.
    pub fn ended(&mut self, now: Instant, flow: FlowStart, group: &Group, failed: bool) {
        let ended = if failed { 1 + flow.successors } else { 1 };
        self.outstanding -= u64::from(group.is_measured()) * u64::from(ended);
        if flow.successors > 0 && !failed {
            let next = Planned::Start {
                group: flow.group,
                pair: flow.pair,
                successors: flow.successors - 1,
            };
            self.add(now + group.workload.think.unwrap_or_default(), next);
        }
        if self.barriers[flow.group as usize].leave() {
            self.add(now, Planned::Release(flow.group));
        }
        self.over |= self.ends_with_flows && self.outstanding == 0 && !self.arriving;
    }

    /// Records that a flow of a group has its response and waits for the others. With the last one, plans the next requests.
    pub fn waits(&mut self, now: Instant, group: u32) {
        if self.barriers[group as usize].arrive() {
            self.add(now, Planned::Release(group));
        }
    }

    /// Ends the trial.
    pub const fn end(&mut self) {
        self.over = true;
    }

    /// Returns whether the trial has ended.
    #[must_use]
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Returns whether all planned actions only take samples.
    #[must_use]
    pub fn has_samples_only(&self) -> bool {
        self.planned
            .iter()
            .all(|(_, _, planned)| matches!(planned, Planned::Sample(_)))
    }
}
