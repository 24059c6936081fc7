//! Trials on real kernels, and what their records say.

use emulation::Error;
use emulation::trial::{ControllerNames, TrialError, run};
use experiment::{TrialRecord, TrialSpec};

/// Two hosts, 20 Mbit/s and twice 10 ms, as a key of a specification.
pub const PATH: &str = r#""path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "50pkt"}"#;

/// A specification.
pub fn spec(json: &str) -> TrialSpec {
    TrialSpec::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The record of a trial; `None`, with the reason printed, where the system lacks something.
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

/// Why there can be no such trial.
pub fn refusal(json: &str) -> String {
    run(&spec(json), &ControllerNames::new(), None)
        .unwrap_err()
        .to_string()
}

/// A figure of a trial in which nothing failed.
pub fn figure(record: &TrialRecord, name: &str) -> f64 {
    assert_eq!(record.error, None);
    record.metrics.as_ref().unwrap()[name].unwrap_or_else(|| panic!("{name} is null"))
}
