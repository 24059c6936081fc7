//! The event loop on virtual time: a clock, the ends of all flows, and the network between them.

mod changes;
mod collective;
mod outcomes;
mod stopped_clock;

use std::sync::Arc;

use experiment::accounts::accounts;
use experiment::observation::Observation;
use experiment::outcome::FlowOutcome;
use experiment::plan::{Group, Plan, Protocol};
use experiment::schedule::{Action, FlowStart, Sample, Schedule};
use experiment::spec::{SpecError, TrialSpec};
use experiment::support::refuse_timeless;
use experiment::trace::Series;
use foundation::{Duration, Instant};
use network::topology::Topology;
use network::{Network, TooBig};
use rand::Rng as _;
use transport::mptcp::HostPaths;
use transport::tcp::HostMemory;

use crate::body::{Content, Parcel, Side, packet};
use crate::endpoint::{Endpoint, Host, baseline, ends, timeouts};
use crate::flow::Flow;
use crate::sampling::Sampler;
use crate::timers::Timers;
use crate::trace::pcapng::FlowEnds;
use crate::watch::WorldObserver;
use collective::Collective;
use stopped_clock::{MOST_EVENTS, StoppedClock};

/// A function that returns whether to stop. It is polled every few thousand events.
pub type Interrupt<'a> = Option<&'a dyn Fn() -> bool>;

/// Why a run stopped early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// No events are left and the transfer is incomplete.
    #[error("the transfer stalled")]
    Stalled,
    /// A million events or more at one instant, so the clock would never advance. The text names the flow and the instant.
    #[error("{0}")]
    Timeless(String),
}

/// Hosts, flows and a network.
pub struct World<W: WorldObserver = ()> {
    now: Instant,
    network: Network<Parcel, W>,
    topology: Topology,
    groups: Vec<Group>,
    /// Active flows; slots are reused.
    flows: Vec<Option<Flow>>,
    free: Vec<u32>,
    /// The slot of each flow by number; `GONE` once it is retired.
    places: Vec<u32>,
    timers: Timers,
    /// Path estimates of the hosts, and their indices by group and pair.
    accounts: Vec<HostPaths>,
    account_of: Vec<Vec<u32>>,
    /// Caches of the hosts for TCP Fast Open and T/TCP, by host; a single empty one if no group uses them.
    memories: Vec<HostMemory>,
    /// Tickets of QUIC, by client and server.
    #[cfg(feature = "quic")]
    tickets: crate::endpoint::Tickets,
    schedule: Schedule,
    /// The all-reduces, by group.
    collectives: Vec<Option<Collective>>,
    outcomes: Vec<FlowOutcome>,
    sampler: Sampler,
    measured_from: Instant,
    stopped: StoppedClock,
}

const GONE: u32 = u32::MAX;
/// Flows whose ends stay in the processor's caches, so that prefetching them would only take instructions.
const CACHED_FLOWS: usize = 256;
/// Steps between two checks for cancellation.
const STEPS_PER_CHECK: u32 = 4096;

/// Returns a cache per host if any group uses TCP Fast Open or T/TCP, else a single one.
fn memories(groups: &[Group], hosts: usize) -> Vec<HostMemory> {
    let is_early = |group: &Group| matches!(&group.protocol, Protocol::Tcp(tcp) if tcp.fast_open || tcp.ttcp);
    let count = if groups.iter().any(is_early) { hosts } else { 1 };
    let memory = |host: usize| {
        let mut random = groups[0].streams.stream(&format!("opening/{host}"));
        let mut key = [0; 32];
        random.fill_bytes(&mut key);
        HostMemory::new(key, random.next_u32())
    };
    (0..count.max(1)).map(memory).collect()
}

