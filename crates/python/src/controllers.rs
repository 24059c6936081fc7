//! Congestion controllers written in Python: the native side of `longfat.controllers`.
//!
//! A name such as "aimd.py:Aimd" in a study resolves to a class. Each connection gets an object of the class, and each
//! event is one call under the interpreter lock. An exception of the class stops the trial: it unwinds to [`guarded`],
//! which wraps every entry from Python that runs connections, and becomes a one-line error.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use foundation::{Duration, Instant, Problem, Rate};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use serde_json::{Map, Value};
use transport::congestion::{
    self, ConnectionContext, Controller, ControllerSettings, Registration, install_resolver,
};

use crate::calls::wrong;

/// Segment size in bytes for checking settings before there is a connection.
const TRIAL_SEGMENT: u64 = 1460;
/// The window that represents no limit, in bytes: more than any network holds, and far from overflow.
const UNLIMITED_WINDOW: f64 = (1_u64 << 50) as f64;

fn seconds(at: Instant) -> f64 {
    (at - Instant::ZERO).as_secs_f64()
}

/// Declares an event as a class whose constructor takes all fields by keyword, some with defaults.
macro_rules! event {
    (
        $(#[$help:meta])*
        pub struct $name:ident { $($key:ident: $type:ty),+; $($other:ident: $of:ty = $default:expr,)+ }
    ) => {
        $(#[$help])*
        #[pyclass(frozen, get_all, module = "longfat.controllers")]
        pub struct $name {
            $($key: $type,)+
            $($other: $of,)+
        }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*, $($key,)+ $($other = $default),+))]
            #[allow(clippy::too_many_arguments, reason = "the keywords of one Python function")]
            const fn new($($key: $type,)+ $($other: $of),+) -> Self {
                Self { $($key,)+ $($other),+ }
            }
        }
    };
}

event! {
    /// An arriving ACK.
    pub struct Acknowledgement {
        now: f64,
        bytes: u64;
        rtt: Option<f64> = None,
        smoothed_rtt: f64 = 0.0,
        newest_sent_at: f64 = 0.0,
        in_flight: u64 = 0,
        delivered: u64 = 0,
        delivery_rate: Option<u64> = None,
        application_limited: bool = false,
        window_limited: bool = true,
        in_recovery: bool = false,
    }
}

event! {
    /// One detection of lost packets.
    pub struct Loss {
        now: f64,
        bytes: u64;
        newest_sent_at: f64 = 0.0,
        prior_in_flight: u64 = 0,
        in_flight: u64 = 0,
        in_recovery: bool = false,
    }
}

impl From<&congestion::Acknowledgement> for Acknowledgement {
    fn from(ack: &congestion::Acknowledgement) -> Self {
        let sample = ack.rate_sample;
        Self {
            now: seconds(ack.now),
            bytes: ack.bytes,
            rtt: ack.rtt.map(Duration::as_secs_f64),
            smoothed_rtt: ack.smoothed_rtt.as_secs_f64(),
            newest_sent_at: seconds(ack.newest_sent_at),
            in_flight: ack.bytes_in_flight,
            delivered: ack.delivered,
            delivery_rate: sample.and_then(|s| s.rate()).map(Rate::bits_per_second),
            application_limited: sample.is_some_and(|s| s.application_limited),
            window_limited: ack.window_limited,
            in_recovery: ack.in_recovery,
        }
    }
}

impl From<&congestion::Loss> for Loss {
    fn from(loss: &congestion::Loss) -> Self {
        Self {
            now: seconds(loss.now),
            bytes: loss.bytes,
            newest_sent_at: seconds(loss.newest_sent_at),
            prior_in_flight: loss.prior_in_flight,
            in_flight: loss.bytes_in_flight,
            in_recovery: loss.in_recovery,
        }
    }
}

/// A one-line error of a Python controller, propagated by unwinding.
struct Fault(String);

/// Runs `work`, which may call Python controllers; returns the error of the first that failed.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload: Box<dyn Any + Send>| {
        match payload.downcast::<Fault>() {
            Ok(fault) => fault.0,
            // A bug in longfat itself.
            Err(payload) => resume_unwind(payload),
        }
    })
}

/// Formats a Python exception in one line, with its line number.
fn describe(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    let text = text.lines().next().unwrap_or_default().trim();
    let kind = error
        .get_type(py)
        .name()
        .map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    let mut line = if text.is_empty() {
        kind
    } else {
        format!("{kind}: {text}")
    };
    if let Some(number) = line_number(py, error) {
        line += &format!(" (line {number})");
    }
    line
}

