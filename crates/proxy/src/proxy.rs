//! The machine of a TCP relay, without a clock and without waiting.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use capture::CaptureTap;
use foundation::{Duration, Instant};
use network::PathSpec;
use stack::{Arrival, ConnectionEvent, Event, Key, Slots, Stack, StreamId, UnmatchedSegment};
use transport::tcp::wire::Endpoints;
use transport::tcp::{Connection, State, TcpConfig};

use crate::datagram::{SERVER, TCP_CLIENTS};
use crate::end::{End, Ending};
use crate::lanes::{Direction, Lanes};
use crate::options::ProxyOptions;
use crate::report::{Delays, Failure, Report};
use crate::socket::Socket;
use crate::target::Target;
use crate::udp_packet::{self, UdpClient};

/// Client addresses. Each has [`PORTS`].
const MOST_ADDRESSES: u32 = 1 << 16;
const PORTS: std::ops::RangeInclusive<u16> = 1024..=65_535;
/// Bytes per copy.
const CHUNK: usize = 64 * 1024;
/// How often paths without connections are closed, and connections whose handshake failed are noticed.
const SWEEP: Duration = Duration::from_millis(200);
/// Steps of [`Proxy::catch_up`].
const MOST_STEPS: usize = 4096;
/// Rounds of packets between two looks at the sockets.
const ROUNDS: usize = 16;
/// Failures that wait for [`Proxy::poll_failure`].
const MOST_FAILURES: usize = 64;

const CLIENT: usize = 0;
const TARGET: usize = 1;

/// A request to the owner of a [`Proxy`]: to connect a socket to a target, and call
/// [`connected`](Proxy::connected).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The end that needs it.
    pub key: Key,
    /// The target.
    pub target: Target,
}

/// A connection's end, from the first packet.
enum Slot<S> {
    /// A SYN has arrived; the target is being connected.
    Connecting(UnmatchedSegment, Target),
    /// The stream exists.
    Open {
        end: End<S>,
        host: usize,
        is_queued: bool,
        /// Bytes to write to the client when its connection is established, instead of a plain connection.
        greeting: Option<Greeting>,
    },
}

/// What a client of a proxy protocol receives before the bytes of its target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// Once the target is connected.
    pub success: Vec<u8>,
    /// If it cannot be reached; the connection then ends.
    pub failure: Vec<u8>,
}

/// A relay between sockets over a path.
pub struct Proxy<S> {
    stacks: [Stack; 2],
    lanes: Lanes,
    config: Arc<TcpConfig>,
    slots: Slots<Slot<S>>,
    /// The slots of streams. For lookups only: iteration order would not be deterministic.
    owners: [HashMap<StreamId, Key>; 2],
    /// The targets of connections whose SYN has not arrived yet.
    targets: HashMap<Endpoints, Target>,
    /// Slots whose target is being connected.
    connecting: HashMap<Endpoints, Key>,
    /// Ends that may have bytes to move.
    queued: VecDeque<Key>,
    /// Ends at the target that wait for the last packet of the handshake.
    opening: Vec<Key>,
    /// Connections of separate paths, oldest first.
    separate: Option<VecDeque<Endpoints>>,
    /// Number of the client address for the next connection.
    next_address: u32,
    next_sweep: Instant,
    /// The last time that was processed.
    processed: Instant,
    requests: VecDeque<Request>,
    failures: VecDeque<Failure>,
    /// Sockets with a last answer.
    refused: VecDeque<S>,
    /// Datagrams of UDP that have crossed the path.
    datagrams: VecDeque<(Direction, UdpClient, Vec<u8>)>,
    buffer: Vec<u8>,
    report: Report,
}

impl<S: Socket> Proxy<S> {
    /// A relay without connections.
    #[must_use]
    pub fn new(options: ProxyOptions) -> Self {
        let stack = |name| Stack::new(options.streams.component(name), PORTS);
        Self {
            stacks: [stack("clients"), stack("targets")],
            lanes: Lanes::new(
                options.path,
                options.streams.component("network"),
                options.separate,
            ),
            config: options.tcp,
            slots: Slots::default(),
            owners: Default::default(),
            targets: HashMap::new(),
            connecting: HashMap::new(),
            queued: VecDeque::new(),
            opening: Vec::new(),
            separate: options.separate.then(VecDeque::new),
            next_address: 0,
            next_sweep: Instant::ZERO,
            processed: Instant::ZERO,
            requests: VecDeque::new(),
            failures: VecDeque::new(),
            refused: VecDeque::new(),
            datagrams: VecDeque::new(),
            buffer: vec![0; CHUNK],
            report: Report::default(),
        }
    }

