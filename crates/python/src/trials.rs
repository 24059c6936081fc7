//! The vocabulary, its checks, and simulated trials.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use experiment::TrialRecord;
use experiment::layout::Layout;
use experiment::metrics::host_columns;
use experiment::plan::Plan;
use experiment::support::{self, WorldKind};
use experiment::trace::capture::CaptureOptions;
use experiment::trace::{Series, TraceEvent};
use experiment::{TrialSpec, vocabulary as study_keys};
use foundation::Duration;
use network::PathConfig;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use serde::Serialize;
use simulation::body::Side;
use simulation::trace::{Recorder, pcapng};
use simulation::trial::{TrialError, run, run_watched};

use crate::calls::{self, Signals, json, wrong};
use crate::classes::{cancellable, fault, guarded};

pyo3::create_exception!(
    _native,
    Cancelled,
    PyException,
    "The trial was cancelled; it has no record."
);

/// A flag that lets another thread stop a simulation.
#[pyclass(frozen)]
#[derive(Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Returns the flag that a simulation reads.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Makes every simulation with this flag raise `Cancelled` soon.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Parses the specification of a trial; a `ValueError` if it is invalid.
pub fn spec(text: &str) -> PyResult<TrialSpec> {
    TrialSpec::from_json(text).map_err(wrong)
}

fn raised(error: &TrialError) -> PyErr {
    match error {
        TrialError::Cancelled => Cancelled::new_err("cancelled"),
        TrialError::Spec(_) => wrong(error),
    }
}

/// Returns the version of longfat.
#[pyfunction]
pub const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the keys of study files, as JSON.
#[pyfunction]
pub fn vocabulary() -> String {
    study_keys::vocabulary().to_string()
}

/// Returns the forward and reverse keys of each link of a `[path]`, with those of presets, as a JSON list of pairs.
#[pyfunction]
#[pyo3(signature = (path_json, /))]
pub fn path_links(path_json: &str) -> PyResult<String> {
    let path: PathConfig = foundation::reading::read(path_json).map_err(wrong)?;
    json(&path.directions_of_links())
}

/// Returns the problems of one section, as a JSON list.
#[pyfunction]
#[pyo3(signature = (section, json, /))]
pub fn check(section: &str, json: &str) -> PyResult<String> {
    calls::json(&study_keys::check(section, json).map_err(wrong)?)
}

/// Simulates one trial; returns its record as JSON.
#[pyfunction]
#[pyo3(signature = (spec_json, cancel=None))]
pub fn simulate(py: Python<'_>, spec_json: &str, cancel: Option<&Cancel>) -> PyResult<String> {
    let spec = spec(spec_json)?;
    let flag = cancel.map(Cancel::flag);
    let signals = Signals::new();
    let is_cancelled = || flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    let interrupt = || is_cancelled() || signals.raised();
    let ran = py.detach(|| cancellable(flag.as_ref(), || guarded(|| run(&spec, Some(&interrupt)))));
    signals.check()?;
    // An exception of a Python controller fails the trial, like a broken transfer.
    let record = match ran {
        Ok(ran) => ran.map_err(|error| raised(&error))?,
        Err(_) if is_cancelled() => return Err(raised(&TrialError::Cancelled)),
        Err(message) => {
            py.check_signals()?;
            TrialRecord::of_transfer(Err(&message))
        }
    };
    json(&record)
}

/// Checks, without running it, that a trial's network can be built and that its hosts exist; `ValueError` names the key.
#[pyfunction]
pub fn check_trial(spec_json: &str) -> PyResult<()> {
    Plan::of(&spec(spec_json)?).map(drop).map_err(wrong)
}

/// Returns the problems of a trial in a world that does not support it, as a JSON list; machines differ beyond that.
#[pyfunction]
pub fn unsupported(world: &str, spec_json: &str) -> PyResult<String> {
    let kind = WorldKind::named(world).ok_or_else(|| wrong(format!("there is no world {world:?}")))?;
    json(&support::unsupported(kind, &spec(spec_json)?))
}

/// Returns the names of the metrics of single hosts and of traffic in a trial, as a JSON list.
#[pyfunction]
pub fn host_metrics(spec_json: &str) -> PyResult<String> {
    json(&host_columns(&Plan::of(&spec(spec_json)?).map_err(wrong)?))
}

