//! The plan of a trial, derived from its specification: hosts, paths, and groups of flows.

mod live_keys;
mod load;
mod mtu;
mod ways;

use std::collections::BTreeSet;
use std::sync::Arc;

use foundation::{Duration, Generator, Instant, Problem, Streams};
use network::topology::Topology;
use network::{LinkId, NetworkBuilder, UDP_IPV4_OVERHEAD};
use quic::QuicConfig;
use rand::Rng;
use transport::arq::ArqConfig;
use transport::arq::frame::HEADER_LENGTH;
use transport::mptcp::Setup;
use transport::mptcp::policy::PathChoice;
use transport::mptcp::segment::DSS_MAPPED;
use transport::tcp::TcpConfig;

use crate::all_reduce::Steps;
use crate::protocol::{ProtocolConfig, RESPONSE_TIMEOUT};
use crate::random::{exponential, uniform};
use crate::side::Side;
use crate::sizes::SizeDistribution;
use crate::spec::{SpecError, TrialSpec, load};
use crate::workload::{WorkloadConfig, WorkloadKind};
use ways::Routes;

pub use ways::{Pair, Way};

/// A protocol, shared by all flows that run it.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// TCP.
    Tcp(Arc<TcpConfig>),
    /// Multipath TCP.
    Mptcp(Arc<Setup>),
    /// An ARQ protocol over UDP.
    Arq(Arc<ArqConfig>),
    /// QUIC.
    Quic(Arc<QuicConfig>),
    /// Datagrams with this payload in bytes, for workloads without requests.
    Udp(u32),
    /// ICMP echo.
    Icmp,
}

/// Bytes of an IPv4 header without options (RFC 791).
pub const IPV4_HEADER: u32 = 20;

/// The MTU of Ethernet (RFC 894), the default of hosts.
const ETHERNET: u32 = 1500;

/// Bytes of a TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER: u32 = 20;

/// Returns the bytes of the options of each segment with padding: timestamps (RFC 7323, appendix A) and the connection count
/// of T/TCP (RFC 1644, section 3.1).
fn options(config: &TcpConfig) -> u32 {
    let timestamps = if config.timestamps == Some(false) { 0 } else { 12 };
    timestamps + if config.ttcp { 8 } else { 0 }
}

impl Protocol {
    fn of(config: &ProtocolConfig) -> Self {
        match config {
            ProtocolConfig::Tcp(config) => Self::Tcp(Arc::new(config.clone())),
            ProtocolConfig::Mptcp(config) => Self::Mptcp(Arc::new(Setup::new(config.clone()))),
            ProtocolConfig::Arq(config) => Self::Arq(Arc::new(config.clone())),
            ProtocolConfig::Quic(config) => Self::Quic(Arc::new(config.clone())),
            ProtocolConfig::Udp(config) => Self::Udp(config.datagram().bytes() as u32),
            ProtocolConfig::Icmp(_) => Self::Icmp,
        }
    }

    /// Returns whether its connections use several paths at once.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        match self {
            Self::Mptcp(_) => true,
            Self::Quic(config) => config.is_multipath(),
            _ => false,
        }
    }

    /// Returns whether records of this protocol count retransmission timeouts. The QUIC library does not report its own.
    #[must_use]
    pub const fn counts_timeouts(&self) -> bool {
        !matches!(self, Self::Quic(_))
    }

    /// Returns the payload bytes of a full packet.
    fn segment(&self) -> u64 {
        match self {
            Self::Tcp(config) => config.mss().bytes() - u64::from(options(config)),
            Self::Mptcp(setup) => setup.segment(),
            Self::Arq(config) => config.mss.bytes(),
            Self::Quic(config) => config.segment(),
            Self::Udp(size) => u64::from(*size),
            // The payload of a packet of 1500 bytes.
            Self::Icmp => u64::from(ETHERNET) - u64::from(UDP_IPV4_OVERHEAD),
        }
    }
}

