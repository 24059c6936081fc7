//! Transactions between two stacks over a path that loses, duplicates, delays and replays packets: every request gets
//! one reply with the right bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use foundation::{Duration, Instant, Streams};
use proptest::prelude::*;
use stack::{ConnectionEvent, Event, Stack, StreamId};
use transport::tcp::wire::{Endpoints, decode};
use transport::tcp::{Flags, Profile, TcpConfig};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 80;
const DELAY: Duration = Duration::from_millis(20);

/// Probabilities in thousandths.
#[derive(Clone, Copy, Debug, Default)]
struct Impairments {
    loss: u32,
    duplicate: u32,
    delay: u32,
    /// Of a duplicate of a SYN seconds later.
    replay: u32,
}

/// The state of a server's stream.
#[derive(Default)]
struct ServerStream {
    request: Vec<u8>,
    has_ended: bool,
    is_answered: bool,
}

struct World {
    now: Instant,
    stacks: [Stack; 2],
    impairments: Impairments,
    random: foundation::Generator,
    on_the_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    /// Sender, flags and payload length of all packets.
    trace: Vec<(usize, Flags, u32)>,
    streams: BTreeMap<StreamId, ServerStream>,
    /// Requests that the server's application received.
    requests: Vec<Vec<u8>>,
}

fn reply_to(request: &[u8]) -> Vec<u8> {
    request
        .iter()
        .rev()
        .map(|byte| byte ^ 0x5a)
        .chain([7; 100])
        .collect()
}

impl World {
    fn new(server: &TcpConfig, impairments: Impairments, seed: u64) -> Self {
        let secret = |name| Streams::new(seed, 0).component(name);
        let mut stacks = ["client", "server"].map(|name| Stack::new(secret(name), 10_000..=32_767));
        assert!(stacks[1].listen(PORT, Arc::new(server.clone())));
        Self {
            now: Instant::ZERO + Duration::from_secs(1),
            stacks,
            impairments,
            random: Streams::new(seed, 1).stream("impairments"),
            on_the_way: BTreeMap::new(),
            sent: 0,
            trace: Vec::new(),
            streams: BTreeMap::new(),
            requests: Vec::new(),
        }
    }

    fn chance(&mut self, of_1000: u32) -> bool {
        self.random.random_range(0..1000) < of_1000
    }

    fn put(&mut self, after: Duration, to: usize, packet: Vec<u8>) {
        self.sent += 1;
        self.on_the_way
            .insert((self.now + after, self.sent), (to, packet));
    }

    fn transmit(&mut self) {
        let mut packet = Vec::new();
        for from in [0, 1] {
            while self.stacks[from].poll_transmit(self.now, &mut packet) {
                let segment = decode(&packet).expect("a valid packet").segment;
                self.trace.push((from, segment.flags, segment.length));
                let impairments = self.impairments;
                let to = 1 - from;
                if !self.chance(impairments.loss) {
                    let delay = Duration::from_millis(self.random.random_range(0..80));
                    let extra = if self.chance(impairments.delay) {
                        delay
                    } else {
                        Duration::ZERO
                    };
                    self.put(DELAY + extra, to, packet.clone());
                }
                if self.chance(impairments.duplicate) {
                    self.put(DELAY * 3, to, packet.clone());
                }
                if segment.has(Flags::SYN) && self.chance(impairments.replay) {
                    let after = Duration::from_millis(self.random.random_range(1000..9000));
                    self.put(after, to, packet.clone());
                }
            }
        }
    }

    /// Answers each complete request at the server.
    fn serve(&mut self) {
        while let Some(event) = self.stacks[1].poll_event() {
            match event {
                Event::Accepted { stream, .. } => {
                    self.streams.insert(stream, ServerStream::default());
                }
                Event::Connection(stream, ConnectionEvent::PeerFinished) => {
                    self.streams.get_mut(&stream).expect("accepted").has_ended = true;
                }
                Event::Connection(stream, ConnectionEvent::Closed | ConnectionEvent::Failed(_)) => {
                    self.stacks[1].release(self.now, stream);
                }
                Event::Connection(..) => {}
            }
        }
        for (&stream, streams) in &mut self.streams {
            let mut buffer = [0; 4096];
            loop {
                let read = self.stacks[1].read(self.now, stream, &mut buffer);
                streams.request.extend_from_slice(&buffer[..read]);
                if read == 0 {
                    break;
                }
            }
            if streams.has_ended && !std::mem::replace(&mut streams.is_answered, true) {
                let reply = reply_to(&streams.request);
                self.requests.push(streams.request.clone());
                let written = self.stacks[1].write(self.now, stream, &reply);
                assert!(
                    written == reply.len() || written == 0,
                    "the reply is complete, or the stream is gone"
                );
                self.stacks[1].finish(self.now, stream);
                self.stacks[1].release(self.now, stream);
            }
        }
    }