/// Returns the names of the links in a trial's network, as a JSON list.
#[pyfunction]
pub fn links(spec_json: &str) -> PyResult<String> {
    let topology = spec(spec_json)?.topology().map_err(wrong)?;
    let names: Vec<&str> = topology.links().iter().map(|link| link.name.as_str()).collect();
    json(&names)
}

/// Returns hosts, links, flows and their fair shares of a trial, as JSON.
#[pyfunction]
pub fn layout(spec_json: &str) -> PyResult<String> {
    json(&Layout::of(&spec(spec_json)?).map_err(wrong)?)
}

/// The record of a traced trial, as JSON.
#[derive(Serialize)]
pub struct TracedRecord<'a> {
    /// The record.
    #[serde(flatten)]
    pub record: &'a TrialRecord,
    /// The table of packets.
    pub events: &'a [TraceEvent],
    /// State of machines and queues over time, if sampled.
    pub series: Option<&'a Series>,
}

/// Arguments of a trace.
pub struct TraceOptions<'a> {
    interval: Option<Duration>,
    capture: Option<&'a str>,
    extent: CaptureOptions,
}

impl<'a> TraceOptions<'a> {
    /// Checks the arguments.
    ///
    /// # Errors
    /// `ValueError` if one is out of range.
    pub fn read(
        pcapng: Option<&'a str>,
        interval: Option<f64>,
        side: Option<&str>,
        snap: Option<u32>,
    ) -> PyResult<Self> {
        let interval = match interval {
            None => None,
            Some(seconds) if seconds >= 1e-6 && seconds.is_finite() => Some(Duration::from_secs_f64(seconds)),
            Some(seconds) => {
                return Err(wrong(format!(
                    "interval: {seconds} is out of range: at least 0.000001 s"
                )));
            }
        };
        let side = match side {
            None => None,
            Some("sender") => Some(Side::Sender),
            Some("receiver") => Some(Side::Receiver),
            Some(other) => {
                return Err(wrong(format!("side: \"{other}\" is unknown (sender, receiver)")));
            }
        };
        Ok(Self {
            interval,
            capture: pcapng,
            extent: CaptureOptions { side, snap },
        })
    }

    /// Returns the sampling interval of machines and queues.
    pub const fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Writes the capture, if requested, directly to its path: the caller publishes it (`files.produce_whole`).
    ///
    /// # Errors
    /// `OSError` if it cannot be written.
    pub fn capture(
        &self,
        write: impl FnOnce(&mut BufWriter<File>, CaptureOptions) -> std::io::Result<()>,
    ) -> PyResult<()> {
        let Some(path) = self.capture else { return Ok(()) };
        File::create(path)
            .map(BufWriter::new)
            .and_then(|mut out| {
                write(&mut out, self.extent)?;
                out.flush()
            })
            .map_err(|error| PyOSError::new_err(format!("cannot write {path}: {error}")))
    }
}

/// As `simulate`, with "events" in the record, and "series" if an interval in seconds is given.
///
/// Writes a capture if a path is given: of one "side" of each flow ("sender" or "receiver"; None means both), with
/// `snap` bytes of each packet (None means all).
#[pyfunction]
#[pyo3(signature = (spec_json, pcapng=None, interval=None, side=None, snap=None))]
pub fn trace(
    py: Python<'_>,
    spec_json: &str,
    pcapng: Option<&str>,
    interval: Option<f64>,
    side: Option<&str>,
    snap: Option<u32>,
) -> PyResult<String> {
    let spec = spec(spec_json)?;
    let options = TraceOptions::read(pcapng, interval, side, snap)?;
    let signals = Signals::new();
    let interrupt = || signals.raised();
    let ran = py
        .detach(|| guarded(|| run_watched(&spec, Some(&interrupt), Recorder::default(), options.interval())));
    signals.check()?;
    let (record, mut world) = ran.map_err(fault)?.map_err(|error| raised(&error))?;
    let series = world.series().cloned();
    let recorder = std::mem::take(world.network_mut().observer_mut());
    options.capture(|out, extent| {
        let hosts = world.topology().hosts();
        pcapng::write(out, &recorder.captured, hosts, &record.flows, extent)
    })?;
    json(&TracedRecord {
        record: &record,
        events: &recorder.table.events,
        series: series.as_ref(),
    })
}
