//! Emulated networks: trials on real kernels, a command behind a path, and the facilities of this machine.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;

use emulation::shell::{ListeningPort, ShellOptions, StopRequest, default_command};
use emulation::{trial, user_namespace};
use experiment::TrialRecord;
use foundation::{Duration, Streams, reading};
use network::{LinkConfig, PathConfig};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use transport::tcp::TcpConfig;

use crate::calls::{json, raised, wrong};
use crate::trials::{TraceOptions, TracedRecord, spec};

/// The keys of longfat's TCP at the two ends of a path, as JSON: the command's end first.
type TcpKeys = (Option<String>, Option<String>);

/// Runs one trial between real kernels on wall time; returns its record as JSON.
///
/// `names` maps congestion controllers to the names under which they are loaded in the kernel. What this system or
/// its kernel cannot do is the error of the record.
#[pyfunction]
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

/// Checks, without running it, that a trial's hosts exist and that this kernel supports its configuration;
/// `ValueError` names the key. `names` as in `emulate`.
#[pyfunction]
pub fn check_emulated(py: Python<'_>, spec_json: &str, names: BTreeMap<String, String>) -> PyResult<()> {
    let spec = spec(spec_json)?;
    py.detach(|| trial::check(&spec, &names)).map_err(wrong)
}

/// Moves a process without the permissions to emulate into a user namespace, permanently. The process must be
/// single-threaded.
#[pyfunction]
pub fn enter_user_namespace() -> PyResult<()> {
    user_namespace::enter().map_err(raised)
}

/// As `emulate`, with the arguments and additional results of `trace`. What this system or its kernel cannot do is an
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
    let options = TraceOptions::read(pcapng, interval, side, snap)?;
    let spec = spec(spec_json)?;
    let tracing = trial::Tracing {
        interval: options.interval(),
    };
    let (record, trace) = py
        .detach(|| trial::run_traced(&spec, &names, None, tracing))
        .map_err(|error| pyo3::exceptions::PyOSError::new_err(error.to_string()))?;
    options.capture(|out, extent| trace.write_capture(out, extent))?;
    json(&TracedRecord {
        record: &record,
        events: &trace.events,
        series: trace.series.as_ref(),
    })
}

/// Returns the facilities of this machine as a JSON list; `only`: those with these short names.
#[pyfunction]
#[pyo3(signature = (only=None))]
pub fn doctor(py: Python<'_>, only: Option<Vec<String>>) -> PyResult<String> {
    let known: Vec<&str> = emulation::doctor::keys().collect();
    if let Some(unknown) = only.iter().flatten().find(|name| !known.contains(&name.as_str())) {
        return Err(wrong(format!(
            "\"{unknown}\" is not known: allowed: {}",
            known.join(", ")
        )));
    }
    let is_selected = |key: &str| {
        only.as_ref()
            .is_none_or(|only| only.iter().any(|name| name == key))
    };
    json(&py.detach(|| emulation::doctor::probe_only(is_selected)))
}

/// Removes leftovers of emulations; returns what was removed and what could not be, as JSON.
#[pyfunction]
pub fn clean(py: Python<'_>) -> PyResult<String> {
    let (found, left) = py.detach(|| (emulation::clean::leftovers(), emulation::clean::clean()));
    let (left, ended): (Vec<_>, Vec<_>) = found.into_iter().partition(|leftover| left.contains(leftover));
    json(&serde_json::json!({"ended": ended, "left": left}))
}

/// Runs a command behind a path; returns a report as JSON. `server` is a shell command for the other end; `tcp` has the
/// keys of longfat's TCP at each end as JSON, where it replaces the kernel's; `programs` has the settings of the hosts;
/// `wait_port` is the port at which the server must listen before the command starts, and whether it is one of UDP.
///
/// A process without the permissions enters a user namespace, permanently.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the keywords of one Python function")]
#[pyo3(signature = (path_json, command, seed=1, server=None, tcp=(None, None), programs="{}", wait_port=None))]
pub fn shell(
    py: Python<'_>,
    path_json: &str,
    command: Vec<String>,
    seed: u64,
    server: Option<String>,
    tcp: TcpKeys,
    programs: &str,
    wait_port: Option<(u16, bool)>,
) -> PyResult<String> {
    let config: PathConfig = reading::read(path_json).map_err(wrong)?;
    let mut load = |file: &str| std::fs::read_to_string(file).map_err(|error| error.to_string());
    let path = config.links(&mut load).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        wrong(all.join("; "))
    })?;
    let command = match command.split_first() {
        None => default_command(),
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    };
    let programs = reading::read(programs).map_err(wrong)?;
    user_namespace::enter().map_err(raised)?;
    let mut options = ShellOptions::new(path, Streams::new(seed, 0), command);
    for (end, keys) in options.tcp.iter_mut().zip([tcp.0, tcp.1]) {
        if let Some(keys) = keys {
            let config: TcpConfig = reading::read(&keys).map_err(wrong)?;
            *end = Some(Arc::new(config));
        }
    }
    options.server = server.map(|line| server_command(&line)).transpose()?;
    options.programs = programs;
    options.wait_port = wait_port.map(|(number, is_udp)| ListeningPort { number, is_udp });
    // An exception of a signal handler stops the command; the report is still complete.
    let mut requested = || {
        Python::attach(|py| {
            let error = py.check_signals().err()?;
            Some(match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                true => StopRequest::Interrupt,
                false => StopRequest::Terminate,
            })
        })
    };
    let report = py
        .detach(|| emulation::shell::run(options, &mut requested))
        .map_err(raised)?;
    let mut value = serde_json::to_value(&report).map_err(wrong)?;
    value["path"] = described(&config);
    json(&value)
}

/// Returns the requested path: the keys of each direction. For several links, the sums, and `hops` with the keys of each.
fn described(config: &PathConfig) -> serde_json::Value {
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

/// Returns the shell command for the other end. Its output goes to standard error, because standard output belongs to
/// the main command.
fn server_command(line: &str) -> PyResult<Command> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null());
    command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
    Ok(command)
}
