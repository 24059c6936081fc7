//! Round trips, transactions, and the echo server.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration as Span;

use foundation::Duration;
use measurement::Error;
use measurement::echo::{Counts, Limits, Server};
use measurement::ping::plan::{Pace, Schedule};
use measurement::ping::{self as pinging, Progress, Protocol};
use measurement::transact as transactions;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::{Callback, awaited, json as json_text, plain, raised, wrong};

/// Interval of progress reports.
const REPORT_INTERVAL: Span = Span::from_millis(100);

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(wrong)
}

fn address(py: Python<'_>, host: &str, port: u16, version: Option<u8>) -> PyResult<SocketAddr> {
    let wrong = |what: String| {
        let hint = match host.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') && port.parse::<u16>().is_ok() => {
                format!("give the port with --port {port}")
            }
            _ => what,
        };
        crate::calls::wrong(format!("\"{host}\" is not a known host: {hint}"))
    };
    let suits = |address: &SocketAddr| version.is_none_or(|version| (version == 4) == address.is_ipv4());
    let name = host.to_owned();
    let resolved = awaited(py, move || (name.as_str(), port).to_socket_addrs())?;
    let mut found = resolved.map_err(|error| wrong(error.to_string()))?;
    found
        .find(suits)
        .ok_or_else(|| wrong("it has no address of this IP version".into()))
}

