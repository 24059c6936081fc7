//! What a specification comes to before anything is sent: hosts, links, flows, and the shares that are theirs.
//! For theory beside the measurement, and for drawing.

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
    /// Its name.
    pub name: String,
    /// The node at its beginning.
    pub from: String,
    /// The node at its end.
    pub to: String,
    /// Rate in bit/s; null where it is infinite or follows a trace.
    pub rate_bps: Option<f64>,
    /// Delay in seconds, without sending.
    pub delay_s: f64,
    /// Which packets it loses; null for none.
    pub loss: Option<LossConfig>,
    /// What waits in front of it.
    pub queue: QueueConfig,
    /// Whether its rate, its delay and the order of packets never vary, and none is doubled or damaged.
    pub is_steady: bool,
}

/// What limits a TCP flow at its own ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpLayout {
    /// The congestion controller's name.
    pub controller: String,
    /// The most bytes that may be unacknowledged, whatever the controller allows.
    pub window_bytes: u64,
    /// The retransmission timeout on a path without a queue, in seconds.
    pub timeout_s: f64,
}

/// What requests and responses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExchangeLayout {
    /// Payload of a request.
    pub request_bytes: u64,
    /// Payload of a response.
    pub response_bytes: u64,
    /// The largest packet with all its headers.
    pub mtu_bytes: u32,
}

/// A flow, or several alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowLayout {
    /// The name of the traffic; null for a measured flow.
    pub traffic: Option<String>,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Indices of the links on its way.
    pub links: Vec<usize>,
    /// Indices of the links on the way back.
    pub reverse_links: Vec<usize>,
    /// Payload in a full packet, in bytes.
    pub payload_bytes: u64,
    /// That over all bytes of the packet on the wire.
    pub payload_share: f64,
    /// Max-min fair goodput in bit/s; null where nothing limits it, or where flows come and go.
    pub max_min_bps: Option<f64>,
    /// What limits it at its ends; null where it is not TCP.
    pub tcp: Option<TcpLayout>,
    /// What it asks and answers; null where it does not.
    pub exchange: Option<ExchangeLayout>,
}

/// Hosts, links and flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// The hosts' names.
    pub hosts: Vec<String>,
    /// All links.
    pub links: Vec<LinkLayout>,
    /// Indices of the links whose queues are measured: links that the measured data crosses.
    pub bottlenecks: Vec<usize>,
    /// One entry a flow; of flows that arrive, one a pair of hosts.
    pub flows: Vec<FlowLayout>,
}

impl Layout {
    /// The layout of a trial.
    ///
    /// # Errors
    /// What is wrong with its network or its hosts.
    pub fn of(spec: &TrialSpec) -> Result<Self, SpecError> {
        let plan = Plan::of(spec)?;
        let topology = &plan.topology;
        let names: Vec<String> = topology.nodes().map(str::to_owned).collect();
        let links = topology.links().iter().map(|link| LinkLayout {
            name: link.name.clone(),
            from: names[link.from.0 as usize].clone(),
            to: names[link.to.0 as usize].clone(),
            rate_bps: rate(&link.spec.capacity),
            delay_s: link.spec.delay.as_secs_f64(),
            loss: link.spec.loss.clone(),
            queue: link.spec.queue,
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
    !matches!(link.capacity, Capacity::Trace(_))
        && link.jitter.is_none()
        && link.reorder.is_none()
        && link.duplicate.is_none()
        && link.corrupt.is_none()
}

/// What limits the flows of a group at their ends, on the links of a way there and back.
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

fn rate(capacity: &Capacity) -> Option<f64> {
    match capacity {
        Capacity::Rate(rate) => Some(rate.bits_per_second() as f64),
        Capacity::Unlimited | Capacity::Trace(_) => None,
    }
}

fn flows(topology: &Topology, groups: &[Group]) -> Vec<FlowLayout> {
    let mut members = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        for _ in 0..group.workload.flows() {
            members.extend((0..group.pairs.len()).map(|pair| Member {
                group: number as u32,
                pair: pair as u32,
                // A source of constant rate takes what it sends.
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
    /// Its group.
    pub group: u32,
    /// Its pair of hosts.
    pub pair: u32,
    /// Payload that it gets through, in bit/s: counts for flows that do not answer congestion.
    pub goodput: f64,
}

/// The max-min fair goodput, in bit/s, of the flows that answer congestion, from what the others leave of the
/// links. `None` for those others, and for all where flows choose among several ways.
#[must_use]
pub fn fair_shares(topology: &Topology, groups: &[Group], members: &[Member]) -> Vec<Option<f64>> {
    if groups.iter().any(Group::chooses_ways) {
        // What is whose follows from no way that is known beforehand.
        return vec![None; members.len()];
    }
    let all = topology.links().iter();
    let mut capacities: Vec<f64> = all
        .map(|link| rate(&link.spec.capacity).unwrap_or(f64::INFINITY))
        .collect();
    let links = |member: &Member| -> Vec<usize> {
        let group = &groups[member.group as usize];
        let way = &group.pairs[member.pair as usize].ways[0];
        group.data_links(way).iter().map(|link| link.0 as usize).collect()
    };
    let mut claims = Vec::new();
    for member in members {
        let group = &groups[member.group as usize];
        if group.answers_congestion() {
            let demand = group
                .demand()
                .map_or(f64::INFINITY, |rate| rate / group.payload_share());
            claims.push(FlowDemand {
                links: links(member),
                demand,
            });
        } else {
            for link in links(member) {
                capacities[link] = (capacities[link] - member.goodput / group.payload_share()).max(0.0);
            }
        }
    }
    let mut wire = max_min_shares(&capacities, &claims).into_iter();
    let share = |member: &Member| {
        let group = &groups[member.group as usize];
        let share = group.answers_congestion().then(|| wire.next()).flatten()?;
        Some(share * group.payload_share())
    };
    members.iter().map(share).collect()
}
