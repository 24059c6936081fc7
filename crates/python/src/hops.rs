//! Round trips to the routers on the way to a host.

#[cfg(target_os = "linux")]
mod here {
    use std::net::IpAddr;
    use std::sync::{Mutex, PoisonError};

    use foundation::Duration;
    use measurement::Error;
    use measurement::hops::{Asked, Options, Prober, Protocol};
    use pyo3::exceptions::{PyOSError, PyValueError};
    use pyo3::prelude::*;

    use crate::trials::json;

    #[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
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
                .map_err(|_| PyValueError::new_err(format!("\"{to}\" is no address")))?;
            let protocol = match protocol {
                "udp" => Protocol::Udp,
                "icmp" => Protocol::Icmp,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "\"{other}\" is no protocol for probes: allowed: udp, icmp"
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

        fn run(&self, py: Python<'_>, probes: Vec<(u8, u16)>, tell: &Bound<'_, PyAny>) -> PyResult<String> {
            let probes: Vec<Asked> = probes
                .into_iter()
                .map(|(ttl, size)| Asked { ttl, size })
                .collect();
            let tell = tell.clone().unbind();
            let mut error = None;
            let result = py.detach(|| {
                let mut go_on = |ended: &[measurement::hops::Told]| {
                    Python::attach(|py| {
                        let asked = py.check_signals().and_then(|()| tell.call1(py, (ended.len(),)));
                        match asked {
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
                    .run(&probes, &mut go_on)
            });
            match error {
                Some(error) => Err(error),
                None => json(&result.map_err(raised)?),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    /// There is none on this system.
    #[pyclass(frozen, module = "longfat._native")]
    pub struct HopProber;

    #[pymethods]
    impl HopProber {
        #[new]
        #[pyo3(signature = (_to, _protocol="udp", _port=33434, _interval=0.01, _timeout=1.0, _window=1))]
        fn new(
            _to: &str,
            _protocol: &str,
            _port: u16,
            _interval: f64,
            _timeout: f64,
            _window: usize,
        ) -> PyResult<Self> {
            Err(PyOSError::new_err(
                "probing the routers of a path needs Linux: it is not supported here",
            ))
        }
    }
}

pub use here::HopProber;
