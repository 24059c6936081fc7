//! The sockets of an echo server and its loop.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;

use foundation::{Duration, Instant, Streams};
use rustix::event::{PollFd, PollFlags};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use socket::clock::Clock;
use socket::wait::{sharpen_timers, wait_any};
use socket2::{Domain, Socket, Type};

use super::Counts;
use super::connections::Connections;
use super::limits::{Limiter, Limits};
use crate::datagram::{Header, MessageKind};
use crate::user::peers::Peers;
use kernel::Error;

/// Connections that may wait to be accepted, and connections with data on their SYN that may be half open (RFC 7413,
/// section 5.1).
const BACKLOG: i32 = 128;
const HALF_OPEN: i32 = 64;
/// How often the loop checks for the end and for idle connections.
const LOOK: Duration = Duration::from_millis(100);
/// Datagrams per turn, so that connections get theirs in between.
const TURN: usize = 64;
/// Receive buffer for datagrams, in bytes.
const BUFFER: usize = 4 << 20;

/// A listening echo server.
pub struct Server {
    datagrams: UdpSocket,
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
    limiter: Limiter,
    connections: Connections,
    counts: Counts,
    clock: Clock,
    buffer: Vec<u8>,
    peers: Peers,
    datagram: Vec<u8>,
}

impl Server {
    /// Listens at an address with UDP and TCP; port 0 takes a port that is free for both.
    ///
    /// # Errors
    /// [`Error::System`] if the port is taken.
    pub fn bind(address: SocketAddr, limits: Limits) -> Result<Self, Error> {
        let mut tried = 0;
        let (datagrams, listener) = loop {
            tried += 1;
            match sockets(address) {
                Ok(sockets) => break sockets,
                // The port that was free for TCP was not free for UDP.
                Err(error) if address.port() == 0 && error.kind() == ErrorKind::AddrInUse && tried < 16 => {}
                Err(error) => {
                    let remedy = "ports below 1024 need CAP_NET_BIND_SERVICE: choose another --port";
                    return Err(Error::permission(format!("listen at {address}"), error, remedy));
                }
            }
        };
        let address = datagrams
            .local_addr()
            .map_err(|error| Error::system("listen", error))?;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|_| Error::system("get random numbers", ErrorKind::Other))?;
        Ok(Self {
            peers: Peers::new(Streams::new(u64::from_ne_bytes(seed), 0), limits.idle),
            datagram: Vec::new(),
            datagrams,
            listener,
            address,
            limiter: Limiter::new(&limits),
            connections: Connections::new(limits),
            limits,
            counts: Counts::default(),
            clock: Clock::new(),
            buffer: vec![0; 65_536],
        })
    }

    /// Returns the bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the remedy if TCP Fast Open is off; `None` if it is on.
    #[must_use]
    pub fn fast_open_remedy() -> Option<String> {
        (crate::rights::fast_open() & 2 == 0).then(|| {
            "TCP Fast Open is switched off for servers here: as root, sysctl net.ipv4.tcp_fastopen=3".into()
        })
    }

    /// Serves until `keep_running` returns false; it is called about ten times a second with the counters. The calling
    /// thread drops all its capabilities, because none is needed any more.
    ///
    /// # Errors
    /// [`Error::System`] if a socket fails permanently.
    pub fn run(mut self, keep_running: &mut dyn FnMut(&Counts) -> bool) -> Result<Counts, Error> {
        sharpen_timers();
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        // Dropping is always allowed; a kernel without capabilities has nothing to drop.
        let _ = set_capabilities(None, none);
        // The clock starts with full buckets.
        let begun = Duration::from_secs(1);
        let mut looked = Instant::ZERO;
        loop {
            let now = self.clock.now() + begun;
            if now - looked >= LOOK {
                looked = now;
                if !keep_running(&self.counts) {
                    return Ok(self.counts);
                }
            }
            let more = self.datagrams(now);
            self.packets(now);
            self.connections
                .accept(now, &self.listener, &mut self.limiter, &mut self.counts);
            self.connections.advance(now, &mut self.buffer, &mut self.counts);
            if !more {
                self.wait(now);
            }
        }
    }

    /// Answers received datagrams, up to one turn; returns whether there may be more.
    fn datagrams(&mut self, now: Instant) -> bool {
        for _ in 0..TURN {
            let (length, from) = match self.datagrams.recv_from(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // An ICMP error about an earlier reply.
                Err(_) => continue,
            };
            self.counts.received += length as u64;
            let bytes = &mut self.buffer[..length];
            let header = Header::read(bytes);
            let Some(Header {
                kind: kind @ (MessageKind::Request | MessageKind::Up),
                number,
            }) = header
            else {
                self.counts.malformed += 1;
                continue;
            };
            if !self.limiter.allows(now, from.ip()) {
                self.counts.limited += 1;
                continue;
            }
            if kind == MessageKind::Up {
                let taken = self.peers.handle(now, from, number, bytes);
                self.counts.limited += u64::from(!taken);
                self.packets(now);
                continue;
            }
            let reply = Header {
                kind: MessageKind::Reply,
                number,
            };
            reply.write(bytes);
            // A reply that cannot be sent is lost, like any other datagram.
            if let Ok(sent) = self.datagrams.send_to(bytes, from) {
                self.counts.sent += sent as u64;
                self.counts.datagrams += 1;
            }
        }
        true
    }

    /// Sends the packets of user-space TCPs, also those whose timers are due.
    fn packets(&mut self, now: Instant) {
        if self.peers.poll_timeout().is_some_and(|at| at <= now) {
            self.peers.handle_timeout(now);
        }
        while let Some(to) = self.peers.poll_transmit(now, &mut self.datagram) {
            if let Ok(sent) = self.datagrams.send_to(&self.datagram, to) {
                self.counts.sent += sent as u64;
            }
        }
        self.counts.user_transactions = self.peers.answered();
    }

    fn wait(&self, now: Instant) {
        let mut polled = Vec::with_capacity(self.limits.connections + 2);
        polled.push(PollFd::from_borrowed_fd(self.datagrams.as_fd(), PollFlags::IN));
        polled.push(PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN));
        let connections = self.connections.polled();
        polled.extend(connections.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let timer = self
            .peers
            .poll_timeout()
            .map_or(LOOK, |at| at.saturating_since(now));
        wait_any(&mut polled, timer.min(LOOK));
    }
}

fn sockets(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let domain = Domain::for_address(address);
    let stream = Socket::new(domain, Type::STREAM, Some(socket2::Protocol::TCP))?;
    stream.set_reuse_address(true)?;
    stream.bind(&address.into())?;
    // If the kernel refuses, the request follows the handshake.
    let _ = kernel::set_option(&stream, libc::SOL_TCP, libc::TCP_FASTOPEN, HALF_OPEN);
    stream.listen(BACKLOG)?;
    stream.set_nonblocking(true)?;
    let bound = TcpListener::from(stream);
    let datagrams = Socket::new(domain, Type::DGRAM, Some(socket2::Protocol::UDP))?;
    datagrams.set_recv_buffer_size(BUFFER)?;
    datagrams.bind(&bound.local_addr()?.into())?;
    datagrams.set_nonblocking(true)?;
    // Replies to fragmented datagrams are fragmented, too.
    crate::ping::fragment(datagrams.as_fd(), address.is_ipv4(), true)?;
    Ok((datagrams.into(), bound))
}
