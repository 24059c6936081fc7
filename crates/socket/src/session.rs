//! One connection and its application, between a socket and a clock.

use std::io;
use std::ops::Range;

use foundation::{Duration, Instant};
use transport::Machine;
use transport::arq::frame::FrameType;
use transport::arq::{Connection, Event, Frame, StreamRange};

use crate::datagrams::{DatagramMut, Datagrams, Peer};
use crate::outbox::Outbox;
use crate::payload::{ReceivedPayload, SharedBytes};
use crate::wire::Wire;

/// What an application requests at the end of its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes added to the stream.
    pub written: u64,
    /// The stream ends here.
    pub finish: bool,
    /// A thread of the application is busy; schedule the next turn soon.
    pub again_soon: bool,
    /// When the next turn is due at the latest.
    pub again_at: Option<Instant>,
}

/// The two byte streams of a connection, as the application sees them.
pub trait Application {
    /// Appends `range` of the outgoing stream to `out`, also for retransmissions. A part that was acknowledged
    /// meanwhile may be any bytes, or left out at the end: the peer drops them.
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>);
    /// Everything below `offset` of the outgoing stream has arrived and will not be read again.
    fn acknowledged(&mut self, offset: u64);
    /// Whether [`receive`](Self::receive) may be called. If not, flow control stops the peer.
    fn has_room(&self) -> bool {
        true
    }
    /// Takes the next bytes of the incoming stream.
    fn receive(&mut self, bytes: &[u8]);
    /// Takes the next bytes of the incoming stream, which fill a receive buffer, and may keep them without a copy.
    fn receive_shared(&mut self, bytes: &SharedBytes) {
        self.receive(bytes);
    }
    /// The incoming stream has ended.
    fn peer_finished(&mut self) {}
    /// Observes the connection before each turn and after its end. Does nothing by default.
    fn observe(&mut self, now: Instant, connection: &Connection<ReceivedPayload>) {
        let _ = (now, connection);
    }
    /// Returns why the connection must be aborted, if that is known already. It explains an end by the peer, which has
    /// often the same cause. Nothing by default.
    fn failure(&self) -> Option<&str> {
        None
    }
    /// Runs the application's turn. `unsent` bytes of the outgoing stream have not left yet.
    ///
    /// # Errors
    /// Why the connection must be aborted, in one line.
    fn work(&mut self, now: Instant, unsent: u64) -> Result<Work, String>;
    /// Whether everything that matters is done, so that the way the connection ends is irrelevant.
    fn is_complete(&self) -> bool;
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Both streams were delivered whole.
    Finished,
    /// The connection failed.
    Failed(transport::arq::Error),
    /// The application aborted it, for this reason.
    Abandoned(String),
}

/// Why a session stopped sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PumpOutcome {
    /// There is no more to send now.
    Dry,
    /// It has sent its fair share; there is more.
    More,
    /// The socket takes no more now.
    Full,
}

/// How soon a busy application, or one that blocks payload, gets its next turn.
const SOON: Duration = Duration::from_micros(300);
/// Datagrams that one session may send before others, and arrivals, get their turn.
const FAIR_SHARE: usize = 512;

/// A connection, its application and its outbox.
#[derive(Debug)]
pub struct Session<A> {
    connection: Connection<ReceivedPayload>,
    application: A,
    wire: Wire,
    outbox: Outbox,
    /// Whether received payload waits for room in the application.
    holds_payload: bool,
    finishing: bool,
    peer_finished: bool,
    last_arrival: Instant,
    end: Option<End>,
    completed_at: Option<Instant>,
    /// The frame that was polled when the train before it could not leave.
    postponed: Option<Frame<StreamRange>>,
}

impl<A: Application> Session<A> {
    /// Creates a session.
    #[must_use]
    pub const fn new(
        now: Instant,
        peer: Peer,
        connection: Connection<ReceivedPayload>,
        wire: Wire,
        application: A,
    ) -> Self {
        Self {
            connection,
            application,
            wire,
            outbox: Outbox::new(peer),
            holds_payload: false,
            finishing: false,
            peer_finished: false,
            last_arrival: now,
            end: None,
            completed_at: None,
            postponed: None,
        }
    }

    /// Returns the connection.
    #[must_use]
    pub const fn connection(&self) -> &Connection<ReceivedPayload> {
        &self.connection
    }

    /// Returns the connection for changes.
    pub const fn connection_mut(&mut self) -> &mut Connection<ReceivedPayload> {
        &mut self.connection
    }

    /// Searches for the longest datagrams that the path carries, up to `most` bytes.
    pub fn search_path_mtu(&mut self, most: usize) {
        self.connection
            .search_path_mtu(most.saturating_sub(self.wire.overhead()));
    }

    /// Returns the application.
    #[must_use]
    pub const fn application(&self) -> &A {
        &self.application
    }

    /// Returns the application for changes.
    pub const fn application_mut(&mut self) -> &mut A {
        &mut self.application
    }

