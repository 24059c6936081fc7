//! The report at the end of a shell.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use foundation::Duration;
use network::{HostId, LinkCounters};
use serde::Serialize;

use crate::emulation::Emulation;
use crate::error::Error;
use crate::sysctl::SysctlDifference;
use capture::CaptureReport;

/// The command's host.
pub(super) const NEAR: HostId = HostId(0);
/// The host at the other end of the path.
pub(super) const FAR: HostId = HostId(1);

/// The report of a shell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShellReport {
    /// The command's exit code, or 128 plus the number of the signal that killed it, as in shells.
    pub code: i32,
    /// The exit code of a server that exited before the command, in the same form; null if it did not.
    pub server_code: Option<i32>,
    /// Duration of the command, in seconds.
    pub seconds: f64,
    /// The default congestion controller of the kernel's TCP at the hosts; null if no host uses the kernel's TCP.
    pub kernel_controller: Option<String>,
    /// Settings of the hosts' kernels that differ from this machine's.
    pub sysctls: Vec<SysctlDifference>,
    /// The capture; null without one.
    pub capture: Option<CaptureReport>,
    /// All links from the command's host to the other.
    pub forward: LinkReport,
    /// All links in the other direction.
    pub reverse: LinkReport,
    /// Packets dropped at full processor backlogs, from any sender.
    pub backlog_dropped: u64,
    /// Each link, if the path has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopReport>,
}

/// One of several links, in both directions, without delays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopReport {
    /// Away from the command's host.
    pub forward: LinkReport,
    /// Towards it.
    pub reverse: LinkReport,
}

/// Counters of a link, or of all links in one direction. For several links: `packets` of the first, `delivered` of the
/// last, the lowest rate, the longest queue, and sums of all other counters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Packets that entered.
    pub packets: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Bytes delivered, in whole packets.
    pub delivered_bytes: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets dropped by the queue.
    pub queue_dropped: u64,
    /// Packets dropped because they exceeded the MTU.
    pub mtu_dropped: u64,
    /// Packets dropped because the link was down.
    pub outage_dropped: u64,
    /// Packets dropped by the address translator.
    pub nat_dropped: u64,
    /// Packets marked with congestion experienced (RFC 3168).
    pub marked: u64,
    /// Duplicates made.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Packets that were overtaken.
    pub reordered: u64,
    /// Share of packets that the loss model dropped, 0 to 1; null without packets.
    pub loss: Option<f64>,
    /// Bytes sent over the busy time, in bit/s; null for a link without a rate.
    pub rate_bps: Option<f64>,
    /// Median delay in seconds, including queueing, from the emulator's read to its write; null without packets.
    pub delay_p50_s: Option<f64>,
    /// 99th percentile of that delay, in seconds.
    pub delay_p99_s: Option<f64>,
    /// Maximum queue length in packets.
    pub max_queue_packets: u64,
    /// Packets dropped by the hosts' kernels, at the sender's device or the receiver's socket; null for one link of
    /// several. `loss` does not include them.
    pub host_dropped: Option<u64>,
}

/// A link's counters, its sent bytes and its busy time.
struct LinkSnapshot {
    counters: LinkCounters,
    sent: u64,
    busy: Duration,
}

pub(super) fn code_of(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// What is known about a command after its end.
pub(super) struct CommandOutcome {
    pub(super) status: ExitStatus,
    /// The status of a server that exited before the command.
    pub(super) server: Option<ExitStatus>,
    /// Duration of the command.
    pub(super) seconds: f64,
    pub(super) kernel_controller: Option<String>,
    pub(super) capture: Option<CaptureReport>,
}

pub(super) fn report(emulation: &Emulation, command: CommandOutcome) -> Result<ShellReport, Error> {
    let drops = emulation.host_drops()?;
    let snapshots: Vec<LinkSnapshot> = emulation.with_network(|network, now| {
        let look = |link| {
            let counters = network.counters(link);
            // Packets in flight were sent; queued packets were not.
            let sent = (counters.entered.bytes + counters.duplicated.bytes)
                .saturating_sub(
                    counters.lost.bytes
                        + counters.queue_dropped.bytes
                        + counters.mtu_dropped.bytes
                        + counters.outage_dropped.bytes
                        + counters.nat_dropped.bytes,
                )
                .saturating_sub(network.queue(link, now).bytes);
            let busy = network.occupancy(link, now).busy;
            LinkSnapshot { counters, sent, busy }
        };
        network.links().map(look).collect()
    });
    // A chain's links come in pairs, one for each direction.
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
        code: code_of(command.status),
        server_code: command.server.map(code_of),
        seconds: command.seconds,
        kernel_controller: command.kernel_controller,
        sysctls: emulation.sysctl_differences().to_vec(),
        capture: command.capture,
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
            outage_dropped: counters.outage_dropped.packets,
            nat_dropped: counters.nat_dropped.packets,
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

/// Combines the links of one direction, in the order of the path.
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
        outage_dropped: sum(|link| link.outage_dropped),
        nat_dropped: sum(|link| link.nat_dropped),
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
