//! One end of a QUIC connection: one bidirectional stream, one for each message and its answer, or real-time frames on streams or in
//! datagrams.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use foundation::{Duration, Ecn, Instant};
use noq_proto::{
    Connection as Inner, ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, FourTuple,
    StreamEvent, Transmit, VarInt,
};
use transport::mptcp::DataView;
use transport::rtt::RttEstimator;
use transport::{Machine, Statistics};

use super::clock::{from_library, to_library};
use super::controller::Factory;
use super::ledger::Ledger;
use super::migration::Migration;
use super::path_info::Reported;
use super::paths::{Paths, has_key_phase, number_in};
use super::selection::Selection;
use super::setup::CLIENT;
use super::streams::Streams;
use super::tap::Tap;
use super::unreliable::Unreliable;
use crate::Datagram;

mod opening;

/// Event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// New data is readable.
    Readable,
    /// This number of bytes of the message of this number has been read.
    ReadMessage(u32, u64),
    /// The send buffer has room again after a partial write.
    Writable,
    /// The peer's stream has ended and has been read.
    PeerFinished,
    /// Both streams have ended, and the peer acknowledged the end of this one.
    Finished,
    /// The connection is closed.
    Closed,
    /// The connection failed, for this reason.
    Failed(String),
}

/// One end of a connection. The opener of a flow is the client.
pub struct Connection {
    endpoint: Endpoint,
    /// The library's connection; a server has none before the client's first packet.
    pub(super) inner: Option<(ConnectionHandle, Inner)>,
    is_client: bool,
    peer: FourTuple,
    uses_ecn: bool,
    idle_timeout: Duration,
    pub(super) controllers: Option<Arc<Factory>>,
    /// The paths, of a connection with several.
    pub(super) paths: Option<Box<Paths>>,
    /// What the host knows of each of them.
    pub(super) reported: Vec<Reported>,
    /// The moves of a client.
    migration: Option<Box<Migration>>,
    /// Whether moves change the path between the hosts.
    changes_way: bool,
    /// The packet scheduler, if it is one of this project's.
    selection: Option<Selection>,
    /// Bytes that the library has accepted of the application.
    pub(super) written: u64,
    streams: Streams,
    /// Instead of streams.
    unreliable: Option<Unreliable>,
    is_finished: bool,
    pub(super) ledger: Ledger,
    /// Copies of packets that a real cryptography encrypts.
    tap: Option<Arc<Tap>>,
    /// Set when the server issues a ticket.
    ticket: Arc<AtomicBool>,
    /// Whether streams open before the handshake is complete.
    is_early: bool,
    /// Bytes read by the application.
    pub(super) read: u64,
    events: VecDeque<Event>,
    /// Datagrams of no connection.
    answers: VecDeque<(u8, Datagram)>,
    buffer: Vec<u8>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("is_client", &self.is_client)
            .field("streams", &self.streams)
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Returns whether the server has issued a ticket since the last call. A ticket serves one later connection.
    #[must_use]
    pub fn take_ticket(&self) -> bool {
        self.ticket.swap(false, Ordering::Relaxed)
    }

    /// Returns whether there is a connection: always at a client, at a server after the client's first packet.
    #[must_use]
    pub const fn exists(&self) -> bool {
        self.inner.is_some()
    }

    /// Returns whether the connection selects the path between the hosts of each datagram.
    #[must_use]
    pub const fn selects_way(&self) -> bool {
        self.paths.is_some() || self.changes_way
    }

    /// Returns whether each message has its stream or its datagrams.
    #[must_use]
    pub const fn has_messages(&self) -> bool {
        self.streams.has_messages() || self.unreliable.is_some()
    }

    /// Returns whether this end may leave after the close. A client closes the connection and, if its CLOSE is lost, repeats it for
    /// each packet of the server, for three probe timeouts (RFC 9000, section 10.2.1). A server sends nothing after the close.
    #[must_use]
    pub fn has_left(&self) -> bool {
        !self.is_client || self.inner.as_ref().is_none_or(|(_, inner)| inner.is_drained())
    }

