//! Who sends what to whom, worked out from a specification before a trial begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use foundation::{Duration, Generator, Instant, Problem, Streams};
use network::topology::Topology;
use network::{HostId, LinkId, NetworkBuilder, RouteId, UDP_IPV4_OVERHEAD};
use rand::Rng;
use transport::arq::ArqConfig;
use transport::arq::frame::HEADER_LENGTH;
use transport::tcp::TcpConfig;

use crate::body::{IPV4_HEADER, Side};
use crate::endpoint::application::{Client, Paced, Pauses, Server, exponential, uniform};
use crate::endpoint::{Application, ArqEnd, DatagramEnd, Endpoint, Machine, Progress, TcpEnd};
use crate::protocol::ProtocolConfig;
use crate::spec::{SpecError, TrialSpec};
use crate::workload::{Kind, Sizes, WorkloadConfig};

/// A protocol, shared by all flows that run it.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Tcp(Arc<TcpConfig>),
    Arq(Arc<ArqConfig>),
    Udp(u32),
}

/// Bytes of a TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER: u32 = 20;

/// Bytes that the timestamps option takes of each segment, padding included (RFC 7323, appendix A).
fn timestamps(config: &TcpConfig) -> u32 {
    if config.timestamps == Some(false) { 0 } else { 12 }
}

impl Protocol {
    fn of(config: &ProtocolConfig) -> Self {
        match config {
            ProtocolConfig::Tcp(config) => Self::Tcp(Arc::new(config.clone())),
            ProtocolConfig::Arq(config) => Self::Arq(Arc::new(config.clone())),
            ProtocolConfig::Udp(config) => Self::Udp(config.mss.bytes() as u32),
        }
    }

    /// Payload bytes of a full packet.
    fn segment(&self) -> u64 {
        match self {
            Self::Tcp(config) => config.mss().bytes() - u64::from(timestamps(config)),
            Self::Arq(config) => config.mss.bytes(),
            Self::Udp(size) => u64::from(*size),
        }
    }
}

/// A sender and its receiver, and the ways between them.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub from: HostId,
    pub to: HostId,
    pub forward: RouteId,
    pub reverse: RouteId,
    /// The links of `forward`.
    pub links: Vec<LinkId>,
}

/// Flows that run one protocol and one workload: the measured ones, or one kind of traffic.
#[derive(Debug)]
pub(crate) struct Group {
    /// The name of the traffic; `None` for the measured flows.
    pub name: Option<String>,
    pub protocol: Protocol,
    pub workload: WorkloadConfig,
    pub pairs: Vec<Pair>,
    /// Whether each connection keeps a histogram of round-trip times, of 240 kB.
    pub records_rtt: bool,
    /// Draws start times, arrivals, sizes and pauses: the same for protocols that are compared.
    pub random: Generator,
    /// Draws what no result should depend on: initial sequence numbers, secrets.
    numbers: Generator,
    streams: Streams,
}

/// Flows that each keep a histogram of their own; beyond so many they would take too much memory.
const MOST_HISTOGRAMS: usize = 64;

/// Everything that a world is made from.
pub(crate) struct Plan {
    pub topology: Topology,
    pub builder: NetworkBuilder,
    pub groups: Vec<Group>,
}

impl Plan {
    pub(crate) fn of(spec: &TrialSpec) -> Result<Self, SpecError> {
        Self::new(spec, spec.topology()?)
    }

    fn new(spec: &TrialSpec, topology: Topology) -> Result<Self, SpecError> {
        let streams = spec.streams();
        let mut builder = topology.builder(streams.component("network"));
        for &link in topology.bottlenecks() {
            builder.record_waits(link);
        }
        let mut routes = Routes {
            topology: &topology,
            builder: &mut builder,
            known: BTreeMap::new(),
        };
        let mut groups = Vec::with_capacity(1 + spec.traffic.len());
        let measured = routes
            .pairs(&spec.workload)
            .map_err(|p| vec![p.within("workload")]);
        let measured = measured.map_err(SpecError::Invalid)?;
        let hosts = streams.component("hosts");
        groups.push(Group::new(None, &spec.protocol, &spec.workload, measured, hosts));
        for (number, traffic) in spec.traffic.iter().enumerate() {
            let place = format!("traffic.{number}.workload");
            let pairs = routes
                .pairs(&traffic.workload)
                .map_err(|p| vec![p.within(&place)]);
            let pairs = pairs.map_err(SpecError::Invalid)?;
            let own = streams.component("traffic").component(&traffic.name);
            let name = Some(traffic.name.clone());
            groups.push(Group::new(name, &traffic.protocol, &traffic.workload, pairs, own));
        }
        Ok(Self {
            topology,
            builder,
            groups,
        })
    }
}

