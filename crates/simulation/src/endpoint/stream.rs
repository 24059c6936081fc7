//! Ends of connection-oriented protocols: the application side, which all share.

use experiment::application::{Notice, Stream};
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use foundation::Instant;
use transport::mptcp::SubflowInfo;
use transport::{Machine, Statistics};

use super::{End, Host, RttHistogram};
use crate::body::{Content, Outbound};

/// An event of a connection.
pub(crate) enum EndEvent {
    /// Data is readable.
    Readable,
    /// The send buffer has room.
    Writable,
    /// An event for the application.
    Notice(Notice),
}

/// A connection that carries a byte stream each way.
pub(crate) trait StreamConnection: Machine {
    fn record_round_trips(&mut self);
    fn statistics(&self) -> &Statistics;
    /// See [`End::take_round_trips`].
    fn take_round_trips(&mut self) -> RttHistogram;
    /// Adds up to `bytes` to the stream. Returns the number of bytes accepted.
    fn write(&mut self, now: Instant, bytes: u64) -> u64;
    /// Ends the stream.
    fn finish(&mut self, now: Instant);
    /// Sends a message on stream `number`, and returns whether the protocol has streams.
    fn send_message(&mut self, _number: u32, _bytes: u64) -> bool {
        false
    }
    /// Discards data of an unlimited send buffer that was not sent.
    fn discard_unsent(&mut self) {}
    /// Returns whether it is half-open at a listener, which may still replace it without an event to the application.
    fn is_half_open(&self) -> bool {
        false
    }
    /// Reads all bytes available in order, after `already` bytes read before. Returns their number.
    fn read_all(&mut self, now: Instant, already: u64) -> u64;
    /// Returns the bytes that arrived above a gap.
    fn early_bytes(&self) -> u64;
    fn end_event(event: Self::Event) -> EndEvent;
}

/// The protocol-specific part: opening or accepting a connection, and its packets.
pub(crate) trait Family {
    type Connection: StreamConnection;
    type Packet: Outbound;

    /// Takes a key over that flows change while they run, if `protocol` is the one of this family.
    fn reconfigure(&mut self, key: &str, protocol: &Protocol, connection: Option<&mut Self::Connection>);
    /// Opens a connection.
    fn connect(&mut self, now: Instant, host: &mut Host<'_>) -> Self::Connection;
    /// Handles a packet that arrived on a path, for the connection or the listener. Returns the answer to a packet of no
    /// connection.
    fn receive(
        &mut self,
        now: Instant,
        way: u8,
        content: &mut Content,
        connection: &mut Option<Self::Connection>,
        host: &mut Host<'_>,
    ) -> Option<Content>;
    /// Returns the next packet to send; sets `way` if its path changes.
    fn transmit(connection: &mut Self::Connection, now: Instant, way: &mut u8) -> Option<Self::Packet>;
    fn probe(connection: &Self::Connection) -> Probe;
    /// See [`End::decisions`].
    fn decisions(connection: &Self::Connection, add: &mut dyn FnMut(Decision));
    /// See [`End::subflows`].
    fn subflows(_: &Self::Connection) -> Vec<SubflowInfo> {
        Vec::new()
    }
    /// See [`End::update_host`].
    fn update_host(
        &mut self,
        _now: Instant,
        _way: u8,
        _host: &mut Host<'_>,
        _connection: &mut Self::Connection,
    ) -> bool {
        false
    }
}

/// An end with a connection, or waiting for one.
#[derive(Debug)]
pub(crate) struct StreamEnd<F: Family> {
    family: F,
    connection: Option<F::Connection>,
    records_rtt: bool,
    /// Bytes written by the application that exceed the send buffer.
    pending: u64,
    /// Whether the stream ends after them.
    ends: bool,
    /// Bytes read by the application.
    read: u64,
}

impl<F: Family> StreamEnd<F> {
    pub(crate) const fn new(family: F, records_rtt: bool) -> Self {
        Self {
            family,
            connection: None,
            records_rtt,
            pending: 0,
            ends: false,
            read: 0,
        }
    }

    /// Takes a key of the protocol over.
    pub(crate) fn reconfigure(&mut self, key: &str, protocol: &Protocol) {
        self.family.reconfigure(key, protocol, self.connection.as_mut());
    }