/// Runs `work` in a separate thread, so that the interpreter does not delay it, and calls `on_progress` meanwhile.
/// Returns the result, and whether it was interrupted.
fn watched<T: Send>(
    py: Python<'_>,
    on_progress: &Py<PyAny>,
    progress: impl Fn() -> Value + Sync,
    end: impl Fn() + Sync,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<(T, bool)> {
    let mut callback = Callback::new(Some(on_progress));
    let result = py.detach(|| {
        std::thread::scope(|scope| {
            let caller = std::thread::current();
            let worker = scope.spawn(move || {
                let result = work();
                caller.unpark();
                result
            });
            while !worker.is_finished() {
                std::thread::park_timeout(REPORT_INTERVAL);
                if callback.report(&progress()).is_break() {
                    end();
                }
            }
            worker.join()
        })
    });
    let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    callback.finish_or_interrupted(py, result.map_err(raised))
}

fn progress_json(progress: &Progress) -> Value {
    json!({
        "sent": progress.sent.load(Ordering::Relaxed), "answered": progress.answered.load(Ordering::Relaxed),
        "last_s": progress.last.load(Ordering::Relaxed) as f64 / 1e9,
        "size": progress.size.load(Ordering::Relaxed),
    })
}

fn seconds(span: Option<Duration>) -> Option<f64> {
    span.map(Duration::as_secs_f64)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PingOptions {
    host: String,
    port: u16,
    version: Option<u8>,
    protocol: Protocol,
    sizes: Vec<u32>,
    count: u32,
    interval: f64,
    flood: Option<f64>,
    window: u32,
    timeout: f64,
    whole: bool,
    spin: bool,
}

/// Measures round trips. Documented in the stub.
#[pyfunction]
pub fn ping(py: Python<'_>, options_json: &str, on_progress: Py<PyAny>) -> PyResult<String> {
    let arguments: PingOptions = read(options_json)?;
    let to = address(py, &arguments.host, arguments.port, arguments.version)?;
    let pace = match arguments.flood {
        None => Pace::Interval(Duration::from_secs_f64(arguments.interval)),
        Some(rate) => Pace::Flood {
            least: Duration::from_secs_f64(1.0 / rate),
            most: Duration::from_secs_f64(arguments.interval),
        },
    };
    let options = pinging::Options {
        to,
        protocol: arguments.protocol,
        schedule: Schedule {
            sizes: arguments.sizes,
            count: arguments.count,
            pace,
            window: arguments.window,
            timeout: Duration::from_secs_f64(arguments.timeout),
        },
        whole: arguments.whole,
        spin: arguments.spin,
    };
    let progress = Progress::default();
    let (report, interrupted) = watched(
        py,
        &on_progress,
        || progress_json(&progress),
        || progress.end(),
        || pinging::ping(&options, &progress),
    )?;
    let samples: Vec<Value> = report
        .samples
        .iter()
        .map(|sample| {
            json!([
                sample.size,
                sample.sent.as_nanos(),
                seconds(sample.application),
                seconds(sample.kernel),
                seconds(sample.outbound),
                seconds(sample.inbound),
                sample.state,
                sample.answer,
                sample.duplicates,
                sample.error.map(error_text),
            ])
        })
        .collect();
    json_text(&json!({
        "address": to.ip().to_string(), "method": report.method, "took_s": report.took.as_secs_f64(),
        "note": report.note, "strangers": report.strangers, "interrupted": interrupted,
        "columns": ["size", "sent_ns", "application_s", "kernel_s", "outbound_s", "inbound_s", "state", "answer",
                    "duplicates", "error"],
        "samples": samples,
    }))
}

/// Returns the message of an error number.
fn error_text(number: i32) -> String {
    plain(&std::io::Error::from_raw_os_error(number))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactOptions {
    host: String,
    port: u16,
    version: Option<u8>,
    protocols: Vec<transactions::Protocol>,
    sizes: Vec<u32>,
    count: u32,
    interval: f64,
    timeout: f64,
}

/// Measures transactions. Documented in the stub.
#[pyfunction]
pub fn transact(py: Python<'_>, options_json: &str, on_progress: Py<PyAny>) -> PyResult<String> {
    let arguments: TransactOptions = read(options_json)?;
    let to = address(py, &arguments.host, arguments.port, arguments.version)?;
    let options = transactions::Options {
        to,
        protocols: arguments.protocols,
        sizes: arguments.sizes,
        count: arguments.count,
        interval: Duration::from_secs_f64(arguments.interval),
        timeout: Duration::from_secs_f64(arguments.timeout),
    };
    let progress = Progress::default();
    let (report, interrupted) = watched(
        py,
        &on_progress,
        || progress_json(&progress),
        || progress.end(),
        || transactions::transact(&options, &progress),
    )?;
    let samples: Vec<Value> = report
        .transactions
        .iter()
        .map(|made| {
            let wire = made.wire;
            json!([
                made.protocol,
                made.size,
                seconds(made.application),
                seconds(wire.map(|wire| wire.time)),
                wire.map(|wire| wire.packets),
                wire.map(|wire| wire.sent),
                wire.map(|wire| wire.bytes),
                made.syn_data,
                made.retransmissions,
                made.error,
            ])
        })
        .collect();
    json_text(&json!({
        "address": to.ip().to_string(), "notes": report.notes, "dropped": report.dropped,
        "interrupted": interrupted,
        "columns": ["protocol", "size", "application_s", "wire_s", "packets", "packets_sent", "wire_bytes",
                    "syn_data", "retransmissions", "error"],
        "samples": samples,
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EchoOptions {
    listen: String,
    per_source: u32,
    in_all: u32,
    connections: usize,
    idle: f64,
}

/// Serves round trips and transactions. Documented in the stub.
#[pyfunction]
pub fn echo(py: Python<'_>, options_json: &str, on_progress: Py<PyAny>) -> PyResult<String> {
    let arguments: EchoOptions = read(options_json)?;
    let at = crate::wall::address(py, &arguments.listen)?;
    let limits = Limits {
        per_source: arguments.per_source,
        in_all: arguments.in_all,
        connections: arguments.connections,
        idle: Duration::from_secs_f64(arguments.idle),
        ..Limits::default()
    };
    let server = Server::bind(at, limits).map_err(raised)?;
    let listening = json!({"listening": server.address().to_string(), "note": Server::fast_open_remedy()});
    let mut first = Callback::new(Some(&on_progress));
    if first.report(&listening).is_break() {
        let (counts, _) = first.finish_or_interrupted(py, Ok(Counts::default()))?;
        return json_text(&counts);
    }
    let (counts, stop) = (Mutex::new(Counts::default()), Progress::default());
    let now = || *counts.lock().unwrap_or_else(PoisonError::into_inner);
    let (counts, _) = watched(
        py,
        &on_progress,
        || json!(now()),
        || stop.end(),
        || {
            server.run(&mut |current| {
                *counts.lock().unwrap_or_else(PoisonError::into_inner) = *current;
                !stop.is_stopped()
            })
        },
    )?;
    json_text(&counts)
}
