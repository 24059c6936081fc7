//! The specification of one trial.

use foundation::{Problem, Streams};
use network::{PathConfig, PathSpec};
use serde::{Deserialize, Serialize};
use transport::arq::ArqConfig;

use crate::workload::WorkloadConfig;

/// Everything that a trial depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// The path between the two hosts.
    #[serde(default)]
    pub path: PathConfig,
    /// The protocol and its settings.
    pub protocol: ArqConfig,
    /// What is sent.
    pub workload: WorkloadConfig,
    /// The study's seed.
    pub seed: u64,
    /// The number of the trial in its cell.
    #[serde(default)]
    pub trial: u64,
}

/// Why a specification cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It is not a specification.
    #[error("{0}")]
    Unreadable(String),
    /// Its settings are out of range.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
}

impl TrialSpec {
    /// Reads a specification from JSON and checks its settings.
    ///
    /// # Errors
    /// [`SpecError`] with everything that is wrong.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        let spec: Self =
            crate::vocabulary::read(json).map_err(|problem| SpecError::Unreadable(problem.to_string()))?;
        let protocol = spec.protocol.validate().into_iter().map(|p| p.within("protocol"));
        let workload = spec.workload.validate().into_iter().map(|p| p.within("workload"));
        let problems: Vec<Problem> = protocol.chain(workload).collect();
        if problems.is_empty() {
            Ok(spec)
        } else {
            Err(SpecError::Invalid(problems))
        }
    }

    /// The links of the path; a recorded trace is read from its file.
    ///
    /// # Errors
    /// [`SpecError::Invalid`] with everything that is wrong with the path.
    pub fn links(&self) -> Result<PathSpec, SpecError> {
        let mut load = |file: &str| std::fs::read_to_string(file).map_err(|error| error.to_string());
        self.path
            .resolve(&mut load)
            .map_err(|problems| SpecError::Invalid(problems.into_iter().map(|p| p.within("path")).collect()))
    }

    /// The random streams of this trial. They depend on seed and trial alone: protocols that are
    /// compared meet the same losses.
    #[must_use]
    pub const fn streams(&self) -> Streams {
        Streams::new(self.seed, self.trial)
    }
}
