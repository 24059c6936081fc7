//! The sockets of an end, and its paths over them.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use foundation::{Duration, Ecn};
use rustix::event::{PollFd, PollFlags};

use crate::datagrams::{Datagrams, Inbox, Peer, Train};
use crate::outbox::Outbox;
use crate::wait;

/// Receive slots. ACKs are short and arrive in trains.
const SLOTS: usize = 16;

/// A path of an end.
#[derive(Debug)]
struct Lane {
    /// Index of its socket.
    socket: usize,
    /// The peer's address on this path if it is known from the start; any one of the only path.
    from: Option<IpAddr>,
    /// The peer, once it is known.
    peer: Option<SocketAddr>,
    outbox: Outbox,
    /// Whether the system had no room for the last train.
    is_full: bool,
}

/// The paths of an end over its sockets: of a client a socket each, of a server one socket for all.
#[derive(Debug)]
pub(super) struct Lanes {
    sockets: Vec<Datagrams>,
    all: Vec<Lane>,
    inbox: Inbox,
    /// Sockets at earlier ports. They are not read, and open so that the system answers nothing.
    left: Vec<Datagrams>,
    /// Whether the peer of a path may have a new address.
    has_moving_peer: bool,
}

impl Lanes {
    /// Returns the paths of a client to an address, from these local addresses; without any, one path from an address that the
    /// system chooses.
    pub(super) fn to(to: SocketAddr, from: &[IpAddr]) -> io::Result<Self> {
        let sockets: Vec<Datagrams> = match from {
            [] => vec![Datagrams::connect(to)?],
            several => several
                .iter()
                .map(|&from| Datagrams::connect_from((from, 0).into(), to))
                .collect::<io::Result<_>>()?,
        };
        let all = (0..sockets.len()).map(|socket| Lane::new(socket, None, Some(to), to));
        Ok(Self {
            all: all.collect(),
            sockets,
            inbox: Inbox::new(SLOTS),
            left: Vec::new(),
            has_moving_peer: false,
        })
    }

    /// Continues on a path of a client to `to` from a new port. What arrives at the old one is lost.
    ///
    /// # Errors
    /// The system's, if there is no port.
    pub(super) fn move_to_new_port(&mut self, way: u8, to: SocketAddr) -> io::Result<()> {
        let socket = &mut self.sockets[self.all[usize::from(way)].socket];
        let address = socket.local_address()?.ip();
        let new = Datagrams::connect_from((address, 0).into(), to)?;
        self.left.push(std::mem::replace(socket, new));
        Ok(())
    }

    /// Returns the paths of a server to these addresses of its client; without any, one path to any address. `moves`: whether the
    /// client may change its address on a path.
    pub(super) fn at(socket: Datagrams, address: SocketAddr, clients: &[IpAddr], moves: bool) -> Self {
        let all = match clients {
            [] => vec![Lane::new(0, None, None, address)],
            several => several
                .iter()
                .map(|&client| Lane::new(0, Some(client), None, address))
                .collect(),
        };
        Self {
            sockets: vec![socket],
            all,
            inbox: Inbox::new(SLOTS),
            left: Vec::new(),
            has_moving_peer: moves,
        }
    }

