//! Drives the machine over a socket on wall time.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;

use foundation::{Duration, Ecn, Generator, Instant};
use quic::{Carriage, Connection, Datagram, Event, QuicConfig};
use rand::SeedableRng as _;
use transport::Machine as _;
use transport::mptcp::ConnectionPlan;

use super::lanes::Lanes;
use super::roaming::{Known, Own, Roaming};
use super::tls::{self, Sessions};
use crate::client::TICK;
use crate::clock::Clock;
use crate::datagrams::{Datagrams, Train};
use crate::error::{Error, random};
use crate::wait;

/// Datagrams that leave before the next look for arrivals.
const BURST: usize = 64;
/// How long a server waits for the close of a client that has everything, and at most how long a client repeats its close.
const FAREWELL: Duration = Duration::from_secs(1);

/// The application of an end.
pub trait Application {
    /// Handles an event. It may write and read.
    fn handle(&mut self, now: Instant, event: Event, connection: &mut Connection);

    /// Does what is due after events and at the time that the last call returned. Returns the time of the next call;
    /// `Instant::MAX` for none.
    ///
    /// # Errors
    /// The reason to give up.
    fn work(&mut self, now: Instant, connection: &mut Connection) -> Result<Instant, String>;

    /// Is called before each wait and at the end (`is_last`).
    fn observe(&mut self, _now: Instant, _connection: &Connection, _is_last: bool) {}
}

/// Options of an end beyond its protocol.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Record a histogram of round-trip times.
    pub record_round_trips: bool,
    /// What carries the data.
    pub carriage: Carriage,
    /// TLS with tickets for early data; otherwise with a new certificate.
    pub sessions: Option<Sessions>,
    /// The client's addresses, by number of the path between the hosts; none of a connection that stays on one.
    pub client_addresses: Vec<IpAddr>,
    /// The paths that a client opens.
    pub plan: Option<ConnectionPlan>,
}

impl Options {
    fn apply(&self, config: &QuicConfig, mut connection: Connection) -> Connection {
        if self.record_round_trips {
            connection.statistics_mut().rtt = Some(Box::default());
        }
        // There are as many as paths between the hosts, which a key allows at most 63 of.
        let ways = self.client_addresses.len().max(1) as u8;
        let connection = connection
            .carrying(self.carriage, config.fair_streams == Some(true))
            .between(ways);
        match &self.plan {
            Some(plan) => connection.with_plan(plan.clone()),
            None => connection,
        }
    }
}

/// Is called at least every 50 ms, and may end the connection.
pub type Tick<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// A connection that failed, with its application.
#[derive(Debug)]
pub struct Failed<A> {
    /// Why.
    pub error: Error,
    /// The application.
    pub application: A,
}

fn generator() -> Result<Generator, Error> {
    Ok(Generator::seed_from_u64(u64::from_ne_bytes(random()?)))
}

/// Opens a connection to `to` and runs it until both ends have finished. Its times are those of `clock`.
///
/// # Errors
/// [`Failed`] if the connection cannot be opened, fails, or is ended by its application or by `tick`.
pub fn connect<A: Application>(
    to: SocketAddr,
    config: &QuicConfig,
    application: A,
    options: Options,
    clock: Clock,
    tick: &mut Tick<'_>,
) -> Result<(Connection, A), Failed<A>> {
    let opened = || {
        let lanes = Lanes::to(to, &options.client_addresses);
        let lanes = lanes.map_err(|source| Error::Send { address: to, source })?;
        let cryptography = tls::client(options.sessions.as_ref())?;
        Ok((lanes, cryptography, generator()?))
    };
    let (lanes, cryptography, random) = match opened() {
        Ok(opened) => opened,
        Err(error) => return Err(Failed { error, application }),
    };
    let connection = Connection::open_with(clock.now(), config, cryptography, random);
    let roaming = match config.migrate {
        Some(_) => Roaming::Client(Own::new(to)),
        None => Roaming::Fixed,
    };
    let connection = options.apply(config, connection);
    End::new(lanes, roaming, to, connection, application, clock).run(tick)
}

/// A socket that waits for a connection.
#[derive(Debug)]
pub struct Listener {
    socket: Datagrams,
    address: SocketAddr,
    config: QuicConfig,
}

