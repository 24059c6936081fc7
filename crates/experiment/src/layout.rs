//! The hosts, links and flows of a specification before any packet is sent, with max-min fair shares. Used by predictions
//! and drawings.

use foundation::Duration;
use network::topology::Topology;
use network::{Capacity, LinkId, LinkSpec, LossConfig, QueueConfig};
use serde::Serialize;

use crate::fairness::{FlowDemand, max_min_shares};
use crate::plan::{Group, Plan, Protocol, Way};
use crate::spec::{SpecError, TrialSpec};
use crate::workload::WorkloadKind;

/// A link in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkLayout {
    /// Name.
    pub name: String,
    /// Node at the near end.
    pub from: String,
    /// Node at the far end.
    pub to: String,
    /// Rate in bit/s, or that of the queue's shaper; null if unlimited or recorded.
    pub rate_bps: Option<f64>,
    /// Rate, or mean rate of a recorded one, in bit/s; null if unlimited.
    pub mean_rate_bps: Option<f64>,
    /// Propagation delay in seconds.
    pub delay_s: f64,
    /// Loss model; null for none.
    pub loss: Option<LossConfig>,
    /// Queue; in a shared buffer, its limit is at most its largest share.
    pub queue: QueueConfig,
    /// Whether rate and delay are constant, without reordering, duplication, corruption or outages.
    pub is_steady: bool,
}

/// The limits of a TCP flow at its ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpLayout {
    /// Name of the congestion controller.
    pub controller: String,
    /// Limit of unacknowledged bytes, independent of the controller.
    pub window_bytes: u64,
    /// RTO on a path without queueing delay, in seconds.
    pub timeout_s: f64,
}

/// The sizes of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExchangeLayout {
    /// Payload of a request.
    pub request_bytes: u64,
    /// Payload of a response.
    pub response_bytes: u64,
    /// MTU of the path.
    pub mtu_bytes: u32,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowLayout {
    /// Name of the traffic; null for measured flows.
    pub traffic: Option<String>,
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Indices of the links of its route.
    pub links: Vec<usize>,
    /// Indices of the links of the reverse route.
    pub reverse_links: Vec<usize>,
    /// Payload of a full packet, in bytes.
    pub payload_bytes: u64,
    /// Payload of a full packet over its bytes on the wire.
    pub payload_share: f64,
    /// Max-min fair goodput in bit/s; null if unlimited, or if flows arrive at random.
    pub max_min_bps: Option<f64>,
    /// Limits at its ends; null for other protocols than TCP.
    pub tcp: Option<TcpLayout>,
    /// Sizes of requests and responses; null for other workloads.
    pub exchange: Option<ExchangeLayout>,
}

/// Hosts, links and flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// All links.
    pub links: Vec<LinkLayout>,
    /// Indices of the measured links.
    pub bottlenecks: Vec<usize>,
    /// One entry per flow; for arrivals, one per pair of hosts.
    pub flows: Vec<FlowLayout>,
}

impl Layout {
    /// Returns the layout of a trial.
    ///
    /// # Errors
    /// Problems of its network or its hosts.
    pub fn of(spec: &TrialSpec) -> Result<Self, SpecError> {
        let plan = Plan::of(spec)?;
        let topology = &plan.topology;
        let names: Vec<String> = topology.nodes().map(str::to_owned).collect();
        let links = (0..)
            .map(LinkId)
            .zip(topology.links())
            .map(|(id, link)| LinkLayout {
                name: link.name.clone(),
                from: names[link.from.0 as usize].clone(),
                to: names[link.to.0 as usize].clone(),
                rate_bps: rate(&link.spec),
                mean_rate_bps: link.spec.mean_rate().map(|rate| rate.bits_per_second() as f64),
                delay_s: link.spec.delay.as_secs_f64(),
                loss: link.spec.loss.clone(),
                queue: topology.longest_queue(id),
                is_steady: is_steady(&link.spec),
            });
        Ok(Self {
            hosts: topology.hosts().to_vec(),
            links: links.collect(),
            bottlenecks: topology
                .bottlenecks()
                .iter()
                .map(|link| link.0 as usize)
                .collect(),
            flows: flows(topology, &plan.groups),
        })
    }
}

fn is_steady(link: &LinkSpec) -> bool {
    !link.capacity.varies()
        && link.jitter.is_none()
        && link.reorder.is_none()
        && link.duplicate.is_none()
        && link.corrupt.is_none()
        && link.down.is_empty()
        && link.nat.is_none()
}

