//! Who sends what to whom, worked out from a specification before a trial begins.

mod ways;

use std::sync::Arc;

use foundation::{Duration, Generator, Instant, Problem, Streams};
use network::topology::Topology;
use network::{LinkId, NetworkBuilder, UDP_IPV4_OVERHEAD};
use rand::Rng;
use transport::arq::ArqConfig;
use transport::arq::frame::HEADER_LENGTH;
use transport::mptcp::Setup;
use transport::mptcp::policy::PathChoice;
use transport::mptcp::segment::DSS_MAPPED;
use transport::tcp::TcpConfig;

use crate::mtu;
use crate::protocol::ProtocolConfig;
use crate::random::{exponential, uniform};
use crate::sizes::SizeDistribution;
use crate::spec::{SpecError, TrialSpec, load};
use crate::trace::Side;
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
    /// Datagrams of so many payload bytes, where no request or response sets them.
    Udp(u32),
    /// ICMP echo.
    Icmp,
}

/// Bytes of an IPv4 header without options (RFC 791).
pub const IPV4_HEADER: u32 = 20;

/// The MTU of Ethernet (RFC 894), which hosts have where nothing else is said.
const ETHERNET: u32 = 1500;

/// Bytes of a TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER: u32 = 20;

/// Bytes that the options of each segment take, padding included: timestamps (RFC 7323, appendix A), and the connection count
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
            ProtocolConfig::Udp(config) => Self::Udp(config.datagram().bytes() as u32),
            ProtocolConfig::Icmp(_) => Self::Icmp,
        }
    }

    /// Payload bytes of a full packet.
    fn segment(&self) -> u64 {
        match self {
            Self::Tcp(config) => config.mss().bytes() - u64::from(options(config)),
            Self::Mptcp(setup) => setup.segment(),
            Self::Arq(config) => config.mss.bytes(),
            Self::Udp(size) => u64::from(*size),
            // What a packet of 1500 bytes has room for.
            Self::Icmp => u64::from(ETHERNET) - u64::from(UDP_IPV4_OVERHEAD),
        }
    }
}

/// Flows that run one protocol and one workload: the measured ones, or one kind of traffic.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name of the traffic; `None` for the measured flows.
    pub name: Option<String>,
    /// What its flows run.
    pub protocol: Protocol,
    /// What they carry.
    pub workload: WorkloadConfig,
    /// How large they are, where that is known from their beginning.
    pub sizes: Option<SizeDistribution>,
    /// Between which hosts.
    pub pairs: Arc<[Pair]>,
    /// The largest packet that the first ways of all its pairs carry, in bytes with all headers.
    pub mtu: u32,
    /// Whether each connection keeps a histogram of round-trip times, of 240 kB.
    pub records_rtt: bool,
    /// Draws start times, arrivals, sizes and pauses: the same for protocols that are compared.
    pub random: Generator,
    /// Draws paths: the same for protocols that are compared.
    pub paths: Generator,
    /// Draws what no result should depend on: initial sequence numbers, secrets.
    pub numbers: Generator,
    /// Where each flow's own random streams come from.
    pub streams: Streams,
}

/// Flows that each keep a histogram of their own; beyond so many they would take too much memory.
const MOST_HISTOGRAMS: usize = 64;

/// Everything that a world is made from.
pub struct Plan {
    /// Hosts and links.
    pub topology: Topology,
    /// The network, with the routes of all pairs.
    pub builder: NetworkBuilder,
    /// The measured flows, then each kind of traffic.
    pub groups: Vec<Group>,
}

impl Plan {
    /// Works a specification out. The bottlenecks of its topology are links that the measured data crosses.
    ///
    /// # Errors
    /// What is wrong with its network or its hosts.
    pub fn of(spec: &TrialSpec) -> Result<Self, SpecError> {
        Self::new(spec, spec.topology()?)
    }

    fn new(spec: &TrialSpec, mut topology: Topology) -> Result<Self, SpecError> {
        let streams = spec.streams();
        let mut builder = topology.builder(streams.component("network"));
        let mut routes = Routes::new(&topology, &mut builder);
        let hosts = streams.component("hosts");
        let measured = Group::of(None, &spec.protocol, &spec.workload, &mut routes, hosts);
        let mut groups = vec![measured.map_err(|p| invalid(p, "workload"))?];
        for (number, traffic) in spec.traffic.iter().enumerate() {
            let own = streams.component("traffic").component(&traffic.name);
            let name = Some(traffic.name.clone());
            let group = Group::of(name, &traffic.protocol, &traffic.workload, &mut routes, own);
            groups.push(group.map_err(|p| invalid(p, &format!("traffic.{number}.workload")))?);
        }
        let problems: Vec<Problem> = mtu::check(&groups, topology.hosts()).collect();
        if !problems.is_empty() {
            return Err(SpecError::Invalid(problems));
        }
        topology.measure(groups[0].data_ways());
        for &link in topology.bottlenecks() {
            builder.record_waits(link);
        }
        Ok(Self {
            topology,
            builder,
            groups,
        })
    }
}

fn invalid(problem: Problem, place: &str) -> SpecError {
    SpecError::Invalid(vec![problem.within(place)])
}

