//! The open connections of a server.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use foundation::Instant;
use kernel::TcpInfo;
use rustix::event::PollFlags;

use super::Counts;
use super::limits::{Limiter, Limits};
use crate::datagram::{Header, MessageKind};

/// One connection.
struct Connection {
    stream: TcpStream,
    /// The request so far, and how much of it was sent back.
    request: Vec<u8>,
    sent: usize,
    /// Whether the request is complete.
    is_whole: bool,
    /// When bytes were last received or sent.
    active_at: Instant,
}

/// The next step for a connection.
#[derive(PartialEq, Eq)]
enum Next {
    Wait,
    Done,
    Broken,
}

/// All open connections.
pub struct Connections {
    all: Vec<Connection>,
    limits: Limits,
}

impl Connections {
    pub fn new(limits: Limits) -> Self {
        Self {
            all: Vec::with_capacity(limits.connections),
            limits,
        }
    }

    /// Returns the poll conditions of each connection.
    pub fn polled(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.all.iter().map(|connection| {
            let flags = if connection.is_whole {
                PollFlags::OUT
            } else {
                PollFlags::IN
            };
            (connection.stream.as_fd(), flags)
        })
    }

    /// Accepts waiting connections; resets those beyond the limit.
    pub fn accept(
        &mut self,
        now: Instant,
        listener: &TcpListener,
        limiter: &mut Limiter,
        counts: &mut Counts,
    ) {
        // At most a full backlog, so that other work gets its turn.
        for _ in 0..64 {
            let Ok((stream, from)) = listener.accept() else {
                return;
            };
            let room = self.all.len() < self.limits.connections;
            if !room || !limiter.allows(now, from.ip()) || stream.set_nonblocking(true).is_err() {
                counts.limited += 1;
                reset(stream);
                continue;
            }
            let _ = stream.set_nodelay(true);
            counts.fast_opened += u64::from(TcpInfo::of_socket(&stream).is_ok_and(|info| info.syn_data()));
            self.all.push(Connection {
                stream,
                request: Vec::new(),
                sent: 0,
                is_whole: false,
                active_at: now,
            });
        }
    }

    /// Advances all connections; closes those that are done or idle for too long.
    pub fn advance(&mut self, now: Instant, scratch: &mut [u8], counts: &mut Counts) {
        let mut at = 0;
        while let Some(connection) = self.all.get_mut(at) {
            let before = (connection.request.len(), connection.sent);
            let mut next = connection.advance(self.limits.request, scratch, counts);
            if before != (connection.request.len(), connection.sent) {
                connection.active_at = now;
            } else if next == Next::Wait && now - connection.active_at > self.limits.idle {
                next = Next::Broken;
            }
            if next == Next::Wait {
                at += 1;
                continue;
            }
            let ended = self.all.swap_remove(at);
            if next == Next::Done {
                counts.connections += 1;
            } else {
                counts.broken += 1;
                reset(ended.stream);
            }
        }
    }
}

impl Connection {
    fn advance(&mut self, most: usize, scratch: &mut [u8], counts: &mut Counts) -> Next {
        while !self.is_whole {
            match self.stream.read(scratch) {
                Ok(0) => self.is_whole = true,
                Ok(length) => {
                    counts.received += length as u64;
                    if self.request.len() + length > most {
                        return Next::Broken;
                    }
                    self.request.extend_from_slice(&scratch[..length]);
                    // A request with an announced length is complete without the end of the stream.
                    if let Some(length) = announced(&self.request) {
                        if self.request.len() > length {
                            return Next::Broken;
                        }
                        self.is_whole = self.request.len() == length;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Broken,
            }
        }
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(length) => {
                    self.sent += length;
                    counts.sent += length as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Broken,
            }
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        Next::Done
    }
}

/// Returns the length of a request that starts with a header.
fn announced(request: &[u8]) -> Option<usize> {
    let header = Header::read(request)?;
    (header.kind == MessageKind::Request).then_some(header.number as usize)
}

/// Resets a connection, so that no state of it remains.
fn reset(stream: TcpStream) {
    let _ = socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO));
}
