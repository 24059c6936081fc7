//! An interactive emulated network.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use emulation::shell::ListeningPort;
use emulation::testbed::Testbed as Inner;
use emulation::user_namespace;
use foundation::reading;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::calls::{interruptible, json, raised, wrong};
use crate::trials::spec;

/// The network of a trial, whose hosts run commands. Documented in the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct Testbed(RwLock<Option<Inner>>);

impl Testbed {
    fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&Inner) -> PyResult<T> + Send) -> PyResult<T> {
        py.detach(|| {
            let testbed = self.0.read().unwrap_or_else(PoisonError::into_inner);
            testbed.as_ref().map(f)
        })
        .ok_or_else(|| PyOSError::new_err("the testbed is closed"))?
    }
}

#[pymethods]
impl Testbed {
    #[new]
    #[pyo3(signature = (spec_json, programs="{}"))]
    fn new(py: Python<'_>, spec_json: &str, programs: &str) -> PyResult<Self> {
        let spec = spec(spec_json)?;
        let topology = spec.topology().map_err(wrong)?;
        let programs = reading::read(programs).map_err(wrong)?;
        user_namespace::enter().map_err(raised)?;
        let streams = spec.streams().component("network");
        let made = py
            .detach(|| Inner::start(topology, streams, programs))
            .map_err(raised)?;
        Ok(Self(RwLock::new(Some(made))))
    }

    fn hosts(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.with(py, |testbed| Ok(testbed.hosts()))?)
    }

    fn routers(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.with(py, |testbed| Ok(testbed.routers().to_vec()))?)
    }

    fn set(&self, py: Python<'_>, link: &str, key: &str, value_json: &str) -> PyResult<()> {
        let value = serde_json::from_str(value_json).map_err(|error| wrong(format!("{key}: {error}")))?;
        self.with(py, |testbed| testbed.set(link, key, &value).map_err(raised))
    }

    fn links(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.with(py, |testbed| Ok(testbed.links()))?)
    }

    fn dropped(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.with(py, |testbed| testbed.dropped().map_err(raised))?)
    }

    fn run(
        &self,
        py: Python<'_>,
        host: &str,
        command_json: &str,
        streams: (RawFd, RawFd, RawFd),
    ) -> PyResult<u32> {
        let options = reading::read(command_json).map_err(wrong)?;
        // SAFETY: the caller keeps them open during the call.
        let copy = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
        let streams = [copy(streams.0)?, copy(streams.1)?, copy(streams.2)?];
        self.with(py, |testbed| testbed.run(host, options, streams).map_err(raised))
    }

    fn ping_all(&self, py: Python<'_>, count: u32) -> PyResult<String> {
        json(&self.with(py, |testbed| {
            interruptible(|stopped| testbed.ping_all(count, stopped))
        })?)
    }

    fn goodput(&self, py: Python<'_>, source: &str, target: &str, seconds: f64) -> PyResult<String> {
        let span = Duration::try_from_secs_f64(seconds)
            .map_err(|_| wrong(format!("seconds: {seconds} is not a valid duration")))?;
        json(&self.with(py, |testbed| {
            interruptible(|stopped| testbed.goodput(source, target, span, stopped))
        })?)
    }

    fn kernel(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.with(py, |testbed| Ok(testbed.kernel()))?)
    }

    fn listens(&self, py: Python<'_>, host: &str, port: u16, is_udp: bool) -> PyResult<bool> {
        let port = ListeningPort { number: port, is_udp };
        self.with(py, |testbed| testbed.listens(host, port).map_err(raised))
    }

    #[pyo3(signature = (patience=0.0))]
    fn close(&self, py: Python<'_>, patience: f64) -> PyResult<Option<String>> {
        let span = Duration::try_from_secs_f64(patience)
            .map_err(|_| wrong(format!("patience: {patience} is not a valid duration")))?;
        let report = py.detach(|| {
            let taken = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
            // A signal ends the wait.
            let mut is_interrupted = false;
            let mut left = || {
                is_interrupted |= Python::attach(|py| py.check_signals().is_err());
                match is_interrupted {
                    true => foundation::Duration::ZERO,
                    false => foundation::Duration::from_nanos(span.as_nanos() as u64),
                }
            };
            taken.map(|testbed| testbed.stop(&mut left)).transpose()
        });
        let report = report.map_err(raised)?.flatten();
        report.as_ref().map(json).transpose()
    }
}