/// Routes between hosts, each built once.
struct Routes<'a> {
    topology: &'a Topology,
    builder: &'a mut NetworkBuilder,
    known: BTreeMap<(HostId, HostId), (RouteId, Vec<LinkId>)>,
}

impl Routes<'_> {
    fn route(&mut self, from: HostId, to: HostId) -> Result<(RouteId, Vec<LinkId>), Problem> {
        if let Some(known) = self.known.get(&(from, to)) {
            return Ok(known.clone());
        }
        let name = |host: HostId| &self.topology.hosts()[host.0 as usize];
        let links = self.topology.links_between(from, to).ok_or_else(|| {
            Problem::new(
                "to",
                format!("no links lead from {:?} to {:?}", name(from), name(to)),
            )
        })?;
        let route = self.builder.route(&links, to);
        self.known.insert((from, to), (route, links.clone()));
        Ok((route, links))
    }

    fn pairs(&mut self, workload: &WorkloadConfig) -> Result<Vec<Pair>, Problem> {
        let named = |key: &str, name: &str| {
            self.topology.host(name).ok_or_else(|| {
                let hosts = self.topology.hosts().join(", ");
                Problem::new(key, format!("there is no host {name:?}: allowed: {hosts}"))
            })
        };
        let ends = match (&workload.from, &workload.to) {
            (Some(from), Some(to)) => {
                let (from_host, to_host) = (named("from", from)?, named("to", to)?);
                if from_host == to_host {
                    return Err(Problem::new("to", format!("{to:?} is the sender itself")));
                }
                vec![(from_host, to_host)]
            }
            _ => self.topology.pairs().to_vec(),
        };
        if ends.is_empty() {
            let message =
                "the key is missing: this topology says of no host that it sends, so write from and to";
            return Err(Problem::new("from", message));
        }
        let mut pairs = Vec::with_capacity(ends.len());
        for (from, to) in ends {
            let (forward, links) = self.route(from, to)?;
            let (reverse, _) = self.route(to, from)?;
            pairs.push(Pair {
                from,
                to,
                forward,
                reverse,
                links,
            });
        }
        Ok(pairs)
    }
}

impl Group {
    fn new(
        name: Option<String>,
        protocol: &ProtocolConfig,
        workload: &WorkloadConfig,
        pairs: Vec<Pair>,
        streams: Streams,
    ) -> Self {
        let flows = pairs.len() * workload.flows() as usize;
        let is_few = flows <= MOST_HISTOGRAMS && workload.kind != Kind::Arrivals;
        Self {
            records_rtt: name.is_none() && is_few,
            name,
            protocol: Protocol::of(protocol),
            workload: workload.clone(),
            pairs,
            random: streams.stream("workload"),
            numbers: streams.stream("numbers"),
            streams,
        }
    }

    pub(crate) const fn is_measured(&self) -> bool {
        self.name.is_none()
    }

    /// Whether its flows slow down when the network is full.
    pub(crate) const fn answers_congestion(&self) -> bool {
        !matches!(self.protocol, Protocol::Udp(_))
    }

    /// The most payload that a flow sends, in bit/s, where its application sets a limit.
    pub(crate) fn demand(&self) -> Option<f64> {
        let rate = self.workload.rate?.bits_per_second() as f64;
        if self.workload.kind != Kind::OnOff {
            return Some(rate);
        }
        let second = Duration::from_secs(1);
        let on = self.workload.on.unwrap_or(second).as_secs_f64();
        let off = self.workload.off.unwrap_or(second).as_secs_f64();
        Some(rate * on / (on + off))
    }

    /// Payload bytes of a full packet.
    pub(crate) fn payload(&self) -> u64 {
        self.protocol.segment()
    }

    /// Payload in a full packet over all its bytes on the wire.
    pub(crate) fn payload_share(&self) -> f64 {
        let payload = self.protocol.segment() as f64;
        let header = match &self.protocol {
            Protocol::Tcp(config) => IPV4_HEADER + TCP_HEADER + timestamps(config),
            Protocol::Arq(_) => UDP_IPV4_OVERHEAD + HEADER_LENGTH as u32,
            Protocol::Udp(_) => UDP_IPV4_OVERHEAD,
        };
        payload / (payload + f64::from(header))
    }

