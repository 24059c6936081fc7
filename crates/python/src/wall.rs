//! Wall time: the endpoints of a trial, and the relay.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;

use experiment::{QuicConfig, TransferProtocol, TrialRecord};
use foundation::{Streams, reading};
use network::{LinkCounters, PathConfig, PathSpec};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use socket::addresses::resolve;
use socket::relay::{Relay, RelayOptions, RelayReport};
use socket::{Error, endpoint as ends};
use transport::Statistics;

use crate::calls::{Callback, awaited, json as text_of, plain, reported, wrong};
use crate::classes::guarded;
use crate::trials::spec;

/// Any free loopback port.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub fn raised(error: Error) -> PyErr {
    match error {
        Error::Settings(problem) => wrong(problem),
        error => PyOSError::new_err(plain(&error)),
    }
}

/// Returns the first address of a name.
pub fn address(py: Python<'_>, text: &str) -> PyResult<SocketAddr> {
    Ok(addresses(py, text)?[0])
}

/// Returns all addresses of a name.
pub fn addresses(py: Python<'_>, text: &str) -> PyResult<Vec<SocketAddr>> {
    let text = text.to_owned();
    awaited(py, move || resolve(&text).map_err(|error| error.to_string()))?.map_err(wrong)
}

fn listening(at: SocketAddr) {
    let mut out = std::io::stdout().lock();
    // If the parent process is gone, the end of standard input stops this one.
    let _ = writeln!(out, "{}", json!({"listening": at.to_string()}));
    let _ = out.flush();
}

#[cfg(feature = "quic")]
fn receive_quic(config: &QuicConfig) -> PyResult<()> {
    let received = socket::quic::receive(LOOPBACK, config, listening, &mut || true);
    received.map(drop).map_err(raised)
}

#[cfg(feature = "quic")]
fn send_quic(to: SocketAddr, config: &QuicConfig, bytes: u64) -> Result<Statistics, Error> {
    socket::quic::send(to, config, bytes, &mut || true)
}

/// A build without QUIC refuses such a trial before.
#[cfg(not(feature = "quic"))]
fn receive_quic(_: &QuicConfig) -> PyResult<()> {
    Err(wrong("this build has no QUIC"))
}

#[cfg(not(feature = "quic"))]
fn send_quic(_: SocketAddr, _: &QuicConfig, _: u64) -> Result<Statistics, Error> {
    Err(Error::Abandoned("this build has no QUIC".to_owned()))
}

fn run_endpoint(
    role: &str,
    spec: &experiment::TrialSpec,
    to: Option<SocketAddr>,
) -> PyResult<Option<TrialRecord>> {
    let transfer = || spec.transfer().map_err(wrong);
    let target = || to.ok_or_else(|| wrong(format!("{role} needs an address")));
    match role {
        "receive" => {
            match transfer()?.1 {
                TransferProtocol::Arq(_) => {
                    ends::receive_pattern(LOOPBACK, listening, &mut || true).map_err(raised)?;
                }
                TransferProtocol::Quic(config) => receive_quic(config)?,
            }
            Ok(None)
        }
        "relay" => {
            let (links, ..) = transfer()?;
            let streams = spec.streams().component("network");
            let relay =
                Relay::bind(RelayOptions::new(LOOPBACK, target()?, links, streams)).map_err(raised)?;
            listening(relay.address());
            relay.run(&mut |_| ControlFlow::Continue(())).map_err(raised)?;
            Ok(None)
        }
        "send" => {
            let (_, protocol, bytes) = transfer()?;
            let sent = match protocol {
                TransferProtocol::Arq(config) => ends::send_pattern(target()?, config, bytes, &mut || true),
                TransferProtocol::Quic(config) => send_quic(target()?, config, bytes),
            };
            Ok(Some(TrialRecord::of_transfer(
                sent.map_err(|error| error.to_string()).as_ref(),
            )))
        }
        _ => Err(wrong(format!("{role:?} is not a role (receive, relay, send)"))),
    }
}

/// Runs one process of a trial on real sockets.
#[pyfunction]
#[pyo3(signature = (role, spec_json, addr=None))]
pub fn endpoint(py: Python<'_>, role: &str, spec_json: &str, addr: Option<&str>) -> PyResult<String> {
    let spec = spec(spec_json)?;
    let to = addr.map(|to| address(py, to)).transpose()?;
    let record = py
        .detach(|| guarded(|| run_endpoint(role, &spec, to)))
        .unwrap_or_else(|fault| Ok(Some(TrialRecord::of_transfer(Err(&fault)))))?;
    record.map_or_else(|| Ok(String::new()), |record| text_of(&record))
}

pub fn link_json(link: &LinkCounters) -> Value {
    json!({
        "entered": link.entered.packets, "delivered": link.delivered.packets,
        "delivered_bytes": link.delivered.bytes, "lost": link.lost.packets,
        "queue_dropped": link.queue_dropped.packets, "mtu_dropped": link.mtu_dropped.packets,
        "outage_dropped": link.outage_dropped.packets, "nat_dropped": link.nat_dropped.packets,
        "duplicated": link.duplicated.packets, "corrupted": link.corrupted.packets,
        "reordered": link.reordered.packets, "max_queue_packets": link.max_queue_packets,
    })
}

fn relayed_json(report: &RelayReport) -> Value {
    json!({
        "forward": link_json(&report.forward), "reverse": link_json(&report.reverse),
        "clients": report.clients, "dropped_by_relay": report.dropped, "refused_by_server": report.refused,
        "late_p50_s": report.late_p50.as_secs_f64(), "late_p99_s": report.late_p99.as_secs_f64(),
    })
}

/// Returns the links of a path, with its traces.
pub fn links(path: &PathConfig) -> PyResult<PathSpec> {
    let mut load = |file: &str| std::fs::read_to_string(file).map_err(|error| plain(&error));
    path.resolve(&mut load).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        wrong(all.join("; "))
    })
}

/// Relays datagrams through a network on wall time until the callback or Ctrl-C stops it; returns the links' counters
/// as JSON. The first call of the callback has the relay's address and its links.
#[pyfunction]
#[pyo3(signature = (listen, to, path_json, seed=1, on_report=None))]
pub fn relay(
    py: Python<'_>,
    listen: &str,
    to: &str,
    path_json: &str,
    seed: u64,
    on_report: Option<Py<PyAny>>,
) -> PyResult<String> {
    let path: PathConfig = reading::read(path_json).map_err(wrong)?;
    let links = links(&path)?;
    let options = RelayOptions::new(
        address(py, listen)?,
        address(py, to)?,
        links,
        Streams::new(seed, 0),
    );
    let relay = Relay::bind(options).map_err(raised)?;
    let mut callback = Callback::new(on_report.as_ref());
    let (forward, reverse) = path.directions();
    let listening = json!({
        "listening": relay.address().to_string(), "path": {"forward": forward, "reverse": reverse},
    });
    let mut last = RelayReport::default();
    let result = if callback.report(&listening).is_break() {
        Ok(RelayReport::default())
    } else {
        let ran = py.detach(|| {
            reported(&mut callback, |pass_on| {
                guarded(|| {
                    relay.run(&mut |report| {
                        last.clone_from(report);
                        pass_on(&relayed_json(report))
                    })
                })
            })
        });
        ran.map_err(wrong)?
    };
    // Ctrl-C is the regular way to stop a relay, so the counters are returned.
    let (report, interrupted) = callback.finish_or_interrupted(py, result.map_err(raised))?;
    text_of(&relayed_json(if interrupted { &last } else { &report }))
}