    /// Returns the counters of the sending direction.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        self.ledger.statistics()
    }

    /// As [`statistics`](Self::statistics), to enable or take the RTT histogram.
    pub const fn statistics_mut(&mut self) -> &mut Statistics {
        self.ledger.statistics_mut()
    }

    /// Returns the round-trip times of 1-RTT packets, ACK delay included.
    #[must_use]
    pub fn rtt(&self) -> &RttEstimator {
        self.ledger.rtt()
    }

    /// Adds up to `bytes` to the stream. Returns the number of bytes accepted; [`Event::Writable`] follows if that are fewer.
    pub fn write(&mut self, bytes: u64) -> u64 {
        let Some((_, inner)) = &mut self.inner else {
            return 0;
        };
        let written = self.streams.write(inner, bytes);
        self.written += written;
        written
    }

    /// Sends a message on stream `number`. A client numbers its messages from 0, and a server answers them.
    pub fn send_message(&mut self, number: u32, bytes: u64) {
        let inner = self.inner.as_mut().map(|(_, inner)| inner);
        if let Some(unreliable) = &mut self.unreliable {
            return unreliable.send(inner, number, bytes);
        }
        self.streams.queue_message(number, bytes);
        self.written += bytes;
        if let Some(inner) = inner {
            self.streams.flush(inner);
        }
    }

    /// Ends the stream; with messages, no further one follows.
    pub fn finish(&mut self) {
        if let Some(unreliable) = &mut self.unreliable {
            unreliable.end();
        }
        self.streams.end();
        if let Some((_, inner)) = &mut self.inner {
            self.streams.flush(inner);
        }
    }

    /// Reads all bytes of the stream available in order. Returns their number.
    pub fn read_all(&mut self, now: Instant) -> u64 {
        let Some((_, inner)) = &mut self.inner else {
            return 0;
        };
        let bytes = self.streams.read(inner, 0);
        if self.streams.peer_ended_now() {
            self.events.push_back(Event::PeerFinished);
        }
        self.read += bytes;
        self.settle(now);
        bytes
    }

    /// Reads all bytes of the message on stream `number` available in order.
    fn read_message(&mut self, number: u64) {
        let Some((_, inner)) = &mut self.inner else {
            return;
        };
        let bytes = self.streams.read(inner, number);
        self.read += bytes;
        if bytes > 0 {
            self.events.push_back(Event::ReadMessage(number as u32, bytes));
        }
    }

    /// Passes events between the endpoint and the connection, and those of the library to the application.
    fn pump(&mut self, now: Instant) {
        self.count_tapped(now);
        if let (Some(paths), Some((_, inner))) = (&mut self.paths, &self.inner) {
            paths.adopt(inner);
        }
        let Some((handle, inner)) = &mut self.inner else {
            return;
        };
        while let Some(event) = inner.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                inner.handle_event(answer);
            }
        }
        while let Some(event) = self.inner.as_mut().and_then(|(_, inner)| inner.poll()) {
            self.on_event(now, event);
        }
        self.settle(now);
        if let (Some(paths), Some((_, inner))) = (&mut self.paths, &mut self.inner) {
            paths.act(now, inner, &self.ledger);
        }
    }

    /// Counts the packets that the cryptography encrypted and decrypted since the last call. Returns the payload bytes of those
    /// sent.
    fn count_tapped(&mut self, now: Instant) -> u64 {
        let mut payload = 0;
        for packet in self.tap.iter().flat_map(|tap| tap.take()) {
            if packet.is_sent {
                payload += self
                    .ledger
                    .sends_packet(now, packet.path, packet.number, &packet.frames);
            } else {
                self.ledger
                    .receives_packet(now, packet.path, packet.number, &packet.frames);
                if let Some(paths) = &mut self.paths {
                    paths.receives(packet.key_phase);
                }
            }
        }
        payload
    }

    fn on_event(&mut self, now: Instant, event: noq_proto::Event) {
        use noq_proto::Event as Library;
        if let (Some(paths), Some((_, inner))) = (&mut self.paths, &mut self.inner) {
            match &event {
                Library::Connected => paths.connected(inner),
                Library::HandshakeConfirmed => paths.confirmed(inner),
                Library::Path(event) => paths.on_event(now, inner, event),
                _ => {}
            }
        }
        if let (Library::HandshakeConfirmed, Some(migration)) = (&event, &mut self.migration) {
            migration.confirm();
        }
        match event {
            // With early data, the application has known since the start.
            Library::Connected if self.is_early => self.check_early_data(),
            Library::Connected => {
                self.connect();
                self.events.push_back(Event::Connected);
            }
            Library::DatagramReceived => self.read_datagrams(),
            Library::ConnectionLost { reason } => self.on_lost(now, &reason),
            Library::Stream(event) => self.on_stream_event(&event),
            _ => {}
        }
    }

    /// Fails the connection if the server has rejected its early data: the library then forgets the streams.
    fn check_early_data(&mut self) {
        if self
            .inner
            .as_ref()
            .is_some_and(|(_, inner)| !inner.accepted_0rtt())
        {
            let reason = "the server rejected the early data (zero_rtt)".to_owned();
            self.events.push_back(Event::Failed(reason));
        }
    }

    /// Starts the streams or the datagrams.
    fn connect(&mut self) {
        let Some((_, inner)) = &mut self.inner else {
            return;
        };
        match &mut self.unreliable {
            Some(unreliable) if self.is_client => unreliable.connect(inner),
            Some(_) => {}
            None => self.streams.connect(inner, self.is_client),
        }
    }

    fn read_datagrams(&mut self) {
        let Some((_, inner)) = &mut self.inner else {
            return;
        };
        while let Some((number, bytes)) = Unreliable::receive(inner) {
            self.read += bytes + Unreliable::HEADER as u64;
            self.events.push_back(Event::ReadMessage(number, bytes));
        }
    }

    fn on_stream_event(&mut self, event: &StreamEvent) {
        let Some((_, inner)) = &mut self.inner else {
            return;
        };
        match *event {
            StreamEvent::Opened { dir } if dir == self.streams.dir() => {
                for number in self.streams.accept(inner) {
                    self.on_readable(number);
                }
            }
            StreamEvent::Readable { id } => self.on_readable(id.index()),
            StreamEvent::Available { dir } if dir != self.streams.dir() => {}
            StreamEvent::Writable { .. } | StreamEvent::Available { .. } => {
                self.streams.flush(inner);
                if !self.has_messages() {
                    self.events.push_back(Event::Writable);
                }
            }
            StreamEvent::Finished { id } => self.streams.acknowledge(id.index()),
            _ => {}
        }
    }

    fn on_readable(&mut self, number: u64) {
        if self.has_messages() {
            self.read_message(number);
        } else {
            self.events.push_back(Event::Readable);
        }
    }

    fn on_lost(&mut self, now: Instant, reason: &ConnectionError) {
        let is_orderly = matches!(reason, ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(0));
        // A peer closes after it has read everything and its own streams are acknowledged.
        if is_orderly && (self.unreliable.is_some() || self.streams.have_ended()) {
            self.streams.acknowledge_all();
            if let Some(unreliable) = &mut self.unreliable {
                unreliable.end();
            }
            self.settle(now);
        } else if !self.is_finished {
            let text = match reason {
                ConnectionError::TimedOut => {
                    format!("no packet from the peer for {} (idle_timeout)", self.idle_timeout)
                }
                other => other.to_string(),
            };
            self.events.push_back(Event::Failed(text));
        }
        if self.is_finished {
            self.events.push_back(Event::Closed);
        }
    }

    /// Reports the end of all streams; then the client closes the connection.
    fn settle(&mut self, now: Instant) {
        let is_done = match (&self.unreliable, &mut self.inner) {
            // Only the client ends a connection with datagrams.
            (Some(unreliable), _) if !self.is_client => unreliable.has_ended(),
            (Some(unreliable), Some((_, inner))) => unreliable.is_finished(inner),
            _ => self.streams.are_finished(),
        };
        if self.is_finished || !is_done {
            return;
        }
        self.is_finished = true;
        self.events.push_back(Event::Finished);
        if self.is_client
            && let Some((_, inner)) = &mut self.inner
        {
            inner.close(to_library(now), VarInt::from_u32(0), Bytes::new());
            self.events.push_back(Event::Closed);
        }
    }

    /// Returns a datagram of the first bytes of the buffer, which is empty then, and its path between the hosts.
    fn datagram(&mut self, now: Instant, transmit: &Transmit) -> (u8, Datagram) {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.truncate(transmit.size);
        let bytes = bytes.into_boxed_slice();
        let ecn = match transmit.ecn.filter(|_| self.uses_ecn) {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let way = match (&self.paths, &self.migration) {
            (Some(paths), _) => paths.way_to(transmit.destination),
            (None, Some(migration)) => migration.way(),
            (None, None) if self.changes_way => number_in(transmit.destination),
            (None, None) => 0,
        };
        let path = self.paths.as_ref().map(|paths| paths.number_on(way));
        let data = match self.tap {
            Some(_) => self.count_tapped(now) as u32,
            None => self.ledger.sends(now, path.unwrap_or(0), &bytes),
        };
        let own = self.migration.as_ref().map(|migration| migration.address());
        let to = Some(transmit.destination).filter(|_| self.paths.is_none() && !self.is_client);
        let datagram = Datagram {
            data,
            bytes,
            ecn,
            path,
            client: own.or(to).filter(|&client| client != CLIENT),
        };
        (way, datagram)
    }

    /// Handles a datagram that arrived on a path between the hosts.
    pub fn handle_datagram(&mut self, now: Instant, way: u8, frame: Datagram) {
        let peer = match &self.paths {
            Some(paths) => paths.peer(way),
            None => self.peer,
        };
        self.handle_from(now, peer, frame);
    }

    /// Returns the next datagram and its path between the hosts; 0 of a connection with one path.
    pub fn poll_datagram(&mut self, now: Instant) -> Option<(u8, Datagram)> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        self.buffer.clear();
        let (_, inner) = self.inner.as_mut()?;
        let mut transmit = match (&self.paths, &mut self.selection) {
            (Some(paths), Some(selection)) => {
                let data = DataView {
                    unsent: self.written.saturating_sub(self.ledger.sent()),
                    in_flight: self.ledger.in_flight(),
                    window: self.ledger.credit(),
                    reinjection: false,
                };
                let transmit = selection.poll(now, inner, paths, &data, &mut self.buffer);
                self.events.extend(selection.take_failure().map(Event::Failed));
                transmit
            }
            _ => inner.poll_transmit(to_library(now), NonZeroUsize::MIN, &mut self.buffer),
        };
        if transmit.is_none() && self.unreliable.is_some() && !self.is_finished {
            self.settle(now);
            let (_, inner) = self.inner.as_mut()?;
            transmit = inner.poll_transmit(to_library(now), NonZeroUsize::MIN, &mut self.buffer);
        }
        Some(self.datagram(now, &transmit?))
    }

    fn handle_from(&mut self, now: Instant, peer: FourTuple, frame: Datagram) {
        let at = to_library(now);
        let ecn = match frame.ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        if self.tap.is_none() {
            self.ledger.receives(now, frame.path.unwrap_or(0), &frame.bytes);
            if let Some(paths) = &mut self.paths {
                paths.receives(has_key_phase(&frame.bytes));
            }
        }
        self.buffer.clear();
        if let Some(migration) = &self.migration
            && frame.client.unwrap_or(CLIENT) != migration.address()
        {
            // It went to an earlier address.
            return;
        }
        let translated = frame.client.filter(|_| !self.is_client);
        let peer = translated.map_or(peer, FourTuple::from_remote);
        // The library changes the bytes, which have no other owner, in place.
        let bytes = BytesMut::from(Bytes::from(frame.bytes));
        match self.endpoint.handle(at, peer, ecn, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, inner)) = &mut self.inner {
                    if let Some(paths) = &self.paths {
                        paths.couple(now, inner);
                    }
                    inner.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.inner.is_some() {
                    self.endpoint.ignore(incoming);
                } else {
                    match self.endpoint.accept(incoming, at, &mut self.buffer, None) {
                        Ok(accepted) => self.inner = Some(accepted),
                        Err(error) => {
                            if let Some(transmit) = error.response {
                                let answer = self.datagram(now, &transmit);
                                self.answers.push_back(answer);
                            }
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let answer = self.datagram(now, &transmit);
                self.answers.push_back(answer);
            }
            None => {}
        }
        self.pump(now);
    }
}

impl Machine for Connection {
    type Incoming = Datagram;
    type Outgoing = Datagram;
    type Event = Event;

    fn handle_frame(&mut self, now: Instant, frame: Datagram) {
        self.handle_datagram(now, 0, frame);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, inner)) = &mut self.inner {
            if let Some(paths) = &self.paths {
                paths.couple(now, inner);
            }
            inner.handle_timeout(to_library(now));
            while (self.migration.as_mut()).is_some_and(|migration| migration.advance(now)) {
                inner.handle_network_change(None, to_library(now));
            }
        }
        self.pump(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.poll_datagram(now).map(|(_, datagram)| datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let (_, inner) = self.inner.as_ref()?;
        let own = self.paths.as_ref().map(|paths| paths.timeout());
        let own = own.filter(|&at| at != Instant::MAX);
        let migration = self.migration.as_ref().and_then(|migration| migration.due_at());
        inner
            .poll_timeout()
            .map(from_library)
            .into_iter()
            .chain(own)
            .chain(migration.filter(|_| !inner.is_closed()))
            .min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        // The caller has chosen streams or messages by now.
        if self.is_early && event == Some(Event::Connected) {
            self.connect();
        }
        event
    }
}
