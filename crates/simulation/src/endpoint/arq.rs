//! An end that runs an ARQ protocol.

use std::sync::Arc;

use foundation::Instant;
use transport::arq::{Admission, ArqConfig, Connection, Event, Frame, Listener, StreamRange};
use transport::mptcp::HostPaths;
use transport::{Machine as _, Statistics};

use super::{End, Notice, Probe};
use crate::body::Content;

/// A connection, or a listener that waits for one.
#[derive(Debug)]
pub(crate) struct ArqEnd {
    config: Arc<ArqConfig>,
    id: u32,
    listener: Option<Listener>,
    connection: Option<Connection<StreamRange>>,
    records_rtt: bool,
    delivered: u64,
}

impl ArqEnd {
    /// An end that will open connection `id`.
    pub(crate) const fn opener(config: Arc<ArqConfig>, id: u32, records_rtt: bool) -> Self {
        Self {
            config,
            id,
            listener: None,
            connection: None,
            records_rtt,
            delivered: 0,
        }
    }

    /// An end that waits for a connection; `secret` is its listener's.
    pub(crate) fn listener(config: Arc<ArqConfig>, secret: [u8; 32]) -> Self {
        let listener = Listener::new(secret, config.receive_buffer);
        Self {
            config,
            id: 0,
            listener: Some(listener),
            connection: None,
            records_rtt: false,
            delivered: 0,
        }
    }

    fn admit(&mut self, now: Instant, frame: &Frame<StreamRange>, reply: &mut dyn FnMut(Content)) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        // The simulated network cannot forge an address, but the handshake is played out in full.
        match listener.handle_frame(now, b"host 0", frame) {
            Admission::Reply(answer) => reply(Content::Arq(answer)),
            Admission::Accept(parameters) => {
                self.connection = Some(Connection::accept(now, frame, parameters, &self.config));
            }
            Admission::Ignore => {}
        }
    }
}

impl End for ArqEnd {
    fn open(&mut self, now: Instant, _: &mut HostPaths) {
        let mut connection = Connection::open(now, self.id, 0, &self.config);
        if self.records_rtt {
            connection.record_round_trips();
        }
        self.connection = Some(connection);
    }

    fn write(&mut self, _: Instant, bytes: u64) {
        if let Some(connection) = &mut self.connection {
            connection.write(bytes);
        }
    }

    fn finish(&mut self, _: Instant) {
        if let Some(connection) = &mut self.connection {
            connection.finish();
        }
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.connection.as_ref().map(Connection::statistics)
    }

    fn probe(&self, _: Instant) -> Probe {
        self.connection
            .as_ref()
            .map_or_else(Probe::default, Probe::of_arq)
    }

    #[inline]
    fn receive(&mut self, now: Instant, _: u8, content: Content, reply: &mut dyn FnMut(Content)) {
        let Content::Arq(frame) = content else {
            return;
        };
        match &mut self.connection {
            Some(connection) => connection.handle_frame(now, frame),
            None => self.admit(now, &frame, reply),
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
    fn poll(&mut self, _: Instant) -> Option<Notice> {
        let connection = self.connection.as_mut()?;
        Some(match connection.poll_event()? {
            Event::Readable => {
                let before = self.delivered;
                while let Some(range) = connection.read() {
                    assert_eq!(range.offset, self.delivered, "delivered out of order");
                    self.delivered += u64::from(range.length);
                }
                Notice::Read(self.delivered - before)
            }
            Event::PeerFinished => Notice::PeerFinished,
            Event::Finished => Notice::Finished,
            Event::Failed(error) => Notice::Failed(error.to_string()),
            Event::Closed => Notice::Closed,
            Event::Connected => Notice::Connected,
        })
    }

    #[inline]
    fn transmit(&mut self, now: Instant, _: &mut u8) -> Option<Content> {
        self.connection.as_mut()?.poll_transmit(now).map(Content::Arq)
    }

    #[inline]
    fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }
}
