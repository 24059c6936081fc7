//! The connecting end: one connection on its own socket.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::{Duration, Instant};
use security::{Credentials, HALF_OPEN_TIMEOUT, HandshakeError, Initiator, Proposal, Reason, Refusal};
use transport::arq::{ArqConfig, Connection};

use crate::clock::Clock;
use crate::datagrams::{Datagrams, Inbox, Peer};
use crate::error::{Error, random};
use crate::payload::ReceivedPayload;
use crate::session::{Application, End, PumpOutcome, Session};
use crate::wait;
use crate::wire::{self, Protection, Wire};

/// How often the caller can end the connection, at least.
pub const TICK: Duration = Duration::from_millis(50);
/// Time without frames after which a refused connection has ended. A peer that restarts needs less.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the closing handshake may take after both streams are complete.
const FAREWELL: Duration = Duration::from_millis(500);
/// Receive slots. ACKs are short and arrive in trains.
const SLOTS: usize = 16;

/// A connection that failed.
#[derive(Debug)]
pub struct Failed<A> {
    /// Why.
    pub error: Error,
    /// The session, unless the connection could not be opened.
    pub session: Option<Box<Session<A>>>,
}

impl<A> From<Error> for Failed<A> {
    fn from(error: Error) -> Self {
        Self { error, session: None }
    }
}

impl<A> From<Failed<A>> for Error {
    fn from(failed: Failed<A>) -> Self {
        failed.error
    }
}

/// Options of a connection beyond its protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Record a histogram of round-trip times.
    pub record_round_trips: bool,
    /// Search for the longest datagrams that the path carries, and send several packets in each.
    pub search_path_mtu: bool,
}

/// Is called at least every [`TICK`], with the session once there is one, and may end the connection.
pub type Tick<'a, A> = dyn FnMut(Instant, Option<&Session<A>>) -> ControlFlow<()> + 'a;

/// Opens a connection to `to` and runs it until both streams have ended. Its times are those of `clock`.
///
/// # Errors
/// [`Failed`] if the connection cannot be opened, fails, or is ended by its application or by `tick`.
pub fn run<A: Application>(
    to: SocketAddr,
    protection: &Protection,
    config: &ArqConfig,
    application: A,
    options: Options,
    clock: Clock,
    tick: &mut Tick<'_, A>,
) -> Result<Session<A>, Failed<A>> {
    let socket = Datagrams::connect(to).map_err(|source| Error::Send { address: to, source })?;
    wait::sharpen_timers();
    let numbers = random::<8>()?;
    let id = u32::from_ne_bytes([numbers[0], numbers[1], numbers[2], numbers[3]]);
    let first = u32::from_ne_bytes([numbers[4], numbers[5], numbers[6], numbers[7]]);
    let mut inbox = Inbox::new(SLOTS);
    let (mut connection, wire, initiator) = match protection {
        Protection::None => (
            Connection::open(clock.now(), id, first, config),
            Wire::Plain,
            None,
        ),
        Protection::Secure(credentials) => {
            let opening = Opening {
                to,
                socket: &socket,
                clock,
                id,
                first,
                config,
            };
            let (connection, wire, initiator) =
                opening.run(credentials, &mut inbox, &mut |now| tick(now, None))?;
            (connection, wire, Some(initiator))
        }
    };
    if options.record_round_trips {
        connection.record_round_trips();
    }
    let mut session = Session::new(clock.now(), Peer::new(to), connection, wire, application);
    if options.search_path_mtu {
        session.search_path_mtu(socket.longest_datagram());
    }
    let mut client = Client {
        to,
        socket,
        clock,
        inbox,
        session,
        initiator,
        peer_responded: protection.is_secure(),
        refused: false,
    };
    let result = client.drive(tick);
    match result {
        Ok(()) => Ok(client.session),
        // Everything was delivered and confirmed; only the closing handshake is missing.
        Err(_) if client.session.application().is_complete() => Ok(client.session),
        Err(error) => {
            client.session.abandon(error.to_string());
            let now = client.clock.now();
            let _ = client.session.pump(now, &client.socket);
            let _ = client.session.flush(&client.socket);
            Err(Failed {
                error,
                session: Some(Box::new(client.session)),
            })
        }
    }
}

