//! A trial on real kernels: the hosts of a topology are namespaces, the links between them the network on wall time, and
//! the flows those of the study, over the kernel's sockets. What it counts becomes the same record as in simulation.

mod flow;
mod info;
mod settings;
mod tcp;
mod udp;

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration as StdDuration;

use experiment::metrics::{Measured, Window};
use experiment::observation::Observation;
use experiment::plan::{Group, Plan, Protocol};
use experiment::workload::Kind;
use experiment::{Record, SpecError, TrialSpec};
use foundation::{Duration, Instant, Problem};
use network::{HostId, LinkId};

use crate::error::Error;
use crate::{Clock, Emulation, EmulationOptions};
use flow::Flow;
use settings::KernelTcp;
pub use settings::Names;
use tcp::Setting;

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The specification cannot be run, or not on real kernels.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// This system cannot emulate.
    #[error(transparent)]
    Emulation(#[from] Error),
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
}

/// Wall time since the trial began.
#[derive(Clone, Copy, Debug)]
struct TrialClock {
    clock: Clock,
    start: Instant,
}

impl TrialClock {
    fn begin(clock: Clock) -> Self {
        Self {
            clock,
            start: clock.now(),
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.clock.now().saturating_since(self.start)
    }
}

/// How often connections are asked for their round-trip time.
const SAMPLE: Duration = Duration::from_millis(10);
/// The port of ARQ protocols at a receiver.
const ARQ_PORT: u16 = 9000;

/// What the world does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Control {
    Mark,
    Window,
    Sample,
    Begin { group: u32, pair: u32, successors: u32 },
    Arrive { group: u32, pair: u32 },
    End,
}

/// Runs a trial. `names` says what the kernel calls controllers that were given to it for the occasion; `cancel` is
/// looked at now and then.
///
/// # Errors
/// [`TrialError`]; a transfer that fails is no error but a record that says so.
pub fn run(spec: &TrialSpec, names: &Names, cancel: Option<&AtomicBool>) -> Result<Record, TrialError> {
    let plan = Plan::of(spec)?;
    let kernels = kernels(&plan.groups, names)?;
    let options = EmulationOptions::new(plan.topology.clone(), spec.streams().component("network"));
    let emulation = Emulation::start(options)?;
    for (group, kernel) in plan.groups.iter().zip(&kernels) {
        let hosts: BTreeSet<HostId> = group.pairs.iter().flat_map(|pair| [pair.from, pair.to]).collect();
        for host in hosts {
            for (name, value) in kernel.iter().flat_map(|kernel| &kernel.sysctls) {
                emulation.in_host(host, || super::host::set(name, value))?;
            }
        }
    }
    let stop = AtomicBool::new(false);
    let mut groups = plan.groups;
    let clock = TrialClock::begin(emulation.clock());
    let mut trial = Trial::new(&emulation, clock, spec, plan.topology.bottlenecks().to_vec());
    let fallback = KernelTcp::of(&transport::tcp::TcpConfig::default(), names).map_err(SpecError::Invalid)?;
    let settings: Vec<Setting<'_>> = kernels
        .iter()
        .map(|kernel| Setting {
            clock,
            kernel: kernel.as_ref().unwrap_or(&fallback),
            stop: &stop,
        })
        .collect();
    let shared = groups.clone();
    let cancelled = std::thread::scope(|scope| {
        let cancelled = trial.run(scope, &mut groups, &shared, &settings, spec, cancel);
        stop.store(true, Ordering::Relaxed);
        cancelled
    });
    if cancelled {
        return Err(TrialError::Cancelled);
    }
    let outcomes: Vec<_> = trial.flows.iter().map(|flow| flow.outcome()).collect();
    let measured = Measured {
        topology: &plan.topology,
        groups: &groups,
        flows: &outcomes,
        windows: &trial.windows,
        bottlenecks: &trial.after,
        from: trial.measured_from,
        until: trial.ended_at,
    };
    Ok(Record::of(&measured, None))
}

/// What each group asks of the kernel; `None` for what runs over UDP.
fn kernels(groups: &[Group], names: &Names) -> Result<Vec<Option<KernelTcp>>, SpecError> {
    let of = |(number, group): (usize, &Group)| {
        let place = if number == 0 {
            "protocol".to_owned()
        } else {
            format!("traffic.{}.protocol", number - 1)
        };
        let within = |problem: Problem| problem.within(&place);
        match &group.protocol {
            Protocol::Tcp(config) => KernelTcp::of(config, names)
                .map(Some)
                .map_err(|problems| SpecError::Invalid(problems.into_iter().map(within).collect())),
            Protocol::Arq(_) if group.workload.kind != Kind::File || group.workload.flows() > 1 => {
                let message = "on real kernels the ARQ protocols carry one file a pair of hosts";
                Err(SpecError::Invalid(vec![within(Problem::new("kind", message))]))
            }
            Protocol::Arq(_) | Protocol::Udp(_) => Ok(None),
        }
    };
    groups.iter().enumerate().map(of).collect()
}

