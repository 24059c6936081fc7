//! File transfer.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use foundation::reading;
use pyo3::prelude::*;
use serde_json::{Value, json};
use socket::Error;
use socket::transfer::{
    Approvals, FileEvent, Outcome, ReceiveEvent, ReceiveOptions, SendOptions, SendProgress, SendReport,
    receive, send_files as send,
};
use transport::arq::ArqConfig;

use crate::calls::{Callback, json as text_of, reported, wrong};
use crate::classes::guarded;
use crate::protection::protection;
use crate::wall::{address, addresses, raised};

/// Returns the settings of file transfer with `overrides` (JSON) applied, as JSON, without checking them:
/// `check` reports problems per key.
#[pyfunction]
pub fn file_protocol(overrides: &str) -> PyResult<String> {
    text_of(&settings(overrides)?)
}

fn settings(overrides: &str) -> PyResult<Value> {
    let changes: Value = serde_json::from_str(overrides).map_err(wrong)?;
    let mut settings = serde_json::to_value(ArqConfig::for_files()).map_err(wrong)?;
    // A fixed window has no congestion controller, so it replaces file transfer's controller, too.
    let fixed = changes.get("window").is_some_and(|window| window != "auto")
        || changes.get("kind").is_some_and(|kind| kind == "stop-and-wait");
    if let Some(settings) = settings.as_object_mut() {
        if fixed {
            settings.remove("congestion");
        }
        // The other protocols have no probe.
        if changes.get("kind").is_some_and(|kind| kind != "selective-repeat") {
            settings.remove("tail_probe");
        }
    }
    replace(&mut settings, &changes);
    Ok(settings)
}

/// Overwrites keys of `settings` with those of `changes`; a table of the same kind keeps its other keys.
fn replace(settings: &mut Value, changes: &Value) {
    let (Some(settings), Some(changes)) = (settings.as_object_mut(), changes.as_object()) else {
        return;
    };
    for (key, change) in changes {
        match settings.get_mut(key) {
            Some(table)
                if change.is_object() && change.get("kind").is_none_or(|k| Some(k) == table.get("kind")) =>
            {
                replace(table, change);
            }
            _ => drop(settings.insert(key.clone(), change.clone())),
        }
    }
}

fn protocol(overrides: &str) -> PyResult<ArqConfig> {
    let config: ArqConfig = reading::read(&settings(overrides)?.to_string()).map_err(wrong)?;
    match config.validate().into_iter().next() {
        Some(problem) => Err(wrong(problem)),
        None => Ok(config),
    }
}

fn progress_json(p: &SendProgress<'_>) -> Value {
    json!({
        "name": p.name, "file": p.file, "files": p.files, "done": p.done, "total": p.total,
        "waiting": p.waiting,
        "elapsed_s": p.elapsed.as_secs_f64(), "rate_Bps": p.rate,
        "left_s": p.left.map(foundation::Duration::as_secs_f64),
    })
}

fn sent_json(report: &SendReport) -> Value {
    let files: Vec<Value> = report
        .files
        .iter()
        .map(|file| {
            let (outcome, detail) = match &file.outcome {
                Outcome::Stored(name) => ("stored", name),
                Outcome::Already(name) => ("already", name),
                Outcome::Failed(reason) => ("failed", reason),
            };
            json!({
                "path": file.path.to_string_lossy(), "size": file.size, "resumed": file.resumed,
                "outcome": outcome, "detail": detail,
            })
        })
        .collect();
    let counts = &report.statistics;
    json!({
        "files": files, "skipped": report.skipped, "reconnections": report.reconnections, "bytes": report.bytes, "seconds": report.seconds, "goodput_bps": report.goodput,
        "rtt_s": report.rtt.as_secs_f64(), "packets_sent": counts.packets_sent, "bytes_sent": counts.bytes_sent,
        "retransmissions": counts.retransmissions, "timeouts": counts.timeouts,
    })
}

/// Sends files, or standard input under the name `input_name`; returns a report as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
#[pyo3(signature = (files, to, protection_json, protocol_json="{}", progress=None, recursive=false, wait_s=0.0, input_name=None))]
pub fn send_files(
    py: Python<'_>,
    files: Vec<PathBuf>,
    to: &str,
    protection_json: &str,
    protocol_json: &str,
    progress: Option<Py<PyAny>>,
    recursive: bool,
    wait_s: f64,
    input_name: Option<String>,
) -> PyResult<String> {
    let protocol = protocol(protocol_json)?;
    let addresses = addresses(py, to)?;
    let options = SendOptions {
        recursive,
        input: input_name,
        wait: foundation::Duration::from_secs_f64(wait_s),
        // Under a custom protocol, every packet has its own datagram.
        search_path_mtu: protocol == ArqConfig::for_files(),
        protocol,
        ..SendOptions::new(files, addresses[0], protection(protection_json)?)
    };
    let mut callback = Callback::new(progress.as_ref());
    let result = py
        .detach(|| {
            reported(&mut callback, |report| {
                guarded(|| {
                    send_to_any(options, &addresses[1..], &mut |progress| {
                        report(&progress_json(progress))
                    })
                })
            })
        })
        .map_err(wrong)?;
    text_of(&sent_json(&callback.finish(result.map_err(raised))?))
}

