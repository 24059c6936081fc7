//! Clients that have not named their target, or were refused.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use foundation::{Duration, Instant};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::negotiation::{Negotiation, Step};
use crate::proxy::Greeting;
use crate::socket::Socket as _;
use crate::target::Target;

/// Bit of a token of epoll: a client of this module, by number.
pub(crate) const NEGOTIATING: u64 = 1 << 62;
/// Time in which a client must name its target.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// Time in which a client that was refused must end its stream.
const REFUSAL: Duration = Duration::from_secs(5);

struct Visitor {
    socket: TcpStream,
    /// `None` once the client was refused: its bytes are read so that the answer arrives, because closing a socket with unread bytes
    /// resets the connection.
    negotiation: Option<Negotiation>,
    limit: Instant,
}

/// All such clients of a relay, by number.
#[derive(Default)]
pub(crate) struct Visitors {
    all: HashMap<u64, Visitor>,
    /// Number of visitors so far.
    count: u64,
}

impl Visitors {
    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a client with its negotiation, or one that was refused, without.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        epoll: &OwnedFd,
        socket: TcpStream,
        negotiation: Option<Negotiation>,
    ) {
        self.count += 1;
        let token = EventData::new_u64(NEGOTIATING | self.count);
        let watched = match epoll::add(epoll, &socket, token, EventFlags::IN) {
            // It was watched as an end of a connection.
            Err(Errno::EXIST) => epoll::modify(epoll, &socket, token, EventFlags::IN),
            other => other,
        };
        // Without an event queue the client would wait in vain: the connection is closed.
        if watched.is_ok() {
            let span = match negotiation {
                Some(_) => NEGOTIATION,
                None => REFUSAL,
            };
            let visitor = Visitor {
                socket,
                negotiation,
                limit: now + span,
            };
            self.all.insert(self.count, visitor);
        }
    }

    /// Reads bytes of a client. Once it has named its target, removes and returns it: its socket, the target, the greeting, and the
    /// first bytes for the target.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        token: u64,
    ) -> Option<(TcpStream, Target, Greeting, Vec<u8>)> {
        let number = token & !NEGOTIATING;
        let mut visitor = self.all.remove(&number)?;
        let mut buffer = [0; 4096];
        let count = match io::Read::read(&mut visitor.socket, &mut buffer) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                self.all.insert(number, visitor);
                return None;
            }
            Err(_) => return None,
        };
        let step = match &mut visitor.negotiation {
            Some(negotiation) => negotiation.handle(&buffer[..count]),
            None => Step::More(Vec::new()),
        };
        match step {
            Step::More(answer) => {
                // The answers are shorter than any send buffer. A client that has left needs none.
                let _ = io::Write::write(&mut visitor.socket, &answer);
            }
            Step::Refuse(answer) => {
                let _ = io::Write::write(&mut visitor.socket, &answer);
                visitor.socket.finish();
                visitor.negotiation = None;
                visitor.limit = now + REFUSAL;
            }
            Step::Connect(target, greeting, early) => {
                return Some((visitor.socket, target, greeting, early));
            }
        }
        self.all.insert(number, visitor);
        None
    }

    /// Closes the connections of clients whose time is over.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.all.retain(|_, visitor| visitor.limit > now);
    }
}