/// Returns the line of the innermost frame of a traceback.
fn line_number(py: Python<'_>, error: &PyErr) -> Option<u64> {
    let mut frame = error.traceback(py)?.into_any();
    loop {
        let next = frame.getattr("tb_next").ok()?;
        if next.is_none() {
            return frame.getattr("tb_lineno").ok()?.extract().ok();
        }
        frame = next;
    }
}

/// Optional methods that a class overrides; only these are called.
#[derive(Clone, Copy, Default)]
struct Overrides {
    sent: bool,
    spurious: bool,
    idle: bool,
}

/// The settings of a Python controller: its class, and the keys of the study.
struct ClassSettings {
    name: Arc<str>,
    class: Py<PyType>,
    keys: Map<String, Value>,
    overrides: Overrides,
}

impl fmt::Debug for ClassSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassSettings")
            .field("name", &self.name)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl ClassSettings {
    fn make(&self, context: &ConnectionContext) -> Result<PythonController, String> {
        Python::attach(|py| {
            let made = || -> PyResult<Py<PyAny>> {
                let text = Value::Object(self.keys.clone()).to_string();
                let keys = py.import("json")?.call_method1("loads", (text,))?;
                let object = self
                    .class
                    .bind(py)
                    .call_method1("_make", (context.segment, context.initial_window, keys))?;
                Ok(object.unbind())
            };
            let object = made().map_err(|error| format!("{}: {}", self.name, describe(py, &error)))?;
            let mut object = PythonController {
                name: Arc::clone(&self.name),
                object,
                overrides: self.overrides,
                attributes: Attributes::default(),
            };
            object.read(py)?;
            Ok(object)
        })
    }
}

impl ControllerSettings for ClassSettings {
    fn validate(&self) -> Vec<Problem> {
        let made = self.make(&ConnectionContext::new(TRIAL_SEGMENT));
        made.err()
            .map(|message| Problem::new("", message))
            .into_iter()
            .collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        match self.make(context) {
            Ok(object) => Box::new(object),
            Err(message) => resume_unwind(Box::new(Fault(message))),
        }
    }
}

/// The attributes of a controller, read after each call.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    window: u64,
    pacing_rate: Option<Rate>,
    threshold: Option<u64>,
}

/// One connection's controller.
struct PythonController {
    name: Arc<str>,
    object: Py<PyAny>,
    overrides: Overrides,
    attributes: Attributes,
}

impl fmt::Debug for PythonController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonController")
            .field("name", &self.name)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

impl PythonController {
    /// Returns the number in an attribute; `None` for None.
    fn number(&self, py: Python<'_>, attribute: &Bound<'_, PyString>) -> Result<Option<f64>, String> {
        let wrong = |found: &str| {
            format!(
                "{}.{attribute} is {found}: expected a number of at least 0",
                self.name
            )
        };
        let value = self
            .object
            .bind(py)
            .getattr(attribute)
            .map_err(|error| format!("{}.{attribute}: {}", self.name, describe(py, &error)))?;
        if value.is_none() {
            return Ok(None);
        }
        match value.extract::<f64>() {
            // An infinite window or rate is no limit.
            Ok(number) if number >= 0.0 => Ok(Some(number)),
            _ => Err(wrong(
                &value
                    .repr()
                    .map_or_else(|_| "not a number".to_owned(), |text| text.to_string()),
            )),
        }
    }

    fn read(&mut self, py: Python<'_>) -> Result<(), String> {
        let window = self.number(py, pyo3::intern!(py, "window"))?;
        let window =
            window.ok_or_else(|| format!("{}.window is None: it is a number of bytes", self.name))?;
        let rate = self.number(py, pyo3::intern!(py, "pacing_rate"))?;
        let threshold = self.number(py, pyo3::intern!(py, "threshold"))?;
        self.attributes = Attributes {
            window: window.min(UNLIMITED_WINDOW) as u64,
            pacing_rate: rate
                .filter(|rate| rate.is_finite())
                .and_then(|rate| Rate::from_bits_per_second((rate as u64).max(1))),
            threshold: threshold.map(|bytes| bytes.min(UNLIMITED_WINDOW) as u64),
        };
        Ok(())
    }

