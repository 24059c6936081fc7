//! An end that runs TCP.

use std::sync::Arc;

use foundation::Instant;
use transport::mptcp::{HostPaths, PathIndex};
use transport::tcp::{Connection, Event, Flags, TcpConfig, reset_for};
use transport::{Machine as _, Statistics};

use super::{End, Notice, Probe};
use crate::body::Content;

/// A connection, or one that is waited for (the state LISTEN).
#[derive(Debug)]
pub(crate) struct TcpEnd {
    config: Arc<TcpConfig>,
    /// The initial sequence number of this end.
    initial: u32,
    connection: Option<Connection>,
    listens: bool,
    records_rtt: bool,
    /// The round-trip sample that the host's account has heard of.
    told: Option<Instant>,
    /// Bytes acknowledged and segments lost, as the host's account was told.
    told_delivery: (u64, u64),
    /// Bytes that the application wants to send and the send buffer has no room for.
    pending: u64,
    /// Whether the stream ends after them.
    ends: bool,
}

impl TcpEnd {
    /// An end that will open a connection.
    pub(crate) const fn opener(config: Arc<TcpConfig>, initial: u32, records_rtt: bool) -> Self {
        Self {
            config,
            initial,
            connection: None,
            listens: false,
            records_rtt,
            told: None,
            told_delivery: (0, 0),
            pending: 0,
            ends: false,
        }
    }

    /// An end that waits for a connection.
    pub(crate) const fn listener(config: Arc<TcpConfig>, initial: u32) -> Self {
        Self {
            config,
            initial,
            connection: None,
            listens: true,
            records_rtt: false,
            told: None,
            told_delivery: (0, 0),
            pending: 0,
            ends: false,
        }
    }
}

impl TcpEnd {
    /// Writes what the send buffer has room for, as an application does whose socket became writable.
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

impl End for TcpEnd {
    fn open(&mut self, now: Instant, _: &mut HostPaths) {
        let mut connection = Connection::open(now, &self.config, self.initial);
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

    fn probe(&self, _: Instant) -> Probe {
        self.connection
            .as_ref()
            .map_or_else(Probe::default, Probe::of_tcp)
    }

    #[inline]
    fn receive(&mut self, now: Instant, _: u8, content: Content, reply: &mut dyn FnMut(Content)) {
        let segment = match content {
            Content::Tcp(segment) => segment,
            Content::TooBig { mtu } => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_path_mtu(now, mtu);
                }
                return;
            }
            _ => return,
        };
        if let Some(connection) = &mut self.connection {
            connection.handle_frame(now, segment);
        } else if self.listens && segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            let connection = Connection::accept(now, &self.config, self.initial, &segment);
            self.connection = Some(connection);
        } else if let Some(reset) = reset_for(&segment) {
            reply(Content::Tcp(reset));
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
    fn transmit(&mut self, now: Instant, _: &mut u8) -> Option<Content> {
        let outgoing = self.connection.as_mut()?.poll_transmit(now)?;
        Some(Content::Tcp(outgoing.segment))
    }

    #[inline]
    fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }

    /// What a path that is one of several does is of use to others.
    #[inline]
    fn settle(&mut self, now: Instant, way: u8, host: &mut HostPaths) -> bool {
        if host.len() > 1
            && !self.listens
            && let Some(connection) = &self.connection
        {
            let rtt = connection.round_trips();
            if rtt.sampled_at() != self.told {
                self.told = rtt.sampled_at();
                host.on_round_trip(PathIndex(way), rtt.latest());
            }
            let (acknowledged, lost) = (connection.bytes_acknowledged(), connection.segments_lost());
            let (known, lost_before) = std::mem::replace(&mut self.told_delivery, (acknowledged, lost));
            host.on_delivery(PathIndex(way), now, acknowledged - known, lost - lost_before);
        }
        false
    }
}
