//! The connections of a host: ports, timers, events, and the bytes behind them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use foundation::{Instant, Streams};
use transport::Machine as _;
use transport::tcp::wire::Endpoints;
use transport::tcp::{Connection, HostMemory, State, TcpConfig};

use crate::stream::Stream;
use crate::table::{StreamId, Table};
pub use transport::tcp::Event as ConnectionEvent;

/// An event for the owner of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer connected to a listening port.
    Accepted {
        /// The new stream.
        stream: StreamId,
        /// The port.
        port: u16,
    },
    /// An event of a connection.
    Connection(StreamId, ConnectionEvent),
}

/// Packet counters of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received packets.
    pub received: u64,
    /// Sent packets.
    pub sent: u64,
    /// Received packets that were truncated or had a wrong checksum.
    pub broken: u64,
    /// Segments that were answered with a reset.
    pub refused: u64,
    /// ICMP messages that lowered the MTU of a connection.
    pub too_big: u64,
    /// Retransmitted segments of all connections, including those removed from the stack.
    pub retransmissions: u64,
}

/// A host's TCP.
#[derive(Debug)]
pub struct Stack {
    pub(crate) streams: Table,
    pub(crate) listeners: BTreeMap<u16, Arc<TcpConfig>>,
    /// Secret for initial sequence numbers (RFC 6528).
    secret: Streams,
    /// Local ports of connections opened here.
    ports: std::ops::RangeInclusive<u16>,
    next_port: u16,
    timers: BTreeSet<(Instant, StreamId)>,
    /// Connections that may have a packet to send, in round-robin order.
    ready: VecDeque<StreamId>,
    /// Resets and echo replies.
    pub(crate) answers: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    /// Path MTUs of peers (RFC 1191, section 3).
    pub(crate) path_mtus: BTreeMap<IpAddr, u32>,
    /// Memory of peers for `fast_open` and `ttcp`.
    pub(crate) memory: HostMemory,
    pub(crate) counters: Counters,
}

impl Stack {
    /// A stack without connections. `secret` seeds its initial sequence numbers and the key of its cookies (RFC 7413);
    /// `ports` are the local ports of the connections that it opens.
    #[must_use]
    pub fn new(secret: Streams, ports: std::ops::RangeInclusive<u16>) -> Self {
        use rand::Rng as _;
        let mut opening = secret.stream("opening");
        let mut key = [0; 32];
        opening.fill_bytes(&mut key);
        Self {
            memory: HostMemory::new(key, opening.next_u32()),
            streams: Table::default(),
            listeners: BTreeMap::new(),
            secret,
            next_port: *ports.start(),
            ports,
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            path_mtus: BTreeMap::new(),
            counters: Counters::default(),
        }
    }

    /// The memory of peers for `fast_open` and `ttcp`.
    pub const fn memory(&mut self) -> &mut HostMemory {
        &mut self.memory
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let live = self.streams.iter().map(Stream::retransmissions);
        Counters {
            retransmissions: self.counters.retransmissions + live.sum::<u64>(),
            ..self.counters
        }
    }

    /// Listens at a port; returns false if the port is in use.
    pub fn listen(&mut self, port: u16, config: Arc<TcpConfig>) -> bool {
        let is_free = !self.listeners.contains_key(&port);
        if is_free {
            self.listeners.insert(port, config);
        }
        is_free
    }

    /// Listens at a free port; `None` if all are in use.
    pub fn listen_anywhere(&mut self, config: Arc<TcpConfig>) -> Option<u16> {
        for _ in self.ports.clone() {
            let port = self.take_port();
            if self.listen(port, Arc::clone(&config)) {
                return Some(port);
            }
        }
        None
    }

