//! Emulated networks: trials on real kernels, a command behind a path, and what this machine can do for them.

use std::collections::BTreeMap;

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
mod here {
    use std::collections::BTreeMap;
    use std::process::Command;

    use emulation::shell::{ShellOptions, default_command};
    use emulation::{clean, doctor, shell, trial};
    use experiment::{Record, vocabulary};
    use foundation::Streams;
    use network::PathConfig;
    use pyo3::exceptions::{PyOSError, PyValueError};
    use pyo3::prelude::*;

    use crate::trials::{json, spec};

    pub fn emulate(py: Python<'_>, spec_json: &str, names: BTreeMap<String, String>) -> PyResult<String> {
        let spec = spec(spec_json)?;
        let record = py
            .detach(|| trial::run(&spec, &names, None))
            .unwrap_or_else(|error| Record {
                metrics: None,
                error: Some(error.to_string()),
                flows: Vec::new(),
            });
        json(&record)
    }

    pub fn doctor(py: Python<'_>) -> PyResult<String> {
        json(&py.detach(doctor::probe))
    }

    pub fn clean(py: Python<'_>) -> PyResult<String> {
        let left: Vec<String> = py
            .detach(clean::clean)
            .into_iter()
            .map(|leftover| format!("process {}: {}", leftover.process, leftover.what))
            .collect();
        json(&left)
    }

    pub fn shell(py: Python<'_>, path_json: &str, command: Vec<String>, seed: u64) -> PyResult<String> {
        let config: PathConfig =
            vocabulary::read(path_json).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        let mut load = |file: &str| std::fs::read_to_string(file).map_err(|error| error.to_string());
        let path = config.resolve(&mut load).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            PyValueError::new_err(all.join("; "))
        })?;
        let command = match command.split_first() {
            None => default_command(),
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        let options = ShellOptions::new(path, Streams::new(seed, 0), command);
        let report = py
            .detach(|| shell::run(options))
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        json(&report)
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    fn unsupported() -> PyResult<String> {
        Err(PyOSError::new_err(emulation::Error::Unsupported.to_string()))
    }

    pub fn emulate(
        _: Python<'_>,
        _: &str,
        _: std::collections::BTreeMap<String, String>,
    ) -> PyResult<String> {
        unsupported()
    }

    pub fn doctor(_: Python<'_>) -> PyResult<String> {
        unsupported()
    }

    pub fn clean(_: Python<'_>) -> PyResult<String> {
        unsupported()
    }

    pub fn shell(_: Python<'_>, _: &str, _: Vec<String>, _: u64) -> PyResult<String> {
        unsupported()
    }
}

/// Runs one trial between real kernels, on wall time, and gives its record as JSON.
///
/// `names` says what the kernel calls congestion controllers that were given to it for the occasion. What this system or
/// its kernel cannot do is the error of the record.
#[pyfunction]
pub fn emulate(py: Python<'_>, spec_json: &str, names: BTreeMap<String, String>) -> PyResult<String> {
    here::emulate(py, spec_json, names)
}

/// What this machine can do, as a JSON list of probes.
#[pyfunction]
pub fn doctor(py: Python<'_>) -> PyResult<String> {
    here::doctor(py)
}

/// Ends what emulations have left behind, and gives a JSON list that says what it was.
#[pyfunction]
pub fn clean(py: Python<'_>) -> PyResult<String> {
    here::clean(py)
}

/// Runs a command behind a path and gives a report as JSON.
#[pyfunction]
#[pyo3(signature = (path_json, command, seed=1))]
pub fn shell(py: Python<'_>, path_json: &str, command: Vec<String>, seed: u64) -> PyResult<String> {
    here::shell(py, path_json, command, seed)
}
