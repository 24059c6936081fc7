//! Compares the measurements of a path with its configuration.

use network::{Distribution, LinkCounters, LinkSpec, LossConfig, QueueConfig, QueueLimit};
use serde::Serialize;

use super::measure::{PathMeasurement, SMALL, narrowest, sending};

/// Relative tolerance of a rate.
const RATE: f64 = 0.01;
/// Tolerance of a median delay: relative, and in seconds; the larger one counts.
const DELAY: (f64, f64) = (0.05, 300e-6);
/// Share of packets that may be lost without a configured loss.
const UNEXPLAINED: f64 = 1e-3;
/// Standard deviations that cover 99.9 % of a normal distribution.
const DEVIATIONS: f64 = 3.29;

/// One property of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// "rate", "delay", "jitter", "loss", "queue" or "dropped in hosts".
    pub name: &'static str,
    /// In bit/s, seconds, a share from 0 to 1, or "packets" or "B".
    pub unit: &'static str,
    /// The configured value; null for no limit.
    #[serde(rename = "asked")]
    pub configured: Option<f64>,
    /// The measured value; null if it was not measured.
    pub measured: Option<f64>,
    /// Whether they agree; null if that cannot be decided.
    pub holds: Option<bool>,
    /// A remark, or empty.
    pub detail: String,
}

/// The comparison of a path with its configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathReport {
    /// The properties.
    pub figures: Vec<Figure>,
    /// Reasons why this machine cannot emulate the path.
    pub refusals: Vec<String>,
}

pub(super) fn judge(specs: &[LinkSpec], measured: &PathMeasurement) -> PathReport {
    let mut report = PathReport::default();
    rate(specs, measured, &mut report);
    delay(specs, measured, &mut report);
    loss(specs, measured, &mut report);
    queue(specs, measured, &mut report);
    hosts(measured, &mut report);
    report
}

fn rate(specs: &[LinkSpec], measured: &PathMeasurement, report: &mut PathReport) {
    let mut figure = Figure {
        name: "rate",
        unit: "bit/s",
        ..Figure::default()
    };
    if let (Some(narrow), Some(full)) = (narrowest(specs), &measured.full) {
        let configured = specs[narrow]
            .capacity
            .mean_rate()
            .map_or(0.0, |rate| rate.bits_per_second() as f64);
        let packets = full.received.saturating_sub(1) as f64;
        let seen = packets * measured.bytes as f64 * 8.0 / full.span.max(1e-9);
        (figure.configured, figure.measured) = (Some(configured), Some(seen));
        if specs[narrow].capacity.varies() {
            figure.detail = "configured: mean of the trace; measured: the part that was played".into();
        } else {
            // With few packets, one more or less matters.
            let margin = RATE + 2.0 / packets.max(1.0);
            let holds = (seen / configured - 1.0).abs() <= margin;
            figure.holds = Some(holds);
            if seen < configured * (1.0 - margin) {
                let (required, moved) = (
                    configured / 8.0 / measured.bytes as f64,
                    packets / full.span.max(1e-9),
                );
                report.refusals.push(format!(
                    "too fast: {required:.0} packets/s of {} B configured, this machine moves {moved:.0}",
                    measured.bytes
                ));
            }
        }
    }
    report.figures.push(figure);
}

