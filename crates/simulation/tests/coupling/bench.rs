//! Multipath connections over a network of shared links, in which several paths can share a bottleneck.

use std::sync::Arc;

use foundation::{Duration, Instant, Streams};
use network::{HostId, LinkId, LinkSpec, Network, NetworkBuilder, PathConfig, RouteId};
use simulation::body::{Content, Parcel, Side, packet};
use transport::Machine as _;
use transport::mptcp::{Connection, HostPaths, MptcpConfig, PathIndex, Setup};

/// Links to the receiver with a path's keys. ACKs experience the delay only.
pub struct Links {
    builder: NetworkBuilder,
    sender: HostId,
    receiver: HostId,
    streams: Streams,
}

/// The forward and the reverse route of a path.
#[derive(Clone, Copy)]
pub struct Routes(RouteId, RouteId);

/// The forward and the reverse link of a cable.
#[derive(Clone, Copy)]
pub struct Cable(LinkId, LinkId);

impl Links {
    pub fn new(seed: u64) -> Self {
        let streams = Streams::new(seed, 0);
        let mut builder = NetworkBuilder::new(streams);
        let (sender, receiver) = (builder.host(), builder.host());
        Self {
            builder,
            sender,
            receiver,
            streams,
        }
    }

    pub fn cable(&mut self, name: &str, keys: &str) -> Cable {
        let config: PathConfig = serde_json::from_str(keys).unwrap();
        let there = config.resolve(&mut |_| unreachable!()).unwrap().forward;
        let back = LinkSpec {
            delay: there.delay,
            ..LinkSpec::default()
        };
        Cable(
            self.builder.link(name, &there),
            self.builder.link(format!("{name}/back"), &back),
        )
    }

    pub fn routes(&mut self, cables: &[Cable]) -> Routes {
        let there: Vec<LinkId> = cables.iter().map(|cable| cable.0).collect();
        let back: Vec<LinkId> = cables.iter().rev().map(|cable| cable.1).collect();
        Routes(
            self.builder.route(&there, self.receiver),
            self.builder.route(&back, self.sender),
        )
    }

    /// Runs bulk connections, each with a controller and its paths; a connection with one path is a TCP. They start at
    /// intervals of a third of a second. Returns the rate of each subflow in Mbit/s.
    pub fn run(self, flows: &[(&str, Vec<Routes>)], warm_up: u64, seconds: u64) -> Vec<Vec<f64>> {
        let mut bench = Bench {
            network: self.builder.build(),
            flows: Vec::new(),
            streams: self.streams,
            now: Instant::ZERO,
        };
        let start = |number: usize| Instant::ZERO + Duration::from_millis(333) * number as u64;
        for (number, (congestion, paths)) in flows.iter().enumerate() {
            bench.run(start(number));
            bench.open(congestion, paths);
        }
        bench.run(Instant::ZERO + Duration::from_secs(warm_up));
        let before = bench.acknowledged();
        bench.run(Instant::ZERO + Duration::from_secs(warm_up + seconds));
        let mbit = |(after, before): (u64, u64)| (after - before) as f64 * 8e-6 / seconds as f64;
        let rates = |(after, before): (Vec<u64>, Vec<u64>)| {
            let before = before.into_iter().chain(std::iter::repeat(0));
            after.into_iter().zip(before).map(mbit).collect()
        };
        bench.acknowledged().into_iter().zip(before).map(rates).collect()
    }
}

struct Flow {
    setup: Arc<Setup>,
    ends: [Option<Connection>; 2],
    host: HostPaths,
    paths: Vec<Routes>,
}

struct Bench {
    network: Network<Parcel>,
    flows: Vec<Flow>,
    streams: Streams,
    now: Instant,
}

impl Bench {
    fn open(&mut self, congestion: &str, paths: &[Routes]) {
        let config: MptcpConfig = serde_json::from_value(serde_json::json!({
            "kind": "mptcp", "profile": "rfc", "congestion": congestion,
            "receive_buffer": "16MiB", "send_buffer": "16MiB", "policy": {"kind": "all", "first": "first"},
        }))
        .unwrap();
        assert_eq!(config.validate(), []);
        let setup = Arc::new(Setup::new(config));
        let mut host = HostPaths::new(paths.iter().map(|_| Duration::ZERO));
        let random = self.streams.stream(&format!("client {}", self.flows.len()));
        let mut path_random = random.clone();
        let client = Connection::open(self.now, &setup, None, &mut host, random, &mut path_random);
        self.flows.push(Flow {
            setup,
            ends: [Some(client), None],
            host,
            paths: paths.to_vec(),
        });
        self.drain(self.flows.len() - 1, Side::Sender);
    }

    fn drain(&mut self, number: usize, side: Side) {
        let now = self.now;
        let flow = &mut self.flows[number];
        let Some(connection) = &mut flow.ends[side as usize] else {
            return;
        };
        loop {
            while connection.poll_event().is_some() {}
            connection.read(now, u64::MAX);
            if side == Side::Sender {
                connection.write(now, u64::MAX / 4);
            }
            let mut moved = false;
            while let Some((path, outgoing)) = connection.poll_transmit(now) {
                moved = true;
                let Routes(there, back) = flow.paths[path.index()];
                let route = if side == Side::Sender { there } else { back };
                let content = Content::Mptcp(outgoing.segment);
                self.network.send(
                    now,
                    packet(route, number as u32, side.other(), path.0, 0, content),
                );
            }
            let settled = side == Side::Sender && connection.update_host(now, &mut flow.host);
            if !moved && !settled {
                return;
            }
        }
    }

    fn deliver(&mut self, body: &Parcel) {
        let Content::Mptcp(segment) = body.content else {
            unreachable!("all packets are MPTCP segments")
        };
        let (number, path) = (body.flow as usize, PathIndex(body.way));
        let flow = &mut self.flows[number];
        match &mut flow.ends[body.to as usize] {
            Some(connection) => connection.handle_frame(self.now, (path, segment)),
            None => {
                let random = self.streams.stream(&format!("server {number}"));
                let server = Connection::accept(self.now, &flow.setup, random, path, &segment);
                flow.ends[body.to as usize] = Some(server);
            }
        }
        self.drain(number, body.to);
    }

    fn run(&mut self, until: Instant) {
        loop {
            let mut next = self.network.poll_timeout().unwrap_or(Instant::MAX);
            let mut whose = None;
            for (number, flow) in self.flows.iter().enumerate() {
                for side in [Side::Sender, Side::Receiver] {
                    let at = flow.ends[side as usize]
                        .as_ref()
                        .and_then(Connection::poll_timeout);
                    if at.is_some_and(|at| at < next) {
                        next = at.unwrap_or(next);
                        whose = Some((number, side));
                    }
                }
            }
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            match whose {
                Some((number, side)) => {
                    if let Some(connection) = &mut self.flows[number].ends[side as usize] {
                        connection.handle_timeout(self.now);
                    }
                    self.drain(number, side);
                }
                None => {
                    self.network.handle_timeout(self.now);
                    while let Some((_, packet)) = self.network.poll_delivery() {
                        self.deliver(&packet.body);
                    }
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// Returns the bytes delivered by each subflow of each connection: sent bytes minus bytes in flight.
    fn acknowledged(&self) -> Vec<Vec<u64>> {
        let of = |flow: &Flow| {
            let client = flow.ends[0].as_ref().expect("the client is open");
            client
                .subflows()
                .map(|subflow| subflow.bytes - subflow.in_flight.min(subflow.bytes))
                .collect()
        };
        self.flows.iter().map(of).collect()
    }
}
