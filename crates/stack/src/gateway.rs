//! A gateway that carries the connections of a host's kernel over the project's TCP. Each connection is split (RFC
//! 3135, section 2.4): one to the kernel and one to the network, with the same addresses and ports.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use foundation::{Instant, Streams};
use transport::tcp::{Connection, State, TcpConfig};

use crate::arrival::{Arrival, UnmatchedSegment};
use crate::stack::{ConnectionEvent, Event, Stack};
use crate::table::StreamId;

/// Bytes per copy.
const CHUNK: u64 = 64 * 1024;
/// Ports of its own. It opens connections only from other hosts' ports.
const PORTS: std::ops::RangeInclusive<u16> = 1..=1;

/// A side of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Towards the host's kernel.
    Kernel,
    /// Towards the network.
    Network,
}

impl Side {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::Network];

    const fn other(self) -> Self {
        match self {
            Self::Kernel => Self::Network,
            Self::Network => Self::Kernel,
        }
    }
}

/// Two connections that relay to each other.
#[derive(Debug)]
struct Splice {
    ids: [StreamId; 2],
    /// By side: whether its stream ended and the other side was closed.
    finished: [bool; 2],
    closed: [bool; 2],
}

/// A gateway between a kernel and a network.
#[derive(Debug)]
pub struct Gateway {
    stacks: [Stack; 2],
    configs: [Arc<TcpConfig>; 2],
    splices: BTreeMap<u64, Splice>,
    next: u64,
    spliced: BTreeMap<(Side, StreamId), u64>,
    /// The segments that requested connections, by the connection that is opening on the other side.
    pending: BTreeMap<(Side, StreamId), UnmatchedSegment>,
    /// Packets other than TCP, which pass unchanged.
    passed: [VecDeque<Vec<u8>>; 2],
    buffer: Vec<u8>,
}

impl Gateway {
    /// A gateway that uses this TCP towards the network.
    #[must_use]
    pub fn new(config: Arc<TcpConfig>, secret: Streams) -> Self {
        let stack = |name| Stack::new(secret.component(name), PORTS);
        Self {
            stacks: [stack("kernel"), stack("network")],
            // Nagle's algorithm applies on the kernel's own connection.
            configs: [
                Arc::new(TcpConfig {
                    nagle: Some(false),
                    ..TcpConfig::default()
                }),
                config,
            ],
            splices: BTreeMap::new(),
            next: 0,
            spliced: BTreeMap::new(),
            pending: BTreeMap::new(),
            passed: [VecDeque::new(), VecDeque::new()],
            buffer: vec![0; CHUNK as usize],
        }
    }

    /// The connections of a side.
    #[must_use]
    pub const fn stack(&self, side: Side) -> &Stack {
        &self.stacks[side as usize]
    }

