//! The TCP relay.

use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use capture::CaptureWriter;
use foundation::{Duration, Instant, Streams, reading};
use network::{PathConfig, PathSpec};
use proxy::{
    Delays, Handle, Listener, Mode, Proxy, ProxyOptions, RelayError, RelayOptions, Report, Target,
    UdpListener,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use transport::tcp::TcpConfig;

use crate::calls::{Callback, json as text_of, plain, reported, wrong};
use crate::classes::guarded;
use crate::wall::{address, link_json, links};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    listeners: Vec<ListenerOptions>,
    udp: Vec<ListenerOptions>,
    path: PathConfig,
    protocol: TcpConfig,
    separate: bool,
    seed: u64,
    pcapng: Option<PathBuf>,
}

/// A listener: `target` is an address, or the name of a proxy protocol.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenerOptions {
    listen: String,
    target: String,
}

/// A relay of TCP connections over an emulated path. Documented in the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct TcpRelay {
    relay: Mutex<Option<proxy::Relay>>,
    handle: Handle,
    addresses: Vec<SocketAddr>,
    path: Mutex<PathConfig>,
    capture: Mutex<Option<CaptureWriter>>,
}

fn raised(error: RelayError) -> PyErr {
    PyOSError::new_err(plain(&error))
}

fn capture_error(file: &Path, error: &std::io::Error) -> PyErr {
    PyOSError::new_err(format!("cannot write {}: {}", file.display(), plain(error)))
}

fn delays_json(delays: &Delays) -> Value {
    json!({
        "p50_s": delays.p50.as_secs_f64(), "p90_s": delays.p90.as_secs_f64(),
        "p99_s": delays.p99.as_secs_f64(), "max_s": delays.max.as_secs_f64(),
    })
}

fn report_json(report: &Report) -> Value {
    let mut forward = link_json(&report.forward);
    let mut reverse = link_json(&report.reverse);
    forward["delay"] = delays_json(&report.forward_delays);
    reverse["delay"] = delays_json(&report.reverse_delays);
    json!({
        "forward": forward, "reverse": reverse,
        "accepted": report.accepted, "open": report.open, "completed": report.completed,
        "reset": report.reset, "unreachable": report.failed, "bytes_sent": report.sent,
        "bytes_received": report.received, "retransmissions": report.retransmissions,
        "udp_clients": report.udp_clients, "udp_dropped": report.udp_dropped,
        "late_p50_s": report.late_p50.as_secs_f64(), "late_p99_s": report.late_p99.as_secs_f64(),
    })
}

fn directions_json(path: &PathConfig) -> Value {
    let (forward, reverse) = path.directions();
    json!({"forward": forward, "reverse": reverse})
}

impl TcpRelay {
    fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Proxy<TcpStream>, Instant) -> T + Send + 'static,
    ) -> PyResult<T> {
        let handle = &self.handle;
        py.detach(|| handle.call(act))
            .ok_or_else(|| PyOSError::new_err("the relay has stopped"))
    }
}

#[pymethods]
impl TcpRelay {
    #[new]
    fn new(py: Python<'_>, options_json: &str) -> PyResult<Self> {
        let options: Options = reading::read(options_json).map_err(wrong)?;
        if let Some(problem) = options.protocol.validate().into_iter().next() {
            return Err(wrong(problem));
        }
        let path: PathSpec = links(&options.path)?;
        let mut listeners = Vec::new();
        for listener in &options.listeners {
            let mode = match listener.target.as_str() {
                "socks5" => Mode::Socks5,
                "http-connect" => Mode::HttpConnect,
                text => {
                    let target = Target::parse(text);
                    Mode::Fixed(target.ok_or_else(|| wrong(format!("{text:?} is not HOST:PORT")))?)
                }
            };
            let listen = address(py, &listener.listen)?;
            listeners.push(Listener { listen, mode });
        }
        let udp = |pair: &ListenerOptions| {
            let (listen, to) = (address(py, &pair.listen)?, address(py, &pair.target)?);
            Ok(UdpListener { listen, to })
        };
        let udp = options.udp.iter().map(udp).collect::<PyResult<Vec<_>>>()?;
        let proxy = ProxyOptions {
            separate: options.separate,
            ..ProxyOptions::new(path, options.protocol, Streams::new(options.seed, 0))
        };
        let mut relay = proxy::Relay::bind(RelayOptions {
            listeners,
            udp,
            proxy,
        })
        .map_err(raised)?;
        let capture = options
            .pcapng
            .map(|file| relay.capture(&file).map_err(|error| capture_error(&file, &error)));
        Ok(Self {
            capture: Mutex::new(capture.transpose()?),
            handle: relay.handle(),
            addresses: relay.addresses().to_vec(),
            relay: Mutex::new(Some(relay)),
            path: Mutex::new(options.path),
        })
    }

