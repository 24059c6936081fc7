//! Measures a separate copy of a path under a light and under a full load.

use std::time::Duration;

use foundation::Streams;
use network::{Capacity, HostId, LinkCounters, LinkId, LinkSpec, LossConfig, PathSpec, QueueLimit, Topology};

use super::load::{Arrivals, PacketLoad, send};
use crate::drops::HostDrops;
use crate::emulation::Emulation;
use crate::error::{Error, system_error};
use crate::options::EmulationOptions;

/// Packet size of the light load in bytes.
pub(super) const SMALL: u64 = 100;
/// Packet size of the full load in bytes, unless a link's MTU is smaller.
const LARGE: u64 = 1500;
/// The smallest gap between packets whose delays are measured, in seconds.
const APART: f64 = 5e-3;
/// Duration of the delay and loss measurements.
const SPAN: Duration = Duration::from_millis(1200);
/// Packets a second of the loss measurement.
const COUNTED: f64 = 10_000.0;
/// The full load relative to the rate.
const EXCESS: f64 = 1.3;
/// The largest queue to fill, in packets.
const FILLED: u64 = 20_000;

/// The measurements of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathMeasurement {
    /// The light load.
    pub apart: Arrivals,
    /// Packets sent for the loss measurement, including the light load, and packets received.
    pub sent: u64,
    pub received: u64,
    /// The full load; `None` for a path without a rate.
    pub full: Option<Arrivals>,
    /// Packet size of the full load in bytes.
    pub bytes: u64,
    /// Packets dropped by the hosts' kernels, under both loads.
    pub host_dropped: u64,
    /// Link counters after the light load and after the full one.
    pub light_links: Vec<LinkCounters>,
    pub full_links: Vec<LinkCounters>,
}

impl PathMeasurement {
    pub(super) fn of(
        specs: &[LinkSpec],
        streams: Streams,
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let mut measured = Self::default();
        let way = specs
            .iter()
            .map(|link| link.delay.as_secs_f64() + sending(link, SMALL))
            .sum::<f64>();
        let spread = specs
            .iter()
            .filter_map(|link| link.jitter)
            .map(|jitter| jitter.spread.as_secs_f64());
        let slowest = specs.iter().map(|link| sending(link, SMALL)).fold(0.0, f64::max);
        let apart = APART.max(4.0 * slowest).max(2.0 * spread.sum::<f64>());
        let small = PacketLoad {
            bytes: SMALL,
            per_second: 1.0 / apart,
            burst: 0,
            // Enough packets for a median.
            span: SPAN.max(Duration::from_secs_f64((40.0 * apart).min(3.0))),
            way: Duration::from_secs_f64((way * 2.0).min(2.0)),
        };
        let emulation = build(specs, streams)?;
        measured.apart = offer(&emulation, small, stopped)?;
        (measured.sent, measured.received) = (measured.apart.sent, measured.apart.received);
        if specs.iter().any(|link| link.loss.is_some()) {
            let per_second = COUNTED.min(0.5 / slowest.max(1e-9));
            let many = PacketLoad {
                per_second,
                span: SPAN,
                ..small
            };
            let arrivals = offer(&emulation, many, stopped)?;
            measured.sent += arrivals.sent;
            measured.received += arrivals.received;
        }
        measured.light_links = counters(&emulation);
        measured.host_dropped = host_dropped(&emulation)?;
        drop(emulation);
        measured.bytes = specs
            .iter()
            .filter_map(|link| link.mtu)
            .map(u64::from)
            .fold(LARGE, u64::min);
        if let Some(narrow) = narrowest(specs) {
            let emulation = build(specs, streams)?;
            let (time, link) = (sending(&specs[narrow], measured.bytes), &specs[narrow]);
            let kept: f64 = specs
                .iter()
                .map(|link| 1.0 - link.loss.as_ref().map_or(0.0, LossConfig::mean))
                .product();
            let holds = match link.queue.limit() {
                QueueLimit::Packets(packets) => packets,
                QueueLimit::Bytes(size) => size.bytes() / measured.bytes + 1,
            };
            let burst = if holds <= FILLED {
                holds + holds / 5 + 50
            } else {
                0
            };
            let full = PacketLoad {
                bytes: measured.bytes,
                per_second: EXCESS / time / kept.max(0.1),
                burst,
                span: Duration::from_secs_f64((100.0 * time).clamp(1.0, 3.0)),
                way: small.way,
            };
            measured.full = Some(offer(&emulation, full, stopped)?);
            measured.full_links = counters(&emulation);
            measured.host_dropped += host_dropped(&emulation)?;
        }
        Ok(measured)
    }
}

/// The slowest link, the first of several; `None` if no link has a rate.
pub(super) fn narrowest(specs: &[LinkSpec]) -> Option<usize> {
    let limited = (0..specs.len()).filter(|&link| specs[link].capacity != Capacity::Unlimited);
    limited.min_by_key(|&link| {
        specs[link]
            .capacity
            .mean_rate()
            .map_or(u64::MAX, |rate| rate.bits_per_second())
    })
}

/// Transmission time of a packet on a link, in seconds.
pub(super) fn sending(link: &LinkSpec, bytes: u64) -> f64 {
    let rate = link.capacity.mean_rate();
    rate.map_or(0.0, |rate| rate.time_for(bytes).as_secs_f64())
}

fn build(specs: &[LinkSpec], streams: Streams) -> Result<Emulation, Error> {
    let one = |forward: &LinkSpec| PathSpec {
        forward: forward.clone(),
        reverse: LinkSpec::default(),
    };
    // Hosts at the same node have no link between them.
    let paths: Vec<PathSpec> = match specs {
        [] => vec![PathSpec::default()],
        some => some.iter().map(one).collect(),
    };
    // Trials run without offload.
    Emulation::start(EmulationOptions {
        offload: false,
        ..EmulationOptions::new(Topology::chain(&paths), streams)
    })
}

fn offer(
    emulation: &Emulation,
    stream: PacketLoad,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<Arrivals, Error> {
    send(emulation, HostId(0), HostId(1), stream, stopped)
        .map_err(|error| system_error("send over an emulated path", error))
}

fn host_dropped(emulation: &Emulation) -> Result<u64, Error> {
    Ok(emulation.host_drops()?.into_iter().map(HostDrops::total).sum())
}

/// Links come in pairs; the forward one is first.
fn counters(emulation: &Emulation) -> Vec<LinkCounters> {
    emulation.with_network(|network, _| {
        let links = network.links().filter(|&LinkId(number)| number % 2 == 0);
        links.map(|link| network.counters(link)).collect()
    })
}