/// The thread that begins flows, reads counters and ends the trial.
struct Trial<'e> {
    emulation: &'e Emulation,
    clock: TrialClock,
    controls: BTreeSet<(Instant, u64, Control)>,
    planned: u64,
    flows: Vec<Arc<Flow>>,
    bottlenecks: Vec<LinkId>,
    before: Vec<Observation>,
    after: Vec<Observation>,
    windows: Vec<Window>,
    last: Vec<u64>,
    measured_from: Instant,
    ended_at: Instant,
    window: Option<Duration>,
    arriving: bool,
    /// Begins that are still to come, of measured flows.
    to_begin: u64,
    /// Flows that so many others follow, one after the other.
    followed: Vec<(Arc<Flow>, u32)>,
}

impl<'e> Trial<'e> {
    fn new(emulation: &'e Emulation, clock: TrialClock, spec: &TrialSpec, bottlenecks: Vec<LinkId>) -> Self {
        let kind = spec.workload.kind;
        Self {
            emulation,
            clock,
            controls: BTreeSet::new(),
            planned: 0,
            flows: Vec::new(),
            before: vec![Observation::default(); bottlenecks.len()],
            after: Vec::new(),
            bottlenecks,
            windows: Vec::new(),
            last: Vec::new(),
            measured_from: Instant::ZERO,
            ended_at: Instant::ZERO,
            window: matches!(kind, Kind::Bulk | Kind::OnOff).then(|| spec.workload.sample()),
            arriving: false,
            to_begin: 0,
            followed: Vec::new(),
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
            let successors = group.successors();
            for (at, pair) in group.starts() {
                self.to_begin += u64::from(group.is_measured());
                let begin = Control::Begin {
                    group: number as u32,
                    pair,
                    successors,
                };
                self.plan(at, begin);
            }
            if group.workload.kind == Kind::Arrivals {
                self.arriving |= group.is_measured();
                let start = Instant::ZERO + group.workload.start.unwrap_or_default();
                self.plan_arrival(group, number, start);
            }
        }
        if let Some(duration) = spec.workload.duration.filter(|_| spec.workload.kind.is_timed()) {
            let factor = if spec.workload.kind == Kind::Arrivals {
                2
            } else {
                1
            };
            self.plan(Instant::ZERO + duration * factor, Control::End);
        }
        if let Some(window) = self.window {
            self.plan(Instant::ZERO + window, Control::Window);
        }
        self.plan(Instant::ZERO + SAMPLE, Control::Sample);
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

    /// Runs until all measured flows are over, or for the time that the workload gives. Gives whether it was cancelled.
    fn run<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        groups: &mut [Group],
        shared: &'scope [Group],
        settings: &'scope [Setting<'scope>],
        spec: &TrialSpec,
        cancel: Option<&AtomicBool>,
    ) -> bool
    where
        'e: 'scope,
    {
        self.prepare(groups, spec);
        let mut threads: Vec<ScopedJoinHandle<'scope, ()>> = Vec::new();
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
                std::thread::sleep(
                    StdDuration::from_nanos(left.as_nanos()).min(StdDuration::from_millis(20)),
                );
                continue;
            }
            self.controls.pop_first();
            match control {
                Control::Mark => self.mark(),
                Control::Window => self.take_window(),
                Control::Sample => {
                    for flow in &self.flows {
                        flow.sample();
                    }
                    self.plan(at + SAMPLE, Control::Sample);
                }
                Control::Begin {
                    group,
                    pair,
                    successors,
                } => {
                    self.to_begin -= u64::from(groups[group as usize].is_measured());
                    let size = groups[group as usize].next_size();
                    let flow = self.begin(scope, shared, settings, group, pair, size, &mut threads);
                    if successors > 0 {
                        self.to_begin += u64::from(groups[group as usize].is_measured());
                        self.followed.push((flow, successors));
                    }
                }
                Control::Arrive { group, pair } => {
                    let size = groups[group as usize].next_size();
                    self.begin(scope, shared, settings, group, pair, size, &mut threads);
                    self.plan_arrival(&mut groups[group as usize], group as usize, at);
                }
                Control::End => break,
            }
            threads.retain(|thread| !thread.is_finished());
        }
        self.ended_at = self.clock.now();
        let seen = self.observe();
        self.after = seen
            .into_iter()
            .zip(&self.before)
            .map(|(now, before)| now.since(before))
            .collect();
        false
    }

    /// Flows whose workload reconnects are followed by the next ones when they are over.
    fn follow(&mut self, groups: &[Group]) {
        let (over, going): (Vec<_>, Vec<_>) = std::mem::take(&mut self.followed)
            .into_iter()
            .partition(|(flow, _)| flow.over.load(Ordering::Relaxed));
        self.followed = going;
        for (flow, successors) in over {
            let group = &groups[flow.group as usize];
            self.to_begin -= u64::from(group.is_measured());
            if flow.finished.load(Ordering::Relaxed) {
                self.to_begin += u64::from(group.is_measured());
                let next = Control::Begin {
                    group: flow.group,
                    pair: flow.pair,
                    successors: successors - 1,
                };
                self.plan(self.clock.now() + group.workload.think.unwrap_or_default(), next);
            }
        }
    }

    fn is_done(&self, groups: &[Group]) -> bool {
        let kind = groups[0].workload.kind;
        let ends_by_itself = !kind.is_timed() || kind == Kind::Arrivals;
        let mut own = self.flows.iter().filter(|flow| flow.group == 0);
        ends_by_itself
            && self.to_begin == 0
            && !self.arriving
            && own.all(|flow| flow.over.load(Ordering::Relaxed))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one trial, each of its own lifetime"
    )]
    fn begin<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        shared: &'scope [Group],
        settings: &'scope [Setting<'scope>],
        number: u32,
        pair: u32,
        size: Option<u64>,
        threads: &mut Vec<ScopedJoinHandle<'scope, ()>>,
    ) -> Arc<Flow>
    where
        'e: 'scope,
    {
        let (group, setting) = (&shared[number as usize], &settings[number as usize]);
        let way = &group.pairs[pair as usize];
        let records_rtt = group.records_rtt;
        let count = self.flows.len() as u32;
        let flow = Arc::new(Flow::new(
            count,
            number,
            pair,
            size,
            self.clock.now(),
            records_rtt,
        ));
        self.flows.push(Arc::clone(&flow));
        let emulation = self.emulation;
        let address = emulation.host_address(way.to);
        let (near, far) = (emulation.namespace(way.from), emulation.namespace(way.to));
        let (here, there) = (Arc::clone(&flow), Arc::clone(&flow));
        match &group.protocol {
            Protocol::Tcp(_) => match emulation.in_host(way.to, || setting.listen(address)) {
                Err(error) => {
                    flow.fail(error.to_string());
                    flow.over.store(true, Ordering::Relaxed);
                }
                Ok(listener) => {
                    let to = listener.local_addr().unwrap_or(SocketAddr::from((address, 0)));
                    threads.push(scope.spawn(move || {
                        let _ = far.run(|| tcp::accept(setting, group, &there, &listener));
                    }));
                    threads.push(scope.spawn(move || {
                        let _ = near.run(|| tcp::open(setting, group, &here, to));
                    }));
                }
            },
            &Protocol::Udp(datagram) => match emulation.in_host(way.to, || UdpSocket::bind((address, 0))) {
                Err(error) => flow.fail(error.to_string()),
                Ok(socket) => {
                    let to = socket.local_addr().unwrap_or(SocketAddr::from((address, 0)));
                    threads.push(scope.spawn(move || {
                        let _ = far.run(|| udp::sink(setting, &there, &socket));
                    }));
                    threads.push(scope.spawn(move || {
                        let _ = near.run(|| udp::source(setting, group, &here, datagram, to));
                    }));
                }
            },
            Protocol::Arq(protocol) => {
                let to = SocketAddr::from((address, ARQ_PORT));
                let (listening, bound) = std::sync::mpsc::channel();
                threads.push(scope.spawn(move || {
                    let mut go_on = || !setting.stop.load(Ordering::Relaxed);
                    let _ = far.run(|| {
                        // Whoever waits for the word is gone only where the trial is over.
                        let tell = |_| {
                            let _ = listening.send(());
                        };
                        socket::endpoint::receive_pattern(to, tell, &mut go_on)
                    });
                }));
                threads.push(scope.spawn(move || {
                    let _ = bound.recv();
                    let _ = near.run(|| udp::send_file(setting, &here, protocol, to));
                }));
            }
        }
        flow
    }

    fn observe(&self) -> Vec<Observation> {
        let links = self.bottlenecks.clone();
        self.emulation.with_network(move |network, now| {
            links
                .iter()
                .map(|&link| Observation::of(now, network, link))
                .collect()
        })
    }

    /// From here on is measured.
    fn mark(&mut self) {
        for flow in &self.flows {
            flow.mark();
        }
        self.before = self.observe();
        self.measured_from = self.clock.now();
    }

    fn take_window(&mut self) {
        let now = self.clock.now();
        let mut delivered = Vec::with_capacity(self.flows.len());
        self.last.resize(self.flows.len(), 0);
        for (flow, last) in self.flows.iter().zip(&mut self.last) {
            let total = flow.delivered[0].load(Ordering::Relaxed);
            delivered.push((flow.number, total - *last));
            *last = total;
        }
        self.windows.push(Window { at: now, delivered });
        if let Some(window) = self.window {
            self.plan(now + window, Control::Window);
        }
    }
}