    fn step(&mut self, limit: Instant) -> bool {
        self.transmit();
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let timers = self.stacks.iter().filter_map(Stack::poll_timeout);
        let Some(at) = arrival.into_iter().chain(timers).min().filter(|&at| at <= limit) else {
            self.now = limit;
            return false;
        };
        self.now = self.now.max(at);
        while let Some(first) = self
            .on_the_way
            .first_entry()
            .filter(|first| first.key().0 <= self.now)
        {
            let (to, packet) = first.remove();
            if let stack::Arrival::Unmatched(unmatched) = self.stacks[to].handle_packet(self.now, &packet) {
                self.stacks[to].refuse(&unmatched);
            }
            self.serve();
        }
        for stack in &mut self.stacks {
            stack.handle_timeout(self.now);
        }
        self.serve();
        true
    }

    /// Runs one transaction from `port`; returns the reply, or `None` after a failure, and its duration.
    fn transact(
        &mut self,
        config: &TcpConfig,
        port: Option<u16>,
        request: &[u8],
    ) -> (Option<Vec<u8>>, Duration) {
        let to = SocketAddr::new(SERVER, PORT);
        let stream = match port {
            None => self.stacks[0].connect(self.now, CLIENT, to, config),
            Some(port) => {
                let source = SocketAddr::new(CLIENT, port);
                let endpoints = Endpoints {
                    source,
                    destination: to,
                };
                self.stacks[0].open(self.now, endpoints, config)
            }
        };
        let stream = stream.expect("a free port");
        assert_eq!(self.stacks[0].write(self.now, stream, request), request.len());
        self.stacks[0].finish(self.now, stream);
        let (begin, limit) = (self.now, self.now + Duration::from_secs(1500));
        let (mut reply, mut has_ended) = (Vec::new(), false);
        let mut buffer = [0; 4096];
        while !has_ended {
            assert!(self.step(limit), "no progress");
            while let Some(event) = self.stacks[0].poll_event() {
                match event {
                    Event::Connection(it, ConnectionEvent::PeerFinished) if it == stream => has_ended = true,
                    Event::Connection(it, ConnectionEvent::Failed(_)) if it == stream => {
                        self.stacks[0].release(self.now, stream);
                        return (None, self.now - begin);
                    }
                    _ => {}
                }
            }
            loop {
                let read = self.stacks[0].read(self.now, stream, &mut buffer);
                reply.extend_from_slice(&buffer[..read]);
                if read == 0 {
                    break;
                }
            }
        }
        let took = self.now - begin;
        self.stacks[0].release(self.now, stream);
        (Some(reply), took)
    }

    fn run_for(&mut self, span: Duration) {
        let limit = self.now + span;
        while self.step(limit) {}
    }
}

fn plain() -> TcpConfig {
    TcpConfig::new(Profile::Rfc)
}

fn fast_open() -> TcpConfig {
    TcpConfig {
        fast_open: true,
        ..plain()
    }
}

fn ttcp() -> TcpConfig {
    TcpConfig {
        ttcp: true,
        ..plain()
    }
}

#[test]
fn data_on_the_syn_is_delivered() {
    for (config, segments, round_trips) in [(plain(), 5, 2), (fast_open(), 5, 2), (ttcp(), 3, 1)] {
        let mut world = World::new(&config, Impairments::default(), 1);
        for number in 0..3_u8 {
            let request = vec![number; 300];
            world.trace.clear();
            let (reply, took) = world.transact(&config, None, &request);
            assert_eq!(reply, Some(reply_to(&request)));
            world.run_for(Duration::from_secs(1));
            if number > 0 {
                assert_eq!(world.trace.len(), segments, "{:?}", world.trace);
                assert_eq!(took, DELAY * 2 * round_trips);
                let with_syn = world.trace[0].2;
                assert_eq!(with_syn, if config == plain() { 0 } else { 300 });
            }
        }
        assert_eq!(world.requests.len(), 3);
    }
}

