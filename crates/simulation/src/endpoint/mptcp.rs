//! Ends that run multipath TCP.

use std::sync::Arc;

use experiment::outcome::PathBytes;
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use foundation::{Duration, Generator, Instant};
use transport::mptcp::{Connection, MptcpOption, PathIndex, Segment, Setup, SubflowInfo};
use transport::tcp::{Event, Flags};
use transport::{Machine as _, Statistics};

use super::stream::{EndEvent, Family, StreamConnection, StreamEnd};
use super::{Host, RttHistogram};
use crate::body::Content;

/// Multipath TCP at one end, which opens a connection or waits for one.
#[derive(Debug)]
pub(crate) struct Mptcp {
    setup: Arc<Setup>,
    /// Random streams of keys and numbers, and of paths, until there is a connection.
    random: Generator,
    paths: Generator,
    /// Bytes of the flow, if known.
    size: Option<u64>,
    listens: bool,
}

impl Mptcp {
    /// Returns the end that opens a connection; `size` is the number of bytes to send, if known.
    pub(crate) const fn opener(
        setup: Arc<Setup>,
        random: Generator,
        paths: Generator,
        size: Option<u64>,
    ) -> Self {
        Self {
            setup,
            random,
            paths,
            size,
            listens: false,
        }
    }

    /// Returns the end that waits for a connection.
    pub(crate) fn listener(setup: Arc<Setup>, random: Generator) -> Self {
        Self {
            setup,
            paths: random.clone(),
            random,
            size: None,
            listens: true,
        }
    }
}

impl StreamEnd<Mptcp> {
    /// Returns the paths that carried data of the connection, one bit each.
    pub(crate) fn ways(&self) -> u64 {
        let subflows = self.connection().into_iter().flat_map(Connection::subflows);
        subflows
            .filter(|subflow| subflow.bytes > 0)
            .fold(0, |ways, subflow| ways | 1 << subflow.path.0)
    }

    /// Adds the payload of each subflow to the bytes of its path; `first` is the number of the first path.
    pub(crate) fn add_carried(&self, first: u8, carried: &mut PathBytes) {
        for subflow in self.connection().into_iter().flat_map(Connection::subflows) {
            carried.add(first + subflow.path.0, subflow.bytes_sent);
        }
    }
}

impl StreamConnection for Connection {
    fn record_round_trips(&mut self) {
        self.record_round_trips();
    }

    fn statistics(&self) -> &Statistics {
        self.statistics()
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.take_round_trips()
    }

    fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        self.write(now, bytes)
    }

    fn finish(&mut self, now: Instant) {
        self.finish(now);
    }

    fn is_half_open(&self) -> bool {
        self.is_half_open()
    }

    #[inline]
    fn read_all(&mut self, now: Instant, _: u64) -> u64 {
        let bytes = self.readable();
        self.read(now, bytes)
    }

    fn early_bytes(&self) -> u64 {
        self.early_bytes()
    }

    #[inline]
    fn end_event(event: Event) -> EndEvent {
        EndEvent::of_tcp(event)
    }
}

impl Family for Mptcp {
    type Connection = Connection;
    type Packet = Segment;

    fn reconfigure(&mut self, key: &str, protocol: &Protocol, connection: Option<&mut Connection>) {
        let Protocol::Mptcp(setup) = protocol else { return };
        self.setup = Arc::clone(setup);
        if let Some(connection) = connection {
            connection.reconfigure(key, setup);
        }
    }

    fn connect(&mut self, now: Instant, host: &mut Host<'_>) -> Connection {
        let random = self.random.clone();
        Connection::open(now, &self.setup, self.size, host.paths, random, &mut self.paths)
    }

    #[inline]
    fn receive(
        &mut self,
        now: Instant,
        way: u8,
        content: &mut Content,
        connection: &mut Option<Connection>,
        _: &mut Host<'_>,
    ) -> Option<Content> {
        let path = PathIndex(way);
        let segment = match content {
            Content::Mptcp(segment) => segment,
            &mut Content::TooBig { mtu } => {
                if let Some(connection) = connection {
                    connection.handle_path_mtu(now, path, mtu);
                }
                return None;
            }
            _ => return None,
        };
        if let Some(connection) = connection
            && !connection.is_replaced_by(segment)
        {
            connection.handle_segment(now, path, segment);
            return None;
        }
        let opens = segment.tcp.flags.contains(Flags::SYN) && !segment.tcp.flags.contains(Flags::ACK);
        let joins = matches!(segment.option, MptcpOption::JoinSyn { .. });
        if self.listens && opens && !joins {
            let random = self.random.clone();
            *connection = Some(Connection::accept(now, &self.setup, random, path, segment));
            None
        } else {
            Connection::refuse(segment).map(Content::Mptcp)
        }
    }

    #[inline]
    fn transmit(connection: &mut Connection, now: Instant, way: &mut u8) -> Option<Segment> {
        let (path, outgoing) = connection.poll_transmit(now)?;
        *way = path.0;
        Some(outgoing.segment)
    }

    /// Sums of windows and bytes in flight over all subflows; the RTT of the fastest.
    fn probe(connection: &Connection) -> Probe {
        let srtt = connection
            .subflows()
            .map(|subflow| subflow.srtt)
            .filter(|rtt| !rtt.is_zero());
        Probe {
            window: Some(connection.subflows().map(|subflow| subflow.window).sum()),
            smoothed_rtt: srtt.min().map(Duration::as_secs_f64),
            in_flight: connection.subflows().map(|subflow| subflow.in_flight).sum(),
            retransmissions: Some(connection.statistics().retransmissions),
            state: "open",
            ..Probe::default()
        }
    }

    fn decisions(connection: &Connection, add: &mut dyn FnMut(Decision)) {
        for (number, (_, snapshot)) in (0..).zip(connection.sender_snapshots()) {
            add(Decision {
                subflow: Some(number),
                ..Decision::of_tcp(&snapshot)
            });
        }
    }

    fn subflows(connection: &Connection) -> Vec<SubflowInfo> {
        connection.subflows().collect()
    }

    #[inline]
    fn update_host(&mut self, now: Instant, _: u8, host: &mut Host<'_>, connection: &mut Connection) -> bool {
        !self.listens && connection.update_host(now, host.paths)
    }
}