    /// Stops listening; connections stay.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    fn take_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = if port == *self.ports.end() {
            *self.ports.start()
        } else {
            port + 1
        };
        port
    }

    /// Opens a connection from a free port of `from`; `None` if all are in use.
    pub fn connect(
        &mut self,
        now: Instant,
        from: IpAddr,
        to: SocketAddr,
        config: &TcpConfig,
    ) -> Option<StreamId> {
        for _ in self.ports.clone() {
            let endpoints = Endpoints {
                source: SocketAddr::new(from, self.take_port()),
                destination: to,
            };
            if let Some(stream) = self.open(now, endpoints, config) {
                return Some(stream);
            }
        }
        None
    }

    /// Opens a connection between these endpoints; `None` if they are in use. With `fast_open` or `ttcp`, data written
    /// before the next [`poll_transmit`](Self::poll_transmit) may leave with the SYN; with `ttcp`, so may the FIN, and
    /// the new connection may replace one in a truncated TIME-WAIT (RFC 1644, section 3.5).
    pub fn open(&mut self, now: Instant, endpoints: Endpoints, config: &TcpConfig) -> Option<StreamId> {
        if !self.is_free(endpoints, config) {
            return None;
        }
        if let Some(before) = self.streams.find(endpoints) {
            self.replace(before);
        }
        let initial = self.initial_sequence(now, endpoints);
        let opening = self.memory.opening(now, config, endpoints.destination.ip());
        let connection = Connection::open_with(now, config, initial, opening);
        Some(self.add(now, Stream::new(endpoints, connection, false)))
    }

    /// Whether a connection can be [opened](Self::open) between these endpoints.
    #[must_use]
    pub fn is_free(&self, endpoints: Endpoints, config: &TcpConfig) -> bool {
        let before = self.streams.find(endpoints).and_then(|id| self.streams.get(id));
        before.is_none_or(|stream| config.ttcp && stream.connection.may_be_replaced())
    }

    /// Closes a connection because another one takes its endpoints.
    pub(crate) fn replace(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        stream.connection.handle_successor();
        let endpoints = stream.endpoints;
        self.settle(id);
        self.streams.give_up_endpoints(endpoints);
    }

    /// Returns a clock of 4 µs plus a secret offset for each pair of endpoints (RFC 6528).
    pub(crate) fn initial_sequence(&self, now: Instant, endpoints: Endpoints) -> u32 {
        use rand::Rng as _;
        let name = format!("{}-{}", endpoints.source, endpoints.destination);
        let own = self.secret.stream(&name).next_u32();
        own.wrapping_add((now.as_nanos() / 4000) as u32)
    }

    pub(crate) fn add(&mut self, now: Instant, mut stream: Stream) -> StreamId {
        if let Some(&mtu) = self.path_mtus.get(&stream.endpoints.destination.ip()) {
            stream.connection.handle_path_mtu(now, mtu);
        }
        let id = self.streams.add(stream);
        self.settle(id);
        id
    }

    /// Processes all timers that are due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(stream) = self.streams.get_mut(id) {
                stream.timeout = None;
                stream.connection.handle_timeout(now);
            }
            self.settle(id);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next; valid once [`poll_transmit`](Self::poll_transmit)
    /// returned false.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Writes the next outgoing packet to `out`; returns false if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        out.clear();
        if let Some(answer) = self.answers.pop_front() {
            *out = answer;
            self.counters.sent += 1;
            return true;
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            while let Some(update) = stream.connection.take_peer_update() {
                let peer = stream.endpoints.destination.ip();
                self.memory.apply(now, peer, update);
            }
            if stream.transmit(now, out) {
                // Other connections come first.
                self.ready.push_back(id);
                self.counters.sent += 1;
                return true;
            }
            stream.is_ready = false;
            let timeout = stream.connection.poll_timeout();
            if timeout != stream.timeout {
                if let Some(before) = std::mem::replace(&mut stream.timeout, timeout) {
                    self.timers.remove(&(before, id));
                }
                if let Some(at) = timeout {
                    self.timers.insert((at, id));
                }
            }
            self.forget_if_done(id);
        }
        false
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Collects events and schedules the connection for sending; called after every change of a connection.
    pub(crate) fn settle(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        while let Some(event) = stream.connection.poll_event() {
            let port = stream.endpoints.source.port();
            if std::mem::take(&mut stream.is_new) {
                if event != ConnectionEvent::Connected {
                    // It failed before it was established, so the owner does not have it.
                    stream.is_released = true;
                    continue;
                }
                self.events.push_back(Event::Accepted { stream: id, port });
                continue;
            }
            self.events.push_back(Event::Connection(id, event));
        }
        if !std::mem::replace(&mut stream.is_ready, true) {
            self.ready.push_back(id);
        }
    }

    fn forget_if_done(&mut self, id: StreamId) {
        let is_done = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.is_released && stream.connection.state() == State::Closed);
        if is_done && let Some(stream) = self.streams.remove(id) {
            self.counters.retransmissions += stream.retransmissions();
            if let Some(at) = stream.timeout {
                self.timers.remove(&(at, id));
            }
        }
    }

    /// Reads received bytes in order into `out`; returns their number.
    pub fn read(&mut self, now: Instant, id: StreamId, out: &mut [u8]) -> usize {
        let read = self.streams.get_mut(id).map_or(0, |stream| stream.read(now, out));
        self.settle(id);
        read
    }

    /// Writes as many bytes as the send buffer has room for; returns their number.
    /// [`Writable`](ConnectionEvent::Writable) follows once there is room for more.
    pub fn write(&mut self, now: Instant, id: StreamId, bytes: &[u8]) -> usize {
        self.append(now, id, bytes, false)
    }

    /// As [`write`](Self::write), but a partial segment waits because more writes follow at once.
    pub fn write_more(&mut self, now: Instant, id: StreamId, bytes: &[u8]) -> usize {
        self.append(now, id, bytes, true)
    }

    fn append(&mut self, now: Instant, id: StreamId, bytes: &[u8], more: bool) -> usize {
        let written = self
            .streams
            .get_mut(id)
            .map_or(0, |stream| stream.write(now, bytes, more));
        self.settle(id);
        written
    }

    /// Closes the sending direction (half-close).
    pub fn finish(&mut self, now: Instant, id: StreamId) {
        self.touch(id, |connection| connection.finish(now));
    }

    /// Aborts the connection with a reset.
    pub fn abort(&mut self, now: Instant, id: StreamId) {
        self.touch(id, |connection| connection.abort(now));
    }

    /// Closes a connection that its owner no longer uses; the stack forgets it once it is closed.
    pub fn release(&mut self, now: Instant, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.is_released = true;
        }
        self.touch(id, |connection| connection.close(now));
    }

    /// Calls `change` with a connection, for example to change its settings.
    pub fn touch<T>(&mut self, id: StreamId, change: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let result = self
            .streams
            .get_mut(id)
            .map(|stream| change(&mut stream.connection));
        self.settle(id);
        result
    }

    /// A connection; `None` after its removal.
    #[must_use]
    pub fn connection(&self, id: StreamId) -> Option<&Connection> {
        self.streams.get(id).map(|stream| &stream.connection)
    }

    /// The endpoints, from this end to the peer.
    #[must_use]
    pub fn endpoints(&self, id: StreamId) -> Option<Endpoints> {
        self.streams.get(id).map(|stream| stream.endpoints)
    }

    /// Whether there is a connection between these endpoints, including those in TIME-WAIT.
    #[must_use]
    pub fn has(&self, endpoints: Endpoints) -> bool {
        self.streams.find(endpoints).is_some()
    }

    /// The number of connections, including those in TIME-WAIT.
    #[must_use]
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is no connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
