//! Emulated networks: trials on real kernels, a command behind a path, and what this machine can do for them.

use std::collections::BTreeMap;

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
mod here {
    use std::collections::BTreeMap;
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    use emulation::shell::{ShellOptions, default_command};
    use emulation::{clean, doctor, shell, trial, user_namespace};
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
        let (found, left) = py.detach(|| (clean::leftovers(), clean::clean()));
        let (left, ended): (Vec<_>, Vec<_>) = found.into_iter().partition(|leftover| left.contains(leftover));
        json(&serde_json::json!({"ended": ended, "left": left}))
    }

    pub fn shell(
        py: Python<'_>,
        path_json: &str,
        command: Vec<String>,
        seed: u64,
        server: Option<String>,
    ) -> PyResult<String> {
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
        let refused = |error: emulation::Error| PyOSError::new_err(error.to_string());
        user_namespace::enter().map_err(refused)?;
        let mut options = ShellOptions::new(path, Streams::new(seed, 0), command);
        options.server = server.map(|words| at_the_other_end(&words)).transpose()?;
        let report = py.detach(|| shell::run(options)).map_err(refused)?;
        let mut told =
            serde_json::to_value(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (forward, reverse) = config.directions();
        told["path"] = serde_json::json!({"forward": forward, "reverse": reverse});
        json(&told)
    }

    /// What a command at the other end prints goes to standard error: standard output is the other command's alone.
    fn at_the_other_end(words: &str) -> PyResult<Command> {
        let mut command = Command::new("sh");
        command.args(["-c", words]).stdin(Stdio::null());
        command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        Ok(command)
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

    pub fn shell(_: Python<'_>, _: &str, _: Vec<String>, _: u64, _: Option<String>) -> PyResult<String> {
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

/// Ends what emulations have left behind; what was ended and what could not be, as JSON.
#[pyfunction]
pub fn clean(py: Python<'_>) -> PyResult<String> {
    here::clean(py)
}

/// Runs a command behind a path and gives a report as JSON. `server` is a line for `sh` at the other end.
///
/// A process that lacks permissions enters a user namespace, for good, in which it has them.
#[pyfunction]
#[pyo3(signature = (path_json, command, seed=1, server=None))]
pub fn shell(
    py: Python<'_>,
    path_json: &str,
    command: Vec<String>,
    seed: u64,
    server: Option<String>,
) -> PyResult<String> {
    here::shell(py, path_json, command, seed, server)
}
