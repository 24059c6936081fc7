//! Ends that run QUIC.

use std::sync::Arc;

use experiment::application::Notice;
use experiment::outcome::PathBytes;
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use foundation::{Generator, Instant};
use quic::{Carriage, Connection, Datagram, Event, QuicConfig};
use transport::mptcp::{ConnectionPlan, HostPaths, PathIndex, PathPolicy, SubflowInfo};
use transport::{Statistics, tcp};

use super::stream::{EndEvent, Family, StreamConnection, StreamEnd};
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
    /// Random stream of the path policy, and the bytes of the flow, if known.
    paths: Option<Generator>,
    size: Option<u64>,
    /// The policy, if it adds paths later.
    policy: Option<Box<dyn PathPolicy>>,
    /// Number of paths between the hosts.
    ways: u8,
}

impl Quic {
    /// Returns the client.
    pub(crate) const fn opener(config: Arc<QuicConfig>, random: Generator, carriage: Carriage) -> Self {
        Self {
            config,
            random,
            listens: false,
            carriage,
            paths: None,
            size: None,
            policy: None,
            ways: 1,
        }
    }

    /// Sets the number of paths between the hosts.
    pub(crate) const fn over(mut self, ways: u8) -> Self {
        self.ways = ways;
        self
    }

    /// Lets the policy choose paths for `size` bytes, if known, and draw from `random`.
    pub(crate) fn choosing_paths(mut self, random: Generator, size: Option<u64>) -> Self {
        (self.paths, self.size) = (Some(random), size);
        self
    }

    /// Returns the plan of the path policy.
    fn plan(&mut self, now: Instant, host: &mut HostPaths) -> Option<ConnectionPlan> {
        let (plan, policy) = self.config.plan(now, self.size, host, self.paths.as_mut()?);
        self.policy = policy;
        Some(plan)
    }

    /// Returns the server.
    pub(crate) const fn listener(config: Arc<QuicConfig>, random: Generator, carriage: Carriage) -> Self {
        Self {
            config,
            random,
            listens: true,
            carriage,
            paths: None,
            size: None,
            policy: None,
            ways: 1,
        }
    }

    fn with_streams(&self, connection: Connection) -> Connection {
        connection.carrying(self.carriage, self.config.fair_streams == Some(true))
    }
}

impl StreamEnd<Quic> {
    /// Returns the paths that carried data, one bit each; `None` of a connection with one path.
    pub(crate) fn ways(&self) -> Option<u64> {
        let connection = self.connection().filter(|it| it.is_multipath())?;
        let used = connection.paths().filter(|path| path.bytes_sent > 0);
        Some(used.fold(0, |ways, path| ways | 1 << path.way))
    }

    /// Adds the payload of each path to its bytes; `first` is the number of the first path. Returns whether there are several paths.
    pub(crate) fn add_carried(&self, first: u8, carried: &mut PathBytes) -> bool {
        let Some(connection) = self.connection().filter(|it| it.is_multipath()) else {
            return false;
        };
        for path in connection.paths() {
            carried.add(first + path.way, path.bytes_sent);
        }
        true
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
        let resumes = self.config.zero_rtt == Some(true) && host.take_ticket();
        let plan = self.plan(now, host.paths);
        let connection = Connection::resume(now, &self.config, resumes, self.random.clone());
        let connection = self.with_streams(connection).between(self.ways);
        match plan {
            Some(plan) => connection.with_plan(plan),
            None => connection,
        }
    }

    fn update_host(&mut self, now: Instant, _: u8, host: &mut Host<'_>, connection: &mut Connection) -> bool {
        if self.listens {
            return false;
        }
        if connection.take_ticket() {
            host.add_ticket();
        }
        connection.update_host(now, now, self.policy.as_deref_mut(), host.paths)
    }

    fn receive(
        &mut self,
        now: Instant,
        way: u8,
        content: &mut Content,
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
            // Its bytes may be long and are of no further use to the network.
            let bytes = std::mem::take(&mut datagram.bytes);
            connection.handle_datagram(now, way, Datagram { bytes, ..*datagram });
        }
        None
    }

    /// A connection with one path answers on the path of the last packet.
    fn transmit(connection: &mut Connection, now: Instant, way: &mut u8) -> Option<Self::Packet> {
        let (own, datagram) = connection.poll_datagram(now)?;
        if connection.selects_way() {
            *way = own;
        }
        Some(datagram)
    }

    fn probe(connection: &Connection) -> Probe {
        Probe::of_quic(connection)
    }

    fn decisions(connection: &Connection, add: &mut dyn FnMut(Decision)) {
        if connection.is_multipath() {
            for path in connection.paths() {
                add(Decision {
                    subflow: Some(path.number),
                    state: "open",
                    phase: path.phase,
                    cwnd_bytes: path.window,
                    ssthresh_bytes: path.ssthresh,
                    ..Decision::default()
                });
            }
            return;
        }
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

    fn subflows(connection: &Connection) -> Vec<SubflowInfo> {
        let info = |path: quic::PathInfo| SubflowInfo {
            path: PathIndex(path.way),
            state: tcp::State::Established,
            bytes: path.bytes_sent,
            bytes_sent: path.bytes_sent,
            window: path.window,
            srtt: path.smoothed_rtt,
            in_flight: path.in_flight,
            backup: path.is_backup,
            retransmissions: path.retransmissions,
            timeouts: 0,
        };
        match connection.is_multipath() {
            true => connection.paths().map(info).collect(),
            false => Vec::new(),
        }
    }
}