impl<W: WorldObserver> World<W> {
    /// Builds the world of a specification. `series` is the sampling interval of machines and queues.
    ///
    /// # Errors
    /// Problems of the network or the hosts.
    pub fn new(spec: &TrialSpec, watch: W, series: Option<Duration>) -> Result<Self, SpecError> {
        let mut plan = Plan::of(spec)?;
        refuse_timeless(spec, &plan)?;
        let sampler = Sampler::new(spec, series, &plan.topology);
        let (accounts, account_of) = accounts(&plan.groups);
        let samples = [
            (Sample::Goodput, sampler.interval(Sample::Goodput)),
            (Sample::Series, series),
        ];
        let schedule = Schedule::of(spec, &mut plan.groups, &samples);
        let memories = memories(&plan.groups, plan.topology.hosts().len());
        let collectives = plan.groups.iter().map(Collective::of).collect();
        let builder = if W::ENABLED {
            plan.builder
        } else {
            plan.builder
                .cut_through(&plan.topology.observed().collect::<Vec<_>>())
        };
        let mut world = Self {
            now: Instant::ZERO,
            network: builder.build_observed(watch),
            topology: plan.topology,
            groups: plan.groups,
            flows: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            timers: Timers::default(),
            accounts,
            account_of,
            memories,
            #[cfg(feature = "quic")]
            tickets: crate::endpoint::Tickets::new(),
            schedule,
            collectives,
            outcomes: Vec::new(),
            sampler,
            measured_from: spec.measured_from(),
            stopped: StoppedClock::default(),
        };
        let hops: Vec<u8> = world
            .network
            .routes()
            .map(|route| world.network.route_links(route).count() as u8)
            .collect();
        world.network.observer_mut().started(&hops);
        Ok(world)
    }

    /// Schedules the next sample, unless no other event is left: samples alone must not keep a world running.
    fn plan_sample(&mut self, sample: Sample) {
        let is_awake = self.timers.first() < Instant::MAX || self.network.poll_timeout().is_some();
        if let Some(interval) = self.sampler.interval(sample)
            && (is_awake || !self.schedule.has_samples_only())
        {
            self.schedule.add_sample(self.now + interval, sample);
        }
    }

    /// Runs until all measured flows are complete, or for the duration of the workload.
    ///
    /// # Errors
    /// [`RunError`] if it stops early.
    pub fn run(&mut self, interrupt: Interrupt<'_>) -> Result<(), RunError> {
        if self.advance(Instant::MAX, interrupt) {
            return Err(RunError::Cancelled);
        }
        match self.fault() {
            Some(fault) => Err(fault),
            None if self.is_over() => Ok(()),
            None => Err(RunError::Stalled),
        }
    }

    /// Processes all events up to `until`, unless the run ends before or `interrupt` stops it; returns whether it did. The
    /// times of the calls do not affect the events.
    pub fn run_until(&mut self, until: Instant, interrupt: Interrupt<'_>) -> bool {
        if self.advance(until, interrupt) {
            return true;
        }
        if !self.is_over() {
            self.now = self.now.max(until);
        }
        false
    }