    /// When each flow begins, and between which pair; none for arrivals, which are drawn one by one.
    pub(crate) fn starts(&mut self) -> Vec<(Instant, u32)> {
        if self.workload.kind == Kind::Arrivals {
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
    pub(crate) fn next_arrival(&mut self) -> (Duration, u32) {
        let mean = self
            .workload
            .arrivals
            .map_or(f64::MAX, |frequency| 1.0 / frequency.per_second());
        let gap = exponential(&mut self.random, Duration::from_secs_f64(mean));
        let pair = self.random.next_u64() % self.pairs.len() as u64;
        (gap, pair as u32)
    }

    /// When nothing of this group begins, or a paced source sends, any more.
    pub(crate) fn stop_at(&self) -> Instant {
        self.workload
            .duration
            .map_or(Instant::MAX, |duration| Instant::ZERO + duration)
    }

    /// The bytes that the next flow sends, where that is known from its beginning.
    pub(crate) fn next_size(&mut self) -> Option<u64> {
        let size = self.workload.size?.bytes();
        Some(match self.workload.sizes.unwrap_or_default() {
            Sizes::Fixed => size,
            Sizes::Exponential => {
                // In nanoseconds instead of bytes: the same distribution, drawn alike.
                let drawn = exponential(&mut self.random, Duration::from_nanos(size));
                drawn.as_nanos().max(1)
            }
        })
    }

    /// Both ends of flow `number` between hosts of `pair`, of `size` bytes where that is known.
    pub(crate) fn ends(&mut self, number: u32, pair: &Pair, size: Option<u64>) -> [Endpoint; 2] {
        let (sender, receiver) = self.applications(number, size);
        let (opener, listener) = self.machines();
        let end = |side, route, machine, application| Endpoint {
            flow: number,
            side,
            route,
            machine,
            application,
            timeout: Instant::MAX,
            delivered: 0,
            progress: Progress::default(),
        };
        [
            end(Side::Sender, pair.forward, opener, sender),
            end(Side::Receiver, pair.reverse, listener, receiver),
        ]
    }

    fn machines(&mut self) -> (Machine, Machine) {
        let records_rtt = self.records_rtt;
        match &self.protocol {
            Protocol::Tcp(config) => {
                let mut initial = || self.numbers.next_u32();
                let opener = TcpEnd::opener(Arc::clone(config), initial(), records_rtt);
                let listener = TcpEnd::listener(Arc::clone(config), initial());
                (Machine::Tcp(Box::new(opener)), Machine::Tcp(Box::new(listener)))
            }
            Protocol::Arq(config) => {
                let mut secret = [0; 32];
                self.numbers.fill_bytes(&mut secret);
                let opener = ArqEnd::opener(Arc::clone(config), self.numbers.next_u32(), records_rtt);
                let listener = ArqEnd::listener(Arc::clone(config), secret);
                (Machine::Arq(Box::new(opener)), Machine::Arq(Box::new(listener)))
            }
            &Protocol::Udp(size) => (
                Machine::Datagram(DatagramEnd::new(size)),
                Machine::Datagram(DatagramEnd::new(size)),
            ),
        }
    }

    fn applications(&self, number: u32, size: Option<u64>) -> (Application, Application) {
        let workload = &self.workload;
        let bytes = |size: Option<foundation::Size>, default: u64| size.map_or(default, |size| size.bytes());
        match (workload.kind, workload.rate) {
            (Kind::File | Kind::Arrivals, _) => (Application::File(size.unwrap_or(0)), Application::Sink),
            (Kind::Bulk, None) => (Application::Endless, Application::Sink),
            (Kind::Bulk | Kind::OnOff, rate) => {
                let second = Duration::from_secs(1);
                let pauses = (workload.kind == Kind::OnOff).then(|| Pauses {
                    on: workload.on.unwrap_or(second),
                    off: workload.off.unwrap_or(second),
                    random: self.streams.stream(&format!("pauses/{number}")),
                    on_until: Instant::MAX,
                });
                let rate = rate.expect("validation asks for a rate");
                let paced = Paced::new(self.protocol.segment(), rate, pauses, self.stop_at());
                (Application::Paced(Box::new(paced)), Application::Sink)
            }
            (Kind::RequestResponse, _) => {
                let request = bytes(workload.request_size, 100);
                let response = bytes(workload.response_size, 10_000);
                let each = if workload.reconnect == Some(true) {
                    1
                } else {
                    workload.requests.unwrap_or(1)
                };
                let think = workload.think.unwrap_or_default();
                let client = Client::new(each, request, response, think);
                let server = Server::new(request, response);
                (Application::Client(Box::new(client)), Application::Server(server))
            }
        }
    }

    /// With `reconnect`: how many more flows follow the first of each, one after the other.
    pub(crate) fn successors(&self) -> u32 {
        match self.workload.reconnect {
            Some(true) => self.workload.requests.unwrap_or(1) - 1,
            _ => 0,
        }
    }
}