fn delay(specs: &[LinkSpec], measured: &PathMeasurement, report: &mut PathReport) {
    let delays = &measured.apart.delays;
    let pure: f64 = specs.iter().map(|link| link.delay.as_secs_f64()).sum();
    let configured = pure + specs.iter().map(|link| sending(link, SMALL)).sum::<f64>();
    let at = |q: f64| {
        delays
            .get(((delays.len().max(1) - 1) as f64 * q) as usize)
            .copied()
    };
    // The variance of a uniform distribution of half-width s is s²/3.
    let variance = |link: &LinkSpec| {
        link.jitter.map_or(0.0, |jitter| {
            let spread = jitter.spread.as_secs_f64();
            if jitter.distribution == Distribution::Normal {
                spread * spread
            } else {
                spread * spread / 3.0
            }
        })
    };
    let jitter = specs.iter().map(variance).sum::<f64>().sqrt();
    let chance = DEVIATIONS * jitter * 1.25 / (delays.len().max(1) as f64).sqrt();
    let (median, late) = (at(0.5), at(0.99));
    let is_steady = specs
        .iter()
        .all(|link| link.reorder.is_none() && !link.capacity.varies());
    let off = median.map(|median| (median - configured).abs());
    let added = late
        .map(|late| late - configured)
        .filter(|_| jitter == 0.0 && is_steady);
    report.figures.push(Figure {
        name: "delay",
        unit: "s",
        configured: Some(configured),
        measured: median,
        holds: off
            .filter(|_| is_steady)
            .map(|off| off <= (configured * DELAY.0).max(DELAY.1) + chance),
        detail: late.map_or_else(String::new, |late| format!("99 % within {}", time(late))),
    });
    if let Some(added) = added.filter(|&added| pure > 0.0 && added > pure) {
        report.refusals.push(format!(
            "too short: this machine adds up to {} (99th percentile) to a delay of {}",
            time(added),
            time(pure)
        ));
    }
    if jitter > 0.0 {
        let count = delays.len().max(2) as f64;
        let mean = delays.iter().sum::<f64>() / count;
        let seen = (delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
        // The standard error of a standard deviation (for normal samples, where it is larger than for uniform ones).
        let margin = jitter * DEVIATIONS / (2.0 * (count - 1.0)).sqrt() + DELAY.1;
        report.figures.push(Figure {
            name: "jitter",
            unit: "s",
            configured: Some(jitter),
            measured: Some(seen),
            holds: Some((seen - jitter).abs() <= margin),
            detail: "standard deviation".into(),
        });
    }
}

/// The share of packets that a chain of links lost.
fn lost(links: &[LinkCounters]) -> f64 {
    let kept = |link: &LinkCounters| 1.0 - link.lost.packets as f64 / link.entered.packets.max(1) as f64;
    1.0 - links.iter().map(kept).product::<f64>()
}

fn loss(specs: &[LinkSpec], measured: &PathMeasurement, report: &mut PathReport) {
    let configured = 1.0
        - specs
            .iter()
            .map(|link| 1.0 - link.loss.as_ref().map_or(0.0, LossConfig::mean))
            .product::<f64>();
    let seen = lost(&measured.light_links);
    let sent = measured.sent.max(1) as f64;
    let is_independent = specs
        .iter()
        .all(|link| matches!(link.loss, None | Some(LossConfig::Bernoulli(_))));
    let margin = DEVIATIONS * (configured * (1.0 - configured) / sent).sqrt() + 1.0 / sent;
    report.figures.push(Figure {
        name: "loss",
        unit: "share",
        configured: Some(configured),
        measured: Some(seen),
        // Losses in bursts or by packet number are not independent.
        holds: is_independent.then(|| (seen - configured).abs() <= margin),
        detail: format!("of {} packets", measured.sent),
    });
    let links = &measured.light_links;
    let counted: u64 = links
        .iter()
        .map(|link| {
            let refused = link.mtu_dropped.packets + link.outage_dropped.packets + link.nat_dropped.packets;
            link.lost.packets + link.queue_dropped.packets + refused
        })
        .sum();
    let doubled: u64 = links.iter().map(|link| link.duplicated.packets).sum();
    // The receiving kernel discards corrupted packets.
    let corrupted: u64 = links.iter().map(|link| link.corrupted.packets).sum();
    let unexplained = (measured.sent + doubled).saturating_sub(measured.received + counted + corrupted);
    if unexplained as f64 > (UNEXPLAINED * sent).max(2.0) {
        report.refusals.push(format!(
            "too many packets: {unexplained} of {} were lost, but not by a link ({} by the hosts' kernels)",
            measured.sent, measured.host_dropped
        ));
    }
}

fn queue(specs: &[LinkSpec], measured: &PathMeasurement, report: &mut PathReport) {
    let Some(narrow) = narrowest(specs) else { return };
    let (link, Some(seen)) = (&specs[narrow], measured.full_links.get(narrow)) else {
        return;
    };
    let (unit, configured, queued) = match link.queue.limit() {
        QueueLimit::Packets(packets) => ("packets", packets as f64, seen.max_queue_packets as f64),
        QueueLimit::Bytes(size) => ("B", size.bytes() as f64, seen.max_queue_bytes as f64),
    };
    let is_full = seen.queue_dropped.packets > 0;
    let is_tail = matches!(link.queue, QueueConfig::DropTail(_));
    let room = if unit == "B" {
        configured - measured.bytes as f64
    } else {
        configured
    };
    report.figures.push(Figure {
        name: "queue",
        unit,
        configured: Some(configured),
        measured: Some(queued),
        holds: (is_full && is_tail).then_some(queued <= configured && queued >= room),
        detail: match (is_full, is_tail) {
            (false, _) => "not filled".into(),
            (true, false) => "the discipline drops earlier".into(),
            (true, true) => String::new(),
        },
    });
}

/// Packets dropped by the kernels at both ends.
fn hosts(measured: &PathMeasurement, report: &mut PathReport) {
    let sent = measured.sent + measured.full.as_ref().map_or(0, |full| full.sent);
    report.figures.push(Figure {
        name: "dropped in hosts",
        unit: "packets",
        configured: Some(0.0),
        measured: Some(measured.host_dropped as f64),
        holds: Some(measured.host_dropped as f64 <= (UNEXPLAINED * sent as f64).max(2.0)),
        detail: format!("of {sent} packets, by the hosts' kernels"),
    });
}

/// A time for display.
fn time(seconds: f64) -> String {
    if seconds >= 1e-3 {
        format!("{:.3} ms", seconds * 1e3)
    } else {
        format!("{:.0} µs", seconds * 1e6)
    }
}
