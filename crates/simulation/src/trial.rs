//! One trial: a pure function of its specification.

use std::sync::atomic::AtomicBool;

use foundation::Duration;
use serde::{Deserialize, Serialize};

use transport::Statistics;

use crate::metrics::{Measured, Metrics, of_transfer};
use crate::observation::Observation;
use crate::outcome::FlowOutcome;
use crate::spec::{SpecError, TrialSpec};
use crate::watch::Watch;
use crate::world::{Stop, World};

/// One measured flow, or one of the traffic's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its number, in the order in which flows begin.
    pub flow: u32,
    /// The name of the traffic; null for a measured flow.
    pub traffic: Option<String>,
    /// The host that opened it.
    pub from: String,
    /// The host that it goes to.
    pub to: String,
    /// Bytes that it was to send; null where it was to send all that it could.
    pub size_bytes: Option<u64>,
    /// Seconds from the trial's beginning to the wish to connect.
    pub opened_s: f64,
    /// Seconds from the wish to connect to the last byte's arrival; null where it has not arrived.
    pub fct_s: Option<f64>,
    /// Goodput over the measured time, or over the flow's own time, in bit/s.
    pub goodput_bps: f64,
    /// Data packets sent in the measured time, retransmissions included.
    pub packets_sent: u64,
    /// Data packets sent again in the measured time.
    pub retransmissions: u64,
    /// Expiries of its retransmission timer in the measured time.
    pub timeouts: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What a trial gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The figures; none where the transfer failed.
    pub metrics: Option<Metrics>,
    /// Why it failed, in one line.
    pub error: Option<String>,
    /// Every flow that began, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
}

impl Record {
    /// The record of one transfer outside of the simulator: what its sender counted, or why it failed.
    #[must_use]
    pub fn of_transfer(sent: Result<&Statistics, &String>) -> Self {
        Self {
            metrics: sent.ok().and_then(of_transfer),
            error: sent.err().cloned(),
            flows: Vec::new(),
        }
    }
}

/// Why there is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The specification cannot be run.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
}

/// Runs a trial. `cancel` is looked at now and then.
///
/// # Errors
/// [`TrialError`]; a transfer that fails is no error but a record that says so.
pub fn run(spec: &TrialSpec, cancel: Option<&AtomicBool>) -> Result<Record, TrialError> {
    run_watched(spec, cancel, (), None).map(|(record, _)| record)
}

/// Runs a trial with a watcher, and gives the world as it was at the end. With `series`, machines and
/// queues are read that often.
///
/// # Errors
/// As [`run`].
pub fn run_watched<W: Watch>(
    spec: &TrialSpec,
    cancel: Option<&AtomicBool>,
    watch: W,
    series: Option<Duration>,
) -> Result<(Record, World<W>), TrialError> {
    let mut world = World::new(spec, watch, series)?;
    let stop = world.run(cancel).err();
    if stop == Some(Stop::Cancelled) {
        return Err(TrialError::Cancelled);
    }
    let record = record(&world, stop);
    Ok((record, world))
}

fn record<W: Watch>(world: &World<W>, stop: Option<Stop>) -> Record {
    let flows = world.outcomes();
    let error = failure(world, &flows).or_else(|| stop.map(|stop| stop.to_string()));
    let bottlenecks: Vec<Observation> = world
        .topology()
        .bottlenecks()
        .iter()
        .zip(&world.sampler().before)
        .map(|(&link, before)| Observation::of(world.now(), world.network(), link).since(before))
        .collect();
    let measured = Measured {
        topology: world.topology(),
        groups: world.groups(),
        flows: &flows,
        windows: world.sampler().windows(),
        bottlenecks: &bottlenecks,
        from: world.measured_from(),
        until: world.now(),
    };
    let metrics = error.is_none().then(|| measured.metrics());
    let flows = flows
        .iter()
        .map(|flow| flow_record(world, &measured, flow))
        .collect();
    Record {
        metrics,
        error,
        flows,
    }
}

/// Why the trial failed. A flow that was to do something and could not is a failure; one that goes on for a
/// given time and breaks off has only sent less.
fn failure<W: Watch>(world: &World<W>, flows: &[FlowOutcome]) -> Option<String> {
    let group = &world.groups()[0];
    if group.workload.kind.is_timed() {
        return None;
    }
    let own: Vec<&FlowOutcome> = flows.iter().filter(|flow| flow.group == 0).collect();
    let failed = own.iter().find(|flow| flow.failure.is_some())?;
    let reason = failed.failure.clone()?;
    if own.len() == 1 {
        return Some(reason);
    }
    let pair = &group.pairs[failed.pair as usize];
    let hosts = world.topology().hosts();
    let (from, to) = (&hosts[pair.from.0 as usize], &hosts[pair.to.0 as usize]);
    Some(format!("flow {} from {from} to {to}: {reason}", failed.number))
}

fn flow_record<W: Watch>(world: &World<W>, measured: &Measured<'_>, flow: &FlowOutcome) -> FlowRecord {
    let group = &world.groups()[flow.group as usize];
    let pair = &group.pairs[flow.pair as usize];
    let hosts = world.topology().hosts();
    FlowRecord {
        flow: flow.number,
        traffic: group.name.clone(),
        from: hosts[pair.from.0 as usize].clone(),
        to: hosts[pair.to.0 as usize].clone(),
        size_bytes: flow.size,
        opened_s: flow.opened_at.as_secs_f64(),
        fct_s: flow.received_at.map(|at| (at - flow.opened_at).as_secs_f64()),
        goodput_bps: measured.goodput(flow),
        packets_sent: flow.sent.packets,
        retransmissions: flow.sent.retransmissions,
        timeouts: flow.sent.timeouts,
        error: flow.failure.clone(),
    }
}
