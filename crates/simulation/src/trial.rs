//! One trial: a pure function of its specification.

use experiment::TrialRecord;
use experiment::metrics::TrialOutcome;
use experiment::spec::{SpecError, TrialSpec};
use experiment::support::{WorldKind, refuse};
use foundation::{Duration, Instant};

use crate::watch::WorldObserver;
use crate::world::{Interrupt, RunError, World};

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

/// Runs a trial. `interrupt` stops it.
///
/// # Errors
/// [`TrialError`]; a failed transfer is not an error but a record with an `error`.
pub fn run(spec: &TrialSpec, interrupt: Interrupt<'_>) -> Result<TrialRecord, TrialError> {
    run_watched(spec, interrupt, (), None).map(|(record, _)| record)
}

/// Runs a trial with an observer and returns its record and the final world. `series` is the sampling interval of machines
/// and queues.
///
/// # Errors
/// See [`run`].
pub fn run_watched<W: WorldObserver>(
    spec: &TrialSpec,
    interrupt: Interrupt<'_>,
    watch: W,
    series: Option<Duration>,
) -> Result<(TrialRecord, World<W>), TrialError> {
    let mut world = world(spec, watch, series)?;
    let stop = world.run(interrupt).err();
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
    refuse(WorldKind::Sim, spec)?;
    World::new(spec, watch, series)
}

pub(crate) fn record<W: WorldObserver>(world: &mut World<W>, stop: Option<RunError>) -> TrialRecord {
    let (links, marked) = world.observed();
    world.set_ideals();
    let measured = TrialOutcome {
        topology: world.topology(),
        groups: world.groups(),
        flows: world.outcomes(),
        windows: world.sampler().windows(),
        links: &links,
        marked,
        lateness: None,
        epoch: Instant::ZERO,
        host_drops: None,
        from: world.measured_from(),
        until: world.now(),
    };
    TrialRecord::of(&measured, stop.map(|stop| stop.to_string()))
}
