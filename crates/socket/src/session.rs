//! One connection and the application behind it, between a socket and a clock.

use std::io;
use std::ops::Range;

use foundation::{Duration, Instant};
use transport::Machine;
use transport::arq::frame::Kind;
use transport::arq::{Connection, Event, Frame, StreamRange, codec};

use crate::datagrams::{Datagrams, Peer};
use crate::outbox::Outbox;
use crate::payload::Arrived;

/// What an application asks for after its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes that were added to the stream.
    pub written: u64,
    /// The stream ends here.
    pub finish: bool,
    /// A thread of the application is busy: give it another turn soon.
    pub again_soon: bool,
    /// When the application wants its next turn, if nothing else happens before.
    pub again_at: Option<Instant>,
}

/// The two byte streams of a connection, seen from above.
pub trait Application {
    /// Copies `range` of the outgoing stream into `out`, for the first time or again. (For a part
    /// that was acknowledged meanwhile any bytes do: the peer drops them.)
    fn fill(&mut self, range: StreamRange, out: &mut [u8]);
    /// Everything below `offset` of the outgoing stream has arrived and will not be asked for again.
    fn acknowledged(&mut self, offset: u64);
    /// Whether [`receive`](Self::receive) may be called. If not, the peer is held back.
    fn has_room(&self) -> bool;
    /// The next bytes of the incoming stream.
    fn receive(&mut self, bytes: &[u8]);
    /// The incoming stream has ended.
    fn peer_finished(&mut self);
    /// Sees the connection before each turn, and when it has ended. Unless it is written, it does nothing.
    fn observe(&mut self, now: Instant, connection: &Connection<Arrived>) {
        let _ = (now, connection);
    }
    /// The application's turn. `unsent` bytes of the outgoing stream have not left yet.
    ///
    /// # Errors
    /// Why the connection must end, in one line.
    fn work(&mut self, now: Instant, unsent: u64) -> Result<Work, String>;
    /// Whether all that matters is done, so that it does not matter how the connection ends.
    fn is_complete(&self) -> bool;
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Both streams were delivered whole.
    Finished,
    /// The connection failed.
    Failed(transport::arq::Error),
    /// The application ended it, for this reason.
    Abandoned(String),
}

/// What kept a session from sending all that it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pumped {
    /// Nothing: the machine has no more to send now.
    Dry,
    /// It has sent a fair share; there is more.
    More,
    /// The socket takes no more now.
    Full,
}

/// An application that is busy, or holds payload back, is looked after this often, if nothing else happens.
const SOON: Duration = Duration::from_micros(300);
/// Datagrams that one session may send before others, and arrivals, get their turn.
const FAIR_SHARE: usize = 512;

/// A connection, its application and its outbox.
#[derive(Debug)]
pub struct Session<A> {
    connection: Connection<Arrived>,
    application: A,
    outbox: Outbox,
    /// Sequence number of the next packet in order.
    expected: u32,
    /// Whether payload that arrived waits in the connection for the application's room.
    holds_payload: bool,
    finishing: bool,
    peer_finished: bool,
    heard_at: Instant,
    end: Option<End>,
    /// The frame that was polled when the train before it did not leave.
    postponed: Option<Frame<StreamRange>>,
}

impl<A: Application> Session<A> {
    /// A session over a connection whose first incoming packet has number `first`.
    #[must_use]
    pub const fn new(
        now: Instant,
        peer: Peer,
        connection: Connection<Arrived>,
        first: u32,
        application: A,
    ) -> Self {
        Self {
            connection,
            application,
            outbox: Outbox::new(peer),
            expected: first,
            holds_payload: false,
            finishing: false,
            peer_finished: false,
            heard_at: now,
            end: None,
            postponed: None,
        }
    }

    /// The connection.
    #[must_use]
    pub const fn connection(&self) -> &Connection<Arrived> {
        &self.connection
    }

    /// The connection, to change it.
    pub const fn connection_mut(&mut self) -> &mut Connection<Arrived> {
        &mut self.connection
    }

    /// The application.
    #[must_use]
    pub const fn application(&self) -> &A {
        &self.application
    }

    /// The application, to change it.
    pub const fn application_mut(&mut self) -> &mut A {
        &mut self.application
    }

    /// Who it talks to.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.outbox.peer()
    }

    /// When the peer was last heard.
    #[must_use]
    pub const fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// How it ended, once it has.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether nothing more will happen.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connection.is_closed() && self.outbox.is_empty() && self.postponed.is_none()
    }

    /// A frame of this connection arrived; its payload lies in `datagram`.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<Range<usize>>, datagram: &[u8]) {
        self.heard_at = now;
        let in_order = frame.kind == Kind::Data
            && frame.sequence == self.expected
            && !self.holds_payload
            && self.application.has_room();
        let frame = frame.map_payload(|range| {
            if in_order {
                Arrived::Here(range)
            } else {
                Arrived::Kept(datagram[range].into())
            }
        });
        self.connection.handle_frame(now, frame);
        self.read(datagram);
    }

    /// Hands the application what it has room for.
    fn read(&mut self, datagram: &[u8]) {
        while self.application.has_room() {
            let Some(payload) = self.connection.read() else {
                self.holds_payload = false;
                self.handle_events();
                return;
            };
            self.expected = self.expected.wrapping_add(1);
            self.application.receive(payload.bytes(datagram));
        }
        self.holds_payload = true;
        self.handle_events();
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::PeerFinished => self.peer_finished = true,
                Event::Finished => self.end = self.end.take().or(Some(End::Finished)),
                Event::Failed(error) => self.end = self.end.take().or(Some(End::Failed(error))),
                Event::Connected | Event::Readable | Event::Closed => {}
            }
        }
        if self.peer_finished && !self.holds_payload {
            self.peer_finished = false;
            self.application.peer_finished();
        }
    }

    /// Lets the machine do what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
            self.handle_events();
        }
    }

    /// Gives the application its turn, and says when it wants the next one.
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

    /// Ends the connection at once.
    pub fn abandon(&mut self, reason: String) {
        self.connection.abort();
        self.end = self.end.take().or(Some(End::Abandoned(reason)));
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Gathers what the machine wants to send; whole trains leave, the last one stays for
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// As [`Datagrams::send`], except `WouldBlock`, which is an answer.
    pub fn pump(&mut self, now: Instant, socket: &Datagrams) -> io::Result<Pumped> {
        for _ in 0..FAIR_SHARE {
            let Some(frame) = self
                .postponed
                .take()
                .or_else(|| self.connection.poll_transmit(now))
            else {
                return Ok(Pumped::Dry);
            };
            if !self.outbox.fits(frame.length()) {
                match self.flush(socket) {
                    Ok(Pumped::Dry) => {}
                    stuck => {
                        self.postponed = Some(frame);
                        return stuck;
                    }
                }
            }
            let application = &mut self.application;
            self.outbox.push(|bytes| {
                let filled: Result<(), std::convert::Infallible> =
                    codec::encode(&frame, bytes, |range, out| {
                        application.fill(*range, out);
                        Ok(())
                    });
                match filled {
                    Ok(()) => {}
                }
            });
        }
        Ok(Pumped::More)
    }

    /// Sends what [`pump`](Self::pump) has gathered.
    ///
    /// # Errors
    /// As [`Datagrams::send`], except `WouldBlock`, which is an answer.
    pub fn flush(&mut self, socket: &Datagrams) -> io::Result<Pumped> {
        match self.outbox.flush(socket) {
            Ok(()) => Ok(Pumped::Dry),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Pumped::Full),
            Err(error) => Err(error),
        }
    }
}
