//! Ends that run an ARQ protocol.

use std::sync::Arc;

use experiment::application::Notice;
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use foundation::Instant;
use transport::arq::{Admission, ArqConfig, Connection, Event, Frame, Listener, StreamRange};
use transport::{Machine as _, Statistics};

use super::stream::{EndEvent, Family, StreamConnection};
use super::{Host, RttHistogram};
use crate::body::Content;

/// An ARQ protocol at one end, which opens a connection or waits for one.
#[derive(Debug)]
pub(crate) struct Arq {
    config: Arc<ArqConfig>,
    id: u32,
    listener: Option<Listener>,
}

impl Arq {
    /// Returns the end that opens connection `id`.
    pub(crate) const fn opener(config: Arc<ArqConfig>, id: u32) -> Self {
        Self {
            config,
            id,
            listener: None,
        }
    }

    /// Returns the end that waits for a connection; `secret` is the key of its listener.
    pub(crate) fn listener(config: Arc<ArqConfig>, secret: [u8; 32]) -> Self {
        let listener = Listener::new(secret, config.receive_buffer);
        Self {
            config,
            id: 0,
            listener: Some(listener),
        }
    }

    fn admit(
        &mut self,
        now: Instant,
        frame: &Frame<StreamRange>,
        connection: &mut Option<Connection<StreamRange>>,
    ) -> Option<Content> {
        // The simulated network cannot forge addresses, but the handshake runs in full.
        match self.listener.as_mut()?.handle_frame(now, b"host 0", frame) {
            Admission::Reply(answer) => return Some(Content::Arq(answer)),
            Admission::Accept(parameters) => {
                let mut accepted = Connection::accept(now, frame, parameters, &self.config);
                // The opener's settings may have changed since it sent the frame.
                accepted.reconfigure(&self.config.adopting(self.config.parameters()));
                *connection = Some(accepted);
            }
            Admission::Ignore => {}
        }
        None
    }
}

impl StreamConnection for Connection<StreamRange> {
    fn record_round_trips(&mut self) {
        self.record_round_trips();
    }

    fn statistics(&self) -> &Statistics {
        self.statistics()
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.take_round_trips()
    }

    /// The send buffer is unlimited.
    fn write(&mut self, _: Instant, bytes: u64) -> u64 {
        self.write(bytes);
        bytes
    }

    fn finish(&mut self, _: Instant) {
        self.finish();
    }

    fn discard_unsent(&mut self) {
        self.discard_unsent();
    }

    #[inline]
    fn read_all(&mut self, _: Instant, already: u64) -> u64 {
        let mut bytes = 0;
        while let Some(range) = self.read() {
            assert_eq!(range.offset, already + bytes, "delivered out of order");
            bytes += u64::from(range.length);
        }
        bytes
    }

    fn early_bytes(&self) -> u64 {
        self.early().map(|range| u64::from(range.length)).sum()
    }

    #[inline]
    fn end_event(event: Event) -> EndEvent {
        EndEvent::Notice(match event {
            Event::Readable => return EndEvent::Readable,
            Event::PeerFinished => Notice::PeerFinished,
            Event::Finished => Notice::Finished,
            Event::Failed(error) => Notice::Failed(error.to_string()),
            Event::Closed => Notice::Closed,
            Event::Connected => Notice::Connected,
        })
    }
}

impl Family for Arq {
    type Connection = Connection<StreamRange>;
    type Packet = Frame<StreamRange>;

    fn reconfigure(&mut self, _: &str, protocol: &Protocol, connection: Option<&mut Self::Connection>) {
        let Protocol::Arq(config) = protocol else { return };
        // The listener has the opener's parameters, as they are written in frames.
        self.config = match self.listener {
            Some(_) => Arc::new(config.adopting(config.parameters())),
            None => Arc::clone(config),
        };
        if let Some(connection) = connection {
            connection.reconfigure(&self.config);
        }
    }

    fn connect(&mut self, now: Instant, _: &mut Host<'_>) -> Self::Connection {
        Connection::open(now, self.id, 0, &self.config)
    }

    #[inline]
    fn receive(
        &mut self,
        now: Instant,
        _: u8,
        content: &mut Content,
        connection: &mut Option<Self::Connection>,
        _: &mut Host<'_>,
    ) -> Option<Content> {
        let Content::Arq(frame) = content else {
            return None;
        };
        let Some(connection) = connection else {
            return self.admit(now, frame, connection);
        };
        connection.handle_frame(now, frame.clone());
        None
    }

    #[inline]
    fn transmit(connection: &mut Self::Connection, now: Instant, _: &mut u8) -> Option<Self::Packet> {
        connection.poll_transmit(now)
    }

    fn probe(connection: &Self::Connection) -> Probe {
        Probe::of_arq(connection).with_controller(connection.sender().controller())
    }

    fn decisions(connection: &Self::Connection, add: &mut dyn FnMut(Decision)) {
        add(Decision::of_arq(connection));
    }
}
