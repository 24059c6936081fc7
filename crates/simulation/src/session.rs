//! A trial that a caller advances in steps, with changes between them.

use std::collections::VecDeque;

use experiment::TrialRecord;
use experiment::plan::Group;
use experiment::spec::{SpecError, TrialSpec};
use experiment::trace::capture::CaptureOptions;
use experiment::trace::{Decision, Series, TraceDetail, TraceEvent};
use foundation::{Duration, Instant, Problem};
use network::topology::Topology;
use serde_json::Value;
use transport::congestion::{CongestionConfig, ConnectionContext};

use crate::body::Side;
use crate::trace::recorder::{CapturedPacket, StartedFlow};
use crate::trace::{Crossings, Recorder, Waits, pcapng};
use crate::trial;
use crate::world::World;

/// Precision of a stop at an event.
const SLICE: Duration = Duration::from_millis(1);

/// Limit of the packets kept for a capture.
const MOST_CAPTURED: usize = 50_000;

/// A running trial. The sizes of the steps do not affect events and samples.
pub struct Session {
    world: World<Recorder>,
    interrupt: Option<Box<dyn Fn() -> bool + Send>>,
    /// The latest packets at both ends, without gaps.
    captured: VecDeque<CapturedPacket>,
}

impl Session {
    /// Starts a trial with a sample of machines and queues every `interval`.
    ///
    /// # Errors
    /// Problems of the specification.
    pub fn new(spec: &TrialSpec, interval: Duration) -> Result<Self, SpecError> {
        let world = trial::world(spec, Recorder::default(), Some(interval))?;
        Ok(Self {
            world,
            interrupt: None,
            captured: VecDeque::new(),
        })
    }

    /// Stops later steps early when `interrupt` returns true; it is polled every few thousand events.
    pub fn interrupt_by(&mut self, interrupt: impl Fn() -> bool + Send + 'static) {
        self.interrupt = Some(Box::new(interrupt));
    }