impl Listener {
    /// Opens the socket.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address is not available.
    pub fn bind(address: SocketAddr, config: &QuicConfig) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let socket = Datagrams::bind(address).map_err(listen)?;
        Ok(Self {
            address: socket.local_address().map_err(listen)?,
            socket,
            config: config.clone(),
        })
    }

    /// Returns the address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts one connection and runs it until both ends have finished. Its times are those of `clock`.
    ///
    /// # Errors
    /// [`Failed`] if the connection fails, or is ended by its application or by `tick`.
    pub fn serve<A: Application>(
        self,
        application: A,
        options: Options,
        clock: Clock,
        tick: &mut Tick<'_>,
    ) -> Result<(Connection, A), Failed<A>> {
        let prepared = tls::server(&self.config, options.sessions.as_ref())
            .and_then(|cryptography| Ok((cryptography, generator()?)));
        let (cryptography, random) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(Failed { error, application }),
        };
        let connection = Connection::listen_with(clock.now(), &self.config, cryptography, random);
        let connection = options.apply(&self.config, connection);
        let moves = !self.config.is_multipath();
        let roaming = match moves {
            true => Roaming::Server(Known::default()),
            false => Roaming::Fixed,
        };
        let lanes = Lanes::at(self.socket, self.address, &options.client_addresses, moves);
        End::new(lanes, roaming, self.address, connection, application, clock).run(tick)
    }
}

/// How an end stands after a turn.
enum Turn {
    /// Nothing to send now.
    Idle,
    /// More to send.
    More,
    /// The system has no room.
    Full,
}

struct End<A> {
    lanes: Lanes,
    roaming: Roaming,
    /// The peer's address for errors; that of the socket until a peer is known.
    address: SocketAddr,
    connection: Connection,
    application: A,
    clock: Clock,
    has_response: bool,
    finished_at: Option<Instant>,
    is_closed: bool,
}

impl<A: Application> End<A> {
    fn new(
        lanes: Lanes,
        roaming: Roaming,
        address: SocketAddr,
        connection: Connection,
        application: A,
        clock: Clock,
    ) -> Self {
        wait::sharpen_timers();
        Self {
            lanes,
            roaming,
            address,
            connection,
            application,
            clock,
            has_response: false,
            finished_at: None,
            is_closed: false,
        }
    }

    fn run(mut self, tick: &mut Tick<'_>) -> Result<(Connection, A), Failed<A>> {
        let result = self.drive(tick);
        let now = self.clock.now();
        self.application.observe(now, &self.connection, true);
        match result {
            Ok(()) => Ok((self.connection, self.application)),
            Err(error) => Err(Failed {
                error,
                application: self.application,
            }),
        }
    }

    fn drive(&mut self, tick: &mut Tick<'_>) -> Result<(), Error> {
        let mut next_tick = Instant::ZERO;
        loop {
            let has_arrivals = self.receive()?;
            let now = self.clock.now();
            if self.connection.poll_timeout().is_some_and(|at| at <= now) {
                // Answers leave before timers act. The library panics if a late probe of the handshake comes between the last keys and
                // the first packet with them.
                if has_arrivals {
                    self.transmit()?;
                }
                self.connection.handle_timeout(now);
            }
            self.handle_events(now)?;
            let next = self
                .application
                .work(now, &mut self.connection)
                .map_err(Error::Abandoned)?;
            // Writing may end the connection.
            self.handle_events(now)?;
            let turn = self.transmit()?;
            let is_late = self.finished_at.is_some_and(|at| now - at >= FAREWELL);
            let has_left = self.is_closed && self.connection.has_left();
            if matches!(turn, Turn::Idle) && (has_left || is_late) {
                return Ok(());
            }
            if next_tick <= now {
                next_tick = now + TICK;
                if tick().is_break() {
                    return Err(Error::Cancelled);
                }
            }
            if has_arrivals || matches!(turn, Turn::More) {
                continue;
            }
            self.application.observe(now, &self.connection, false);
            let timeout = self.connection.poll_timeout().unwrap_or(Instant::MAX);
            let until = next_tick.min(timeout).min(next);
            let span = until.saturating_since(self.clock.now());
            self.lanes.wait(span);
        }
    }