    /// Connections through the gateway.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.splices.len()
    }

    /// Handles a packet that arrived at a side.
    pub fn handle_packet(&mut self, now: Instant, side: Side, packet: &[u8]) {
        match self.stacks[side as usize].handle_packet(now, packet) {
            Arrival::Handled => self.settle(now),
            Arrival::Unmatched(unmatched) if unmatched.opens() => self.open_other_side(now, side, unmatched),
            Arrival::Unmatched(unmatched) => self.stacks[side as usize].refuse(&unmatched),
            Arrival::Other => self.passed[side.other() as usize].push_back(packet.to_vec()),
            Arrival::Malformed => {}
        }
    }

    /// Processes all timers that are due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for stack in &mut self.stacks {
            stack.handle_timeout(now);
        }
        self.settle(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next; valid once [`poll_transmit`](Self::poll_transmit)
    /// returned false.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let both = self.stacks.iter().filter_map(Stack::poll_timeout);
        both.min()
    }

    /// Writes the next outgoing packet of a side to `out`; returns false if there is none.
    pub fn poll_transmit(&mut self, now: Instant, side: Side, out: &mut Vec<u8>) -> bool {
        if let Some(packet) = self.passed[side as usize].pop_front() {
            *out = packet;
            return true;
        }
        self.stacks[side as usize].poll_transmit(now, out)
    }

    /// Opens the connection that the segment requests on the other side, before it is accepted on this one.
    fn open_other_side(&mut self, now: Instant, side: Side, unmatched: UnmatchedSegment) {
        let other = side.other();
        let config = &self.configs[other as usize];
        // None for a retransmitted SYN: the connection is opening already.
        if let Some(id) = self.stacks[other as usize].open(now, unmatched.endpoints, config) {
            self.pending.insert((other, id), unmatched);
        }
        self.settle(now);
    }

    /// Processes the events of both stacks.
    fn settle(&mut self, now: Instant) {
        loop {
            let next = Side::ALL
                .into_iter()
                .find_map(|side| Some((side, self.stacks[side as usize].poll_event()?)));
            let Some((side, event)) = next else { return };
            // Accepted connections are in `splices` already.
            let Event::Connection(id, event) = event else {
                continue;
            };
            match self.pending.remove(&(side, id)) {
                Some(unmatched) => self.finish_opening(now, side, id, event, unmatched),
                None => self.on_event(now, side, id, event),
            }
        }
    }

    /// Accepts or refuses the requested connection, now that the other side has answered.
    fn finish_opening(
        &mut self,
        now: Instant,
        side: Side,
        id: StreamId,
        event: ConnectionEvent,
        unmatched: UnmatchedSegment,
    ) {
        let other = side.other();
        match event {
            ConnectionEvent::Connected => {
                let config = Arc::clone(&self.configs[other as usize]);
                let twin = self.stacks[other as usize].accept(now, &unmatched, &[], &config);
                let ids = match side {
                    Side::Kernel => [id, twin],
                    Side::Network => [twin, id],
                };
                self.next += 1;
                self.splices.insert(
                    self.next,
                    Splice {
                        ids,
                        finished: [false; 2],
                        closed: [false; 2],
                    },
                );
                for side in Side::ALL {
                    self.spliced.insert((side, ids[side as usize]), self.next);
                }
            }
            _ => {
                self.stacks[side as usize].release(now, id);
                self.stacks[other as usize].refuse(&unmatched);
            }
        }
    }

    fn on_event(&mut self, now: Instant, side: Side, id: StreamId, event: ConnectionEvent) {
        let Some(&key) = self.spliced.get(&(side, id)) else {
            return;
        };
        match event {
            ConnectionEvent::Failed(_) => self.end(now, key),
            ConnectionEvent::Closed => {
                if let Some(splice) = self.splices.get_mut(&key) {
                    splice.closed[side as usize] = true;
                }
                self.relay(now, key);
                if self
                    .splices
                    .get(&key)
                    .is_some_and(|splice| splice.closed == [true; 2])
                {
                    self.end(now, key);
                }
            }
            _ => self.relay(now, key),
        }
    }

    /// Copies received bytes from either side to the other, as far as there is room.
    fn relay(&mut self, now: Instant, key: u64) {
        let Some(splice) = self.splices.get_mut(&key) else {
            return;
        };
        for side in Side::ALL {
            let other = side.other();
            let (id, twin) = (splice.ids[side as usize], splice.ids[other as usize]);
            loop {
                let readable = self.stacks[side as usize]
                    .connection(id)
                    .map_or(0, Connection::readable);
                let room = self.stacks[other as usize]
                    .connection(twin)
                    .map_or(0, Connection::writable);
                if readable == 0 {
                    break;
                }
                if room == 0 {
                    // A write without room makes the stack report when there is room.
                    self.stacks[other as usize].write(now, twin, &[0]);
                    break;
                }
                let part = &mut self.buffer[..readable.min(room).min(CHUNK) as usize];
                let read = self.stacks[side as usize].read(now, id, part);
                let written = self.stacks[other as usize].write(now, twin, &part[..read]);
                if written < read {
                    // The other connection is closed; its own event follows.
                    break;
                }
            }
            let connection = self.stacks[side as usize].connection(id);
            let is_at_its_end = connection.is_some_and(|c| c.readable() == 0 && has_received_fin(c.state()));
            if is_at_its_end && !std::mem::replace(&mut splice.finished[side as usize], true) {
                self.stacks[other as usize].finish(now, twin);
            }
        }
    }

    /// Aborts both connections.
    fn end(&mut self, now: Instant, key: u64) {
        let Some(splice) = self.splices.remove(&key) else {
            return;
        };
        for side in Side::ALL {
            let id = splice.ids[side as usize];
            self.spliced.remove(&(side, id));
            self.stacks[side as usize].abort(now, id);
            self.stacks[side as usize].release(now, id);
        }
    }
}

/// Whether the peer's FIN and all data before it have arrived.
const fn has_received_fin(state: State) -> bool {
    matches!(
        state,
        State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed
    )
}
