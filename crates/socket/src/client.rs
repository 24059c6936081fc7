//! The connecting end: one connection on its own socket.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::{Duration, Instant};
use transport::arq::{ArqConfig, Connection, codec};

use crate::clock::Clock;
use crate::datagrams::{Datagrams, Inbox, Peer};
use crate::error::{Error, random};
use crate::session::{Application, End, PumpOutcome, Session};
use crate::wait;

/// How often the caller can end the connection, at least.
pub const TICK: Duration = Duration::from_millis(50);
/// How long a refused peer may take to come back, for example while it restarts.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the closing handshake may take after both streams are complete.
const FAREWELL: Duration = Duration::from_millis(500);
/// Receive slots. ACKs are short and arrive in trains.
const SLOTS: usize = 16;

/// Opens a connection to `to` and runs it until both streams have ended.
///
/// `tick` sees the session at least every [`TICK`] and may end it.
///
/// # Errors
/// [`Error`] if the connection cannot be opened, fails, or is ended by its application or by `tick`.
pub fn run<A: Application>(
    to: SocketAddr,
    config: &ArqConfig,
    application: A,
    record_round_trips: bool,
    tick: &mut dyn FnMut(Instant, &Session<A>) -> ControlFlow<()>,
) -> Result<Session<A>, Error> {
    let socket = Datagrams::connect(to).map_err(|source| Error::Send { address: to, source })?;
    wait::sharpen_timers();
    let clock = Clock::new();
    let numbers = random::<8>()?;
    let id = u32::from_ne_bytes([numbers[0], numbers[1], numbers[2], numbers[3]]);
    let first = u32::from_ne_bytes([numbers[4], numbers[5], numbers[6], numbers[7]]);
    let now = clock.now();
    let mut connection = Connection::open(now, id, first, config);
    if record_round_trips {
        connection.record_round_trips();
    }
    let session = Session::new(now, Peer::new(to), connection, first, application);
    let mut client = Client {
        to,
        socket,
        clock,
        inbox: Inbox::new(SLOTS),
        session,
        peer_responded: false,
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
            Err(error)
        }
    }
}

struct Client<A> {
    to: SocketAddr,
    socket: Datagrams,
    clock: Clock,
    inbox: Inbox,
    session: Session<A>,
    peer_responded: bool,
    refused: bool,
}

impl<A: Application> Client<A> {
    fn drive(&mut self, tick: &mut dyn FnMut(Instant, &Session<A>) -> ControlFlow<()>) -> Result<(), Error> {
        let mut next_tick = Instant::ZERO;
        let mut complete_since = None;
        loop {
            let arrived = self.receive()?;
            let now = self.clock.now();
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
            if self.session.application().is_complete()
                && now - *complete_since.get_or_insert(now) >= FAREWELL
            {
                return Ok(());
            }
            if next_tick <= now {
                next_tick = now + TICK;
                if tick(now, &self.session).is_break() {
                    return Err(Error::Cancelled);
                }
            }
            if arrived || pumped == PumpOutcome::More {
                continue;
            }
            let mut until = next_tick.min(self.session.poll_timeout().unwrap_or(Instant::MAX));
            until = until.min(again_at.unwrap_or(Instant::MAX));
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
        let inbox = std::mem::replace(&mut self.inbox, Inbox::none());
        let result = self.handle_arrivals(now, &inbox);
        self.inbox = inbox;
        result.map(|()| true)
    }

    fn handle_arrivals(&mut self, now: Instant, inbox: &Inbox) -> Result<(), Error> {
        let to = self.to;
        for train in inbox.trains().filter(|train| train.from.address == to) {
            for datagram in train.datagrams() {
                let Ok(frame) = codec::decode(datagram) else {
                    continue;
                };
                if frame.connection != self.session.connection().id() {
                    continue;
                }
                self.peer_responded = true;
                self.refused = false;
                self.session.handle_frame(now, frame, datagram);
                self.pump(now)?;
            }
        }
        Ok(())
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
                if std::mem::replace(&mut self.refused, true) && silence >= PATIENCE {
                    return Err(Error::Gone { address, silence });
                }
                Ok(())
            }
            _ if quinn_udp::is_msg_size_err(&error) => Err(Error::TooLarge(address)),
            // Full queues of the system, and networks that come and go.
            _ if self.peer_responded && silence < PATIENCE => Ok(()),
            _ => Err(Error::Send {
                address,
                source: error,
            }),
        }
    }
}
