//! One trial: a pure function of its specification.

use std::sync::atomic::AtomicBool;

use experiment::metrics::TrialOutcome;
use experiment::spec::{NetworkConfig, SpecError, TrialSpec};
use experiment::{ProtocolConfig, TrialRecord};
use foundation::{Duration, Instant, Problem};
use transport::tcp::StackKind;

use crate::watch::WorldObserver;
use crate::world::{RunError, World};

/// An error that prevents a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
}

/// Runs a trial. `cancel` stops it.
///
/// # Errors
/// [`TrialError`]; a failed transfer is not an error but a record with an `error`.
pub fn run(spec: &TrialSpec, cancel: Option<&AtomicBool>) -> Result<TrialRecord, TrialError> {
    run_watched(spec, cancel, (), None).map(|(record, _)| record)
}

/// Runs a trial with an observer and returns its record and the final world. `series` is the sampling interval of machines
/// and queues.
///
/// # Errors
/// See [`run`].
pub fn run_watched<W: WorldObserver>(
    spec: &TrialSpec,
    cancel: Option<&AtomicBool>,
    watch: W,
    series: Option<Duration>,
) -> Result<(TrialRecord, World<W>), TrialError> {
    let mut world = world(spec, watch, series)?;
    let stop = world.run(cancel).err();
    if stop == Some(RunError::Cancelled) {
        return Err(TrialError::Cancelled);
    }
    world.close();
    let record = record(&mut world, stop);
    Ok((record, world))
}

/// Returns the world of a trial that the simulation supports.
pub(crate) fn world<W: WorldObserver>(
    spec: &TrialSpec,
    watch: W,
    series: Option<Duration>,
) -> Result<World<W>, SpecError> {
    refuse_kernels(spec)?;
    refuse_loopback(spec)?;
    World::new(spec, watch, series)
}

/// Rejects the kernel's TCP, which is not simulated.
fn refuse_kernels(spec: &TrialSpec) -> Result<(), SpecError> {
    let own = [("protocol".to_owned(), &spec.protocol)];
    let traffic = spec.traffic.iter().enumerate();
    let traffic = traffic.map(|(number, one)| (format!("traffic.{number}.protocol"), &one.protocol));
    let uses_kernel = |protocol: &ProtocolConfig| matches!(protocol, ProtocolConfig::Tcp(config) if config.stack == Some(StackKind::Kernel));
    let problems: Vec<Problem> = own
        .into_iter()
        .chain(traffic)
        .filter(|(_, protocol)| uses_kernel(protocol))
        .map(|(place, _)| {
            let message = "\"kernel\" requires the world netns: allowed in sim: longfat";
            Problem::new("stack", message).within(&place)
        })
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(SpecError::Invalid(problems)),
    }
}

/// Rejects the kind loopback, which requires a kernel: it has no network to simulate, and all times would be zero.
fn refuse_loopback(spec: &TrialSpec) -> Result<(), SpecError> {
    match &spec.network {
        NetworkConfig::Topology(topology) if topology.kind() == "loopback" => {
            let message = "\"loopback\" requires the world netns: it has no network to simulate";
            Err(SpecError::Invalid(vec![Problem::new("topology.kind", message)]))
        }
        _ => Ok(()),
    }
}

pub(crate) fn record<W: WorldObserver>(world: &mut World<W>, stop: Option<RunError>) -> TrialRecord {
    let bottlenecks = world.bottlenecks();
    let measured = TrialOutcome {
        topology: world.topology(),
        groups: world.groups(),
        flows: world.outcomes(),
        windows: world.sampler().windows(),
        bottlenecks: &bottlenecks,
        marked: world.marked(),
        lateness: None,
        epoch: Instant::ZERO,
        host_drops: None,
        from: world.measured_from(),
        until: world.now(),
    };
    TrialRecord::of(&measured, stop.map(|stop| stop.to_string()))
}