    /// Relays until the function returns false, or Ctrl-C; returns the last report.
    #[pyo3(signature = (on_report=None))]
    fn run(&self, py: Python<'_>, on_report: Option<Py<PyAny>>) -> PyResult<String> {
        let relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner).take();
        let relay = relay.ok_or_else(|| PyOSError::new_err("the relay has already run"))?;
        let mut callback = Callback::new(on_report.as_ref());
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let path = directions_json(&self.path.lock().unwrap_or_else(PoisonError::into_inner));
        let listening = json!({"listening": addresses[0], "addresses": addresses, "path": path});
        let mut last = Report::default();
        let result = if callback.report(&listening).is_break() {
            drop(relay);
            Ok(Report::default())
        } else {
            let ran = py.detach(|| {
                reported(&mut callback, |pass_on| {
                    guarded(|| {
                        relay.run(&mut |proxy| {
                            while let Some(failure) = proxy.poll_failure() {
                                let failure =
                                    json!({"failure": failure.reason, "target": failure.target.to_string()});
                                if pass_on(&failure).is_break() {
                                    return ControlFlow::Break(());
                                }
                            }
                            last = proxy.report();
                            pass_on(&report_json(&last))
                        })
                    })
                })
            });
            ran.map_err(wrong)?
        };
        let (report, interrupted) = callback.finish_or_interrupted(py, result.map_err(raised))?;
        let mut report = report_json(if interrupted { &last } else { &report });
        let capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = capture {
            let file = writer.file().to_owned();
            let written = py
                .detach(|| writer.finish())
                .map_err(|error| capture_error(&file, &error))?;
            report["capture"] = json!(written);
        }
        text_of(&report)
    }

    /// Changes the whole path; returns its keys by direction.
    fn set_path(&self, py: Python<'_>, path_json: &str) -> PyResult<String> {
        let path: PathConfig = reading::read(path_json).map_err(wrong)?;
        let spec = links(&path)?;
        self.call(py, move |proxy, now| proxy.change_path(now, &spec))?;
        let directions = directions_json(&path);
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
        text_of(&directions)
    }

    /// Takes the path down for a time.
    fn start_outage(&self, py: Python<'_>, seconds: f64, forward: bool, reverse: bool) -> PyResult<()> {
        let length = Duration::from_secs_f64(seconds);
        self.call(py, move |proxy, now| {
            proxy.start_outage(now, length, forward, reverse)
        })
    }

    /// Ends outages.
    fn end_outage(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Proxy::end_outage)
    }

    /// Loses the next packets.
    fn lose_next(&self, py: Python<'_>, count: u64, forward: bool, reverse: bool) -> PyResult<()> {
        self.call(py, move |proxy, _| proxy.lose_next(count, forward, reverse))
    }

    /// Resets all connections; returns the number of their ends.
    fn reset_all(&self, py: Python<'_>) -> PyResult<usize> {
        self.call(py, Proxy::reset_all)
    }

    /// The counters so far.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let report = self.call(py, |proxy, _| proxy.report())?;
        text_of(&report_json(&report))
    }
}