/// Flows with one protocol and one workload: the measured ones, or one kind of traffic.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the traffic; `None` for the measured flows.
    pub name: Option<String>,
    /// Protocol.
    pub protocol: Protocol,
    /// Workload.
    pub workload: WorkloadConfig,
    /// Distribution of flow sizes, if flows have a size.
    pub sizes: Option<SizeDistribution>,
    /// Pairs of hosts.
    pub pairs: Arc<[Pair]>,
    /// The steps of an all-reduce.
    pub steps: Option<Arc<Steps>>,
    /// Time after which a request in a datagram counts as unanswered.
    pub response_timeout: Duration,
    /// Smallest MTU of the first paths of all pairs, in bytes.
    pub mtu: u32,
    /// Whether each connection records an RTT histogram, of 240 kB.
    pub records_rtt: bool,
    /// Random stream of start times, arrivals, sizes and pauses, shared by compared protocols.
    pub random: Generator,
    /// Random stream of path choices, shared by compared protocols.
    pub paths: Generator,
    /// Random stream of values that should not affect results: initial sequence numbers, secrets.
    pub numbers: Generator,
    /// Source of the random streams of each flow.
    pub streams: Streams,
    /// Mean rate of flow starts per second, of arrivals.
    pub arrivals: f64,
    /// Number of flows that follow each first one, each after the end of the one before (`reconnect`).
    pub successors: u32,
}

/// Limit of flows with an RTT histogram each, for memory.
const MAX_HISTOGRAMS: usize = 64;

/// The plan of a trial, from which worlds are built.
pub struct Plan {
    /// Hosts and links.
    pub topology: Topology,
    /// The network, with the routes of all pairs.
    pub builder: NetworkBuilder,
    /// The measured flows, then each kind of traffic.
    pub groups: Vec<Group>,
}

impl Plan {
    /// Derives the plan of a specification, and selects bottlenecks on the paths of the measured data.
    ///
    /// # Errors
    /// Problems of its network or its hosts.
    pub fn of(spec: &TrialSpec) -> Result<Self, SpecError> {
        Self::new(spec, spec.topology()?)
    }

    fn new(spec: &TrialSpec, mut topology: Topology) -> Result<Self, SpecError> {
        let streams = spec.streams();
        let network = streams.component("network");
        topology.draw_starts(network);
        let mut builder = topology.builder(network);
        let mut routes = Routes::new(&topology, &mut builder);
        let hosts = streams.component("hosts");
        let measured = Group::of(None, &spec.protocol, &spec.workload, &mut routes, hosts);
        let mut groups = vec![measured.map_err(|p| SpecError::within([p], "workload"))?];
        for (number, traffic) in spec.traffic.iter().enumerate() {
            let own = streams.component("traffic").component(&traffic.name);
            let name = Some(traffic.name.clone());
            let group = Group::of(name, &traffic.protocol, &traffic.workload, &mut routes, own);
            groups.push(group.map_err(|p| SpecError::within([p], &place(number + 1, "workload")))?);
        }
        let problems: Vec<Problem> = mtu::check(&groups, topology.hosts()).collect();
        if !problems.is_empty() {
            return Err(SpecError::Invalid(problems));
        }
        topology.avoid_outages(&mut builder);
        topology.measure(groups[0].data_ways());
        topology
            .observe(&spec.links)
            .map_err(|problem| SpecError::Invalid(vec![problem.within("links")]))?;
        for link in topology.observed() {
            builder.record_waits(link);
        }
        Ok(Self {
            topology,
            builder,
            groups,
        })
    }
}

/// Returns the key of a group's table in a study: 0 is the measured one.
#[must_use]
pub fn place(number: usize, table: &str) -> String {
    match number.checked_sub(1) {
        None => table.to_owned(),
        Some(traffic) => format!("traffic.{traffic}.{table}"),
    }
}

