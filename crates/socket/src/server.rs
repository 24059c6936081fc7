//! The listening end: many connections on one socket.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::{ControlFlow, Range};

use foundation::{Duration, Instant};
use security::{Admitted, Credentials, Reason, Refusal, Responder};
use transport::arq::codec::{self, Layout};
use transport::arq::frame::{FrameType, Parameters, ResetReason};
use transport::arq::{Admission, ArqConfig, Connection, Frame, Listener, StreamRange};

use crate::client::TICK;
use crate::clock::Clock;
use crate::datagrams::{DatagramMut, Datagrams, Inbox, Peer};
use crate::error::{Error, random};
use crate::memory;
use crate::outbox::Outbox;
use crate::payload::ReceivedPayload;
use crate::session::{Application, PumpOutcome, Session};
use crate::wait;
use crate::wire::{self, Protection, Wire};

/// Window that is announced before the size of packets is known.
const FIRST_WINDOW: u32 = 512;
/// How long a repeated `Open` of a closed connection is ignored. Tokens are valid for 10 s.
const MEMORY: Duration = Duration::from_secs(12);
/// Closed connections remembered for this.
const REMEMBERED: usize = 256;
/// Receive slots.
const SLOTS: usize = 16;

/// A peer that has proved its address, and in a protected connection its code or key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// Its address.
    pub peer: Peer,
    /// The name of its key, if it has one.
    pub name: Option<String>,
}

/// Why a peer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// By this receiver of encrypted connections.
    Handshake(Reason),
    /// It does not encrypt, but this end does.
    Insecure,
}

/// The owner of a server's connections.
pub trait Service {
    /// The application of each connection.
    type Application: Application;

    /// Accepts connection `number` of a peer.
    ///
    /// # Errors
    /// Why the connection is refused; the peer then learns that the server is busy.
    fn accept(&mut self, now: Instant, visitor: &Visitor, number: u64) -> Result<Self::Application, String>;
    /// Runs in every turn of the loop, at least every 50 ms, after arrivals are handled. `Break` stops the server.
    fn turn(&mut self, now: Instant, sessions: &mut Sessions<Self::Application>) -> ControlFlow<()>;
    /// Returns credentials that replace those of protected connections to come. Runs after each turn; never by default.
    fn next_credentials(&mut self) -> Option<Credentials> {
        None
    }
    /// Handles a peer that was refused for `reason`. Its address is not authenticated. Does nothing by default.
    fn refused(&mut self, _now: Instant, _from: SocketAddr, _reason: Refused) {}
    /// Takes a session that is over. `Break` stops the server.
    fn ended(&mut self, now: Instant, number: u64, session: Session<Self::Application>) -> ControlFlow<()>;
}

/// The sessions of a server, by number.
#[derive(Debug)]
pub struct Sessions<A> {
    slots: Vec<Option<(u64, Session<A>)>>,
}

impl<A: Application> Sessions<A> {
    /// Returns the session with this number.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Session<A>> {
        self.iter_mut()
            .find(|(n, _)| *n == number)
            .map(|(_, session)| session)
    }

    /// Returns all sessions.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Session<A>)> {
        self.slots
            .iter_mut()
            .flatten()
            .map(|(number, session)| (*number, session))
    }
}

/// A socket that waits for connections.
#[derive(Debug)]
pub struct Server {
    socket: Datagrams,
    address: SocketAddr,
    clock: Clock,
    entrance: Entrance,
    config: ArqConfig,
    most: usize,
}

/// How strangers become connections. Each kind refuses those of the other.
#[derive(Debug)]
enum Entrance {
    /// By a proof of their address.
    Plain(Listener),
    /// By a handshake.
    Protected(Box<Responder>),
}

impl Entrance {
    fn new(protection: &Protection, window: u32) -> Result<Self, Error> {
        Ok(match protection {
            Protection::None => Self::Plain(Listener::new(random()?, window)),
            Protection::Secure(credentials) => {
                let responder = Responder::new(credentials.clone(), random()?, window, wire::has_aes());
                Self::Protected(Box::new(responder))
            }
        })
    }
}

