//! Ends that run QUIC.

use std::sync::Arc;

use experiment::application::Notice;
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use experiment::workload::{WorkloadConfig, WorkloadKind};
use foundation::{Generator, Instant};
use quic::{Connection, Datagram, Event, QuicConfig};
use transport::{Machine as _, Statistics};

use super::stream::{EndEvent, Family, StreamConnection};
use super::{Host, RttHistogram};
use crate::body::Content;

/// QUIC at one end, which opens a connection or waits for one.
#[derive(Debug)]
pub(crate) struct Quic {
    config: Arc<QuicConfig>,
    /// Source of all randomness of this end.
    random: Generator,
    listens: bool,
    carriage: Carriage,
}

/// What carries the data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// One stream.
    Stream,
    /// A stream for each request and its response.
    Exchanges,
    /// A stream for each real-time frame.
    Frames,
    /// Datagrams.
    Datagrams,
}

impl Carriage {
    /// Returns what carries the data of a workload.
    pub(crate) fn of(config: &QuicConfig, workload: &WorkloadConfig) -> Self {
        match workload.kind {
            WorkloadKind::Frames if config.datagrams == Some(true) => Self::Datagrams,
            WorkloadKind::Frames => Self::Frames,
            _ if workload.has_exchanges() => Self::Exchanges,
            _ => Self::Stream,
        }
    }
}

impl Quic {
    /// Returns the client.
    pub(crate) const fn opener(config: Arc<QuicConfig>, random: Generator, carriage: Carriage) -> Self {
        Self {
            config,
            random,
            listens: false,
            carriage,
        }
    }

    /// Returns the server.
    pub(crate) const fn listener(config: Arc<QuicConfig>, random: Generator, carriage: Carriage) -> Self {
        Self {
            config,
            random,
            listens: true,
            carriage,
        }
    }

    fn with_streams(&self, connection: Connection) -> Connection {
        let is_fair = self.config.fair_streams == Some(true);
        match self.carriage {
            Carriage::Stream => connection,
            Carriage::Exchanges => connection.with_messages(is_fair),
            Carriage::Frames => connection.with_frames(is_fair),
            Carriage::Datagrams => connection.with_datagrams(),
        }
    }
}

impl StreamConnection for Connection {
    fn record_round_trips(&mut self) {
        self.statistics_mut().rtt = Some(Box::default());
    }

    fn statistics(&self) -> &Statistics {
        self.statistics()
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.statistics_mut().take_round_trips()
    }

    fn write(&mut self, _: Instant, bytes: u64) -> u64 {
        self.write(bytes)
    }

    fn finish(&mut self, _: Instant) {
        self.finish();
    }

    fn send_message(&mut self, number: u32, bytes: u64) -> bool {
        let has_messages = self.has_messages();
        if has_messages {
            self.send_message(number, bytes);
        }
        has_messages
    }

    fn read_all(&mut self, now: Instant, _: u64) -> u64 {
        self.read_all(now)
    }

    fn early_bytes(&self) -> u64 {
        self.early_bytes()
    }

    fn end_event(event: Event) -> EndEvent {
        EndEvent::Notice(match event {
            Event::Readable => return EndEvent::Readable,
            Event::Writable => return EndEvent::Writable,
            Event::ReadMessage(number, bytes) => Notice::ReadMessage(number, bytes),
            Event::Connected => Notice::Connected,
            Event::PeerFinished => Notice::PeerFinished,
            Event::Finished => Notice::Finished,
            Event::Closed => Notice::Closed,
            Event::Failed(reason) => Notice::Failed(reason),
        })
    }
}

impl Family for Quic {
    type Connection = Connection;
    type Packet = Datagram;

    /// No key changes while flows run.
    fn reconfigure(&mut self, _: &str, _: &Protocol, _: Option<&mut Connection>) {}

    fn connect(&mut self, now: Instant, host: &mut Host<'_>) -> Connection {
        let resumes = self.config.zero_rtt == Some(true) && host.tickets.contains(&(host.own, host.peer));
        self.with_streams(Connection::resume(
            now,
            &self.config,
            resumes,
            self.random.clone(),
        ))
    }

    fn update_host(&mut self, _: Instant, _: u8, host: &mut Host<'_>, connection: &mut Connection) -> bool {
        if !self.listens && connection.has_ticket() {
            host.tickets.insert((host.own, host.peer));
        }
        false
    }

    fn receive(
        &mut self,
        now: Instant,
        _: u8,
        content: &Content,
        connection: &mut Option<Connection>,
        _: &mut Host<'_>,
    ) -> Option<Content> {
        let Content::Quic(datagram) = content else {
            return None;
        };
        if self.listens && connection.is_none() {
            let listener = Connection::listen(now, &self.config, self.random.clone());
            *connection = Some(self.with_streams(listener));
        }
        if let Some(connection) = connection {
            connection.handle_frame(now, datagram.clone());
        }
        None
    }

    fn transmit(connection: &mut Connection, now: Instant, _: &mut u8) -> Option<Self::Packet> {
        connection.poll_transmit(now)
    }

    fn probe(connection: &Connection) -> Probe {
        Probe::of_quic(connection)
    }

    fn decisions(connection: &Connection, add: &mut dyn FnMut(Decision)) {
        add(Decision {
            state: "open",
            phase: connection
                .with_controller(|controller| controller.phase())
                .unwrap_or("unknown"),
            cwnd_bytes: connection.window().unwrap_or(0),
            ssthresh_bytes: connection.ssthresh(),
            ..Decision::default()
        });
    }
}
