//! An end that runs TCP.

use std::sync::Arc;

use foundation::{Duration, Instant};
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
    fn open(&mut self, now: Instant) {
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
        let Some(connection) = &self.connection else {
            return Probe::default();
        };
        let info = connection.info();
        Probe {
            window: Some(info.window_bytes),
            threshold: info
                .threshold_packets
                .map(|packets| packets * u64::from(info.segment)),
            smoothed_rtt: info.smoothed_rtt.map(Duration::as_secs_f64),
            rtt: info.latest_rtt.map(Duration::as_secs_f64),
            in_flight: info.bytes_in_flight,
            state: info.congestion_state.name(),
        }
    }

    #[inline]
    fn receive(&mut self, now: Instant, content: Content, reply: &mut dyn FnMut(Content)) {
        let segment = match content {
            Content::Tcp(segment) => segment,
            Content::TooBig { mtu } => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_path_mtu(now, mtu);
                }
                return;
            }
            Content::Arq(_) | Content::Datagram(_) => return,
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
    fn transmit(&mut self, now: Instant) -> Option<Content> {
        let outgoing = self.connection.as_mut()?.poll_transmit(now)?;
        Some(Content::Tcp(outgoing.segment))
    }

    #[inline]
    fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }
}