impl Server {
    /// Listens at `address` for at most `most` connections at a time. `config` applies as far as it concerns the
    /// listener: its receive buffer and everything that it sends.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address is not available, and if the system has no randomness.
    pub fn bind(
        address: SocketAddr,
        most: usize,
        protection: &Protection,
        config: ArqConfig,
    ) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let socket = Datagrams::bind(address).map_err(listen)?;
        Ok(Self {
            address: socket.local_address().map_err(listen)?,
            socket,
            clock: Clock::new(),
            entrance: Entrance::new(protection, config.receive_buffer.min(FIRST_WINDOW))?,
            config,
            most: most.max(1),
        })
    }

    /// Returns the bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `service` stops it; then aborts the open connections.
    ///
    /// # Errors
    /// [`Error::Receive`] if the socket fails.
    pub fn serve<S: Service>(self, service: &mut S) -> Result<(), Error> {
        wait::sharpen_timers();
        let mut serving = ServerLoop {
            sessions: Sessions { slots: Vec::new() },
            by_key: HashMap::new(),
            buffers: HashMap::new(),
            past: VecDeque::new(),
            next_number: 0,
            reply: Outbox::new(Peer::new(self.address)),
            server: self,
            service,
        };
        serving.run()
    }
}

type Key = (SocketAddr, u32);

struct ServerLoop<'a, S: Service> {
    server: Server,
    service: &'a mut S,
    sessions: Sessions<S::Application>,
    by_key: HashMap<Key, usize>,
    /// Bytes of the receive buffer of each connection.
    buffers: HashMap<u64, u64>,
    /// Closed connections, oldest first.
    past: VecDeque<(Key, Instant)>,
    next_number: u64,
    reply: Outbox,
}