    fn handle_events(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Failed(reason) => {
                    // The peer learns the reason, if the library has a packet for it.
                    let _ = self.transmit();
                    let address = self.address;
                    return Err(Error::Quic { address, reason });
                }
                Event::Finished => self.finished_at = Some(now),
                Event::Closed => self.is_closed = true,
                _ => {}
            }
            self.application.handle(now, event, &mut self.connection);
        }
        Ok(())
    }

    /// Returns whether anything arrived.
    fn receive(&mut self) -> Result<bool, Error> {
        let clock = self.clock;
        let (connection, has_response) = (&mut self.connection, &mut self.has_response);
        let roaming = &mut self.roaming;
        let mut first = None;
        let received = self.lanes.receive(|lanes, way, train| {
            let from = handle_train(clock.now(), connection, lanes, roaming, way, train);
            *has_response |= lanes.has_peer(way);
            first = first.or(from);
        });
        self.address = first.unwrap_or(self.address);
        received.or_else(|error| self.note_error(error).map(|()| false))
    }

    /// Sends what the machine has, in trains of equal datagrams.
    fn transmit(&mut self) -> Result<Turn, Error> {
        if !self.flush()? {
            return Ok(Turn::Full);
        }
        for _ in 0..BURST {
            let Some((way, datagram)) = self.connection.poll_datagram(self.clock.now()) else {
                return Ok(if self.flush()? { Turn::Idle } else { Turn::Full });
            };
            let ecn = if cfg!(windows) { Ecn::NotEct } else { datagram.ecn };
            let pushed = self.push(way, ecn, &datagram);
            if !pushed.or_else(|error| self.note_error(error).map(|()| true))? {
                return Ok(Turn::Full);
            }
        }
        Ok(if self.flush()? { Turn::More } else { Turn::Full })
    }

    /// Adds a datagram to a train. Returns false if the system has no room.
    fn push(&mut self, way: u8, ecn: Ecn, datagram: &Datagram) -> io::Result<bool> {
        let to = match &mut self.roaming {
            Roaming::Fixed => None,
            Roaming::Client(own) => {
                own.follow(way, datagram.client, &mut self.lanes)?;
                None
            }
            Roaming::Server(known) => known.peer(datagram.client),
        };
        self.lanes.push(way, to, ecn, &datagram.bytes)
    }

    /// Sends the trains. Returns false if the system has no room.
    fn flush(&mut self) -> Result<bool, Error> {
        let flushed = self.lanes.flush();
        flushed.or_else(|error| self.note_error(error).map(|()| true))
    }

    /// Handles an error of the socket. A closed port ends a connection without an answer; others count as losses, which the idle
    /// timeout bounds.
    fn note_error(&self, error: io::Error) -> Result<(), Error> {
        let address = self.address;
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset if !self.has_response => {
                let reason = "nothing listens there: the port is closed".to_owned();
                Err(Error::Quic { address, reason })
            }
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Ok(()),
            _ if quinn_udp::is_msg_size_err(&error) => Ok(()),
            _ if self.has_response => Ok(()),
            _ => Err(Error::Send {
                address,
                source: error,
            }),
        }
    }
}

/// Passes a train to the connection. Takes the sender of the first packet of a path as the peer and returns it; anybody else gets the
/// answer only, such as the versions of this end.
fn handle_train(
    now: Instant,
    connection: &mut Connection,
    lanes: &mut Lanes,
    roaming: &mut Roaming,
    way: u8,
    train: Train<'_>,
) -> Option<SocketAddr> {
    let mut adopted = None;
    for bytes in train.datagrams() {
        let client = match roaming {
            Roaming::Server(known) if connection.exists() => match known.name(way, train.from) {
                Some(name) => Some(name),
                None => break,
            },
            Roaming::Client(own) if !own.is_on(way) => break,
            Roaming::Client(own) => own.name(),
            _ => None,
        };
        let datagram = Datagram {
            bytes: bytes.into(),
            data: 0,
            ecn: train.ecn,
            path: None,
            client,
        };
        connection.handle_datagram(now, way, datagram);
        if lanes.has_peer(way) {
            continue;
        }
        if connection.exists() {
            lanes.adopt(way, train.from);
            if let Roaming::Server(known) = roaming {
                known.name(way, train.from);
            }
            adopted = Some(train.from.address);
            continue;
        }
        while let Some(answer) = connection.poll_transmit(now) {
            lanes.answer(way, train.from, &answer.bytes);
        }
    }
    adopted
}
