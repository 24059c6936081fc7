//! An end that runs multipath TCP.

use std::sync::Arc;

use experiment::outcome::Carried;
use experiment::trace::Probe;
use foundation::{Duration, Generator, Instant};
use transport::mptcp::{Connection, HostPaths, MptcpOption, PathIndex, Setup};
use transport::tcp::{Event, Flags};
use transport::{Machine as _, Statistics};

use super::{End, Notice};
use crate::body::Content;

/// A connection, or one that is waited for.
#[derive(Debug)]
pub(crate) struct MptcpEnd {
    setup: Arc<Setup>,
    /// What keys and numbers are drawn from, and what paths are, until there is a connection.
    random: Generator,
    paths: Generator,
    /// Bytes that the flow will send, where that is known.
    size: Option<u64>,
    connection: Option<Connection>,
    listens: bool,
    records_rtt: bool,
    /// Bytes that the application wants to send and the send buffer has no room for.
    pending: u64,
    /// Whether the stream ends after them.
    ends: bool,
}

impl MptcpEnd {
    /// An end that will open a connection over which `size` bytes go, where that is known.
    pub(crate) const fn opener(
        setup: Arc<Setup>,
        random: Generator,
        paths: Generator,
        size: Option<u64>,
        records_rtt: bool,
    ) -> Self {
        Self {
            setup,
            random,
            paths,
            size,
            connection: None,
            listens: false,
            records_rtt,
            pending: 0,
            ends: false,
        }
    }

    /// An end that waits for a connection.
    pub(crate) fn listener(setup: Arc<Setup>, random: Generator) -> Self {
        Self {
            setup,
            paths: random.clone(),
            random,
            size: None,
            connection: None,
            listens: true,
            records_rtt: false,
            pending: 0,
            ends: false,
        }
    }

    /// The ways that carried data of the connection, one bit each.
    pub(crate) fn ways(&self) -> u64 {
        let subflows = self.connection.iter().flat_map(Connection::subflows);
        subflows
            .filter(|subflow| subflow.bytes > 0)
            .fold(0, |ways, subflow| ways | 1 << subflow.path.0)
    }

    /// Adds the payload of each subflow to what its way carried; `first` is the number of the first way.
    pub(crate) fn add_carried(&self, first: u8, carried: &mut Carried) {
        for subflow in self.connection.iter().flat_map(Connection::subflows) {
            carried.add(first + subflow.path.0, subflow.bytes_sent);
        }
    }

    /// Writes what the send buffer has room for.
    fn fill(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else {
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

impl End for MptcpEnd {
    fn open(&mut self, now: Instant, host: &mut HostPaths) {
        let random = self.random.clone();
        let mut connection = Connection::open(now, &self.setup, self.size, host, random, &mut self.paths);
        if self.records_rtt {
            connection.record_round_trips();
        }
        self.connection = Some(connection);
    }

    fn write(&mut self, now: Instant, bytes: u64) {
        self.pending += bytes;
        self.fill(now);
    }

    fn finish(&mut self, now: Instant) {
        self.ends = true;
        self.fill(now);
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.connection.as_ref().map(Connection::statistics)
    }

    /// Windows and what is in flight of all subflows; the round-trip time of the fastest.
    fn probe(&self, _: Instant) -> Probe {
        let Some(connection) = &self.connection else {
            return Probe::default();
        };
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

    #[inline]
    fn receive(&mut self, now: Instant, way: u8, content: Content, reply: &mut dyn FnMut(Content)) {
        let path = PathIndex(way);
        let segment = match content {
            Content::Mptcp(segment) => segment,
            Content::TooBig { mtu } => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_path_mtu(now, path, mtu);
                }
                return;
            }
            _ => return,
        };
        if let Some(connection) = &mut self.connection {
            connection.handle_frame(now, (path, segment));
            return;
        }
        let opens = segment.tcp.flags.contains(Flags::SYN) && !segment.tcp.flags.contains(Flags::ACK);
        let joins = matches!(segment.option, MptcpOption::JoinSyn { .. });
        if self.listens && opens && !joins {
            let connection = Connection::accept(now, &self.setup, self.random.clone(), path, &segment);
            self.connection = Some(connection);
        } else if let Some(reset) = Connection::refuse(&segment) {
            reply(Content::Mptcp(reset));
        }
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
            return Some(match connection.poll_event()? {
                Event::Readable => {
                    let bytes = connection.readable();
                    Notice::Read(connection.read(now, bytes))
                }
                Event::Writable => {
                    self.fill(now);
                    continue;
                }
                Event::PeerFinished => Notice::PeerFinished,
                Event::Finished => Notice::Finished,
                Event::Failed(error) => Notice::Failed(error.to_string()),
                Event::Closed => Notice::Closed,
                Event::Connected => Notice::Connected,
            });
        }
    }

    #[inline]
    fn transmit(&mut self, now: Instant, way: &mut u8) -> Option<Content> {
        let (path, outgoing) = self.connection.as_mut()?.poll_transmit(now)?;
        *way = path.0;
        Some(Content::Mptcp(outgoing.segment))
    }

    #[inline]
    fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }

    #[inline]
    fn settle(&mut self, now: Instant, _: u8, host: &mut HostPaths) -> bool {
        if self.listens {
            return false;
        }
        self.connection
            .as_mut()
            .is_some_and(|connection| connection.settle(now, host))
    }
}