#[test]
fn reuses_ports_in_a_truncated_time_wait() {
    // RFC 1644, section 3.5.
    let mut world = World::new(&ttcp(), Impairments::default(), 1);
    for number in 0..5_u8 {
        let request = vec![number; 10];
        assert_eq!(
            world.transact(&ttcp(), Some(4000), &request).0,
            Some(reply_to(&request))
        );
    }
    assert_eq!(world.requests.len(), 5);
    // Without T/TCP, the port is in TIME-WAIT.
    let endpoints = Endpoints {
        source: SocketAddr::new(CLIENT, 4000),
        destination: SocketAddr::new(SERVER, PORT),
    };
    assert_eq!(world.stacks[0].open(world.now, endpoints, &plain()), None);
}

#[test]
fn discards_a_syn_replayed_much_later() {
    let mut world = World::new(&ttcp(), Impairments::default(), 1);
    world.transact(&ttcp(), None, b"one");
    world.impairments.replay = 1000;
    world.transact(&ttcp(), None, b"two");
    world.impairments.replay = 0;
    world.run_for(Duration::from_secs(20));
    world.transact(&ttcp(), None, b"three");
    world.run_for(Duration::from_secs(20));
    let requests: Vec<&[u8]> = world.requests.iter().map(Vec::as_slice).collect();
    assert_eq!(requests, [&b"one"[..], b"two", b"three"]);
}

fn config() -> impl Strategy<Value = TcpConfig> {
    (
        prop_oneof![Just(Profile::Linux), Just(Profile::Rfc)],
        prop_oneof![Just((false, false)), Just((true, false)), Just((false, true))],
        any::<Option<bool>>(),
    )
        .prop_map(|(profile, (fast_open, ttcp), timestamps)| TcpConfig {
            fast_open,
            ttcp,
            timestamps,
            ..TcpConfig::new(profile)
        })
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let rare = || prop_oneof![2 => Just(0_u32), 1 => 1_u32..120];
    (rare(), rare(), rare(), rare()).prop_map(|(loss, duplicate, delay, replay)| Impairments {
        loss,
        duplicate,
        delay,
        replay,
    })
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

    #[test]
    fn every_request_is_delivered_and_answered_once(
        server in config(),
        clients in prop::collection::vec((config(), 1_usize..3000, 0_u64..3000, any::<bool>()), 1..8),
        impairments in impairments(),
        seed: u64,
    ) {
        let mut world = World::new(&server, impairments, seed);
        let mut sent = BTreeSet::new();
        for (number, (config, size, pause, same_port)) in clients.iter().enumerate() {
            let request: Vec<u8> = [number as u8].into_iter().chain((0..*size).map(|at| at as u8)).collect();
            let port = (*same_port && config.ttcp).then_some(4000);
            let is_free = port.is_none_or(|port| {
                let endpoints = Endpoints {
                    source: SocketAddr::new(CLIENT, port),
                    destination: SocketAddr::new(SERVER, PORT),
                };
                world.stacks[0].is_free(endpoints, config)
            });
            let (reply, _) = world.transact(config, port.filter(|_| is_free), &request);
            prop_assert_eq!(reply, Some(reply_to(&request)), "transaction {}", number);
            sent.insert(request);
            world.run_for(Duration::from_millis(*pause));
        }
        world.run_for(Duration::from_secs(60));
        let given: BTreeSet<Vec<u8>> = world.requests.iter().cloned().collect();
        prop_assert_eq!(&given, &sent, "the server received exactly these requests");
        // A replayed Fast Open SYN may be accepted again (RFC 7413, section 2.1).
        let fast_open = server.fast_open && clients.iter().any(|(config, ..)| config.fast_open);
        if !fast_open {
            prop_assert_eq!(world.requests.len(), sent.len(), "without duplicates");
        }
    }
}