impl Group {
    /// Flows of `workload`, between hosts that it or the topology names.
    fn of(
        name: Option<String>,
        protocol: &ProtocolConfig,
        workload: &WorkloadConfig,
        routes: &mut Routes<'_>,
        streams: Streams,
    ) -> Result<Self, Problem> {
        let pairs: Arc<[Pair]> = routes.pairs(workload)?.into();
        let mtu = pairs.iter().map(|pair| pair.ways[0].mtu).min();
        let flows = pairs.len() * workload.flows() as usize;
        let is_few = flows <= MOST_HISTOGRAMS && workload.kind != WorkloadKind::Arrivals;
        Ok(Self {
            records_rtt: name.is_none() && is_few,
            name,
            protocol: Protocol::of(protocol),
            workload: workload.clone(),
            sizes: SizeDistribution::of(workload, &mut load)?,
            pairs,
            mtu: mtu.unwrap_or(ETHERNET),
            random: streams.stream("workload"),
            paths: streams.stream("paths"),
            numbers: streams.stream("numbers"),
            streams,
        })
    }

    /// Whether these are the measured flows.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.name.is_none()
    }

    /// Whether its flows slow down when the network is full.
    #[must_use]
    pub const fn answers_congestion(&self) -> bool {
        !matches!(self.protocol, Protocol::Udp(_) | Protocol::Icmp)
    }

    /// The end that receives most of the data: the first of each pair where responses are larger than requests, else the
    /// second.
    #[must_use]
    pub fn data_receiver(&self) -> Side {
        let (request, response) = self.workload.exchange();
        match self.workload.kind == WorkloadKind::RequestResponse && response > request {
            true => Side::Sender,
            false => Side::Receiver,
        }
    }

    /// The links that data crosses on a way, in its direction.
    #[must_use]
    pub fn data_links<'w>(&self, way: &'w Way) -> &'w [LinkId] {
        match self.data_receiver() {
            Side::Sender => &way.reverse_links,
            Side::Receiver => &way.links,
        }
    }

    /// The links of all ways that its data may take, in its direction.
    fn data_ways(&self) -> impl Iterator<Item = &[LinkId]> + Clone {
        let most = if self.chooses_ways() { usize::MAX } else { 1 };
        let ways = self
            .pairs
            .iter()
            .flat_map(move |pair| pair.ways.iter().take(most));
        ways.map(|way| self.data_links(way))
    }

    /// Whether its requests and responses are one datagram each.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        let is_datagram = matches!(self.protocol, Protocol::Udp(_) | Protocol::Icmp);
        is_datagram && self.workload.kind == WorkloadKind::RequestResponse
    }

    /// Whether a flow of it uses several ways, or another one than the first.
    #[must_use]
    pub fn chooses_ways(&self) -> bool {
        let chooses = match &self.protocol {
            Protocol::Mptcp(_) => true,
            Protocol::Tcp(config) => config.path.unwrap_or(PathChoice::First) != PathChoice::First,
            Protocol::Arq(_) | Protocol::Udp(_) | Protocol::Icmp => false,
        };
        chooses && self.pairs.iter().any(|pair| pair.ways.len() > 1)
    }

    /// The most payload that a flow sends, in bit/s, where its application sets a limit.
    #[must_use]
    pub fn demand(&self) -> Option<f64> {
        let rate = self.workload.rate?.bits_per_second() as f64;
        if self.workload.kind != WorkloadKind::OnOff {
            return Some(rate);
        }
        let second = Duration::from_secs(1);
        let on = self.workload.on.unwrap_or(second).as_secs_f64();
        let off = self.workload.off.unwrap_or(second).as_secs_f64();
        Some(rate * on / (on + off))
    }

    /// Payload bytes of a full packet.
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.protocol.segment()
    }

    /// Payload in a full packet over all its bytes on the wire.
    #[must_use]
    pub fn payload_share(&self) -> f64 {
        let payload = self.protocol.segment() as f64;
        let header = match &self.protocol {
            Protocol::Tcp(config) => IPV4_HEADER + TCP_HEADER + options(config),
            Protocol::Mptcp(setup) => IPV4_HEADER + TCP_HEADER + options(&setup.config().tcp) + DSS_MAPPED,
            Protocol::Arq(_) => UDP_IPV4_OVERHEAD + HEADER_LENGTH as u32,
            // ICMP's header is as long as UDP's (RFC 792, RFC 768).
            Protocol::Udp(_) | Protocol::Icmp => UDP_IPV4_OVERHEAD,
        };
        payload / (payload + f64::from(header))
    }

    /// When each flow begins, and between which pair; none for arrivals, which are drawn one by one.
    pub fn starts(&mut self) -> Vec<(Instant, u32)> {
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

    /// The time from one arrival to the next, and the pair of hosts of that next one.
    pub fn next_arrival(&mut self) -> (Duration, u32) {
        let mean = self
            .workload
            .arrivals
            .map_or(f64::MAX, |frequency| 1.0 / frequency.per_second());
        let gap = exponential(&mut self.random, Duration::from_secs_f64(mean));
        let pair = self.random.next_u64() % self.pairs.len() as u64;
        (gap, pair as u32)
    }

    /// When nothing of this group begins, or a paced source sends, any more.
    #[must_use]
    pub fn stop_at(&self) -> Instant {
        self.workload
            .duration
            .map_or(Instant::MAX, |duration| Instant::ZERO + duration)
    }

    /// The bytes that the next flow sends, where that is known from its beginning.
    pub fn next_size(&mut self) -> Option<u64> {
        Some(self.sizes.as_ref()?.draw(&mut self.random))
    }

    /// With `reconnect`: how many more flows follow the first of each, one after the other.
    #[must_use]
    pub fn successors(&self) -> u32 {
        match self.workload.reconnect {
            Some(true) => self.workload.requests.unwrap_or(1) - 1,
            _ => 0,
        }
    }
}