/// A protected connection before its first frame.
struct Opening<'a> {
    to: SocketAddr,
    socket: &'a Datagrams,
    clock: Clock,
    id: u32,
    first: u32,
    config: &'a ArqConfig,
}

impl Opening<'_> {
    /// Runs the handshake until this end has the keys.
    fn run(
        &self,
        credentials: &Credentials,
        inbox: &mut Inbox,
        tick: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<(Connection<ReceivedPayload>, Wire, Initiator), Error> {
        let address = self.to;
        let failed = |source| Error::Handshake { address, source };
        let proposal = Proposal {
            parameters: self.config.parameters(),
            first: self.first,
            receive_window: self.config.receive_buffer,
        };
        let mut initiator = Initiator::new(
            self.clock.now(),
            self.id,
            credentials,
            proposal,
            wire::has_aes(),
            random()?,
            self.config.give_up,
        );
        loop {
            let now = self.clock.now();
            initiator.check(now).map_err(failed)?;
            if tick(now).is_break() {
                return Err(Error::Cancelled);
            }
            if let Some(datagram) = initiator.poll_transmit(now) {
                self.socket
                    .send(Peer::new(address), &datagram, datagram.len())
                    .or_else(|error| self.tolerate(error))?;
            }
            let timeout = initiator.poll_timeout().min(now + TICK) - self.clock.now();
            wait::wait(self.socket.socket(), false, timeout);
            match self.socket.receive(inbox) {
                Ok(_) => {}
                Err(error) => {
                    self.tolerate(error)?;
                    continue;
                }
            }
            let now = self.clock.now();
            for train in inbox.trains().filter(|train| train.from.address == address) {
                for datagram in train.datagrams() {
                    let Some(outcome) = initiator.handle(now, datagram).map_err(failed)? else {
                        continue;
                    };
                    let numbers = (self.id, self.first);
                    let room = outcome.acceptance.receive_window;
                    let connection = Connection::established(now, numbers, self.config, room, outcome.rtt);
                    return Ok((connection, Wire::Protected(Box::new(outcome.channel)), initiator));
                }
            }
        }
    }

    /// Errors of the socket before the first reply: a full queue counts as a loss.
    fn tolerate(&self, error: std::io::Error) -> Result<(), Error> {
        let address = self.to;
        match error.kind() {
            ErrorKind::WouldBlock => Ok(()),
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Err(Error::Refused(address)),
            _ => Err(Error::Send {
                address,
                source: error,
            }),
        }
    }
}

struct Client<A> {
    to: SocketAddr,
    socket: Datagrams,
    clock: Clock,
    inbox: Inbox,
    session: Session<A>,
    /// Repeats the last message of the handshake until the listener's first frame arrives.
    initiator: Option<Initiator>,
    peer_responded: bool,
    refused: bool,
}

impl<A: Application> Client<A> {
    fn drive(&mut self, tick: &mut Tick<'_, A>) -> Result<(), Error> {
        let mut next_tick = Instant::ZERO;
        loop {
            let arrived = self.receive()?;
            let now = self.clock.now();
            self.finish_handshake(now)?;
            self.session.handle_timeout(now);
            let again_at = self.session.work(now);
            let mut pumped = self.pump(now)?;
            if pumped != PumpOutcome::More {
                let flushed = self.session.flush(&self.socket);
                pumped = self.outcome(flushed)?;
            }
            match self.session.end() {
                None => {}
                Some(End::Finished) => return Ok(()),
                Some(&End::Failed(source)) => {
                    let address = self.to;
                    return Err(Error::Connection { address, source });
                }
                Some(End::Abandoned(reason)) => return Err(Error::Abandoned(reason.clone())),
            }
            if self.session.completed_at().is_some_and(|at| now - at >= FAREWELL) {
                return Ok(());
            }
            if next_tick <= now {
                next_tick = now + TICK;
                if tick(now, Some(&self.session)).is_break() {
                    return Err(Error::Cancelled);
                }
            }
            if arrived || pumped == PumpOutcome::More {
                continue;
            }
            let mut until = next_tick.min(self.session.poll_timeout().unwrap_or(Instant::MAX));
            until = until.min(again_at.unwrap_or(Instant::MAX));
            until = until.min(
                self.initiator
                    .as_ref()
                    .map_or(Instant::MAX, Initiator::poll_timeout),
            );
            wait::wait(
                self.socket.socket(),
                pumped == PumpOutcome::Full,
                until - self.clock.now(),
            );
        }
    }

