//! Round trips to the routers on the path to a host.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use foundation::Duration;
use measurement::hops::{Options, ProbeResult, ProbeSpec, Prober, Protocol};
use pyo3::prelude::*;

use crate::calls::{Callback, json, raised, wrong};

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
            .map_err(|_| wrong(format!("\"{to}\" is not an address")))?;
        let protocol = match protocol {
            "udp" => Protocol::Udp,
            "icmp" => Protocol::Icmp,
            other => {
                return Err(wrong(format!("\"{other}\" is not a probe protocol (udp, icmp)")));
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
        let mut callback = Callback::new(Some(&on_progress));
        let result = py.detach(|| {
            let mut keep_running = |results: &[ProbeResult]| callback.call((results.len(),)).is_continue();
            let mut prober = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            prober.run(&probes, &mut keep_running)
        });
        json(&callback.finish(result.map_err(raised))?)
    }
}
