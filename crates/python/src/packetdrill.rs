//! Conformance scripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use packetdrill::files::{run_file, scripts};
use packetdrill::interpreter::{Evaluation, Failure, Interpreter};
use packetdrill::run::{Outcome, Report};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Runs packetdrill scripts, and those below directories, on virtual time; returns a JSON list.
///
/// `interpreter` is called without arguments for each script and returns the function that runs the script's snippets.
#[pyfunction(name = "packetdrill")]
pub fn run_scripts(py: Python<'_>, paths: Vec<PathBuf>, interpreter: Py<PyAny>) -> PyResult<String> {
    let unreadable = |path: &Path, error: &std::io::Error| {
        PyOSError::new_err(format!("cannot read {}: {}", path.display(), error.kind()))
    };
    let found = scripts(&paths).map_err(|(path, error)| unreadable(&path, &error))?;
    let entries = py.detach(|| {
        let run = |path: &PathBuf| {
            let mut python = PythonInterpreter::new(&interpreter)?;
            let report = run_file(path, &mut python).map_err(|error| unreadable(path, &error))?;
            python.error.map_or_else(|| Ok(entry(path, &report)), Err)
        };
        found.iter().map(run).collect::<PyResult<Vec<Value>>>()
    });
    crate::calls::json(&entries?)
}

/// Runs the snippets of a script by a Python function.
struct PythonInterpreter {
    function: Py<PyAny>,
    error: Option<PyErr>,
}

impl PythonInterpreter {
    fn new(interpreter: &Py<PyAny>) -> PyResult<Self> {
        let function = Python::attach(|py| {
            py.check_signals()?;
            interpreter.call0(py)
        })?;
        Ok(Self {
            function,
            error: None,
        })
    }
}

impl Interpreter for PythonInterpreter {
    fn run(&mut self, code: &str, values: &BTreeMap<&'static str, u64>) -> Evaluation {
        type Result = (Vec<String>, Option<(Option<String>, String)>);
        let result = Python::attach(|py| -> PyResult<Result> {
            self.function.call1(py, (code, values.clone()))?.extract(py)
        });
        match result {
            Ok((printed, failure)) => Evaluation {
                printed,
                failure: failure.map(|failure| match failure {
                    (Some(expected), seen) => Failure::Assertion { expected, seen },
                    (None, what) => Failure::Unsupported(what),
                }),
            },
            Err(error) => {
                self.error = Some(error);
                let stopped = Failure::Unsupported("an exception".to_owned());
                Evaluation {
                    failure: Some(stopped),
                    ..Evaluation::default()
                }
            }
        }
    }
}

fn entry(path: &Path, report: &Report) -> Value {
    let mut entry = match &report.outcome {
        Outcome::Pass => json!({"outcome": "pass"}),
        Outcome::Fail(mismatch) => json!({
            "outcome": "fail",
            "line": mismatch.line,
            "expected": mismatch.expected,
            "seen": mismatch.seen,
            "at_s": mismatch.at.as_secs_f64(),
        }),
        Outcome::Unsupported { line, what } => json!({"outcome": "unsupported", "line": line, "what": what}),
        Outcome::Invalid { line, message } => json!({"outcome": "invalid", "line": line, "what": message}),
    };
    entry["path"] = json!(path);
    entry["printed"] = json!(report.printed);
    entry
}
