//! What a shell's path did, at its end.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use foundation::{Duration, Instant};
use network::{HostId, LinkCounters};
use serde::Serialize;

use crate::error::Error;
use crate::linux::emulation::Emulation;

/// The host at which the command runs.
pub(super) const NEAR: HostId = HostId(0);
/// The host at the other end of the path.
pub(super) const FAR: HostId = HostId(1);

/// What happened behind the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShellReport {
    /// The command's exit code; 128 and the signal's number where a signal ended it, as shells tell it.
    pub code: i32,
    /// How long the command ran, in seconds.
    pub seconds: f64,
    /// From the command's host to the other, over all links.
    pub forward: LinkReport,
    /// And back.
    pub reverse: LinkReport,
    /// Packets that the machine's processors dropped meanwhile because their backlogs were full, whoever sent them.
    pub backlog_dropped: u64,
    /// What each link of a path of several did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopReport>,
}

/// What one link of several did in both directions. The delays are those of the whole path alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopReport {
    /// Away from the command's host.
    pub forward: LinkReport,
    /// Towards it.
    pub reverse: LinkReport,
}

/// What a link did, or all links of a way: then what entered is what entered the first, what was delivered is what the last
/// delivered, the rate is the least, the longest queue the longest of all, and the rest is summed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Packets that entered.
    pub packets: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Bytes that reached the far end, in whole packets.
    pub delivered_bytes: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets dropped by the queue.
    pub queue_dropped: u64,
    /// Packets dropped as larger than the MTU.
    pub mtu_dropped: u64,
    /// Packets marked as having met congestion (RFC 3168).
    pub marked: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Packets in which a bit was flipped.
    pub corrupted: u64,
    /// Packets that overtook none and were overtaken.
    pub reordered: u64,
    /// Part of the packets that the loss model dropped, 0 to 1; null without any packet.
    pub loss: Option<f64>,
    /// Bytes sent over the time that the link was sending, in bit/s; null for a link without a rate.
    pub rate_bps: Option<f64>,
    /// Median of the delay that packets had, waiting included, from when the emulator read them to when it wrote them, in
    /// seconds; null without any packet.
    pub delay_p50_s: Option<f64>,
    /// 99th percentile of that delay, in seconds.
    pub delay_p99_s: Option<f64>,
    /// Most packets in the queue at once.
    pub max_queue_packets: u64,
    /// Packets that the hosts' kernels dropped, on their way out at the one end or at the receiving socket at the other; null
    /// for one link of several. `loss` does not count them.
    pub host_dropped: Option<u64>,
}

/// A link's counters, the bytes that it has sent, and how long it was sending.
struct LinkSnapshot {
    counters: LinkCounters,
    sent: u64,
    busy: Duration,
}

pub(super) fn report(
    emulation: &Emulation,
    status: ExitStatus,
    started: Instant,
) -> Result<ShellReport, Error> {
    let seconds = (emulation.clock().now() - started).as_secs_f64();
    let drops = emulation.host_drops()?;
    let snapshots: Vec<LinkSnapshot> = emulation.with_network(|network, now| {
        let look = |link| {
            let counters = *network.counters(link);
            // What is still under way has been sent, what still stands in the queue has not.
            let sent = (counters.entered.bytes + counters.duplicated.bytes)
                .saturating_sub(
                    counters.lost.bytes + counters.queue_dropped.bytes + counters.mtu_dropped.bytes,
                )
                .saturating_sub(network.queue(link, now).bytes);
            let busy = network.occupancy(link, now).busy;
            LinkSnapshot { counters, sent, busy }
        };
        network.links().map(look).collect()
    });
    // The links of a chain are drawn in pairs, there and back.
    let links: Vec<LinkReport> = snapshots.iter().map(LinkSnapshot::report).collect();
    let hops: Vec<HopReport> = links
        .chunks_exact(2)
        .map(|pair| HopReport {
            forward: pair[0].clone(),
            reverse: pair[1].clone(),
        })
        .collect();
    let forward: Vec<&LinkReport> = hops.iter().map(|hop| &hop.forward).collect();
    let reverse: Vec<&LinkReport> = hops.iter().rev().map(|hop| &hop.reverse).collect();
    let done = emulation.report();
    let way = |links: &[&LinkReport], from: HostId, to: HostId| {
        let (left, reached) = (drops[from.0 as usize], drops[to.0 as usize]);
        let delays = &done.delays[to.0 as usize];
        let delay = |q| (!delays.is_empty()).then(|| delays.value_at_quantile(q) as f64 / 1e9);
        LinkReport {
            delay_p50_s: delay(0.5),
            delay_p99_s: delay(0.99),
            host_dropped: Some(left.sent + reached.socket + reached.received),
            ..over_all(links)
        }
    };
    Ok(ShellReport {
        code: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        seconds,
        forward: way(&forward, NEAR, FAR),
        reverse: way(&reverse, FAR, NEAR),
        backlog_dropped: emulation.backlog_drops()?,
        hops: if hops.len() > 1 { hops } else { Vec::new() },
    })
}

impl LinkSnapshot {
    fn report(&self) -> LinkReport {
        let counters = &self.counters;
        let packets = counters.entered.packets;
        LinkReport {
            packets,
            delivered: counters.delivered.packets,
            delivered_bytes: counters.delivered.bytes,
            lost: counters.lost.packets,
            queue_dropped: counters.queue_dropped.packets,
            mtu_dropped: counters.mtu_dropped.packets,
            marked: counters.marked.packets,
            duplicated: counters.duplicated.packets,
            corrupted: counters.corrupted.packets,
            reordered: counters.reordered.packets,
            loss: (packets > 0).then(|| counters.lost.packets as f64 / packets as f64),
            rate_bps: (!self.busy.is_zero()).then(|| self.sent as f64 * 8.0 / self.busy.as_secs_f64()),
            delay_p50_s: None,
            delay_p99_s: None,
            host_dropped: None,
            max_queue_packets: counters.max_queue_packets,
        }
    }
}

/// What the links of a way did together, in the order in which packets pass them.
fn over_all(links: &[&LinkReport]) -> LinkReport {
    let (Some(&first), Some(&last)) = (links.first(), links.last()) else {
        unreachable!("a path has a link");
    };
    let sum = |count: fn(&LinkReport) -> u64| links.iter().map(|&link| count(link)).sum::<u64>();
    let kept = links.iter().filter_map(|link| link.loss).map(|loss| 1.0 - loss);
    LinkReport {
        packets: first.packets,
        lost: sum(|link| link.lost),
        queue_dropped: sum(|link| link.queue_dropped),
        mtu_dropped: sum(|link| link.mtu_dropped),
        marked: sum(|link| link.marked),
        duplicated: sum(|link| link.duplicated),
        corrupted: sum(|link| link.corrupted),
        reordered: sum(|link| link.reordered),
        loss: first.loss.map(|_| 1.0 - kept.product::<f64>()),
        rate_bps: links.iter().filter_map(|link| link.rate_bps).reduce(f64::min),
        max_queue_packets: links.iter().map(|link| link.max_queue_packets).max().unwrap_or(0),
        ..last.clone()
    }
}