    /// Calls `handle` with each train that has arrived on a path and the path's number. Returns whether there are any.
    ///
    /// # Errors
    /// The system's, of the first socket that has one.
    pub(super) fn receive(&mut self, mut handle: impl FnMut(&mut Self, u8, Train<'_>)) -> io::Result<bool> {
        let mut inbox = std::mem::replace(&mut self.inbox, Inbox::none());
        let mut result = Ok(false);
        for socket in 0..self.sockets.len() {
            match self.sockets[socket].receive(&mut inbox) {
                Ok(0) => {}
                Ok(_) => {
                    result = result.map(|_| true);
                    for train in inbox.trains() {
                        if let Some(way) = self.way_of(socket, train.from.address) {
                            handle(self, way, train);
                        }
                    }
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        self.inbox = inbox;
        result
    }

    /// Returns the path of a sender, or the one on which it may open a connection.
    fn way_of(&self, socket: usize, from: SocketAddr) -> Option<u8> {
        let is_its = |lane: &Lane| {
            lane.socket == socket
                && match lane.peer {
                    Some(peer) if !self.has_moving_peer => peer == from,
                    _ => lane.from.is_none_or(|address| address == from.ip()),
                }
        };
        self.all.iter().position(is_its).map(|way| way as u8)
    }

    /// Returns whether the peer of a path is known.
    pub(super) fn has_peer(&self, way: u8) -> bool {
        self.all[usize::from(way)].peer.is_some()
    }

    /// Sets the peer of a path.
    pub(super) fn adopt(&mut self, way: u8, peer: Peer) {
        let lane = &mut self.all[usize::from(way)];
        lane.peer = Some(peer.address);
        lane.outbox.move_to(peer);
    }

    /// Sends a datagram to a sender without a connection. It is lost like any other if the system refuses it.
    pub(super) fn answer(&self, way: u8, to: Peer, bytes: &[u8]) {
        let socket = &self.sockets[self.all[usize::from(way)].socket];
        let _ = socket.send(to, bytes, bytes.len());
    }

    /// Adds a datagram to the train of a path, and sends the train before if the datagram does not fit or has another destination.
    /// Returns whether the system has room.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn push(&mut self, way: u8, to: Option<Peer>, ecn: Ecn, bytes: &[u8]) -> io::Result<bool> {
        let lane = &mut self.all[usize::from(way)];
        let to = to.filter(|&to| to != lane.outbox.peer());
        let is_other = (to.is_some() || lane.outbox.ecn() != ecn) && !lane.outbox.is_empty();
        let flushed = if is_other || !lane.outbox.fits(bytes.len()) {
            lane.flush(&self.sockets)
        } else {
            Ok(true)
        };
        if let Some(to) = to {
            // What the system had no room for is lost.
            lane.outbox.clear();
            lane.outbox.move_to(to);
        }
        lane.push(ecn, bytes);
        flushed
    }

    /// Sends the trains of all paths. Returns whether the system has room.
    ///
    /// # Errors
    /// The system's, of the first path that has one.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let mut result = Ok(true);
        for lane in &mut self.all {
            match lane.flush(&self.sockets) {
                Ok(has_room) => result = result.map(|all| all && has_room),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// Waits until a socket is readable, or a full one writable, for at most `span`.
    pub(super) fn wait(&self, span: Duration) {
        let interest = |number: usize| {
            let is_full = self.all.iter().any(|lane| lane.socket == number && lane.is_full);
            if is_full {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            }
        };
        let sockets = self.sockets.iter().enumerate();
        let mut sockets: Vec<PollFd<'_>> = sockets
            .map(|(number, socket)| PollFd::new(socket.socket(), interest(number)))
            .collect();
        wait::wait_any(&mut sockets, span);
    }
}

impl Lane {
    const fn new(
        socket: usize,
        from: Option<IpAddr>,
        peer: Option<SocketAddr>,
        destination: SocketAddr,
    ) -> Self {
        Self {
            socket,
            from,
            peer,
            outbox: Outbox::new(Peer::new(destination)),
            is_full: false,
        }
    }

    fn push(&mut self, ecn: Ecn, bytes: &[u8]) {
        if !self.outbox.fits(bytes.len()) {
            // The system has no room: the network loses the train, as a full queue would.
            self.outbox.clear();
        }
        self.outbox.mark(ecn);
        self.outbox.push(|out| out.extend_from_slice(bytes));
    }

    fn flush(&mut self, sockets: &[Datagrams]) -> io::Result<bool> {
        let result = self.outbox.flush(&sockets[self.socket]);
        self.is_full = result
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        if self.is_full {
            Ok(false)
        } else {
            result.map(|()| true)
        }
    }
}