    /// Returns the peer.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.outbox.peer()
    }

    /// Whether frames are encrypted and authenticated.
    #[must_use]
    pub const fn is_protected(&self) -> bool {
        matches!(self.wire, Wire::Protected(_))
    }

    /// Returns when the peer's last frame arrived.
    #[must_use]
    pub const fn last_arrival(&self) -> Instant {
        self.last_arrival
    }

    /// Returns how the session ended, once it has.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Returns when the application was complete, once it is.
    #[must_use]
    pub const fn completed_at(&self) -> Option<Instant> {
        self.completed_at
    }

    /// Whether the session is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connection.is_closed() && self.outbox.is_empty() && self.postponed.is_none()
    }

    /// Handles a datagram of this connection. Returns whether it was valid; others are ignored.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &mut DatagramMut<'_>) -> bool {
        match self.wire.decode(datagram.bytes_mut()) {
            Some(frame) => {
                self.handle_frame(now, frame, datagram);
                true
            }
            None => false,
        }
    }

    /// Handles a datagram that names this connection, but comes from another address. An authentic and new one moves the
    /// connection to that address: the peer's address has changed. Returns whether it was valid.
    pub fn handle_moved(&mut self, now: Instant, from: Peer, datagram: &mut DatagramMut<'_>) -> bool {
        if !self.handle_datagram(now, datagram) {
            return false;
        }
        if let Wire::Protected(channel) = &self.wire
            && channel.opened_newest()
        {
            self.outbox.move_to(from);
        }
        true
    }

    /// Handles a frame of this connection; its payload is a range of `datagram`.
    fn handle_frame(&mut self, now: Instant, frame: Frame<Range<usize>>, datagram: &DatagramMut<'_>) {
        self.last_arrival = now;
        let may_read = frame.kind == FrameType::Data && !self.holds_payload && self.application.has_room();
        let sequence = frame.sequence;
        let frame = frame.map_payload(|range| {
            let is_whole = self.connection.accepts_whole(sequence, range.len() as u32);
            let shared = datagram
                .buffer()
                .filter(|_| is_whole)
                .and_then(|buffer| SharedBytes::new(buffer, range.clone()));
            match shared {
                Some(shared) => ReceivedPayload::Shared(shared),
                None if may_read && is_whole => ReceivedPayload::Here(range),
                None => ReceivedPayload::Copied(datagram.bytes()[range].into()),
            }
        });
        self.connection.handle_frame(now, frame);
        self.read(datagram.bytes());
    }

    /// Passes payload to the application as far as it has room.
    fn read(&mut self, datagram: &[u8]) {
        while self.application.has_room() {
            match self.connection.read() {
                Some(ReceivedPayload::Shared(bytes)) => self.application.receive_shared(&bytes),
                Some(payload) => self.application.receive(payload.bytes(datagram)),
                None => {
                    self.holds_payload = false;
                    self.handle_events();
                    return;
                }
            }
        }
        self.holds_payload = true;
        self.handle_events();
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::PeerFinished => self.peer_finished = true,
                Event::Finished => self.end = self.end.take().or(Some(End::Finished)),
                Event::Failed(error) => {
                    let reason = self
                        .application
                        .failure()
                        .map(|reason| End::Abandoned(reason.to_owned()));
                    self.end = self.end.take().or(reason).or(Some(End::Failed(error)));
                }
                Event::Connected | Event::Readable | Event::Closed => {}
            }
        }
        if self.peer_finished && !self.holds_payload {
            self.peer_finished = false;
            self.application.peer_finished();
        }
    }

    /// Runs the timers that are due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
            self.handle_events();
        }
    }

    /// Gives the application its turn. Returns when its next turn is due.
    pub fn work(&mut self, now: Instant) -> Option<Instant> {
        self.application.observe(now, &self.connection);
        if self.end.is_some() {
            return None;
        }
        if self.holds_payload {
            self.read(&[]);
        }
        self.application
            .acknowledged(self.connection.statistics().bytes_acknowledged);
        match self.application.work(now, self.connection.unsent()) {
            Ok(work) => {
                if self.completed_at.is_none() && self.application.is_complete() {
                    self.completed_at = Some(now);
                }
                if work.written > 0 {
                    self.connection.write(work.written);
                }
                if work.finish && !self.finishing {
                    self.finishing = true;
                    self.connection.finish();
                }
                let soon = (work.again_soon || self.holds_payload).then(|| now + SOON);
                [soon, work.again_at].into_iter().flatten().min()
            }
            Err(reason) => {
                self.abandon(reason);
                None
            }
        }
    }

    /// Aborts the connection.
    pub fn abandon(&mut self, reason: String) {
        self.connection.abort();
        self.end = self.end.take().or(Some(End::Abandoned(reason)));
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Collects frames that are ready to be sent. Full trains leave at once, the last one waits for
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// As [`Datagrams::send`], except `WouldBlock`, which is reported as [`PumpOutcome::Full`].
    pub fn pump(&mut self, now: Instant, socket: &Datagrams) -> io::Result<PumpOutcome> {
        for _ in 0..FAIR_SHARE {
            let Some(frame) = self
                .postponed
                .take()
                .or_else(|| self.connection.poll_transmit(now))
            else {
                return Ok(PumpOutcome::Dry);
            };
            if !self.outbox.fits(frame.length() + self.wire.overhead()) {
                match self.flush(socket) {
                    Ok(PumpOutcome::Dry) => {}
                    stuck => {
                        self.postponed = Some(frame);
                        return stuck;
                    }
                }
            }
            let (application, wire) = (&mut self.application, &mut self.wire);
            self.outbox.push(|bytes| {
                wire.encode(&frame, bytes, |range, out| {
                    if frame.kind == FrameType::Data {
                        application.append(*range, out);
                    }
                });
            });
        }
        Ok(PumpOutcome::More)
    }

    /// Sends the train that [`pump`](Self::pump) has collected.
    ///
    /// # Errors
    /// As [`Datagrams::send`], except `WouldBlock`, which is reported as [`PumpOutcome::Full`].
    pub fn flush(&mut self, socket: &Datagrams) -> io::Result<PumpOutcome> {
        match self.outbox.flush(socket) {
            Ok(()) => Ok(PumpOutcome::Dry),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(PumpOutcome::Full),
            Err(error) => Err(error),
        }
    }
}
