//! Congestion controllers written in Python: `longfat.extensions.controller`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use foundation::{Duration, Instant, Problem, Rate};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use transport::congestion::{self, ConnectionContext, Controller, ControllerSettings, Outputs};

use super::instance::{Instance, bounded, describe, shown};
use super::{Class, fail, problems, seconds};

/// Segment size in bytes for checking settings before there is a connection.
const TRIAL_SEGMENT: u64 = 1460;
/// The window that represents no limit, in bytes: more than any network holds, and far from overflow.
const UNLIMITED_WINDOW: f64 = (1_u64 << 50) as f64;

event! {
    /// An ACK that acknowledges new data. Times are in s, sizes in bytes of payload.
    "longfat.extensions.controller"
    pub struct Acknowledgement {
        /// Arrival time of the ACK in s since the start of the trial.
        now: f64,
        /// Newly acknowledged payload bytes, cumulatively or selectively (SACK).
        ///
        /// Each byte counts once, when it is first acknowledged.
        bytes: u64;
        /// The part of `bytes` that the receiver reports as marked (ECN).
        ///
        /// Exact with TCP's key `ecn = "dctcp"`, the feedback of DCTCP (RFC 8257). With `ecn = true`, an upper bound: all
        /// bytes of an ACK with a congestion echo. 0 without ECN and for the ARQ protocols.
        marked_bytes: u64 = 0,
        /// Round-trip time of the newest acknowledged packet in s.
        ///
        /// None if a retransmission makes it ambiguous (Karn's algorithm).
        rtt: Option<f64> = None,
        /// Smoothed round-trip time in s (RFC 6298), this sample included; 0 before the first.
        smoothed_rtt: f64 = 0.0,
        /// Send time of the newest acknowledged packet in s since the start of the trial.
        newest_sent_at: f64 = 0.0,
        /// Payload bytes in flight after this ACK.
        ///
        /// Bytes that are selectively acknowledged or considered lost are not in flight.
        in_flight: u64 = 0,
        /// Payload bytes acknowledged since the start of the connection, this ACK included.
        ///
        /// Both cumulative and selective acknowledgements count.
        delivered: u64 = 0,
        /// Delivery rate over the flight of the newest acknowledged packet in bit/s; None without a sample.
        delivery_rate: Option<u64> = None,
        /// Whether the sender ran out of data during the sample of the delivery rate.
        ///
        /// The rate is then a lower bound. False without a sample.
        application_limited: bool = false,
        /// Whether the window or the pacing kept a packet from leaving since the last ACK.
        ///
        /// False if only the application or the receiver limits the sender.
        window_limited: bool = true,
        /// Whether the window must not grow.
        ///
        /// TCP repairs losses, reduces the window for an ECN mark, or receives duplicate ACKs. Always False for the ARQ
        /// protocols.
        in_recovery: bool = false,
    }
}

event! {
    /// Losses that one ACK revealed, reported together. Times are in s, sizes in bytes of payload.
    "longfat.extensions.controller"
    pub struct Loss {
        /// Time of the detection in s since the start of the trial.
        now: f64,
        /// Payload bytes newly considered lost, without those of earlier detections; 0 for an ECN mark.
        bytes: u64;
        /// Send time of the newest lost packet in s since the start of the trial.
        ///
        /// Losses of packets sent before the last reduction belong to the same congestion event (RFC 6582).
        newest_sent_at: f64 = 0.0,
        /// Payload bytes in flight before the detection.
        prior_in_flight: u64 = 0,
        /// Payload bytes in flight after the detection.
        in_flight: u64 = 0,
        /// Whether TCP was in loss recovery before the detection; always False for the ARQ protocols.
        in_recovery: bool = false,
    }
}

