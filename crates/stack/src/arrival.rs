//! Packets that arrive at a stack.

use foundation::Instant;
use transport::tcp::wire::{DecodeError, Endpoints, decode, encode};
use transport::tcp::{Connection, Flags, Segment, TcpConfig, reset_for};

use crate::icmp::{self, TooBig};
use crate::stack::Stack;
use crate::stream::Stream;
use crate::table::StreamId;

/// The smallest path MTU that is accepted: with less, a forged ICMP message could stall a connection (Linux's
/// `min_pmtu`, 552 bytes).
const LEAST_MTU: u32 = 552;

/// A segment for which there is no connection and no listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmatchedSegment {
    /// From the peer to this stack.
    pub endpoints: Endpoints,
    /// Its header and the length of its payload.
    pub segment: Segment,
}

impl UnmatchedSegment {
    /// Whether it requests a connection.
    #[must_use]
    pub fn opens(&self) -> bool {
        self.segment.flags.contains(Flags::SYN) && !self.segment.has(Flags::ACK | Flags::RST)
    }
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The stack handled it.
    Handled,
    /// No connection and no listener matches: the caller passes it to [`Stack::refuse`] or [`Stack::accept`].
    Unmatched(UnmatchedSegment),
    /// Neither a TCP segment nor a message about one, or a fragment.
    Other,
    /// Truncated, or with a wrong checksum.
    Malformed,
}

impl Stack {
    /// Accepts the connection that a segment requests; [`Event::Accepted`](crate::stack::Event::Accepted) follows once it is
    /// established. `payload` is the SYN's data: with `fast_open` or `ttcp` the connection may use it, and without it
    /// the peer retransmits.
    pub fn accept(
        &mut self,
        now: Instant,
        unmatched: &UnmatchedSegment,
        payload: &[u8],
        config: &TcpConfig,
    ) -> StreamId {
        let endpoints = unmatched.endpoints.reversed();
        let initial = self.initial_sequence(now, endpoints);
        let mut segment = unmatched.segment;
        if payload.len() != segment.length as usize {
            segment.length = 0;
            segment.flags = Flags::SYN;
        }
        let opening = self
            .memory
            .admission(now, config, endpoints.destination.ip(), &segment);
        let connection = Connection::accept_with(now, config, initial, &segment, opening);
        let mut stream = Stream::new(endpoints, connection, true);
        stream.keep(0, payload);
        self.add(now, stream)
    }

    /// Replies with a reset (RFC 9293, section 3.10.7.1).
    pub fn refuse(&mut self, unmatched: &UnmatchedSegment) {
        let Some(reset) = reset_for(&unmatched.segment) else {
            return;
        };
        let mut bytes = Vec::new();
        if encode(&reset, unmatched.endpoints.reversed(), &mut bytes, |_| {}).is_ok() {
            self.counters.refused += 1;
            self.answers.push_back(bytes);
        }
    }

    /// Handles a packet.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) -> Arrival {
        self.counters.received += 1;
        match decode(packet) {
            Ok(decoded) => {
                let endpoints = decoded.endpoints.reversed();
                let found = self.streams.find(endpoints);
                if let Some(id) = found.filter(|&id| !self.gives_way(id, &decoded.segment)) {
                    if let Some(stream) = self.streams.get_mut(id) {
                        stream.receive(now, decoded.segment, &packet[decoded.payload]);
                    }
                    self.settle(id);
                    return Arrival::Handled;
                }
                let unmatched = UnmatchedSegment {
                    endpoints: decoded.endpoints,
                    segment: decoded.segment,
                };
                let listener = self.listeners.get(&endpoints.source.port());
                match listener.filter(|_| unmatched.opens()).cloned() {
                    Some(config) => {
                        self.accept(now, &unmatched, &packet[decoded.payload], &config);
                        Arrival::Handled
                    }
                    None => Arrival::Unmatched(unmatched),
                }
            }
            Err(DecodeError::Protocol(_)) => self.handle_message(now, packet),
            // Senders with path MTU discovery, this stack included, set DF, so routers do not fragment their packets.
            Err(DecodeError::Fragment) => Arrival::Other,
            Err(_) => {
                self.counters.broken += 1;
                Arrival::Malformed
            }
        }
    }

    /// Closes a connection in favor of the one that a segment requests, where RFC 1644, section 3.4, allows it.
    fn gives_way(&mut self, id: StreamId, segment: &Segment) -> bool {
        let Some(stream) = self.streams.get(id) else {
            return false;
        };
        let port = stream.endpoints.source.port();
        let gives_way = stream.connection.is_replaced_by(segment) && self.listeners.contains_key(&port);
        if gives_way {
            self.replace(id);
        }
        gives_way
    }

    fn handle_message(&mut self, now: Instant, packet: &[u8]) -> Arrival {
        match icmp::read_too_big(packet) {
            Some(message) if self.lower_path_mtu(now, message) => Arrival::Handled,
            _ => Arrival::Other,
        }
    }

    /// Handles the report that a packet of this stack exceeds a link's MTU, without an ICMP message.
    pub fn handle_too_big(&mut self, now: Instant, packet: &[u8], mtu: u32) {
        if let Ok(decoded) = decode(packet) {
            let message = TooBig {
                endpoints: decoded.endpoints,
                sequence: decoded.segment.sequence,
                mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
            };
            self.lower_path_mtu(now, message);
        }
    }

    /// Returns whether the message concerns a connection of this stack.
    fn lower_path_mtu(&mut self, now: Instant, message: TooBig) -> bool {
        let TooBig {
            endpoints,
            sequence,
            mtu,
        } = message;
        let Some(id) = self.streams.find(endpoints) else {
            return false;
        };
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        // RFC 5927, section 4.1: without this check anybody could lower the MTU.
        if stream.connection.is_outstanding(sequence) {
            let mtu = u32::from(mtu).max(LEAST_MTU);
            stream.connection.handle_path_mtu(now, mtu);
            let known = self.path_mtus.entry(endpoints.destination.ip()).or_insert(mtu);
            *known = (*known).min(mtu);
            self.counters.too_big += 1;
        }
        self.settle(id);
        true
    }

    /// Replies to a packet that is an echo request; returns whether it was one. A host whose kernel handles all other
    /// packets does not need it.
    pub fn answer_ping(&mut self, packet: &[u8]) -> bool {
        let answer = icmp::echo_reply(packet);
        let is_ping = answer.is_some();
        self.answers.extend(answer);
        is_ping
    }
}
