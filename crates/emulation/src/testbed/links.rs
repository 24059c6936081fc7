//! Configuration and counters of a testbed's links.

use network::{LinkId, QueueConfig, Topology};
use serde::Serialize;

use crate::emulation::Emulation;

/// A link's configuration and counters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkState {
    /// Its name.
    pub name: String,
    /// The node at its start.
    pub from: String,
    /// The node at its end.
    pub to: String,
    /// Its rate in bit/s, the mean of a trace; null without a limit.
    pub rate_bps: Option<f64>,
    /// Whether the rate follows a trace.
    pub is_trace: bool,
    /// Its delay in seconds.
    pub delay_s: f64,
    /// Half-width or standard deviation of its jitter, in seconds; 0 without jitter.
    pub jitter_s: f64,
    /// Its mean loss rate, 0 to 1.
    pub loss: f64,
    /// Its queue.
    pub queue: QueueConfig,
    /// Its MTU in bytes; null without a limit.
    pub mtu: Option<u32>,
    /// Packets that entered.
    pub packets: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Bytes delivered.
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
    /// Whether it is down now.
    pub is_down: bool,
    /// Packets in the queue now, including the one in transmission.
    pub waiting: u64,
    /// Maximum queue length in packets.
    pub max_waiting: u64,
}

pub(super) fn states(emulation: &Emulation, topology: &Topology) -> Vec<LinkState> {
    let snapshots = emulation.with_network(|network, now| {
        let one = |link| {
            let waiting = network.queue(link, now).packets;
            (network.counters(link), waiting, network.is_down(link))
        };
        network.links().map(one).collect::<Vec<_>>()
    });
    let nodes: Vec<&str> = topology.nodes().collect();
    let state = |link: LinkId| {
        let (link_config, (counters, waiting, is_down)) =
            (&topology.links()[link.0 as usize], &snapshots[link.0 as usize]);
        let spec = &link_config.spec;
        LinkState {
            name: link_config.name.clone(),
            from: nodes[link_config.from.0 as usize].to_owned(),
            to: nodes[link_config.to.0 as usize].to_owned(),
            rate_bps: spec
                .capacity
                .mean_rate()
                .map(|rate| rate.bits_per_second() as f64),
            is_trace: spec.capacity.varies(),
            delay_s: spec.delay.as_secs_f64(),
            jitter_s: spec.jitter.map_or(0.0, |jitter| jitter.spread.as_secs_f64()),
            loss: spec.loss.as_ref().map_or(0.0, network::LossConfig::mean),
            queue: spec.queue.clone(),
            mtu: spec.mtu,
            packets: counters.entered.packets,
            delivered: counters.delivered.packets,
            delivered_bytes: counters.delivered.bytes,
            lost: counters.lost.packets,
            queue_dropped: counters.queue_dropped.packets,
            mtu_dropped: counters.mtu_dropped.packets,
            outage_dropped: counters.outage_dropped.packets,
            nat_dropped: counters.nat_dropped.packets,
            is_down: *is_down,
            waiting: *waiting,
            max_waiting: counters.max_queue_packets,
        }
    };
    (0..topology.links().len() as u32)
        .map(LinkId)
        .map(state)
        .collect()
}
