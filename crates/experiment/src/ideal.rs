//! Ideal flow completion times: those of a flow that is alone on its path, never waits for a window, and loses nothing. A flow
//! completion time over the ideal one is its slowdown (Alizadeh et al., pFabric, SIGCOMM 2013; Li et al., HPCC, SIGCOMM 2019).

use std::collections::BTreeMap;

use network::LinkId;
use network::topology::Topology;

use crate::outcome::FlowOutcome;
use crate::plan::{Group, Pair, Protocol, Way};
use crate::workload::WorkloadKind;

/// Sets the ideal completion times of files and arrivals with a size. Slowdowns of records and of all metrics use them.
pub fn set(flows: &mut [FlowOutcome], groups: &[Group], topology: &Topology) {
    let mut ways = BTreeMap::new();
    for flow in flows {
        let group = &groups[flow.group as usize];
        let is_rated = matches!(group.workload.kind, WorkloadKind::File | WorkloadKind::Arrivals);
        flow.ideal = flow.size.filter(|_| is_rated).and_then(|size| {
            let ways = ways
                .entry((flow.group, flow.pair))
                .or_insert_with(|| idle_ways(group, &group.pairs[flow.pair as usize], topology));
            fastest(ways, size)
        });
    }
}

/// Returns the paths that a flow may use.
fn idle_ways(group: &Group, pair: &Pair, topology: &Topology) -> Vec<IdleWay> {
    let most = if group.chooses_ways() { usize::MAX } else { 1 };
    let ways = pair.ways.iter().take(most);
    ways.map(|way| IdleWay::of(group, way, topology)).collect()
}

/// Returns the ideal completion time of a flow in seconds: the round trips of its connection setup, then full packets back to back at
/// the rate of each link on its path, which forwards whole packets. Of several paths that it may use, the fastest one counts.
/// `None` if it is 0.
fn fastest(ways: &[IdleWay], size: u64) -> Option<f64> {
    let times = ways.iter().map(|way| way.completion(size));
    times.reduce(f64::min).filter(|seconds| *seconds > 0.0)
}

/// Returns the round trips before the first data.
fn setup(protocol: &Protocol) -> u32 {
    match protocol {
        Protocol::Tcp(config) if config.fast_open || config.ttcp => 0,
        // With ARQ the listener returns a token, and data follows the message with this token.
        Protocol::Tcp(_) | Protocol::Mptcp(_) | Protocol::Arq(_) | Protocol::Quic(_) => 1,
        Protocol::Udp(_) | Protocol::Icmp => 0,
    }
}

/// A path without other flows. Times are in seconds, sizes in bytes.
struct IdleWay {
    header: f64,
    /// A full packet.
    full: f64,
    /// Time of a byte on each link.
    byte_times: Vec<f64>,
    delay: f64,
    /// Duration of the connection setup.
    setup: f64,
}

impl IdleWay {
    fn of(group: &Group, way: &Way, topology: &Topology) -> Self {
        let spec = |link: &LinkId| &topology.links()[link.0 as usize].spec;
        let byte_time = |link: &LinkId| {
            let rate = spec(link).capacity.mean_rate();
            rate.map_or(0.0, |rate| 8.0 / rate.bits_per_second() as f64)
        };
        let header = f64::from(group.header());
        let both = way.links.iter().chain(&way.reverse_links);
        let round_trip = way.base_rtt.as_secs_f64() + both.map(|link| header * byte_time(link)).sum::<f64>();
        Self {
            header,
            full: (group.payload() as f64 + header).min(f64::from(way.mtu)),
            byte_times: way.links.iter().map(byte_time).collect(),
            delay: way.links.iter().map(|link| spec(link).delay.as_secs_f64()).sum(),
            setup: f64::from(setup(&group.protocol)) * round_trip,
        }
    }

    fn completion(&self, size: u64) -> f64 {
        let payload = (self.full - self.header).max(1.0);
        let packets = (size as f64 / payload).ceil().max(1.0);
        let last = size as f64 - (packets - 1.0) * payload + self.header;
        // The last packet leaves a link after the one before it, which has left all links before.
        let (mut first, mut slowest, mut left) = (0.0, 0.0_f64, 0.0_f64);
        for byte_time in &self.byte_times {
            let time = self.full * byte_time;
            first += time;
            slowest = slowest.max(time);
            let before = if packets > 1.0 {
                first + (packets - 2.0) * slowest
            } else {
                0.0
            };
            left = left.max(before) + last * byte_time;
        }
        self.setup + left + self.delay
    }
}
