//! Conformance scripts.

use std::path::PathBuf;

use packetdrill::files::{run_file, scripts};
use packetdrill::run::{Outcome, Report};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Runs packetdrill scripts, and those below directories, in virtual time; gives a JSON list.
#[pyfunction(name = "packetdrill")]
pub fn run_scripts(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<String> {
    let raised = |path: &PathBuf, error: &std::io::Error| {
        PyOSError::new_err(format!("cannot read {}: {}", path.display(), error.kind()))
    };
    let found = scripts(&paths).map_err(|(path, error)| raised(&path, &error))?;
    let reports = py.detach(|| {
        let run = |path: &PathBuf| run_file(path).map_err(|error| (path.clone(), error));
        found.iter().map(run).collect::<Result<Vec<_>, _>>()
    });
    let reports = reports.map_err(|(path, error)| raised(&path, &error))?;
    let entries: Vec<Value> = found
        .iter()
        .zip(&reports)
        .map(|(path, report)| entry(path, report))
        .collect();
    crate::trials::json(&entries)
}

fn entry(path: &PathBuf, report: &Report) -> Value {
    let mut entry = match &report.outcome {
        Outcome::Pass => json!({"outcome": "pass"}),
        Outcome::Fail(departure) => json!({
            "outcome": "fail",
            "line": departure.line,
            "expected": departure.expected,
            "seen": departure.seen,
            "at_s": departure.at.as_secs_f64(),
        }),
        Outcome::Unsupported { line, what } => json!({"outcome": "unsupported", "line": line, "what": what}),
        Outcome::Invalid { line, message } => json!({"outcome": "invalid", "line": line, "what": message}),
    };
    entry["path"] = json!(path);
    entry["printed"] = json!(report.printed);
    entry
}
