//! Ideal flow completion times: those of a flow that is alone on its path, never waits for a window, and loses nothing. A flow
//! completion time over the ideal one is its slowdown (Alizadeh et al., pFabric, SIGCOMM 2013; Li et al., HPCC, SIGCOMM 2019).

use network::LinkId;
use network::topology::Topology;

use crate::outcome::FlowOutcome;
use crate::plan::{Group, Pair, Protocol, Way};
use crate::workload::WorkloadKind;

/// Returns the ideal completion time of a flow in seconds: the round trips of its connection setup, then full packets back to back at
/// the rate of each link on its path, which forwards whole packets. Of several paths that it may use, the fastest one counts.
/// `None` if it is 0.
#[must_use]
pub fn completion(group: &Group, pair: &Pair, size: u64, topology: &Topology) -> Option<f64> {
    let most = if group.chooses_ways() { usize::MAX } else { 1 };
    let times = pair
        .ways
        .iter()
        .take(most)
        .map(|way| on(group, way, size, topology));
    times.reduce(f64::min).filter(|seconds| *seconds > 0.0)
}

/// Sets the ideal completion times of files and arrivals with a size. Slowdowns of records and of all metrics use them.
pub fn set(flows: &mut [FlowOutcome], groups: &[Group], topology: &Topology) {
    for flow in flows {
        let group = &groups[flow.group as usize];
        let is_rated = matches!(group.workload.kind, WorkloadKind::File | WorkloadKind::Arrivals);
        let size = flow.size.filter(|_| is_rated);
        let pair = &group.pairs[flow.pair as usize];
        flow.ideal = size.and_then(|size| completion(group, pair, size, topology));
    }
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

fn on(group: &Group, way: &Way, size: u64, topology: &Topology) -> f64 {
    let spec = |link: &LinkId| &topology.links()[link.0 as usize].spec;
    let byte_time = |link: &LinkId| {
        let rate = spec(link).capacity.mean_rate();
        rate.map_or(0.0, |rate| 8.0 / rate.bits_per_second() as f64)
    };
    let header = f64::from(group.header());
    let full = (group.payload() as f64 + header).min(f64::from(way.mtu));
    let payload = (full - header).max(1.0);
    let packets = (size as f64 / payload).ceil().max(1.0);
    let last = size as f64 - (packets - 1.0) * payload + header;
    // The last packet leaves a link after the one before it, which has left all links before.
    let (mut first, mut slowest, mut left) = (0.0, 0.0_f64, 0.0_f64);
    for link in &way.links {
        let time = full * byte_time(link);
        first += time;
        slowest = slowest.max(time);
        let before = if packets > 1.0 {
            first + (packets - 2.0) * slowest
        } else {
            0.0
        };
        left = left.max(before) + last * byte_time(link);
    }
    let delay: f64 = way.links.iter().map(|link| spec(link).delay.as_secs_f64()).sum();
    let both = way.links.iter().chain(&way.reverse_links);
    let round_trip = way.base_rtt.as_secs_f64() + both.map(|link| header * byte_time(link)).sum::<f64>();
    f64::from(setup(&group.protocol)) * round_trip + left + delay
}