    /// Passes the packets of the path to a capture, as the [`HOSTS`](crate::HOSTS) at its ends send and receive them.
    pub fn capture(&mut self, tap: CaptureTap) {
        self.lanes.capture(tap);
    }

    /// Carries a connection of a client to a target. Returns the key of the client's end; `None` if all virtual ports are in
    /// use, after a reset of the socket. With a greeting, the client receives it instead of bytes of the relay's own.
    pub fn accept(
        &mut self,
        now: Instant,
        socket: S,
        target: Target,
        greeting: Option<Greeting>,
    ) -> Option<Key> {
        self.report.accepted += 1;
        let to = SocketAddr::new(IpAddr::V4(SERVER), target.port());
        let stream = (0..MOST_ADDRESSES).find_map(|_| {
            let from = IpAddr::V4(Ipv4Addr::from(TCP_CLIENTS + self.next_address));
            let stream = self.stacks[CLIENT].connect(now, from, to, &self.config);
            // An address whose ports are in use is tried last.
            if stream.is_none() {
                self.next_address = (self.next_address + 1) % MOST_ADDRESSES;
            }
            stream
        });
        let endpoints = stream.and_then(|stream| self.stacks[CLIENT].endpoints(stream));
        let (Some(stream), Some(endpoints)) = (stream, endpoints) else {
            socket.reset();
            self.report.reset += 1;
            return None;
        };
        self.lanes.open(now, client_of(endpoints));
        if let Some(separate) = &mut self.separate {
            separate.push_back(endpoints);
        }
        self.targets.insert(endpoints, target);
        Some(self.add(End::new(socket, stream), CLIENT, greeting))
    }

    /// Sends bytes to the target that were read from the socket of an end before it was accepted.
    pub fn send_early(&mut self, now: Instant, key: Key, bytes: &[u8]) {
        if let Some(Slot::Open { end, host, .. }) = self.slots.get_mut(key) {
            // The send buffer is empty, and larger than a client's first bytes.
            end.read += self.stacks[*host].write(now, end.stream(), bytes) as u64;
        }
    }

    /// Returns the socket of an end.
    #[must_use]
    pub fn socket(&self, key: Key) -> Option<&S> {
        match self.slots.get(key) {
            Some(Slot::Open { end, .. }) => Some(end.socket()),
            _ => None,
        }
    }

    fn add(&mut self, end: End<S>, host: usize, greeting: Option<Greeting>) -> Key {
        let stream = end.stream();
        let key = self.slots.add(Slot::Open {
            end,
            host,
            is_queued: true,
            greeting,
        });
        self.owners[host].insert(stream, key);
        self.queued.push_back(key);
        key
    }

    /// Returns the next request for a connection to a target.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Completes a [`Request`]. Returns the key of the target's end, or `None` if the connection failed or is no longer
    /// wanted.
    pub fn connected(&mut self, now: Instant, key: Key, result: Result<S, String>) -> Option<Key> {
        let Some(Slot::Connecting(unmatched, target)) = self.slots.remove(key) else {
            return None;
        };
        self.connecting.remove(&unmatched.endpoints);
        match result {
            Ok(socket) => {
                let stream = self.stacks[TARGET].accept(now, &unmatched, &[], &self.config);
                let key = self.add(End::new(socket, stream), TARGET, None);
                self.opening.push(key);
                Some(key)
            }
            Err(reason) => {
                self.report.failed += 1;
                if self.failures.len() < MOST_FAILURES {
                    self.failures.push_back(Failure { target, reason });
                }
                self.stacks[TARGET].refuse(&unmatched);
                None
            }
        }
    }

    /// Returns the next socket that carries a last answer: its owner reads it to its end, so that the answer arrives, and drops it.
    pub fn poll_refused(&mut self) -> Option<S> {
        self.refused.pop_front()
    }

    /// Adds a client of UDP.
    pub fn open_datagrams(&mut self, now: Instant) -> UdpClient {
        let client = UdpClient(self.report.udp_clients as u32);
        self.report.udp_clients += 1;
        self.lanes.open(now, client.key());
        client
    }