    pub(crate) const fn connection(&self) -> Option<&F::Connection> {
        self.connection.as_ref()
    }

    pub(crate) const fn connection_mut(&mut self) -> Option<&mut F::Connection> {
        self.connection.as_mut()
    }

    /// Fills the send buffer, like an application whose socket became writable.
    fn fill(&mut self, now: Instant) {
        let Some(connection) = self.connection.as_mut().filter(|it| !it.is_half_open()) else {
            return;
        };
        if self.pending > 0 {
            self.pending -= connection.write(now, self.pending);
        }
        if self.pending == 0 && std::mem::take(&mut self.ends) {
            connection.finish(now);
        }
    }
}

impl<F: Family> Stream for StreamEnd<F> {
    fn write(&mut self, now: Instant, bytes: u64) {
        self.pending += bytes;
        self.fill(now);
    }

    fn finish(&mut self, now: Instant) {
        self.ends = true;
        self.fill(now);
    }

    fn send_message(&mut self, now: Instant, number: u32, bytes: u64) {
        let connection = self.connection.as_mut();
        if !connection.is_some_and(|connection| connection.send_message(number, bytes)) {
            self.write(now, bytes);
        }
    }

    fn stop(&mut self, now: Instant) {
        self.pending = 0;
        if let Some(connection) = &mut self.connection {
            connection.discard_unsent();
        }
        self.finish(now);
    }
}

impl<F: Family> End for StreamEnd<F> {
    type Packet = F::Packet;

    fn open(&mut self, now: Instant, host: &mut Host<'_>) {
        let mut connection = self.family.connect(now, host);
        if self.records_rtt {
            connection.record_round_trips();
        }
        self.connection = Some(connection);
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.connection.as_ref().map(StreamConnection::statistics)
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.connection
            .as_mut()
            .and_then(StreamConnection::take_round_trips)
    }

    fn early_bytes(&self) -> u64 {
        self.connection.as_ref().map_or(0, StreamConnection::early_bytes)
    }

    fn probe(&self, _: Instant) -> Probe {
        self.connection.as_ref().map_or_else(Probe::default, F::probe)
    }

    fn decisions(&self, add: &mut dyn FnMut(Decision)) {
        if let Some(connection) = &self.connection {
            F::decisions(connection, add);
        }
    }

    fn subflows(&self) -> Vec<SubflowInfo> {
        self.connection.as_ref().map(F::subflows).unwrap_or_default()
    }

    #[inline]
    fn receive(
        &mut self,
        now: Instant,
        way: u8,
        content: &mut Content,
        host: &mut Host<'_>,
    ) -> Option<Content> {
        self.family.receive(now, way, content, &mut self.connection, host)
    }

    fn expire(&mut self, now: Instant) -> bool {
        let Some(connection) = &mut self.connection else {
            return false;
        };
        let timeouts = connection.statistics().timeouts;
        connection.handle_timeout(now);
        connection.statistics().timeouts > timeouts
    }

    #[inline]
    fn poll(&mut self, now: Instant) -> Option<Notice> {
        loop {
            let connection = self.connection.as_mut()?;
            let half_open = connection.is_half_open();
            match F::Connection::end_event(connection.poll_event()?) {
                EndEvent::Readable => {
                    let bytes = connection.read_all(now, self.read);
                    self.read += bytes;
                    return Some(Notice::Read(bytes));
                }
                EndEvent::Writable => self.fill(now),
                EndEvent::Notice(Notice::Failed(_) | Notice::Closed) if half_open => self.connection = None,
                EndEvent::Notice(Notice::Connected) => {
                    self.fill(now);
                    return Some(Notice::Connected);
                }
                EndEvent::Notice(notice) => return Some(notice),
            }
        }
    }

    #[inline]
    fn transmit(&mut self, now: Instant, way: &mut u8) -> Option<F::Packet> {
        F::transmit(self.connection.as_mut()?, now, way)
    }

    #[inline]
    fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }

    #[inline]
    fn update_host(&mut self, now: Instant, way: u8, host: &mut Host<'_>) -> bool {
        match &mut self.connection {
            Some(connection) => self.family.update_host(now, way, host, connection),
            None => false,
        }
    }
}