impl From<&congestion::Acknowledgement> for Acknowledgement {
    fn from(ack: &congestion::Acknowledgement) -> Self {
        let sample = ack.rate_sample;
        Self {
            now: seconds(ack.now),
            bytes: ack.bytes,
            marked_bytes: ack.marked_bytes,
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

/// Optional methods that a class overrides; only these are called.
#[derive(Clone, Copy, Default)]
struct Overrides {
    sent: bool,
    spurious: bool,
    idle: bool,
}

/// The settings of a Python controller.
#[derive(Debug)]
pub struct ClassSettings(pub(super) Class);

impl ClassSettings {
    fn make(&self, context: &ConnectionContext) -> Result<PythonController, String> {
        let instance = self.0.make((context.segment, context.initial_window))?;
        let overrides = |index: usize| self.0.overrides.get(index) == Some(&true);
        let mut controller = PythonController {
            instance,
            overrides: Overrides {
                sent: overrides(0),
                spurious: overrides(1),
                idle: overrides(2),
            },
            attributes: Attributes::default(),
        };
        let name = &controller.instance.name;
        controller.attributes = bounded(name, controller.instance.limit, |py| controller.attributes(py))?;
        Ok(controller)
    }
}

impl ControllerSettings for ClassSettings {
    fn validate(&self) -> Vec<Problem> {
        problems(self.make(&ConnectionContext::new(TRIAL_SEGMENT)))
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(self.make(context).unwrap_or_else(|message| fail(message)))
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
    instance: Instance,
    overrides: Overrides,
    attributes: Attributes,
}

impl fmt::Debug for PythonController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonController")
            .field("name", &self.instance.name)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

impl PythonController {
    /// Returns the number in an attribute; `None` for None.
    fn number(&self, py: Python<'_>, attribute: &Bound<'_, PyString>) -> Result<Option<f64>, String> {
        let name = &self.instance.name;
        let value = self
            .instance
            .object
            .bind(py)
            .getattr(attribute)
            .map_err(|error| format!("{name}.{attribute}: {}", describe(py, &error)))?;
        if value.is_none() {
            return Ok(None);
        }
        match value.extract::<f64>() {
            // An infinite window or rate is no limit.
            Ok(number) if number >= 0.0 => Ok(Some(number)),
            _ => Err(format!(
                "{name}.{attribute} is {}: expected a number of at least 0",
                shown(&value)
            )),
        }
    }

    fn attributes(&self, py: Python<'_>) -> Result<Attributes, String> {
        let window = self.number(py, pyo3::intern!(py, "window"))?;
        let name = &self.instance.name;
        let window = window.ok_or_else(|| format!("{name}.window is None: it is a number of bytes"))?;
        let rate = self.number(py, pyo3::intern!(py, "pacing_rate"))?;
        let threshold = self.number(py, pyo3::intern!(py, "threshold"))?;
        Ok(Attributes {
            window: window.min(UNLIMITED_WINDOW) as u64,
            pacing_rate: rate
                .filter(|rate| rate.is_finite())
                .and_then(|rate| Rate::from_bits_per_second((rate as u64).max(1))),
            threshold: threshold.map(|bytes| bytes.min(UNLIMITED_WINDOW) as u64),
        })
    }

    /// Calls a method and then reads the attributes.
    fn call<A>(&mut self, method: fn(Python<'_>) -> &Bound<'_, PyString>, arguments: A)
    where
        A: for<'py> PyCallArgs<'py>,
    {
        self.attributes = self.instance.call(method, arguments, |py, _| self.attributes(py));
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

    fn ssthresh(&self) -> Option<u64> {
        self.attributes.threshold
    }

    fn changes_on_sent(&self) -> bool {
        self.overrides.sent
    }

    fn outputs(&self) -> Outputs {
        let Attributes {
            window,
            pacing_rate,
            threshold,
        } = self.attributes;
        Outputs {
            window,
            pacing_rate,
            in_slow_start: threshold.is_some_and(|threshold| window < threshold),
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let what = |_: Python<'_>| format!("{}.metrics", self.instance.name);
        let metrics = self.instance.run(what, |py| {
            let read = || -> PyResult<Vec<(String, f64)>> {
                let metrics = self.instance.object.bind(py).call_method0("metrics")?;
                let metrics = metrics.cast_into::<PyDict>()?;
                metrics
                    .iter()
                    .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
                    .collect()
            };
            read().map_err(|error| format!("{}.metrics: {}", self.instance.name, describe(py, &error)))
        });
        report("window_bytes", self.attributes.window as f64);
        for (name, value) in metrics {
            report(interned(&name), value);
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
