//! A trial that a caller advances in steps, with changes between them.

use std::collections::VecDeque;

use experiment::TrialRecord;
use experiment::spec::{SpecError, TrialSpec};
use experiment::trace::capture::CaptureOptions;
use experiment::trace::{Series, TraceDetail, TraceEvent};
use foundation::{Duration, Instant, Problem};
use serde_json::Value;
use transport::congestion::{CongestionConfig, ConnectionContext};

use crate::trace::recorder::CapturedPacket;
use crate::trace::{Recorder, pcapng};
use crate::trial;
use crate::world::World;

/// Precision of a stop at an event.
const SLICE: Duration = Duration::from_millis(1);

/// Limit of the packets kept for a capture.
const MOST_CAPTURED: usize = 50_000;

/// A running trial. The sizes of the steps do not affect events and samples.
pub struct Session {
    world: World<Recorder>,
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
            captured: VecDeque::new(),
        })
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
        self.world.run_until(self.world.now() + step);
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
            self.world.run_until(end.min(self.world.now() + SLICE));
            let events = &self.world.network_mut().observer_mut().table.events;
            if stop(&events[seen..]) {
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
    /// An unknown link or key, an invalid value, and a different queue discipline while packets wait.
    pub fn change_link(&mut self, link: &str, key: &str, value: &Value) -> Result<(), Problem> {
        self.world.change_link(link, key, value)
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

    /// Returns the latest packets at both ends as a capture file, with `snap` bytes of each.
    ///
    /// # Errors
    /// A packet larger than IP allows.
    pub fn capture(&self, snap: u32) -> std::io::Result<Vec<u8>> {
        let mut file = Vec::new();
        let extent = CaptureOptions {
            side: None,
            snap: Some(snap),
        };
        let hosts = self.world.topology().hosts();
        pcapng::write_between(&mut file, &self.captured, hosts, &self.world.flow_ends(), extent)?;
        Ok(file)
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
        trial::record(&mut self.world, None)
    }
}
