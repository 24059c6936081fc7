//! The server's side: a stack for each source of datagrams, which returns each request as the reply. No clock, no
//! socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use foundation::{Duration, Instant, Streams};
use stack::{Arrival, ConnectionEvent, Event, Stack, StreamId};
use transport::tcp::Flags;
use transport::tcp::wire::decode;

use super::{MOST, PORT, carriage, config};
use crate::datagram::MessageKind;

/// Maximum numbers of sources with a stack, and of connections per source.
const PEERS: usize = 32;
const CONNECTIONS: usize = 4;
/// Maximum credit of a source in bytes: bytes received from it minus bytes sent to it.
const CREDIT: usize = 4 * MOST;

/// A request in progress with its reply.
#[derive(Debug, Default)]
struct Request {
    request: Vec<u8>,
    written: usize,
    is_whole: bool,
    is_answered: bool,
}

#[derive(Debug)]
struct Peer {
    stack: Stack,
    streams: BTreeMap<StreamId, Request>,
    /// The number in its datagrams.
    number: u32,
    /// Bytes received from it minus bytes sent to it.
    credit: usize,
    /// A datagram that waits for credit.
    waiting: Option<Vec<u8>>,
    active_at: Instant,
}

/// All sources.
#[derive(Debug)]
pub struct Peers {
    peers: BTreeMap<SocketAddr, Peer>,
    /// Sources that may have something to send.
    ready: VecDeque<SocketAddr>,
    secret: Streams,
    idle: Duration,
    made: u64,
    finished: u64,
}

impl Peers {
    /// Creates an empty set. `secret` seeds sequence numbers; a source that is silent for `idle` is forgotten.
    #[must_use]
    pub const fn new(secret: Streams, idle: Duration) -> Self {
        Self {
            peers: BTreeMap::new(),
            ready: VecDeque::new(),
            secret,
            idle,
            made: 0,
            finished: 0,
        }
    }

    /// Returns the number of answered requests.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.finished
    }

    /// Handles a datagram of type [`MessageKind::Up`]; returns false if there is no room for its sender, or no packet in it.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, number: u32, datagram: &[u8]) -> bool {
        let Some(packet) = carriage::read(datagram) else {
            return false;
        };
        if !self.peers.contains_key(&from) {
            if self.peers.len() >= PEERS || packet.is_empty() {
                return false;
            }
            self.peers.insert(from, self.peer(now, number));
            self.made += 1;
        }
        let Some(peer) = self.peers.get_mut(&from) else {
            return false;
        };
        peer.active_at = now;
        peer.number = number;
        peer.credit = (peer.credit + datagram.len()).min(CREDIT);
        let taken = packet.is_empty() || peer.handle(now, packet);
        self.finished += peer.serve(now);
        self.ready.push_back(from);
        taken
    }

    fn peer(&self, now: Instant, number: u32) -> Peer {
        let secret = self.secret.component(&format!("peer {}", self.made));
        let mut stack = Stack::new(secret, 10_000..=10_001);
        // A T/TCP end uses TCP with peers that support nothing else.
        stack.listen(PORT, Arc::new(config(true)));
        Peer {
            stack,
            streams: BTreeMap::new(),
            number,
            credit: 0,
            waiting: None,
            active_at: now,
        }
    }

    /// Runs the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let idle = self.idle;
        self.peers.retain(|_, peer| now - peer.active_at <= idle);
        for (&from, peer) in &mut self.peers {
            if peer.stack.poll_timeout().is_some_and(|at| at <= now) {
                peer.stack.handle_timeout(now);
                self.finished += peer.serve(now);
                self.ready.push_back(from);
            }
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = self.peers.values().filter_map(|peer| peer.stack.poll_timeout());
        let oldest = self.peers.values().map(|peer| peer.active_at + self.idle);
        timers.chain(oldest).min()
    }

    /// Writes the next datagram into `out` and returns its destination; `None` if there is none now.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SocketAddr> {
        while let Some(&to) = self.ready.front() {
            if let Some(peer) = self.peers.get_mut(&to)
                && peer.transmit(now, out)
            {
                return Some(to);
            }
            self.ready.pop_front();
        }
        None
    }
}

impl Peer {
    fn handle(&mut self, now: Instant, packet: &[u8]) -> bool {
        if self.stack.len() >= CONNECTIONS {
            let opens = decode(packet).is_ok_and(|read| read.segment.flags.contains(Flags::SYN));
            if opens {
                return false;
            }
        }
        match self.stack.handle_packet(now, packet) {
            Arrival::Handled => true,
            Arrival::Unmatched(stranger) => {
                self.stack.refuse(&stranger);
                true
            }
            Arrival::Other | Arrival::Malformed => false,
        }
    }

    /// Advances all requests; returns how many were answered.
    fn serve(&mut self, now: Instant) -> u64 {
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Accepted { stream, .. } => {
                    self.streams.insert(stream, Request::default());
                }
                Event::Connection(stream, ConnectionEvent::PeerFinished) => {
                    if let Some(served) = self.streams.get_mut(&stream) {
                        served.is_whole = true;
                    }
                }
                Event::Connection(stream, ConnectionEvent::Closed | ConnectionEvent::Failed(_)) => {
                    self.streams.remove(&stream);
                    self.stack.release(now, stream);
                }
                Event::Connection(..) => {}
            }
        }
        let mut answered = 0;
        let mut buffer = [0; 4096];
        for (&stream, served) in &mut self.streams {
            loop {
                let read = self.stack.read(now, stream, &mut buffer);
                served.request.extend_from_slice(&buffer[..read]);
                if read == 0 || served.request.len() > MOST {
                    break;
                }
            }
            if served.request.len() > MOST {
                self.stack.abort(now, stream);
                served.request = Vec::new();
            } else if served.is_whole && !served.is_answered {
                let rest = &served.request[served.written..];
                served.written += self.stack.write(now, stream, rest);
                if served.written == served.request.len() {
                    served.is_answered = true;
                    answered += 1;
                    self.stack.finish(now, stream);
                    self.stack.release(now, stream);
                }
            }
        }
        self.streams.retain(|_, served| !served.is_answered);
        answered
    }

    /// Writes the next datagram that the peer's credit covers.
    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.waiting.is_none() {
            let mut packet = Vec::new();
            if !self.stack.poll_transmit(now, &mut packet) {
                return false;
            }
            let mut datagram = Vec::new();
            carriage::write(MessageKind::Down, self.number, &packet, 0, &mut datagram);
            self.waiting = Some(datagram);
        }
        let earned = self.waiting.take_if(|datagram| datagram.len() <= self.credit);
        let Some(datagram) = earned else {
            return false;
        };
        self.credit -= datagram.len();
        *out = datagram;
        true
    }
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
