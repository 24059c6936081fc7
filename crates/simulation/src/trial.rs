//! One trial: a pure function of its specification.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use transport::Metrics;
use transport::arq::Connection;

use crate::spec::{SpecError, TrialSpec};
use crate::world::{Stop, Watch, World};

/// What a trial gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The figures; none where the transfer failed.
    pub metrics: Option<Metrics>,
    /// Why it failed, in one line.
    pub error: Option<String>,
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
    run_watched(spec, cancel, ()).map(|(record, _)| record)
}

/// Runs a trial with a watcher, and gives the world as it was at the end.
///
/// # Errors
/// As [`run`].
pub fn run_watched<W: Watch>(
    spec: &TrialSpec,
    cancel: Option<&AtomicBool>,
    watch: W,
) -> Result<(Record, World<W>), TrialError> {
    let links = spec.links()?;
    let mut world = World::new(&[links], &spec.protocol, spec.streams(), watch);
    let stop = world.transfer(spec.workload.bytes(), cancel).err();
    if stop == Some(Stop::Cancelled) {
        return Err(TrialError::Cancelled);
    }
    let failure = world.sender().failure().map(|error| error.to_string());
    let error = failure.or_else(|| stop.map(|stop| stop.to_string()));
    let metrics = match error {
        Some(_) => None,
        None => world
            .sender()
            .connection()
            .map(Connection::statistics)
            .and_then(Metrics::of),
    };
    Ok((Record { metrics, error }, world))
}
