//! Emulated networks: trials on real kernels, a command behind a path, and what this machine can do for them.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::trials::Asked;

/// The keys of longfat's TCP at the command's end of a path and at the other, as JSON.
type OwnTcp = (Option<String>, Option<String>);

#[cfg(target_os = "linux")]
mod here {
    use std::collections::BTreeMap;
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    use emulation::shell::{ShellOptions, default_command};
    use emulation::{clean, doctor, shell, trial, user_namespace};
    use experiment::{TrialRecord, vocabulary};
    use foundation::{Duration, Streams};
    use network::{LinkConfig, PathConfig};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    use transport::tcp::TcpConfig;

    use super::OwnTcp;
    use crate::testbed::raised;
    use crate::trials::{Asked, Traced, json, spec};

    pub fn emulate(py: Python<'_>, spec_json: &str, names: BTreeMap<String, String>) -> PyResult<String> {
        let spec = spec(spec_json)?;
        let record = py
            .detach(|| trial::run(&spec, &names, None))
            .unwrap_or_else(|error| TrialRecord {
                metrics: None,
                error: Some(error.to_string()),
                flows: Vec::new(),
            });
        json(&record)
    }

    pub fn check_emulated(py: Python<'_>, spec_json: &str, names: BTreeMap<String, String>) -> PyResult<()> {
        let spec = spec(spec_json)?;
        py.detach(|| trial::check(&spec, &names))
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    pub fn enter_user_namespace() -> PyResult<()> {
        user_namespace::enter().map_err(raised)
    }

    pub fn emulate_traced(
        py: Python<'_>,
        spec_json: &str,
        names: BTreeMap<String, String>,
        asked: &Asked<'_>,
    ) -> PyResult<String> {
        let spec = spec(spec_json)?;
        let tracing = trial::Tracing {
            interval: asked.interval(),
        };
        let (record, trace) = py
            .detach(|| trial::run_traced(&spec, &names, None, tracing))
            .map_err(|error| pyo3::exceptions::PyOSError::new_err(error.to_string()))?;
        asked.capture(|out, extent| trace.write_capture(out, extent))?;
        json(&Traced {
            record: &record,
            events: &trace.events,
            series: trace.series.as_ref(),
        })
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
        tcp: OwnTcp,
    ) -> PyResult<String> {
        let config: PathConfig =
            vocabulary::read(path_json).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        let mut load = |file: &str| std::fs::read_to_string(file).map_err(|error| error.to_string());
        let path = config.links(&mut load).map_err(|problems| {
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
        user_namespace::enter().map_err(raised)?;
        let mut options = ShellOptions::new(path, Streams::new(seed, 0), command);
        for (end, keys) in options.tcp.iter_mut().zip([tcp.0, tcp.1]) {
            if let Some(keys) = keys {
                let config: TcpConfig =
                    vocabulary::read(&keys).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
                *end = Some(Arc::new(config));
            }
        }
        options.server = server.map(|words| at_the_other_end(&words)).transpose()?;
        // A handler of the caller's that raises ends the command; what the links did is told all the same.
        let mut stopped = || Python::attach(|py| py.check_signals().is_err());
        let report = py.detach(|| shell::run(options, &mut stopped)).map_err(raised)?;
        let mut told =
            serde_json::to_value(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
        told["path"] = asked(&config);
        json(&told)
    }

    /// What was asked of the path: the keys of either direction; of several links their sum, and `hops` with those of each.
    fn asked(config: &PathConfig) -> serde_json::Value {
        let links = config.directions_of_links();
        if let [(forward, reverse)] = &links[..] {
            return serde_json::json!({"forward": forward, "reverse": reverse});
        }
        let sum = |side: fn(&(LinkConfig, LinkConfig)) -> &LinkConfig| LinkConfig {
            rate: links.iter().filter_map(|link| side(link).rate).min(),
            delay: Some(
                links
                    .iter()
                    .filter_map(|link| side(link).delay)
                    .fold(Duration::ZERO, |sum, one| sum + one),
            ),
            ..LinkConfig::default()
        };
        let hops: Vec<_> = links
            .iter()
            .map(|(forward, reverse)| serde_json::json!({"forward": forward, "reverse": reverse}))
            .collect();
        serde_json::json!({"forward": sum(|link| &link.0), "reverse": sum(|link| &link.1), "hops": hops})
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
    use super::OwnTcp;
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    fn unsupported() -> PyResult<String> {
        Err(PyOSError::new_err(emulation::UNSUPPORTED.to_string()))
    }

    pub fn emulate(
        _: Python<'_>,
        _: &str,
        _: std::collections::BTreeMap<String, String>,
    ) -> PyResult<String> {
        unsupported()
    }

    pub fn check_emulated(
        _: Python<'_>,
        _: &str,
        _: std::collections::BTreeMap<String, String>,
    ) -> PyResult<()> {
        unsupported().map(drop)
    }

    pub fn enter_user_namespace() -> PyResult<()> {
        unsupported().map(drop)
    }

    pub fn emulate_traced(
        _: Python<'_>,
        _: &str,
        _: std::collections::BTreeMap<String, String>,
        _: &crate::trials::Asked<'_>,
    ) -> PyResult<String> {
        unsupported()
    }

    pub fn doctor(_: Python<'_>) -> PyResult<String> {
        unsupported()
    }

    pub fn clean(_: Python<'_>) -> PyResult<String> {
        unsupported()
    }

    pub fn shell(
        _: Python<'_>,
        _: &str,
        _: Vec<String>,
        _: u64,
        _: Option<String>,
        _: OwnTcp,
    ) -> PyResult<String> {
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

/// Checks, without running it, that a trial's hosts exist and that this kernel can be asked for what it configures;
/// `ValueError` names the key. `names` as in `emulate`.
#[pyfunction]
pub fn check_emulated(py: Python<'_>, spec_json: &str, names: BTreeMap<String, String>) -> PyResult<()> {
    here::check_emulated(py, spec_json, names)
}

/// Moves a process that lacks permissions to emulate into a user namespace, for good, in which it has them. It must have no
/// thread but this.
#[pyfunction]
pub fn enter_user_namespace() -> PyResult<()> {
    here::enter_user_namespace()
}

/// As `emulate`, with what `trace` adds to a record, and its arguments. What this system or its kernel cannot do is an
/// OSError.
#[pyfunction]
#[pyo3(signature = (spec_json, names, pcapng=None, interval=None, side=None, snap=None))]
pub fn emulate_traced(
    py: Python<'_>,
    spec_json: &str,
    names: BTreeMap<String, String>,
    pcapng: Option<&str>,
    interval: Option<f64>,
    side: Option<&str>,
    snap: Option<u32>,
) -> PyResult<String> {
    let asked = Asked::read(pcapng, interval, side, snap)?;
    here::emulate_traced(py, spec_json, names, &asked)
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

/// Runs a command behind a path and gives a report as JSON. `server` is a line for `sh` at the other end; `tcp` has the
/// keys of longfat's TCP at either end as JSON, where it takes the place of the kernel's.
///
/// A process that lacks permissions enters a user namespace, for good, in which it has them.
#[pyfunction]
#[pyo3(signature = (path_json, command, seed=1, server=None, tcp=(None, None)))]
pub fn shell(
    py: Python<'_>,
    path_json: &str,
    command: Vec<String>,
    seed: u64,
    server: Option<String>,
    tcp: OwnTcp,
) -> PyResult<String> {
    here::shell(py, path_json, command, seed, server, tcp)
}
