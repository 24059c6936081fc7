//! A simulated host: one end of a connection, and the application on top of it.

use foundation::Instant;
use network::{Packet, RouteId};
use transport::Machine;
use transport::arq::{Admission, ArqConfig, Connection, Error, Event, Frame, Listener, StreamRange};

use crate::body::{SimulatedFrame, packet};
use crate::world::{Port, Watch};

/// Which of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Host 0: opens the connection and sends.
    Sender,
    /// Host 1: listens and receives.
    Receiver,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    role: Role,
    route: RouteId,
    config: ArqConfig,
    listener: Listener,
    connection: Option<Connection<StreamRange>>,
    /// The answer of a connection's time-out, read again after everything that may move it.
    timeout: Instant,
    delivered: u64,
    finished: bool,
    failure: Option<Error>,
}

impl Host {
    /// A host that sends along `route`. `secret` is its listener's.
    #[must_use]
    pub fn new(role: Role, route: RouteId, config: ArqConfig, secret: [u8; 32]) -> Self {
        let listener = Listener::new(secret, config.receive_buffer);
        Self {
            role,
            route,
            config,
            listener,
            connection: None,
            timeout: Instant::MAX,
            delivered: 0,
            finished: false,
            failure: None,
        }
    }

    /// Opens a connection numbered `id`, whose first packet has number `first`, and sends `bytes`.
    pub fn send<W: Watch>(&mut self, port: &mut Port<'_, W>, id: u32, first: u32, bytes: u64) {
        let mut connection = Connection::open(port.now, id, first, &self.config);
        connection.record_round_trips();
        connection.write(bytes);
        connection.finish();
        self.connection = Some(connection);
        self.drain(port);
    }

    /// When this host wants [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub const fn timeout(&self) -> Instant {
        self.timeout
    }

    /// The connection, once there is one.
    #[must_use]
    pub const fn connection(&self) -> Option<&Connection<StreamRange>> {
        self.connection.as_ref()
    }

    /// Bytes that the application has read.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether both streams have ended and were acknowledged.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Why the connection failed, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<Error> {
        self.failure
    }

    /// A packet arrived. A corrupt one fails its checksum, and nobody hears of it.
    #[inline]
    pub fn handle_packet<W: Watch>(&mut self, port: &mut Port<'_, W>, packet: Packet<SimulatedFrame>) {
        if packet.body.corrupt {
            return;
        }
        let frame = packet.body.frame;
        match &mut self.connection {
            Some(connection) => {
                connection.handle_frame(port.now, frame);
                self.drain(port);
            }
            None if self.role == Role::Receiver => self.admit(port, &frame),
            None => {}
        }
    }

    fn admit<W: Watch>(&mut self, port: &mut Port<'_, W>, frame: &Frame<StreamRange>) {
        // The simulated network cannot forge an address, but the handshake is played out in full.
        match self.listener.handle_frame(port.now, b"host 0", frame) {
            Admission::Reply(reply) => port.send(packet(self.route, reply)),
            Admission::Accept(parameters) => {
                self.connection = Some(Connection::accept(port.now, frame, parameters, &self.config));
                self.drain(port);
            }
            Admission::Ignore => {}
        }
    }

    /// The time of [`timeout`](Self::timeout) has come.
    pub fn handle_timeout<W: Watch>(&mut self, port: &mut Port<'_, W>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let timeouts = connection.statistics().timeouts;
        connection.handle_timeout(port.now);
        if connection.statistics().timeouts > timeouts {
            port.network.observer_mut().timed_out(port.now, self.role);
        }
        self.drain(port);
    }

    #[inline]
    fn drain<W: Watch>(&mut self, port: &mut Port<'_, W>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Readable => {
                    while let Some(range) = connection.read() {
                        assert_eq!(range.offset, self.delivered, "delivered out of order");
                        self.delivered += u64::from(range.length);
                        port.network.observer_mut().delivered(port.now, self.role, range);
                    }
                }
                // The receiver has nothing to say: it ends its own stream when the peer's has ended.
                Event::PeerFinished if self.role == Role::Receiver => connection.finish(),
                Event::Finished => self.finished = true,
                Event::Failed(error) => self.failure = Some(error),
                Event::Connected | Event::PeerFinished | Event::Closed => {}
            }
        }
        while let Some(frame) = connection.poll_transmit(port.now) {
            port.send(packet(self.route, frame));
        }
        self.timeout = connection.poll_timeout().unwrap_or(Instant::MAX);
        port.network
            .observer_mut()
            .settled(port.now, self.role, connection);
    }
}

impl<W: Watch> Port<'_, W> {
    #[inline]
    fn send(&mut self, packet: Packet<SimulatedFrame>) {
        self.network.send(self.now, packet);
    }
}

/// Nothing but the network's own events.
impl Watch for () {}