    fn receive(&mut self) -> Result<bool, Error> {
        match self.socket.receive(&mut self.inbox) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) => {
                self.note_error(error)?;
                return Ok(false);
            }
        }
        let now = self.clock.now();
        let mut inbox = std::mem::replace(&mut self.inbox, Inbox::none());
        let result = self.handle_arrivals(now, &mut inbox);
        self.inbox = inbox;
        result.map(|()| true)
    }

    fn handle_arrivals(&mut self, now: Instant, inbox: &mut Inbox) -> Result<(), Error> {
        let to = self.to;
        for train in inbox.trains_mut().filter(|train| train.from.address == to) {
            for mut datagram in train.datagrams() {
                if wire::connection(datagram.bytes()) != Some(self.session.connection().id()) {
                    continue;
                }
                if self.session.handle_datagram(now, &mut datagram) {
                    self.peer_responded = true;
                    self.refused = false;
                    self.initiator = None;
                    self.pump(now)?;
                } else if let Some(refusal) = Refusal::decode(datagram.bytes()) {
                    self.handle_refusal(now, datagram.bytes(), refusal.reason)?;
                }
            }
        }
        Ok(())
    }

    /// Sends the last message of the handshake when it is due.
    fn finish_handshake(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(datagram) = self
            .initiator
            .as_mut()
            .and_then(|initiator| initiator.poll_transmit(now))
        {
            let sent = self.socket.send(self.session.peer(), &datagram, datagram.len());
            if let Err(error) = sent {
                self.note_error(error)?;
            }
        }
        Ok(())
    }

    /// Handles a refusal, which is not authenticated: it ends a handshake, but a connection only after a time without
    /// authentic frames.
    fn handle_refusal(&mut self, now: Instant, datagram: &[u8], reason: Reason) -> Result<(), Error> {
        let address = self.to;
        let mut timeout = SILENCE_TIMEOUT;
        if let Some(initiator) = &mut self.initiator {
            let handled = initiator.handle(now, datagram);
            handled.map_err(|source: HandshakeError| Error::Handshake { address, source })?;
            // The last message of the handshake may still arrive, until the listener drops the handshake.
            timeout = HALF_OPEN_TIMEOUT;
        }
        let silence = now - self.session.last_arrival();
        match reason {
            _ if !self.session.is_protected() || silence < timeout => Ok(()),
            Reason::Unknown => Err(Error::Restarted { address }),
            Reason::Closed => Err(Error::Gone { address, silence }),
            _ => Ok(()),
        }
    }

    fn pump(&mut self, now: Instant) -> Result<PumpOutcome, Error> {
        let pumped = self.session.pump(now, &self.socket);
        self.outcome(pumped)
    }

    fn outcome(&mut self, pumped: std::io::Result<PumpOutcome>) -> Result<PumpOutcome, Error> {
        match pumped {
            Ok(pumped) => Ok(pumped),
            Err(error) => {
                self.note_error(error)?;
                Ok(PumpOutcome::Dry)
            }
        }
    }

    /// Handles an error of the socket. Errors that a running connection can survive count as losses.
    fn note_error(&mut self, error: std::io::Error) -> Result<(), Error> {
        let address = self.to;
        let silence = self.clock.now() - self.session.last_arrival();
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset if !self.peer_responded => {
                Err(Error::Refused(address))
            }
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                if std::mem::replace(&mut self.refused, true) && silence >= SILENCE_TIMEOUT {
                    return Err(Error::Gone { address, silence });
                }
                Ok(())
            }
            _ if quinn_udp::is_msg_size_err(&error) => {
                let now = self.clock.now();
                // Retransmissions are shorter.
                match self.session.connection_mut().handle_too_long(now) {
                    true => Ok(()),
                    false => Err(Error::TooLarge(address)),
                }
            }
            // Full queues of the system, and networks that come and go.
            _ if self.peer_responded && silence < SILENCE_TIMEOUT => Ok(()),
            _ => Err(Error::Send {
                address,
                source: error,
            }),
        }
    }
}
