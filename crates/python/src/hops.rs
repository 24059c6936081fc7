//! Round trips to the routers on the path to a host.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use foundation::Duration;
use measurement::Error;
use measurement::hops::{Options, ProbeResult, ProbeSpec, Prober, Protocol};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::trials::json;

#[allow(
    clippy::needless_pass_by_value,
    reason = "the signature that map_err requires"
)]
fn raised(error: Error) -> PyErr {
    match error {
        Error::Option(_) => PyValueError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// Sends probes to a host; see the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct HopProber(Mutex<Prober>);

#[pymethods]
impl HopProber {
    #[new]
    #[pyo3(signature = (to, protocol="udp", port=33434, interval=0.01, timeout=1.0, window=1))]
    fn new(
        to: &str,
        protocol: &str,
        port: u16,
        interval: f64,
        timeout: f64,
        window: usize,
    ) -> PyResult<Self> {
        let to: IpAddr = to
            .parse()
            .map_err(|_| PyValueError::new_err(format!("\"{to}\" is not an address")))?;
        let protocol = match protocol {
            "udp" => Protocol::Udp,
            "icmp" => Protocol::Icmp,
            other => {
                return Err(PyValueError::new_err(format!(
                    "\"{other}\" is not a probe protocol (udp, icmp)"
                )));
            }
        };
        let options = Options {
            to,
            protocol,
            port,
            interval: Duration::from_secs_f64(interval),
            timeout: Duration::from_secs_f64(timeout),
            window,
        };
        Ok(Self(Mutex::new(Prober::open(options).map_err(raised)?)))
    }

    fn run(
        &self,
        py: Python<'_>,
        probes: Vec<(u8, u16)>,
        on_progress: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let probes: Vec<ProbeSpec> = probes
            .into_iter()
            .map(|(ttl, size)| ProbeSpec { ttl, size })
            .collect();
        let on_progress = on_progress.clone().unbind();
        let mut error = None;
        let result = py.detach(|| {
            let mut keep_running = |results: &[ProbeResult]| {
                Python::attach(|py| {
                    let answer = py
                        .check_signals()
                        .and_then(|()| on_progress.call1(py, (results.len(),)));
                    match answer {
                        Ok(answer) => !answer.bind(py).is(pyo3::types::PyBool::new(py, false)),
                        Err(raised) => {
                            error.get_or_insert(raised);
                            false
                        }
                    }
                })
            };
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .run(&probes, &mut keep_running)
        });
        match error {
            Some(error) => Err(error),
            None => json(&result.map_err(raised)?),
        }
    }
}