    /// Processes events up to `until`. Returns whether `interrupt` stopped it.
    #[inline]
    fn advance(&mut self, until: Instant, interrupt: Interrupt<'_>) -> bool {
        let mut steps = 0_u32;
        while !self.is_over() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_PER_CHECK) && interrupt.is_some_and(|is_due| is_due()) {
                return true;
            }
            if !self.step_to(until) {
                return false;
            }
        }
        false
    }

    /// Returns why the run ended before its end.
    #[must_use]
    pub fn fault(&self) -> Option<RunError> {
        let flow = self.stopped.flow()?;
        let outcome = self.outcomes.iter().find(|outcome| outcome.number == flow);
        let place = self.places.get(flow as usize).copied().unwrap_or(GONE);
        let ended = outcome.map(|outcome| (outcome.group, outcome.pair));
        let active = self.flows.get(place as usize).and_then(Option::as_ref);
        let found = ended.or_else(|| active.map(|flow| (flow.start.group, flow.start.pair)));
        let name = found.map(|(group, pair)| self.groups[group as usize].flow_name(pair, &self.topology));
        Some(RunError::Timeless(format!(
            "{MOST_EVENTS} events at {}: the packets of flow {:?} take no time; give its path a rate or a delay",
            self.now - Instant::ZERO,
            name.unwrap_or_default(),
        )))
    }

    /// Counts an event of a flow. Returns whether there were too many at this instant, which ends the run.
    #[inline]
    fn is_timeless(&mut self, flow: u32) -> bool {
        let has_stopped = self.stopped.count(self.now, flow);
        if has_stopped {
            self.schedule.end();
        }
        has_stopped
    }

    /// Returns whether the run has ended.
    #[must_use]
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.schedule.is_over()
    }

    /// Processes the next event by `until`. Returns whether there was one.
    #[inline(always)]
    fn step_to(&mut self, until: Instant) -> bool {
        let timer_at = self.timers.first();
        let control_at = self.schedule.next_at();
        let limit = timer_at.min(control_at).min(until);
        // Packets before timers: an ACK that arrives in the same nanosecond still counts.
        if let Some(at) = self.network.handle_timeouts_until_delivery(limit) {
            self.now = at;
            self.deliver();
            return true;
        }
        if limit == Instant::MAX || timer_at.min(control_at) > until {
            return false;
        }
        self.now = self.now.max(limit);
        self.network.handle_timeout(self.now);
        if timer_at <= self.now {
            self.wake();
        }
        if control_at <= self.now {
            self.control();
        }
        true
    }

    /// Loads the end that probably acts next into the processor's cache, while another one acts.
    #[inline]
    fn prefetch(&self) {
        if self.flows.len() <= CACHED_FLOWS {
            return;
        }
        if let Some(parcel) = self.network.expected()
            && let Some(Some(flow)) = self.flows.get(self.places[parcel.flow as usize] as usize)
        {
            flow.ends[parcel.to as usize].prefetch();
        }
    }

    #[inline]
    fn deliver(&mut self) {
        self.prefetch();
        while let Some(arrival) = self.network.poll_arrival() {
            let parcel = self.network.arrived(&arrival);
            let (flow, side) = (parcel.flow, parcel.to);
            let place = self.places[flow as usize];
            // Late packets of a retired flow are ignored, and corrupt ones fail their checksum.
            if place != GONE && !parcel.corrupt {
                self.with_end(place, side, |end, now, network, host| {
                    end.handle_packet(now, network, host, &arrival)
                });
            }
            self.network.release(arrival);
            if self.is_timeless(flow) {
                return;
            }
        }
        while let Some(TooBig { mtu, packet }) = self.network.poll_too_big() {
            self.send_too_big(&packet.body, mtu);
        }
    }

    /// Sends the ICMP error of a router for an oversized packet. A real router sends it from its position; here it
    /// takes the whole reverse path from the receiver's end.
    #[cold]
    fn send_too_big(&mut self, body: &Parcel, mtu: u32) {
        let place = self.places[body.flow as usize];
        // The other protocols detect the loss themselves.
        if place == GONE || !matches!(body.content, Content::Tcp(_) | Content::Mptcp(_)) {
            return;
        }
        if let Some(flow) = &self.flows[place as usize] {
            let route = flow.ends[body.to as usize].port.route(body.way);
            let error = packet(
                route,
                body.flow,
                body.to.other(),
                body.way,
                body.priority,
                Content::TooBig { mtu },
            );
            self.network.send(self.now, error);
        }
    }

    #[cold]
    fn wake(&mut self) {
        while let Some(timer) = self.timers.pop(self.now) {
            let side = if timer % 2 == 0 {
                Side::Sender
            } else {
                Side::Receiver
            };
            let place = timer / 2;
            let Some(flow) = &self.flows[place as usize] else {
                continue;
            };
            let (number, timeout) = (flow.number, flow.ends[side as usize].port.timeout);
            if timeout <= self.now {
                self.with_end(place, side, Endpoint::handle_timeout);
                if self.is_timeless(number) {
                    return;
                }
            } else {
                self.timers.set(timer, timeout);
            }
        }
    }

    /// Runs an action of an end and updates its timer and the state of the flow.
    #[inline]
    fn with_end(
        &mut self,
        place: u32,
        side: Side,
        act: impl FnOnce(&mut Endpoint, Instant, &mut Network<Parcel, W>, &mut Host<'_>),
    ) {
        let Some(flow) = &mut self.flows[place as usize] else {
            return;
        };
        let end = &mut flow.ends[side as usize];
        let [own, peer] = match side {
            Side::Sender => flow.hosts,
            Side::Receiver => [flow.hosts[1], flow.hosts[0]],
        };
        // Without TCP Fast Open and T/TCP there is a single, unused cache.
        let memory = (own.0 as usize).min(self.memories.len() - 1);
        let mut host = Host {
            paths: &mut self.accounts[flow.account as usize],
            memory: &mut self.memories[memory],
            #[cfg(feature = "quic")]
            tickets: &mut self.tickets,
            #[cfg(feature = "quic")]
            own,
            peer,
        };
        act(end, self.now, &mut self.network, &mut host);
        if W::ENABLED && side == Side::Sender && self.network.observer().watches_decisions() {
            let (at, number, observer) = (self.now, flow.number, self.network.observer_mut());
            end.decisions(&mut |decision| observer.decided(at, number, decision));
        }
        if end.port.timeout != Instant::MAX {
            self.timers.set(place * 2 + side as u32, end.port.timeout);
        }
        if side == Side::Receiver && flow.received_at.is_none() && Some(end.port.delivered) == flow.start.size
        {
            flow.received_at = Some(self.now);
        }
        if end.port.progress.is_notable() {
            self.note(place, side);
        }
    }

    /// Handles the progress of an end that has finished, closed or failed, waits for other flows, or has read a part of an all-reduce.
    #[cold]
    fn note(&mut self, place: u32, side: Side) {
        let Some(flow) = &self.flows[place as usize] else {
            return;
        };
        let port = &flow.ends[side as usize].port;
        let (is_settled, waits) = (port.progress.is_settled(), port.progress.waits());
        if port.progress.is_collective() {
            let (start, read) = (flow.start, port.delivered);
            self.read_part(place, start, read);
        }
        if is_settled {
            self.settle(place);
        } else if waits {
            self.wait(place, self.now);
        }
    }

    /// Records that a flow waits for the others of its group, which go on at `next_at` if it is the last one.
    #[cold]
    fn wait(&mut self, place: u32, next_at: Instant) {
        let Some(flow) = &mut self.flows[place as usize] else {
            return;
        };
        if std::mem::replace(&mut flow.waits, true) {
            return;
        }
        // The connection setup of an all-reduce is no round.
        let records = flow.ends[0].port.progress.records();
        if records.is_some_and(|records| !records.transactions.is_empty()) {
            flow.round_timeouts.push(timeouts(&flow.ends));
        }
        self.schedule.waits(next_at, flow.start.group);
    }

    /// Handles an end that has finished, closed or failed; the flow may be complete.
    fn settle(&mut self, place: u32) {
        let Some(flow) = &mut self.flows[place as usize] else {
            return;
        };
        let [sender, receiver] = &flow.ends;
        let failed = sender.port.progress.is_failed();
        let both = receiver.port.progress.is_settled() && sender.port.progress.is_settled();
        // The sender's state decides; a receiver may still have to retransmit its last segment.
        if !failed && !sender.port.progress.is_finished() {
            return;
        }
        if !std::mem::replace(&mut flow.counted, true) {
            let group = &self.groups[flow.start.group as usize];
            self.schedule.ended(self.now, flow.start, group, failed);
        }
        if both {
            self.retire_flow(place);
        }
    }

    fn control(&mut self) {
        while let Some((_, action)) = self.schedule.pop(self.now, &mut self.groups) {
            match action {
                Action::Mark => self.mark(),
                Action::Sample(sample) => {
                    let (groups, network) = (&self.groups, &mut self.network);
                    self.sampler
                        .take(sample, self.now, &self.flows, groups, network, &self.topology);
                    self.plan_sample(sample);
                }
                Action::Start(flow) => {
                    self.begin(flow);
                    if self.is_timeless(self.places.len() as u32 - 1) {
                        return;
                    }
                }
                Action::Release(group) => self.release(group),
                Action::End => {}
            }
        }
    }

    /// Starts a flow.
    fn begin(&mut self, start: FlowStart) {
        let FlowStart {
            group, pair, size, ..
        } = start;
        let number = self.places.len() as u32;
        let planned = &mut self.groups[group as usize];
        let pairs = Arc::clone(&planned.pairs);
        let hosts = &pairs[pair as usize];
        let account = self.account_of[group as usize][pair as usize];
        let host = &mut self.accounts[account as usize];
        let is_collective = planned.steps.is_some();
        let mut flow = Flow {
            number,
            start,
            opened_at: self.now,
            received_at: None,
            counted: false,
            waits: false,
            round_timeouts: Vec::new(),
            account,
            hosts: [hosts.from, hosts.to],
            ends: ends(planned, number, hosts, size, host),
            baseline: None,
        };
        if is_collective {
            flow.ends[Side::Receiver as usize].port.progress.set_collective();
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        self.flows[place as usize] = Some(flow);
        self.places.push(place);
        self.network.observer_mut().opened(number, start);
        if let Some(collective) = &mut self.collectives[group as usize] {
            collective.begin(pair, place);
        }
        self.with_end(place, Side::Sender, Endpoint::open);
        // A route without links delivers immediately.
        self.deliver();
    }

    /// Sends the next requests of the flows of a group, which all wait.
    fn release(&mut self, group: u32) {
        for place in 0..self.flows.len() as u32 {
            if let Some(flow) = &mut self.flows[place as usize]
                && flow.start.group == group
                && std::mem::take(&mut flow.waits)
            {
                self.with_end(place, Side::Sender, Endpoint::release);
            }
        }
        self.start_collective(group);
        // A route without links delivers immediately.
        self.deliver();
    }

    /// Starts the measured time.
    fn mark(&mut self) {
        for flow in self.flows.iter_mut().flatten() {
            flow.baseline = Some(Box::new(baseline(&flow.ends)));
        }
        self.sampler.mark(self.now, &mut self.network);
    }

    /// Returns the virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the start of the measured time.
    #[must_use]
    pub const fn measured_from(&self) -> Instant {
        self.measured_from
    }

    /// Returns the network with its counters.
    #[must_use]
    pub const fn network(&self) -> &Network<Parcel, W> {
        &self.network
    }

    /// Returns the network for changes, e.g. to take data from its observer.
    pub const fn network_mut(&mut self) -> &mut Network<Parcel, W> {
        &mut self.network
    }

    /// Returns hosts and links.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the groups of flows, the measured one first.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Adds details of each flow to later samples.
    pub(crate) const fn sample_details(&mut self) {
        self.sampler.sample_details();
    }

    pub(crate) const fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Takes the samples since the last call.
    pub(crate) fn drain_series(&mut self) -> Option<Series> {
        self.sampler.drain_series()
    }

    /// Returns the hosts of the two ends of each started flow, as indices.
    #[must_use]
    pub fn flow_ends(&self) -> FlowEnds {
        let ended = self.outcomes.iter().map(|outcome| {
            let pair = &self.groups[outcome.group as usize].pairs[outcome.pair as usize];
            (outcome.number, [pair.from, pair.to])
        });
        let active = self.flows.iter().flatten().map(|flow| (flow.number, flow.hosts));
        let all = ended.chain(active);
        all.map(|(flow, ends)| (flow, ends.map(|host| host.0 as usize)))
            .collect()
    }

    /// Returns the series, if sampled.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        self.sampler.series()
    }

    /// Returns the observations of the observed links over the measured time, and the packets marked by all links in it. Takes the
    /// histograms, so a second call lacks them.
    pub(crate) fn observed(&mut self) -> (Vec<Observation>, u64) {
        self.sampler.baseline.take(self.now, &mut self.network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world that expects one flow more than it starts.
    #[test]
    fn sampling_series_does_not_hide_a_stall() {
        let json = r#"{"path": {"rate": "1Mbit/s", "delay": "1ms"}, "protocol": {"kind": "go-back-n"},
            "workload": {"kind": "file", "size": "20kB"}, "seed": 1}"#;
        let spec = TrialSpec::from_json(json).unwrap();
        let mut world = World::new(&spec, (), Some(Duration::from_millis(10))).unwrap();
        world.schedule.add_flow();
        let started = std::time::Instant::now();
        let is_late = || started.elapsed() > std::time::Duration::from_secs(20);
        assert_eq!(world.run(Some(&is_late)), Err(RunError::Stalled));
        let series = world.series().unwrap();
        let (samples, end) = (series.queues[0].time.len(), world.now().as_secs_f64());
        assert!(
            samples > 10 && samples as f64 <= end / 0.01 + 1.0,
            "{samples} in {end} s"
        );
    }
}