    /// Removes a client of UDP, with the path that it had for itself.
    pub fn close_datagrams(&mut self, client: UdpClient) {
        self.lanes.close(client.key());
    }

    /// Sends a datagram of UDP along the path. Those of more than 65,507 bytes are dropped.
    pub fn send_datagram(&mut self, now: Instant, direction: Direction, client: UdpClient, payload: &[u8]) {
        if payload.len() > udp_packet::MOST_BYTES {
            return self.count_dropped_datagram();
        }
        let mut packet = self.lanes.buffer();
        udp_packet::encode(client, direction, payload, &mut packet);
        self.lanes.send(now, direction, packet);
    }

    /// Returns the next datagram of UDP that has crossed the path.
    pub fn poll_datagram(&mut self) -> Option<(Direction, UdpClient, Vec<u8>)> {
        self.datagrams.pop_front()
    }

    /// Counts a datagram of UDP that the owner dropped.
    pub const fn count_dropped_datagram(&mut self) {
        self.report.udp_dropped += 1;
    }

    fn deliver_datagram(&mut self, direction: Direction, packet: &[u8]) {
        match udp_packet::decode(packet, direction) {
            Some((client, payload)) => self.datagrams.push_back((direction, client, payload.to_vec())),
            None => self.count_dropped_datagram(),
        }
    }

    /// Returns the next failure to reach a target.
    pub fn poll_failure(&mut self) -> Option<Failure> {
        self.failures.pop_front()
    }

    /// Records what the socket of an end is ready for. The next [`handle_timeout`](Self::handle_timeout) uses it.
    pub fn ready(&mut self, key: Key, readable: bool, writable: bool) {
        if let Some(Slot::Open { end, .. }) = self.slots.get_mut(key) {
            end.set_ready(readable, writable);
            self.queue(key);
        }
    }

    /// Aborts an end whose socket was reset.
    pub fn socket_reset(&mut self, now: Instant, key: Key) {
        self.end(now, key, Ending::SocketReset);
    }

    fn queue(&mut self, key: Key) {
        if let Some(Slot::Open { is_queued, .. }) = self.slots.get_mut(key)
            && !std::mem::replace(is_queued, true)
        {
            self.queued.push_back(key);
        }
    }

    /// Processes everything that is due by `now`, each at the time when it was due. Both hosts and the links are part of this machine, so a
    /// caller that is late delays sockets, but neither ACKs nor timers.
    ///
    /// The number of steps is limited: a caller that is too slow for the traffic processes the rest at `now`.
    pub fn catch_up(&mut self, now: Instant) {
        for _ in 0..MOST_STEPS {
            let Some(due) = self.next_timer().filter(|&due| due < now) else {
                break;
            };
            let at = due.max(self.processed);
            self.process(at, now);
            // On a path without delay this is endless, because sockets provide more bytes.
            if self.has_work(at) {
                break;
            }
        }
        self.handle_timeout(now);
    }

