//! Trials on real kernels and their records.

use emulation::Error;
use emulation::trial::{ControllerNames, TrialError, run};
use experiment::{TrialRecord, TrialSpec};

/// The key of a path between two hosts: 20 Mbit/s and 10 ms in each direction.
pub const PATH: &str = r#""path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "50pkt"}"#;

/// A specification.
pub fn spec(json: &str) -> TrialSpec {
    TrialSpec::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The record of a trial; `None`, with a printed reason, if the system lacks something.
pub fn record(json: &str) -> Option<TrialRecord> {
    match run(&spec(json), &ControllerNames::new(), None) {
        Ok(record) => Some(record),
        Err(TrialError::Emulation(error @ (Error::Permission { .. } | Error::Missing { .. }))) => {
            super::skip_without(&error);
            None
        }
        Err(error) => panic!("{error}: {json}"),
    }
}

/// The error of a trial that is refused.
pub fn refusal(json: &str) -> String {
    run(&spec(json), &ControllerNames::new(), None)
        .unwrap_err()
        .to_string()
}

/// A metric of a successful trial.
pub fn figure(record: &TrialRecord, name: &str) -> f64 {
    assert_eq!(record.error, None);
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}
