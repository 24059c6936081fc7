//! One transaction over the kernel's protocols.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use foundation::Duration;
use kernel::TcpInfo;
use socket::clock::Clock;
use socket2::{Domain, SockRef, Socket, Type};

use super::Protocol;
use crate::datagram::{HEADER, Header, MessageKind};
use crate::ping::Progress;
use crate::user::client::UserClient;

/// Result of a transaction.
pub struct Exchange {
    pub took: Duration,
    /// The near end's address.
    pub near: SocketAddr,
    /// The kernel's state of its connection.
    pub info: Option<TcpInfo>,
    /// Datagrams of a user-space TCP, sent and received.
    pub datagrams: Option<(u32, u32)>,
    /// Whether the request's data was acknowledged with the SYN.
    pub syn_data: bool,
}

/// Buffers and state that all transactions share.
pub struct Transactor<'a> {
    to: SocketAddr,
    progress: &'a Progress,
    clock: Clock,
    request: Vec<u8>,
    reply: Vec<u8>,
    number: u32,
    timeout: std::time::Duration,
    /// The user-space stack, with its cache of the server.
    user: Option<UserClient>,
}

impl<'a> Transactor<'a> {
    pub fn new(to: SocketAddr, largest: u32, timeout: Duration, progress: &'a Progress) -> Self {
        Self {
            to,
            progress,
            clock: Clock::new(),
            request: vec![0; largest as usize],
            reply: vec![0; largest as usize + 1],
            number: 0,
            timeout: std::time::Duration::from(timeout).max(std::time::Duration::from_micros(1)),
            user: None,
        }
    }

    /// Runs one transaction.
    pub fn run(&mut self, protocol: Protocol, size: u32) -> io::Result<Exchange> {
        match protocol {
            Protocol::Udp => self.udp(size as usize),
            Protocol::Tcp => self.tcp(size as usize, false),
            Protocol::Tfo => self.tcp(size as usize, true),
            Protocol::TcpUser => self.user(size as usize, false),
            Protocol::Ttcp => self.user(size as usize, true),
        }
    }

    fn user(&mut self, size: usize, ttcp: bool) -> io::Result<Exchange> {
        let client = match self.user.take() {
            Some(client) => client,
            None => UserClient::new(self.to, self.clock)?,
        };
        let client = self.user.insert(client);
        let near = client.near()?;
        let done = client.run(ttcp, &self.request[..size], self.timeout.into(), self.progress)?;
        Ok(Exchange {
            took: done.took,
            near,
            info: None,
            datagrams: Some((done.sent, done.received)),
            syn_data: done.syn_data,
        })
    }

    fn udp(&mut self, size: usize) -> io::Result<Exchange> {
        let any: SocketAddr = match self.to {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(self.to)?;
        crate::ping::fragment(socket.as_fd(), self.to.is_ipv4(), true)?;
        socket.set_read_timeout(Some(self.timeout))?;
        self.number = self.number.wrapping_add(1);
        let number = self.number;
        let kind = MessageKind::Request;
        Header { kind, number }.write(&mut self.request);
        let begun = self.clock.now();
        socket.send(&self.request[..size])?;
        loop {
            let received = self
                .progress
                .blocking(socket.as_fd(), || socket.recv(&mut self.reply));
            let length = received.map_err(timed_out)?;
            let took = self.clock.now() - begun;
            let kind = MessageKind::Reply;
            if Header::read(&self.reply[..length]) == Some(Header { kind, number }) && length == size {
                let near = socket.local_addr()?;
                return Ok(Exchange {
                    took,
                    near,
                    info: None,
                    datagrams: None,
                    syn_data: false,
                });
            }
        }
    }

    fn tcp(&mut self, size: usize, fast_open: bool) -> io::Result<Exchange> {
        let domain = Domain::for_address(self.to);
        let socket = Socket::new(domain, Type::STREAM, Some(socket2::Protocol::TCP))?;
        socket.set_write_timeout(Some(self.timeout))?;
        socket.set_read_timeout(Some(self.timeout))?;
        socket.set_tcp_nodelay(true)?;
        let to = self.to.into();
        let request = &mut self.request[..size];
        if size >= HEADER {
            let (kind, number) = (MessageKind::Request, size as u32);
            Header { kind, number }.write(request);
        }
        let request = &self.request[..size];
        let stream = TcpStream::from(socket);
        let reply = &mut self.reply;
        let calls = || -> io::Result<(foundation::Instant, usize)> {
            let begun = self.clock.now();
            let socket = SockRef::from(&stream);
            if fast_open {
                // Connects, and sends the data that fits on the SYN.
                let sent = socket.send_to_with_flags(request, &to, libc::MSG_FASTOPEN)?;
                (&stream).write_all(&request[sent..])?;
            } else {
                socket.connect(&to)?;
                (&stream).write_all(request)?;
            }
            stream.shutdown(Shutdown::Write)?;
            let mut length = 0;
            loop {
                match (&stream).read(&mut reply[length..])? {
                    0 => return Ok((begun, length)),
                    read => length += read,
                }
                if length > size {
                    return Err(io::Error::new(
                        ErrorKind::InvalidData,
                        "the reply is longer than the request",
                    ));
                }
            }
        };
        let (begun, length) = self.progress.blocking(stream.as_fd(), calls).map_err(timed_out)?;
        let took = self.clock.now() - begun;
        if length != size || self.reply[..size] != self.request[..size] {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                format!(
                    "{length} of {size} bytes were returned: the port has no longfat echo, or it refused"
                ),
            ));
        }
        let (near, info) = (stream.local_addr()?, TcpInfo::of_socket(&stream).ok());
        Ok(Exchange {
            took,
            near,
            info,
            datagrams: None,
            syn_data: info.is_some_and(|info| info.syn_data()),
        })
    }
}

/// Sockets report a timeout as an operation that would block.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => io::Error::new(ErrorKind::TimedOut, "no answer in time"),
        _ if error.raw_os_error() == Some(libc::EINPROGRESS) => {
            io::Error::new(ErrorKind::TimedOut, "no answer in time")
        }
        _ => error,
    }
}
