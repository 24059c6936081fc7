//! The client's side, on wall time.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use foundation::{Duration, Instant, Streams};
use rustix::event::{PollFd, PollFlags};
use socket::clock::Clock;
use socket::wait::wait_any;
use stack::{ConnectionEvent, Event, Stack, StreamId};

use super::{CLIENT, PORT, SERVER, carriage, config};
use crate::datagram::{Header, MessageKind};
use crate::ping::Progress;

/// After this long without a datagram the client sends padding, so that the server can retransmit.
const TIMEOUT: Duration = Duration::from_millis(200);
/// How often to look whether the measurement was stopped.
const LOOK: Duration = Duration::from_millis(50);
/// Length of that padding.
const ROOM: usize = 1400;

/// Result of a transaction.
pub struct UserExchange {
    pub took: Duration,
    /// Datagrams sent and received, up to the reply's end.
    pub sent: u32,
    pub received: u32,
    /// Whether the server received the request with the SYN.
    pub syn_data: bool,
}

/// A user-space stack with one server.
pub struct UserClient {
    socket: UdpSocket,
    stack: Stack,
    clock: Clock,
    number: u32,
    packet: Vec<u8>,
    datagram: Vec<u8>,
    sent: u32,
    received: u32,
}

impl UserClient {
    pub fn new(to: SocketAddr, clock: Clock) -> io::Result<Self> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let mut random = [0; 12];
        getrandom::fill(&mut random).map_err(|_| ErrorKind::Other)?;
        let [a, b, c, d, seed @ ..] = random;
        Ok(Self {
            socket,
            stack: Stack::new(Streams::new(u64::from_ne_bytes(seed), 0), 20_000..=59_999),
            clock,
            number: u32::from_ne_bytes([a, b, c, d]),
            packet: Vec::new(),
            datagram: Vec::new(),
            sent: 0,
            received: 0,
        })
    }

    /// Returns the local address.
    pub fn near(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Runs one transaction. The request is complete at the start, so its end is sent with it.
    pub fn run(
        &mut self,
        ttcp: bool,
        request: &[u8],
        timeout: Duration,
        progress: &Progress,
    ) -> io::Result<UserExchange> {
        (self.sent, self.received) = (0, 0);
        let config = config(ttcp);
        let begun = self.clock.now();
        let to = SocketAddr::new(SERVER, PORT);
        let stream = self
            .stack
            .connect(begun, CLIENT, to, &config)
            .ok_or_else(|| io::Error::other("all ports of the user-space TCP are taken"))?;
        let replied = self.exchange(stream, request, begun, begun + timeout, progress);
        let ended = self.clock.now();
        // Send the last acknowledgement.
        self.stack.release(ended, stream);
        self.transmit(ended)?;
        let reply = replied?;
        if reply != request {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the reply differs from the request: the port has no longfat echo",
            ));
        }
        Ok(UserExchange {
            took: ended - begun,
            sent: self.sent,
            received: self.received,
            syn_data: ttcp && self.sent <= 2,
        })
    }

    fn exchange(
        &mut self,
        stream: StreamId,
        request: &[u8],
        begun: Instant,
        until: Instant,
        progress: &Progress,
    ) -> io::Result<Vec<u8>> {
        let (mut written, mut reply, mut has_ended) = (0, Vec::with_capacity(request.len()), false);
        let (mut now, mut last_arrival) = (begun, begun);
        let mut buffer = [0; 4096];
        loop {
            if written < request.len() {
                written += self.stack.write(now, stream, &request[written..]);
                if written == request.len() {
                    self.stack.finish(now, stream);
                }
            }
            self.transmit(now)?;
            if has_ended {
                return Ok(reply);
            }
            if now >= until || progress.is_stopped() {
                self.stack.abort(now, stream);
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
            if now - last_arrival >= TIMEOUT {
                last_arrival = now;
                carriage::write(MessageKind::Up, self.number, &[], ROOM, &mut self.datagram);
                self.send()?;
            }
            let timer = self.stack.poll_timeout().unwrap_or(until);
            let due = timer.min(until).min(last_arrival + TIMEOUT);
            if self.receive()? {
                last_arrival = self.clock.now();
            } else {
                wait_any(
                    &mut [PollFd::new(&self.socket.as_fd(), PollFlags::IN)],
                    (due - now.min(due)).min(LOOK),
                );
            }
            now = self.clock.now();
            self.stack.handle_timeout(now);
            while let Some(event) = self.stack.poll_event() {
                match event {
                    Event::Connection(it, ConnectionEvent::PeerFinished) if it == stream => has_ended = true,
                    Event::Connection(it, ConnectionEvent::Failed(error)) if it == stream => {
                        return Err(io::Error::new(ErrorKind::ConnectionReset, format!("{error:?}")));
                    }
                    _ => {}
                }
            }
            loop {
                let read = self.stack.read(now, stream, &mut buffer);
                reply.extend_from_slice(&buffer[..read]);
                if read == 0 {
                    break;
                }
            }
        }
    }

    fn transmit(&mut self, now: Instant) -> io::Result<()> {
        while self.stack.poll_transmit(now, &mut self.packet) {
            let (number, packet) = (self.number, &self.packet);
            carriage::write(
                MessageKind::Up,
                number,
                packet,
                carriage::SPARE,
                &mut self.datagram,
            );
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        match self.socket.send(&self.datagram) {
            Ok(_) => {
                self.sent += 1;
                Ok(())
            }
            // Lost here, as it might be on the path.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Receives all pending datagrams; returns whether there was any.
    fn receive(&mut self) -> io::Result<bool> {
        let mut any = false;
        let mut buffer = [0; 2048];
        loop {
            let length = match self.socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(any),
                Err(error) => return Err(error),
            };
            let ours = Header {
                kind: MessageKind::Down,
                number: self.number,
            };
            if Header::read(&buffer[..length]) == Some(ours)
                && let Some(packet) = carriage::read(&buffer[..length])
            {
                any = true;
                self.received += 1;
                self.stack.handle_packet(self.clock.now(), packet);
            }
        }
    }
}