    /// Processes everything that is due by `now` at this time: packets, timers and sockets that are ready. `now` never decreases.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.process(now, now);
    }

    /// Processes at `now`, when the clock shows `actual`, which is not earlier.
    fn process(&mut self, now: Instant, actual: Instant) {
        self.processed = now;
        for _ in 0..ROUNDS {
            self.lanes.handle_timeout(now, actual);
            self.deliver(now);
            for stack in &mut self.stacks {
                stack.handle_timeout(now);
            }
            self.dispatch_events(now);
            self.pump(now);
            self.transmit(now);
            if !self.has_work(now) {
                break;
            }
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }
    }

    fn has_work(&self, now: Instant) -> bool {
        self.lanes.has_arrivals()
            || !self.queued.is_empty()
            || self.lanes.poll_timeout().is_some_and(|due| due <= now)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next; a time in the past if it has more to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.lanes.has_arrivals() || !self.queued.is_empty() {
            return Some(Instant::ZERO);
        }
        self.next_timer()
    }

    fn next_timer(&self) -> Option<Instant> {
        let has_sweep = !self.opening.is_empty() || self.separate.as_ref().is_some_and(|all| !all.is_empty());
        let sweep = has_sweep.then_some(self.next_sweep);
        let stacks = self.stacks.iter().filter_map(Stack::poll_timeout);
        stacks.chain(self.lanes.poll_timeout()).chain(sweep).min()
    }

    /// Passes packets that have arrived to the hosts.
    fn deliver(&mut self, now: Instant) {
        while let Some((direction, packet)) = self.lanes.poll_arrival(now) {
            if udp_packet::is_udp(&packet) {
                self.deliver_datagram(direction, &packet);
                self.lanes.recycle(packet);
                continue;
            }
            let host = direction.destination();
            match self.stacks[host].handle_packet(now, &packet) {
                Arrival::Unmatched(unmatched) => self.handle_unmatched(host, unmatched),
                Arrival::Handled | Arrival::Other | Arrival::Malformed => {}
            }
            self.lanes.recycle(packet);
        }
        while let Some((direction, mtu, packet)) = self.lanes.poll_too_big() {
            match udp_packet::is_udp(&packet) {
                true => self.count_dropped_datagram(),
                false => self.stacks[direction.source()].handle_too_big(now, &packet, mtu),
            }
            self.lanes.recycle(packet);
        }
    }

    fn handle_unmatched(&mut self, host: usize, unmatched: UnmatchedSegment) {
        if host == TARGET && unmatched.opens() {
            // A retransmitted SYN: the target is being connected.
            if self.connecting.contains_key(&unmatched.endpoints) {
                return;
            }
            if let Some(target) = self.targets.remove(&unmatched.endpoints) {
                let key = self.slots.add(Slot::Connecting(unmatched, target.clone()));
                self.connecting.insert(unmatched.endpoints, key);
                self.requests.push_back(Request { key, target });
                return;
            }
        }
        self.stacks[host].refuse(&unmatched);
    }

    fn dispatch_events(&mut self, now: Instant) {
        for host in [CLIENT, TARGET] {
            while let Some(event) = self.stacks[host].poll_event() {
                let (stream, event) = match event {
                    Event::Accepted { stream, .. } => (stream, ConnectionEvent::Connected),
                    Event::Connection(stream, event) => (stream, event),
                };
                let Some(&key) = self.owners[host].get(&stream) else {
                    continue;
                };
                match event {
                    ConnectionEvent::Failed(_) => {
                        self.end(now, key, Ending::StreamReset);
                        continue;
                    }
                    ConnectionEvent::PeerFinished => {
                        if let Some(Slot::Open { end, .. }) = self.slots.get_mut(key) {
                            end.set_peer_finished();
                        }
                    }
                    ConnectionEvent::Connected => {
                        if let Some(Slot::Open { end, greeting, .. }) = self.slots.get_mut(key)
                            && let Some(greeting) = greeting.take()
                        {
                            end.write_first(&greeting.success);
                        }
                    }
                    ConnectionEvent::Readable
                    | ConnectionEvent::Writable
                    | ConnectionEvent::Finished
                    | ConnectionEvent::Closed => {}
                }
                self.queue(key);
            }
        }
    }

    /// Moves bytes between sockets and streams.
    fn pump(&mut self, now: Instant) {
        for _ in 0..self.queued.len() {
            let Some(key) = self.queued.pop_front() else {
                return;
            };
            let Some(Slot::Open {
                end, host, is_queued, ..
            }) = self.slots.get_mut(key)
            else {
                continue;
            };
            *is_queued = false;
            if let Some(ending) = end.pump(now, &mut self.stacks[*host], &mut self.buffer) {
                self.end(now, key, ending);
            }
        }
    }

    fn transmit(&mut self, now: Instant) {
        for direction in Direction::ALL {
            loop {
                let mut packet = self.lanes.buffer();
                if !self.stacks[direction.source()].poll_transmit(now, &mut packet) {
                    self.lanes.recycle(packet);
                    break;
                }
                self.lanes.send(now, direction, packet);
            }
        }
    }

    /// Removes an end. Its peer at the other end of the path receives a FIN or RST.
    fn end(&mut self, now: Instant, key: Key, ending: Ending) {
        let Some(Slot::Open {
            end, host, greeting, ..
        }) = self.slots.remove(key)
        else {
            return;
        };
        let stream = end.stream();
        self.owners[host].remove(&stream);
        let stack = &mut self.stacks[host];
        if let Some(endpoints) = stack.endpoints(stream)
            && host == CLIENT
        {
            self.targets.remove(&endpoints);
        }
        if ending == Ending::SocketReset {
            stack.abort(now, stream);
        }
        stack.release(now, stream);
        if host == CLIENT {
            self.report.sent += end.read;
            self.report.received += end.written;
            match ending {
                Ending::Completed => self.report.completed += 1,
                Ending::SocketReset | Ending::StreamReset => self.report.reset += 1,
            }
        }
        match greeting.filter(|_| ending == Ending::StreamReset) {
            Some(greeting) => {
                if let Some(socket) = end.refuse(&greeting.failure) {
                    self.refused.push_back(socket);
                }
            }
            None => end.close(ending),
        }
    }

    /// Resets targets whose connection failed before it was established, which the stack does not report, and closes paths
    /// that nobody uses.
    fn sweep(&mut self, now: Instant) {
        let mut opening = std::mem::take(&mut self.opening);
        opening.retain(|&key| {
            let Some(Slot::Open { end, .. }) = self.slots.get_mut(key) else {
                return false;
            };
            match self.stacks[TARGET]
                .connection(end.stream())
                .map(Connection::state)
            {
                Some(State::SynReceived) => true,
                None | Some(State::Closed) => {
                    self.end(now, key, Ending::StreamReset);
                    false
                }
                Some(_) => false,
            }
        });
        self.opening = opening;
        if let Some(mut separate) = self.separate.take() {
            separate.retain(|&endpoints| {
                let is_used = self.stacks[CLIENT].has(endpoints)
                    || self.stacks[TARGET].has(endpoints.reversed())
                    || self.connecting.contains_key(&endpoints);
                if !is_used {
                    self.lanes.close(client_of(endpoints));
                }
                is_used
            });
            self.separate = Some(separate);
        }
    }

    /// Changes the path. Packets on it arrive as scheduled.
    pub fn change_path(&mut self, now: Instant, path: &PathSpec) {
        self.lanes.change(now, path);
    }

    /// Takes the path down from `now` for a time. `forward` and `reverse` select the directions.
    pub fn start_outage(&mut self, now: Instant, length: Duration, forward: bool, reverse: bool) {
        for (direction, is_selected) in Direction::ALL.into_iter().zip([forward, reverse]) {
            if is_selected {
                self.lanes.set_down(now, direction, Some(now + length));
            }
        }
    }

    /// Ends outages that [`start_outage`](Self::start_outage) began.
    pub fn end_outage(&mut self, now: Instant) {
        for direction in Direction::ALL {
            self.lanes.set_down(now, direction, None);
        }
    }

    /// Loses the next packets in each selected direction.
    pub const fn lose_next(&mut self, count: u64, forward: bool, reverse: bool) {
        if forward {
            self.lanes.lose_next(Direction::Forward, count);
        }
        if reverse {
            self.lanes.lose_next(Direction::Reverse, count);
        }
    }

    /// Resets all connections; returns how many ends there were.
    pub fn reset_all(&mut self, now: Instant) -> usize {
        let mut keys: Vec<Key> = self.owners.iter().flat_map(HashMap::values).copied().collect();
        keys.sort_unstable();
        for &key in &keys {
            self.end(now, key, Ending::SocketReset);
        }
        keys.len()
    }

    /// Number of sockets, streams (including those in TIME-WAIT) and networks in use.
    #[must_use]
    pub fn in_use(&self) -> [usize; 3] {
        let streams = self.stacks.iter().map(Stack::len).sum();
        [self.slots.len(), streams, self.lanes.len()]
    }

    /// Number of connections now open at either end, or with a target that is being connected.
    #[must_use]
    pub fn open(&self) -> usize {
        let clients = self.owners[CLIENT].len();
        clients.max(self.slots.len() - clients)
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let late = |quantile| Duration::from_nanos(self.lanes.late().value_at_quantile(quantile));
        Report {
            forward: self.lanes.counters(Direction::Forward),
            reverse: self.lanes.counters(Direction::Reverse),
            forward_delays: Delays::of(self.lanes.delays(Direction::Forward)),
            reverse_delays: Delays::of(self.lanes.delays(Direction::Reverse)),
            open: self.open() as u64,
            retransmissions: self
                .stacks
                .iter()
                .map(|stack| stack.counters().retransmissions)
                .sum(),
            late_p50: late(0.5),
            late_p99: late(0.99),
            ..self.report.clone()
        }
    }
}

/// Returns address and port of the client as a number.
fn client_of(endpoints: Endpoints) -> u64 {
    let address = match endpoints.source.ip() {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(_) => 0,
    };
    address << 16 | u64::from(endpoints.source.port())
}