/// Sends to the first address of a name at which something listens.
fn send_to_any(
    mut options: SendOptions,
    others: &[SocketAddr],
    progress: &mut dyn FnMut(&SendProgress<'_>) -> ControlFlow<()>,
) -> Result<SendReport, Error> {
    let mut result = send(&options, progress);
    for address in others {
        if !matches!(result, Err(Error::Refused(_))) {
            break;
        }
        options.to = *address;
        result = send(&options, progress);
    }
    result
}

fn event_json(event: ReceiveEvent) -> Value {
    match event {
        // An idle receiver, too, can be stopped by its function.
        ReceiveEvent::Tick => json!({"event": "tick"}),
        ReceiveEvent::NextCode(code) => json!({"event": "next_code", "code": code.to_string()}),
        ReceiveEvent::Listening(at) => json!({"event": "listening", "address": at.to_string()}),
        ReceiveEvent::Connected(peer, name) => {
            json!({"event": "connected", "peer": peer.to_string(), "name": name})
        }
        ReceiveEvent::Refused { peer, reason, others } => {
            json!({"event": "refused", "peer": peer.to_string(), "reason": reason, "others": others})
        }
        ReceiveEvent::Request {
            peer,
            number,
            files,
            bytes,
            first,
        } => {
            json!({"event": "request", "peer": peer.to_string(), "request": number, "files": files,
                   "bytes": bytes, "first": first})
        }
        ReceiveEvent::Progress {
            peer,
            file,
            name,
            done,
            size,
        } => {
            json!({"event": "progress", "peer": peer.to_string(), "file": file, "name": name, "done": done,
                   "size": size})
        }
        ReceiveEvent::Disconnected(peer, reason) => {
            json!({"event": "disconnected", "peer": peer.to_string(), "reason": reason})
        }
        ReceiveEvent::File(peer, event) => {
            let mut value = match event {
                FileEvent::Started {
                    file,
                    name,
                    size,
                    resumed,
                } => {
                    json!({"event": "started", "file": file, "name": name, "size": size, "resumed": resumed})
                }
                FileEvent::Stored {
                    file,
                    offered,
                    name,
                    size,
                    already,
                    took,
                } => {
                    json!({"event": "stored", "file": file, "offered": offered, "name": name, "size": size, "already": already,
                           "seconds": took.as_secs_f64()})
                }
                FileEvent::Failed { file, name, reason } => {
                    json!({"event": "failed", "file": file, "name": name, "reason": reason})
                }
            };
            value["peer"] = json!(peer.to_string());
            value
        }
    }
}

/// What a receiver accepts.
#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    one_time: bool,
    once: bool,
    max_connections: usize,
    max_bytes: Option<u64>,
    dotfiles: bool,
    executables: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            one_time: false,
            once: false,
            max_connections: 32,
            max_bytes: None,
            dotfiles: false,
            executables: false,
        }
    }
}

/// Decisions about senders, which any thread may make while `receive_files` runs.
#[pyclass(name = "Approvals", frozen)]
#[derive(Default)]
pub struct Decisions {
    approvals: Approvals,
}

#[pymethods]
impl Decisions {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Accepts or declines what the sender of a request offers.
    fn decide(&self, request: u64, accept: bool) {
        self.approvals.decide(request, accept);
    }
}

/// Receives files until the callback or Ctrl-C stops it; returns a report as JSON.
#[pyfunction]
#[pyo3(signature = (listen, directory, protection_json, limits_json="{}", on_event=None, approvals=None))]
pub fn receive_files(
    py: Python<'_>,
    listen: &str,
    directory: PathBuf,
    protection_json: &str,
    limits_json: &str,
    on_event: Option<Py<PyAny>>,
    approvals: Option<Py<Decisions>>,
) -> PyResult<String> {
    let limits: Limits = serde_json::from_str(limits_json).map_err(wrong)?;
    let options = ReceiveOptions {
        one_time: limits.one_time,
        once: limits.once,
        max_connections: limits.max_connections,
        max_bytes: limits.max_bytes,
        dotfiles: limits.dotfiles,
        executables: limits.executables,
        ask: approvals.map(|decisions| decisions.get().approvals.clone()),
        ..ReceiveOptions::new(address(py, listen)?, directory, protection(protection_json)?)
    };
    let mut callback = Callback::new(on_event.as_ref());
    let result = py.detach(|| {
        reported(&mut callback, |report| {
            receive(&options, &mut |event| report(&event_json(event)))
        })
    });
    let report = callback.finish(result.map_err(raised))?;
    text_of(&json!({
        "files": report.files, "already": report.already, "bytes": report.bytes, "failures": report.failures,
    }))
}