    /// Returns why the trial ended before its end, in one line.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        self.world.fault().map(|fault| fault.to_string())
    }

    /// Processes events up to `until`. Returns whether the caller's function interrupted it.
    fn run_until(&mut self, until: Instant) -> bool {
        let interrupt = self.interrupt.as_deref();
        self.world
            .run_until(until, interrupt.map(|interrupt| interrupt as &dyn Fn() -> bool))
    }

    /// Returns the virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.world.now()
    }

    /// Returns whether the trial has ended: the transfer is complete or its duration is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.world.is_over()
    }

    /// Processes all events of the next `step`; returns them, and the samples.
    pub fn advance(&mut self, step: Duration) -> (Vec<TraceEvent>, Series) {
        self.run_until(self.world.now() + step);
        self.take()
    }

    /// Processes the events of the next `step` in slices, and stops after a slice whose events satisfy `stop`. Returns these
    /// events, and the samples.
    pub fn advance_until(
        &mut self,
        step: Duration,
        mut stop: impl FnMut(&[TraceEvent]) -> bool,
    ) -> (Vec<TraceEvent>, Series) {
        let end = self.world.now() + step;
        let mut seen = 0;
        while self.world.now() < end && !self.world.is_over() {
            let interrupted = self.run_until(end.min(self.world.now() + SLICE));
            let events = &self.world.network_mut().observer_mut().table.events;
            if stop(&events[seen..]) || interrupted {
                break;
            }
            seen = events.len();
        }
        self.take()
    }

    /// Sets the events that later steps return. Without all events there is no capture.
    pub fn set_detail(&mut self, detail: TraceDetail) {
        if detail != TraceDetail::All {
            self.captured.clear();
        }
        self.world.network_mut().observer_mut().table.detail = detail;
    }

    /// Sets whether later steps record the way of each packet over the links.
    pub fn record_crossings(&mut self, on: bool) {
        let crossings = &mut self.world.network_mut().observer_mut().crossings;
        *crossings = on.then(|| crossings.take().unwrap_or_default());
    }

    /// Records the starts of flows and the decisions of senders, and details of each flow in the samples.
    pub fn record_decisions(&mut self) {
        self.world.sample_details();
        let waits = Waits::on(self.world.topology().observed());
        let recorder = self.world.network_mut().observer_mut();
        recorder.decisions.get_or_insert_default();
        recorder.waits.get_or_insert(waits);
    }

    /// Takes the flows that started since the last call; none if they are not recorded.
    pub fn take_started(&mut self) -> Vec<StartedFlow> {
        std::mem::take(&mut self.world.network_mut().observer_mut().started)
    }

    /// Takes the decisions of senders since the last call; none if they are not recorded.
    pub fn take_decisions(&mut self) -> Vec<Decision> {
        let decisions = &mut self.world.network_mut().observer_mut().decisions;
        let changes = decisions.as_mut().map(|decisions| &mut decisions.changes);
        changes.map(std::mem::take).unwrap_or_default()
    }

    /// Takes the ways of packets since the last call, if recorded.
    pub fn take_crossings(&mut self) -> Option<Crossings> {
        let crossings = &mut self.world.network_mut().observer_mut().crossings;
        crossings.as_mut().map(std::mem::take)
    }

    fn take(&mut self) -> (Vec<TraceEvent>, Series) {
        let recorder = self.world.network_mut().observer_mut();
        self.captured.extend(recorder.captured.drain(..));
        let excess = self.captured.len().saturating_sub(MOST_CAPTURED);
        self.captured.drain(..excess);
        let events = std::mem::take(&mut recorder.table.events);
        (events, self.world.drain_series().unwrap_or_default())
    }

    /// Changes one key of a link ([`World::change_link`]).
    ///
    /// # Errors
    /// An unknown link or key, and an invalid value.
    pub fn change_link(&mut self, link: &str, key: &str, value: &Value) -> Result<(), Problem> {
        self.world.change_link(link, key, value)
    }

    /// Changes one key of the protocol of a group of flows ([`World::set_protocol`]).
    ///
    /// # Errors
    /// An unknown group or key, an invalid value, and a key that cannot change while flows run.
    pub fn set_protocol(&mut self, group: u32, key: &str, value: &Value) -> Result<(), Problem> {
        self.world.set_protocol(group, key, value)
    }

    /// Replaces the congestion controller of a flow's TCP sender by one that starts now.
    ///
    /// # Errors
    /// If the flow has no established TCP connection.
    pub fn set_controller(&mut self, flow: u32, config: &CongestionConfig) -> Result<(), Problem> {
        let replaced = self.world.with_connection(flow, |connection| {
            let context = ConnectionContext::new(u64::from(connection.segment()));
            connection.set_controller(config.build_for(&context));
        });
        replaced.ok_or_else(|| Problem::new("flow", format!("{flow} has no established TCP connection")))
    }

    /// Replaces the congestion controller of the measured flows that start later.
    ///
    /// # Errors
    /// If they do not use TCP.
    pub fn set_later_controllers(&mut self, config: &CongestionConfig) -> Result<(), Problem> {
        self.world.set_later_controllers(config)
    }

    /// Returns the latest packets at one end of each flow, or at both, as a capture file with `snap` bytes of each.
    ///
    /// # Errors
    /// A packet larger than IP allows.
    pub fn capture(&self, side: Option<Side>, snap: u32) -> std::io::Result<Vec<u8>> {
        let mut file = Vec::new();
        let extent = CaptureOptions {
            side,
            snap: Some(snap),
        };
        let hosts = self.world.topology().hosts();
        pcapng::write_between(&mut file, &self.captured, hosts, &self.world.flow_ends(), extent)?;
        Ok(file)
    }

    /// Requests the loss of a packet on the path ([`World::lose`]).
    ///
    /// # Errors
    /// If the packet is not on the path.
    pub fn lose(&mut self, id: u64) -> Result<(), Problem> {
        self.world.lose(id)
    }

    /// Requests the loss of the next packet of a flow towards one end ([`World::lose_next`]).
    ///
    /// # Errors
    /// If the flow has ended or has not started.
    pub fn lose_next(&mut self, flow: u32, to: Side) -> Result<(), Problem> {
        self.world.lose_next(flow, to)
    }

    /// Starts a further flow now ([`World::start_flow`]). Returns its number.
    ///
    /// # Errors
    /// A group or a pair out of range, too many flows, and a trial that has ended.
    pub fn start_flow(&mut self, group: u32, pair: u32, size: Option<u64>) -> Result<u32, Problem> {
        self.world.start_flow(group, pair, size)
    }

    /// Stops a flow now ([`World::stop_flow`]).
    ///
    /// # Errors
    /// If the flow has ended or has not started.
    pub fn stop_flow(&mut self, flow: u32) -> Result<(), Problem> {
        self.world.stop_flow(flow)
    }

    /// Returns the groups of flows: the measured ones, then the traffic in the order of the specification.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        self.world.groups()
    }

    /// Returns hosts and links.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        self.world.topology()
    }

    /// Returns the names of the links.
    #[must_use]
    pub fn links(&self) -> Vec<String> {
        let links = self.world.topology().links().iter();
        links.map(|link| link.name.clone()).collect()
    }

    /// Ends the trial and returns its record so far.
    #[must_use]
    pub fn finish(mut self) -> TrialRecord {
        self.world.close();
        let fault = self.world.fault();
        trial::record(&mut self.world, fault)
    }
}
