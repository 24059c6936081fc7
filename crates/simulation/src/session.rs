//! A trial that a caller advances in steps, with changes between them.

use experiment::TrialRecord;
use experiment::spec::{SpecError, TrialSpec};
use experiment::trace::{Series, TraceDetail, TraceEvent};
use foundation::{Duration, Instant, Problem};
use serde_json::Value;
use transport::congestion::{CongestionConfig, ConnectionContext};

use crate::trace::Recorder;
use crate::trial;
use crate::world::World;

/// Precision of a stop at an event.
const SLICE: Duration = Duration::from_millis(1);

/// A running trial. The sizes of the steps do not affect events and samples.
pub struct Session {
    world: World<Recorder>,
}

impl Session {
    /// Starts a trial with a sample of machines and queues every `interval`.
    ///
    /// # Errors
    /// Problems of the specification.
    pub fn new(spec: &TrialSpec, interval: Duration) -> Result<Self, SpecError> {
        let world = trial::world(spec, Recorder::default(), Some(interval))?;
        Ok(Self { world })
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

    /// Sets the events that later steps return.
    pub fn set_detail(&mut self, detail: TraceDetail) {
        self.world.network_mut().observer_mut().table.detail = detail;
    }

    fn take(&mut self) -> (Vec<TraceEvent>, Series) {
        let recorder = self.world.network_mut().observer_mut();
        recorder.captured.clear();
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