impl Group {
    /// Returns a group of flows between the hosts named by the workload or the topology.
    fn of(
        name: Option<String>,
        protocol: &ProtocolConfig,
        workload: &WorkloadConfig,
        routes: &mut Routes<'_>,
        streams: Streams,
    ) -> Result<Self, Problem> {
        let pairs: Arc<[Pair]> = routes.pairs(workload, &mut streams.stream("pairs"))?.into();
        let mtu = pairs.iter().map(|pair| pair.ways[0].mtu).min();
        let flows = pairs.len() * workload.flows() as usize;
        let is_few = flows <= MAX_HISTOGRAMS && workload.kind != WorkloadKind::Arrivals;
        let mut group = Self {
            records_rtt: name.is_none() && is_few,
            name,
            protocol: Protocol::of(protocol),
            response_timeout: protocol.response_timeout().unwrap_or(RESPONSE_TIMEOUT),
            workload: workload.clone(),
            sizes: SizeDistribution::of(workload, &mut load)?,
            steps: steps(workload, &pairs)?.map(Arc::new),
            pairs,
            mtu: mtu.unwrap_or(ETHERNET),
            random: streams.stream("workload"),
            paths: streams.stream("paths"),
            numbers: streams.stream("numbers"),
            streams,
            successors: match workload.reconnect {
                Some(true) => workload.requests.unwrap_or(1) - 1,
                _ => 0,
            },
            arrivals: workload.arrivals.map_or(0.0, |frequency| frequency.per_second()),
        };
        if let Some(load) = workload.load {
            group.arrivals = load::arrivals(&group, load.value(), routes.topology())?;
        }
        Ok(group)
    }

