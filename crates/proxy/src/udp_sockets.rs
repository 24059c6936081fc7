//! Sockets of UDP: one for each listening address, and one for each client, which is connected to the target.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use foundation::{Duration, Instant};
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::lanes::Direction;
use crate::options::UdpListener;
use crate::proxy::Proxy;
use crate::socket::Socket;
use crate::udp_packet::{MOST_BYTES, UdpClient};

/// Both highest bits of a token of epoll: a socket of this module.
pub(crate) const UDP: u64 = 3 << 62;
/// A listening socket, by index; without this bit a client, by number.
const FRONT: u64 = 1 << 61;
/// Clients at a time.
const MOST_CLIENTS: usize = 1024;
/// Idle time after which a client is forgotten.
const IDLE: Duration = Duration::from_secs(120);
/// Datagrams of a socket per event.
const BATCH: usize = 64;

struct Client {
    socket: UdpSocket,
    front: usize,
    address: SocketAddr,
    active_at: Instant,
}

/// All sockets of UDP of a relay.
#[derive(Default)]
pub(crate) struct UdpSockets {
    fronts: Vec<(UdpSocket, UdpListener)>,
    clients: HashMap<UdpClient, Client>,
    by_address: HashMap<(usize, SocketAddr), UdpClient>,
    buffer: Vec<u8>,
}

impl UdpSockets {
    /// Opens a listening socket and returns its address.
    pub(crate) fn listen(&mut self, epoll: &OwnedFd, listener: UdpListener) -> io::Result<SocketAddr> {
        let socket = UdpSocket::bind(listener.listen)?;
        socket.set_nonblocking(true)?;
        let token = EventData::new_u64(UDP | FRONT | self.fronts.len() as u64);
        epoll::add(epoll, &socket, token, EventFlags::IN)?;
        let address = socket.local_addr()?;
        self.fronts.push((socket, listener));
        // One byte more than a packet of the path carries: longer datagrams, which IPv6 allows, are dropped, not truncated.
        self.buffer.resize(MOST_BYTES + 1, 0);
        Ok(address)
    }

    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Sends the datagrams of a socket along the path. Clients beyond those that `is_full` allows are dropped.
    pub(crate) fn receive<S: Socket>(
        &mut self,
        now: Instant,
        token: u64,
        epoll: &OwnedFd,
        is_full: bool,
        proxy: &mut Proxy<S>,
    ) {
        let number = token & !(UDP | FRONT);
        for _ in 0..BATCH {
            let received = match token & FRONT {
                0 => self.receive_from_target(now, UdpClient(number as u32)),
                _ => self.receive_from_client(now, number as usize, epoll, is_full, proxy),
            };
            match received {
                Ok((Some(client), direction, count)) => {
                    proxy.send_datagram(now, direction, client, &self.buffer[..count]);
                }
                Ok((None, ..)) => proxy.count_dropped_datagram(),
                Err(error) => match error.kind() {
                    // A closed port of the target, or of a client that has left.
                    ErrorKind::ConnectionRefused | ErrorKind::Interrupted => {}
                    _ => return,
                },
            }
        }
    }

    fn receive_from_target(
        &mut self,
        now: Instant,
        number: UdpClient,
    ) -> io::Result<(Option<UdpClient>, Direction, usize)> {
        let client = self.clients.get_mut(&number).ok_or(ErrorKind::NotConnected)?;
        let count = client.socket.recv(&mut self.buffer)?;
        client.active_at = now;
        Ok((Some(number), Direction::Reverse, count))
    }

    fn receive_from_client<S: Socket>(
        &mut self,
        now: Instant,
        front: usize,
        epoll: &OwnedFd,
        is_full: bool,
        proxy: &mut Proxy<S>,
    ) -> io::Result<(Option<UdpClient>, Direction, usize)> {
        let (socket, listener) = self.fronts.get(front).ok_or(ErrorKind::NotConnected)?;
        let (count, address) = socket.recv_from(&mut self.buffer)?;
        let known = self.by_address.get(&(front, address)).copied();
        if let Some(client) = known.and_then(|number| self.clients.get_mut(&number)) {
            client.active_at = now;
            return Ok((known, Direction::Forward, count));
        }
        if is_full || self.clients.len() >= MOST_CLIENTS {
            return Ok((None, Direction::Forward, count));
        }
        // Without a socket for it, the datagram is dropped.
        let Ok(socket) = connect(listener.to) else {
            return Ok((None, Direction::Forward, count));
        };
        let number = proxy.open_datagrams(now);
        let token = EventData::new_u64(UDP | u64::from(number.0));
        if epoll::add(epoll, &socket, token, EventFlags::IN).is_err() {
            proxy.close_datagrams(number);
            return Ok((None, Direction::Forward, count));
        }
        self.by_address.insert((front, address), number);
        let client = Client {
            socket,
            front,
            address,
            active_at: now,
        };
        self.clients.insert(number, client);
        Ok((Some(number), Direction::Forward, count))
    }

    /// Sends a datagram that has crossed the path; returns false if it was dropped.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        direction: Direction,
        number: UdpClient,
        bytes: &[u8],
    ) -> bool {
        let Some(client) = self.clients.get_mut(&number) else {
            return false;
        };
        client.active_at = now;
        let sent = match direction {
            Direction::Forward => client.socket.send(bytes),
            Direction::Reverse => self.fronts[client.front].0.send_to(bytes, client.address),
        };
        match sent {
            Ok(_) => true,
            // A refusal of an earlier datagram, which the system reports here: this one was not sent.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                direction == Direction::Forward && client.socket.send(bytes).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Forgets clients that have been idle for long.
    pub(crate) fn forget<S: Socket>(&mut self, now: Instant, proxy: &mut Proxy<S>) {
        let by_address = &mut self.by_address;
        self.clients.retain(|&number, client| {
            let is_active = now.saturating_since(client.active_at) < IDLE;
            if !is_active {
                by_address.remove(&(client.front, client.address));
                proxy.close_datagrams(number);
            }
            is_active
        });
    }
}

/// Returns a socket that is connected to an address.
fn connect(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