impl<S: Service> ServerLoop<'_, S> {
    fn run(&mut self) -> Result<(), Error> {
        let mut inbox = Inbox::new(SLOTS);
        loop {
            let arrived = match self.server.socket.receive(&mut inbox) {
                Ok(slots) => slots > 0,
                // Some systems report unreachable peers of earlier replies in this way.
                Err(e) if matches!(e.kind(), std::io::ErrorKind::ConnectionReset) => true,
                Err(source) => {
                    let address = self.server.address;
                    return Err(Error::Receive { address, source });
                }
            };
            if arrived {
                self.handle_arrivals(&mut inbox);
            }
            let now = self.server.clock.now();
            let turn = self.service.turn(now, &mut self.sessions);
            let (pumped, mut until) = self.attend_sessions(now);
            if turn.is_break() || self.remove_closed(now).is_break() {
                self.farewell();
                return Ok(());
            }
            if let Some(credentials) = self.service.next_credentials()
                && let Entrance::Protected(responder) = &mut self.server.entrance
            {
                responder.replace_credentials(credentials);
            }
            if arrived || pumped == PumpOutcome::More {
                continue;
            }
            until = until.min(now + TICK);
            let timeout = until - self.server.clock.now();
            wait::wait(self.server.socket.socket(), pumped == PumpOutcome::Full, timeout);
        }
    }

    fn handle_arrivals(&mut self, inbox: &mut Inbox) {
        let now = self.server.clock.now();
        for train in inbox.trains_mut() {
            let from = train.from;
            // A train comes from one peer and mostly belongs to one connection: look it up once.
            let mut last: Option<(u32, usize)> = None;
            for mut datagram in train.datagrams() {
                let Some(connection) = wire::connection(datagram.bytes()) else {
                    continue;
                };
                let slot = match last {
                    Some((id, slot)) if id == connection => Some(slot),
                    _ => self.by_key.get(&(from.address, connection)).copied(),
                };
                let Some(slot) = slot else {
                    if !self.handle_moved(now, from, connection, &mut datagram) {
                        self.handle_stranger(now, from, datagram.bytes());
                    }
                    continue;
                };
                last = Some((connection, slot));
                if let Some((_, session)) = &mut self.sessions.slots[slot]
                    && session.handle_datagram(now, &mut datagram)
                {
                    // What does not leave is lost, as at a router whose queue is full.
                    let _ = session.pump(now, &self.server.socket);
                }
            }
        }
    }

    /// Handles a frame of a protected connection whose peer has a new address. Returns whether it was one.
    fn handle_moved(
        &mut self,
        now: Instant,
        from: Peer,
        connection: u32,
        datagram: &mut DatagramMut<'_>,
    ) -> bool {
        let bytes = datagram.bytes();
        if Layout::of(bytes) != Some(Layout::PROTECTED) || Refusal::is_handshake(bytes) {
            return false;
        }
        for (slot, place) in self.sessions.slots.iter_mut().enumerate() {
            let Some((_, session)) = place else { continue };
            let before = session.peer().address;
            if session.connection().id() != connection || !session.handle_moved(now, from, datagram) {
                continue;
            }
            if session.peer().address == from.address {
                self.by_key.remove(&(before, connection));
                self.by_key.insert((from.address, connection), slot);
            }
            let _ = session.pump(now, &self.server.socket);
            return true;
        }
        false
    }

    fn handle_stranger(&mut self, now: Instant, from: Peer, datagram: &[u8]) {
        let full = self.by_key.len() >= self.server.most;
        let is_protected = Layout::of(datagram) == Some(Layout::PROTECTED);
        match &mut self.server.entrance {
            Entrance::Plain(_) if is_protected => {
                let refusal = Refusal::of(datagram, Reason::Unprotected);
                self.answer(from, refusal.as_deref());
                if refusal.is_some() && Refusal::is_handshake(datagram) {
                    let refused = Refused::Handshake(Reason::Unprotected);
                    self.service.refused(now, from.address, refused);
                }
            }
            Entrance::Plain(_) => {
                if let Ok(frame) = codec::decode(datagram) {
                    self.handle_plain_stranger(now, from, &frame, full);
                }
            }
            Entrance::Protected(responder) if is_protected => {
                match responder.handle(now, from.address, datagram, full) {
                    security::Admission::Reply(reply) => {
                        self.answer(from, Some(&reply));
                        if let Some(refusal) = Refusal::decode(&reply) {
                            let refused = Refused::Handshake(refusal.reason);
                            self.service.refused(now, from.address, refused);
                        }
                    }
                    security::Admission::Admit(admitted) => self.admit(now, from, datagram, *admitted),
                    security::Admission::Ignore => {
                        let unknown = Refusal::of(datagram, Reason::Unknown);
                        self.answer(
                            from,
                            unknown.filter(|_| !Refusal::is_handshake(datagram)).as_deref(),
                        );
                    }
                }
            }
            Entrance::Protected(_) => {
                if let Ok(frame) = codec::decode(datagram)
                    && frame.kind == FrameType::Open
                {
                    self.reset(from, &frame, ResetReason::Protected);
                    self.service.refused(now, from.address, Refused::Insecure);
                }
            }
        }
    }

    fn handle_plain_stranger(&mut self, now: Instant, from: Peer, frame: &Frame<Range<usize>>, full: bool) {
        let Entrance::Plain(listener) = &self.server.entrance else {
            return;
        };
        let key = (from.address, frame.connection);
        let address = from.address.to_string();
        // The listener looks at headers only.
        let header = frame.clone().map_payload(|range| StreamRange {
            offset: 0,
            length: range.len() as u32,
        });
        match listener.handle_frame(now, address.as_bytes(), &header) {
            Admission::Ignore => {}
            Admission::Reply(reply) => self.answer_frame(from, &reply),
            Admission::Accept(parameters) => {
                while self.past.front().is_some_and(|&(_, at)| at + MEMORY < now) {
                    self.past.pop_front();
                }
                if self.past.iter().any(|(past, _)| *past == key) {
                    return;
                }
                let accepted = !full
                    && self.accept(now, from, None, frame.connection, parameters, |config| {
                        (Connection::accept(now, frame, parameters, config), Wire::Plain)
                    });
                if !accepted {
                    self.reset(from, frame, ResetReason::Busy);
                    self.service
                        .refused(now, from.address, Refused::Handshake(Reason::Busy));
                }
            }
        }
    }

    /// Creates the connection of an opener that has authenticated itself with `datagram`.
    fn admit(&mut self, now: Instant, from: Peer, datagram: &[u8], admitted: Admitted) {
        let Admitted {
            connection,
            channel,
            proposal,
            name,
            rtt,
        } = admitted;
        let (parameters, first, room) = (proposal.parameters, proposal.first, proposal.receive_window);
        let create = |config: &ArqConfig| {
            let config = config.adopting(parameters);
            let connection = Connection::established(now, (connection, first), &config, room, rtt);
            (connection, Wire::Protected(Box::new(channel)))
        };
        if !self.accept(now, from, name, connection, parameters, create) {
            let busy = Refusal::of(datagram, Reason::Busy);
            self.answer(from, busy.as_deref());
            self.service
                .refused(now, from.address, Refused::Handshake(Reason::Busy));
        }
    }

    fn reset<P>(&mut self, to: Peer, frame: &Frame<P>, reason: ResetReason) {
        let mut reset = Frame::new(FrameType::Reset, frame.connection);
        reset.sequence = reason.code();
        reset.echo = frame.timestamp;
        self.answer_frame(to, &reset);
    }

    fn answer_frame(&mut self, to: Peer, frame: &Frame<StreamRange>) {
        let mut bytes = Vec::new();
        wire::plain(frame, &mut bytes, |_, _| {});
        self.answer(to, Some(&bytes));
    }

    fn answer(&mut self, to: Peer, datagram: Option<&[u8]>) {
        let Some(datagram) = datagram else { return };
        self.reply.push(|bytes| bytes.extend_from_slice(datagram));
        // Without room for a reply, the peer repeats its request.
        let _ = self.reply.send_to(to, &self.server.socket);
        self.reply.clear();
    }

    /// Creates a session; `create` gets its configuration. Returns whether the service accepts it.
    #[allow(clippy::too_many_arguments, reason = "one caller per format")]
    fn accept(
        &mut self,
        now: Instant,
        from: Peer,
        name: Option<String>,
        connection: u32,
        parameters: Parameters,
        create: impl FnOnce(&ArqConfig) -> (Connection<ReceivedPayload>, Wire),
    ) -> bool {
        let number = self.next_number;
        let visitor = Visitor { peer: from, name };
        let Ok(application) = self.service.accept(now, &visitor, number) else {
            return false;
        };
        self.next_number += 1;
        let used = self.buffers.values().sum();
        let buffer = memory::grant(self.buffers.len(), self.server.most, used);
        self.buffers.insert(number, buffer);
        let room = memory::packets(buffer, parameters.segment_size);
        let config = ArqConfig {
            receive_buffer: room.min(self.server.config.receive_buffer),
            ..self.server.config.clone()
        };
        let (created, wire) = create(&config);
        let session = Session::new(now, from, created, wire, application);
        let slots = &mut self.sessions.slots;
        let slot = slots.iter().position(Option::is_none).unwrap_or(slots.len());
        if slot == slots.len() {
            slots.push(None);
        }
        slots[slot] = Some((number, session));
        self.by_key.insert((from.address, connection), slot);
        true
    }

    /// Gives every session its turn. Returns whether one has more to send, and when the next turn is due.
    fn attend_sessions(&mut self, now: Instant) -> (PumpOutcome, Instant) {
        let (mut state, mut until) = (PumpOutcome::Dry, Instant::MAX);
        let socket = &self.server.socket;
        for (_, session) in self.sessions.iter_mut() {
            session.handle_timeout(now);
            let again_at = session.work(now);
            let mut pumped = session.pump(now, socket).unwrap_or(PumpOutcome::Dry);
            if pumped != PumpOutcome::More {
                pumped = session.flush(socket).unwrap_or(PumpOutcome::Dry);
            }
            if pumped != PumpOutcome::Dry {
                state = pumped;
            }
            until = until.min(again_at.unwrap_or(Instant::MAX));
            until = until.min(session.poll_timeout().unwrap_or(Instant::MAX));
        }
        (state, until)
    }

    /// Hands closed sessions to the service.
    fn remove_closed(&mut self, now: Instant) -> ControlFlow<()> {
        for slot in 0..self.sessions.slots.len() {
            let over = matches!(&self.sessions.slots[slot], Some((_, session)) if session.is_over());
            let Some((number, session)) = self.sessions.slots[slot].take_if(|_| over) else {
                continue;
            };
            let key = (session.peer().address, session.connection().id());
            self.by_key.remove(&key);
            self.buffers.remove(&number);
            if self.past.len() == REMEMBERED {
                self.past.pop_front();
            }
            self.past.push_back((key, now));
            self.service.ended(now, number, session)?;
        }
        ControlFlow::Continue(())
    }

    fn farewell(&mut self) {
        let now = self.server.clock.now();
        for (_, session) in self.sessions.iter_mut() {
            if session.end().is_none() {
                session.abandon("the receiver was stopped".to_owned());
            }
            let _ = session.pump(now, &self.server.socket);
            let _ = session.flush(&self.server.socket);
        }
    }
}