    /// Returns whether these are the measured flows.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.name.is_none()
    }

    /// Returns whether its flows reduce their rate under congestion.
    #[must_use]
    pub const fn responds_to_congestion(&self) -> bool {
        !matches!(self.protocol, Protocol::Udp(_) | Protocol::Icmp)
    }

    /// Returns the end that receives most of the data: the opener if responses are larger than requests, else the acceptor.
    #[must_use]
    pub fn data_receiver(&self) -> Side {
        let (request, response) = self.workload.exchange();
        match self.workload.kind {
            WorkloadKind::WebPage => Side::Sender,
            WorkloadKind::RequestResponse if response > request => Side::Sender,
            _ => Side::Receiver,
        }
    }

    /// Returns the name of a flow of a pair: the host that sends the data, preceded by the name of the traffic.
    #[must_use]
    pub fn flow_name(&self, pair: u32, topology: &Topology) -> String {
        let pair = &self.pairs[pair as usize];
        let host = match self.data_receiver() {
            Side::Receiver => pair.from,
            Side::Sender => pair.to,
        };
        let host = &topology.hosts()[host.0 as usize];
        match &self.name {
            Some(name) => format!("{name} ({host})"),
            None => host.clone(),
        }
    }

    /// Returns the links of a path in the direction of the data.
    #[must_use]
    pub fn data_links<'w>(&self, way: &'w Way) -> &'w [LinkId] {
        match self.data_receiver() {
            Side::Sender => &way.reverse_links,
            Side::Receiver => &way.links,
        }
    }

    /// Returns the links of all paths that its data may take, in the direction of the data.
    fn data_ways(&self) -> impl Iterator<Item = &[LinkId]> + Clone {
        let most = if self.chooses_ways() { usize::MAX } else { 1 };
        let ways = self
            .pairs
            .iter()
            .flat_map(move |pair| pair.ways.iter().take(most));
        ways.map(|way| self.data_links(way))
    }

    /// Returns whether its requests and responses are one datagram each.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        let is_datagram = matches!(self.protocol, Protocol::Udp(_) | Protocol::Icmp);
        is_datagram && self.workload.kind == WorkloadKind::RequestResponse
    }

    /// Returns whether its flows use several paths, or a path other than the first.
    #[must_use]
    pub fn chooses_ways(&self) -> bool {
        let chooses = match &self.protocol {
            Protocol::Mptcp(_) => true,
            Protocol::Quic(config) => config.is_multipath(),
            Protocol::Tcp(config) => config.path.unwrap_or(PathChoice::First) != PathChoice::First,
            Protocol::Arq(_) | Protocol::Udp(_) | Protocol::Icmp => false,
        };
        chooses && self.pairs.iter().any(|pair| pair.ways.len() > 1)
    }

    /// Returns the mean rate of a flow in bit/s, if its application limits it.
    #[must_use]
    pub fn demand(&self) -> Option<f64> {
        if self.workload.kind == WorkloadKind::Frames {
            let size = self.workload.size?.bytes() as f64;
            return Some(8.0 * size * self.workload.frame_rate());
        }
        let rate = self.workload.rate?.bits_per_second() as f64;
        if self.workload.kind != WorkloadKind::OnOff {
            return Some(rate);
        }
        let second = Duration::from_secs(1);
        let on = self.workload.on.unwrap_or(second).as_secs_f64();
        let off = self.workload.off.unwrap_or(second).as_secs_f64();
        Some(rate * on / (on + off))
    }

    /// Returns the payload bytes of a full packet.
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.protocol.segment()
    }

    /// Returns the bytes of the headers of a full packet.
    #[must_use]
    pub fn header(&self) -> u32 {
        match &self.protocol {
            Protocol::Tcp(config) => IPV4_HEADER + TCP_HEADER + options(config),
            Protocol::Mptcp(setup) => IPV4_HEADER + TCP_HEADER + options(&setup.config().tcp) + DSS_MAPPED,
            Protocol::Arq(_) => UDP_IPV4_OVERHEAD + HEADER_LENGTH as u32,
            Protocol::Quic(_) => UDP_IPV4_OVERHEAD + QuicConfig::overhead(),
            // The ICMP header has the length of the UDP header (RFC 792, RFC 768).
            Protocol::Udp(_) | Protocol::Icmp => UDP_IPV4_OVERHEAD,
        }
    }

    /// Returns the payload of a full packet over its bytes on the wire.
    #[must_use]
    pub fn payload_share(&self) -> f64 {
        let payload = self.protocol.segment() as f64;
        payload / (payload + f64::from(self.header()))
    }

    /// Returns the start and the pair of each flow; none for arrivals, which are drawn one by one.
    pub(crate) fn starts(&mut self) -> Vec<(Instant, u32)> {
        if self.workload.kind == WorkloadKind::Arrivals {
            return Vec::new();
        }
        let workload = &self.workload;
        let jitter = workload.start_jitter.unwrap_or_default();
        let stagger = workload.stagger.unwrap_or_default();
        let mut at = Instant::ZERO + workload.start.unwrap_or_default();
        let mut starts = Vec::new();
        for _ in 0..workload.flows() {
            for pair in 0..self.pairs.len() {
                starts.push((at + uniform(&mut self.random, jitter), pair as u32));
                at += stagger;
            }
        }
        starts
    }

    /// Draws the time to the next arrival, and its pair of hosts.
    pub(crate) fn next_arrival(&mut self) -> (Duration, u32) {
        let gap = exponential(&mut self.random, Duration::from_secs_f64(1.0 / self.arrivals));
        let pair = self.random.next_u64() % self.pairs.len() as u64;
        (gap, pair as u32)
    }

    /// Returns the end of arrivals and of paced sending.
    #[must_use]
    pub fn stop_at(&self) -> Instant {
        self.workload
            .duration
            .map_or(Instant::MAX, |duration| Instant::ZERO + duration)
    }

    /// Draws the size of the next flow of a pair in bytes, if flows have a size. That of an all-reduce is constant.
    pub fn next_size(&mut self, pair: u32) -> Option<u64> {
        if let Some(steps) = &self.steps {
            return Some(steps.bytes(pair) * self.workload.all_reduces().1);
        }
        Some(self.sizes.as_ref()?.draw(&mut self.random))
    }
}

/// Returns the steps of an all-reduce between the senders of its pairs.
fn steps(workload: &WorkloadConfig, pairs: &[Pair]) -> Result<Option<Steps>, Problem> {
    if workload.kind != WorkloadKind::AllReduce {
        return Ok(None);
    }
    let members: BTreeSet<u32> = pairs.iter().map(|pair| pair.from.0).collect();
    let algorithm = workload.algorithm.unwrap_or_default();
    Steps::of(algorithm, members.len(), workload.all_reduces().0).map(Some)
}