/// Returns the limits of the flows of a group at their ends, for a path in both directions.
fn tcp(group: &Group, topology: &Topology, ways: &[&[LinkId]; 2]) -> Option<TcpLayout> {
    let Protocol::Tcp(config) = &group.protocol else {
        return None;
    };
    let links = ways.iter().flat_map(|way| way.iter());
    let delays = links.map(|link| topology.links()[link.0 as usize].spec.delay.as_nanos());
    let parameters = config.parameters();
    Some(TcpLayout {
        controller: config.congestion().name().to_owned(),
        window_bytes: parameters.largest_window(),
        timeout_s: parameters
            .steady_timeout(Duration::from_nanos(delays.sum()))
            .as_secs_f64(),
    })
}

fn exchange(group: &Group, way: &Way) -> Option<ExchangeLayout> {
    let (request_bytes, response_bytes) = group.workload.exchange();
    (group.workload.kind == WorkloadKind::RequestResponse).then_some(ExchangeLayout {
        request_bytes,
        response_bytes,
        mtu_bytes: way.mtu,
    })
}

fn rate(link: &LinkSpec) -> Option<f64> {
    match link.capacity {
        Capacity::Rate(_) => link.mean_rate().map(|rate| rate.bits_per_second() as f64),
        _ => None,
    }
}

fn flows(topology: &Topology, groups: &[Group]) -> Vec<FlowLayout> {
    let mut members = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        for _ in 0..group.workload.flows() {
            members.extend((0..group.pairs.len()).map(|pair| Member {
                group: number as u32,
                pair: pair as u32,
                // A source of constant rate has the goodput that it sends.
                goodput: group.demand().unwrap_or(0.0),
            }));
        }
    }
    let comes_and_goes = groups
        .iter()
        .any(|group| group.workload.kind == WorkloadKind::Arrivals);
    let shares = fair_shares(topology, groups, &members);
    let hosts = topology.hosts();
    members
        .iter()
        .zip(shares)
        .map(|(member, share)| {
            let group = &groups[member.group as usize];
            let pair = &group.pairs[member.pair as usize];
            let way = &pair.ways[0];
            FlowLayout {
                traffic: group.name.clone(),
                from: hosts[pair.from.0 as usize].clone(),
                to: hosts[pair.to.0 as usize].clone(),
                links: way.links.iter().map(|link| link.0 as usize).collect(),
                reverse_links: way.reverse_links.iter().map(|link| link.0 as usize).collect(),
                payload_bytes: group.payload(),
                payload_share: group.payload_share(),
                max_min_bps: share.filter(|share| share.is_finite() && !comes_and_goes),
                tcp: tcp(group, topology, &[&way.links, &way.reverse_links]),
                exchange: exchange(group, way),
            }
        })
        .collect()
}

/// A flow of a group, between a pair of its hosts.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Group.
    pub group: u32,
    /// Pair of hosts.
    pub pair: u32,
    /// Goodput in bit/s; read for flows that do not respond to congestion.
    pub goodput: f64,
}

/// Returns the max-min fair goodput, in bit/s, of the flows that respond to congestion, from the capacity left by the
/// others. `None` for those others, and for all flows if any group chooses among several paths.
#[must_use]
pub fn fair_shares(topology: &Topology, groups: &[Group], members: &[Member]) -> Vec<Option<f64>> {
    if groups.iter().any(Group::chooses_ways) {
        // The shares depend on paths that are not known in advance.
        return vec![None; members.len()];
    }
    let all = topology.links().iter();
    let mut capacities: Vec<f64> = all
        .map(|link| rate(&link.spec).unwrap_or(f64::INFINITY))
        .collect();
    let links = |member: &Member| -> Vec<usize> {
        let group = &groups[member.group as usize];
        let way = &group.pairs[member.pair as usize].ways[0];
        group.data_links(way).iter().map(|link| link.0 as usize).collect()
    };
    let mut demands = Vec::new();
    for member in members {
        let group = &groups[member.group as usize];
        if group.responds_to_congestion() {
            let limit = group
                .demand()
                .map_or(f64::INFINITY, |rate| rate / group.payload_share());
            demands.push(FlowDemand {
                links: links(member),
                limit,
            });
        } else {
            for link in links(member) {
                capacities[link] = (capacities[link] - member.goodput / group.payload_share()).max(0.0);
            }
        }
    }
    let mut wire = max_min_shares(&capacities, &demands).into_iter();
    let share = |member: &Member| {
        let group = &groups[member.group as usize];
        let share = group.responds_to_congestion().then(|| wire.next()).flatten()?;
        Some(share * group.payload_share())
    };
    members.iter().map(share).collect()
}