    /// Calls a method and then reads the attributes.
    fn call<A>(&mut self, method: fn(Python<'_>) -> &Bound<'_, PyString>, arguments: A)
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let done = Python::attach(|py| {
            let method = method(py);
            self.object
                .bind(py)
                .call_method1(method, arguments)
                .map_err(|error| format!("{}.{method}: {}", self.name, describe(py, &error)))?;
            self.read(py)
        });
        if let Err(message) = done {
            resume_unwind(Box::new(Fault(message)));
        }
    }
}

/// Calls a method of a controller by its interned name.
macro_rules! call {
    ($controller:ident, $method:literal, $($argument:expr),+) => {
        $controller.call(|py| pyo3::intern!(py, $method), ($($argument,)+))
    };
}

impl Controller for PythonController {
    fn on_sent(&mut self, now: Instant, bytes: u64, bytes_in_flight: u64) {
        if self.overrides.sent {
            call!(self, "on_sent", seconds(now), bytes, bytes_in_flight);
        }
    }

    fn on_acknowledged(&mut self, ack: &congestion::Acknowledgement) {
        call!(self, "on_acknowledged", Acknowledgement::from(ack));
    }

    fn on_lost(&mut self, loss: &congestion::Loss) {
        call!(self, "on_lost", Loss::from(loss));
    }

    fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64) {
        call!(self, "on_timeout", seconds(now), bytes_in_flight);
    }

    fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant) {
        call!(self, "on_congestion_experienced", seconds(now), seconds(sent_at));
    }

    fn on_spurious(&mut self, now: Instant) {
        if self.overrides.spurious {
            call!(self, "on_spurious", seconds(now));
        }
    }

    fn on_idle(&mut self, now: Instant, idle: Duration, rto: Duration) {
        if self.overrides.idle {
            call!(
                self,
                "on_idle",
                seconds(now),
                idle.as_secs_f64(),
                rto.as_secs_f64()
            );
        }
    }

    fn in_slow_start(&self) -> bool {
        self.attributes
            .threshold
            .is_some_and(|threshold| self.attributes.window < threshold)
    }

    fn ssthresh(&self) -> Option<u64> {
        self.attributes.threshold
    }

    fn window(&self) -> u64 {
        self.attributes.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.attributes.pacing_rate
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let read = Python::attach(|py| -> PyResult<Vec<(String, f64)>> {
            let metrics = self.object.bind(py).call_method0("metrics")?;
            let metrics = metrics.cast_into::<PyDict>()?;
            metrics
                .iter()
                .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
                .collect()
        });
        match read {
            Ok(metrics) => {
                report("window_bytes", self.attributes.window as f64);
                for (name, value) in metrics {
                    report(interned(&name), value);
                }
            }
            Err(error) => {
                let line = Python::attach(|py| format!("{}.metrics: {}", self.name, describe(py, &error)));
                resume_unwind(Box::new(Fault(line)));
            }
        }
    }
}

/// Returns a static copy of a name. Controllers use few metric names, so leaking them is acceptable.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(kept);
            kept
        }
    }
}

/// Imports the class of a name and describes it to the registry.
fn resolve(name: &str) -> Result<Registration, String> {
    Python::attach(|py| {
        let found = || -> PyResult<_> {
            let described = py
                .import("longfat.controllers")?
                .call_method1("_describe", (name,))?;
            let (class, help, schema, overridden): (Bound<'_, PyType>, String, String, [bool; 3]) =
                described.extract()?;
            let schema: Value = serde_json::from_str(&schema).map_err(wrong)?;
            let schema = schemars::Schema::try_from(schema).map_err(wrong)?;
            let [sent, spurious, idle] = overridden;
            let overrides = Overrides { sent, spurious, idle };
            Ok((class.unbind(), help, schema, overrides))
        };
        let (class, help, schema, overrides) = found().map_err(|error| error.value(py).to_string())?;
        let shared: Arc<str> = name.into();
        let class = Arc::new(class);
        Ok(Registration::dynamic(
            name.to_owned(),
            help,
            schema,
            move |keys| {
                let class = Python::attach(|py| class.clone_ref(py));
                let settings = ClassSettings {
                    name: Arc::clone(&shared),
                    class,
                    keys: keys.clone(),
                    overrides,
                };
                Ok((Arc::new(settings), keys))
            },
        ))
    })
}

/// Lets specifications name Python classes.
pub fn install() {
    // A second import of the module finds the same resolver installed.
    let _ = install_resolver(Box::new(resolve));
}
