//! The two ends of a study's trial on real sockets: one writes a known pattern, the other checks it.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::Instant;
use transport::Statistics;
use transport::arq::{ArqConfig, StreamRange};

use crate::client;
use crate::datagrams::Peer;
use crate::error::Error;
use crate::pattern;
use crate::server::{Server, Service, Sessions};
use crate::session::{Application, End, Session, Work};

/// Writes `size` bytes of the pattern.
#[derive(Debug)]
struct PatternSender {
    size: u64,
    written: bool,
    acknowledged: u64,
}

impl Application for PatternSender {
    fn fill(&mut self, range: StreamRange, out: &mut [u8]) {
        pattern::fill(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        self.acknowledged = offset;
    }

    fn has_room(&self) -> bool {
        true
    }

    fn receive(&mut self, _: &[u8]) {}

    fn peer_finished(&mut self) {}

    fn work(&mut self, _: Instant, _: u64) -> Result<Work, String> {
        let first = !std::mem::replace(&mut self.written, true);
        Ok(Work {
            written: if first { self.size } else { 0 },
            finish: true,
            again_soon: false,
            again_at: None,
        })
    }

    fn is_complete(&self) -> bool {
        self.written && self.acknowledged == self.size
    }
}

/// Sends `size` bytes of the pattern to a [`receive_pattern`] at `to` and gives the sender's record, with a
/// histogram of round-trip times. `go_on` is asked about 20 times a second.
///
/// # Errors
/// [`Error`] if the connection cannot be opened, breaks, or `go_on` says no.
pub fn send_pattern(
    to: SocketAddr,
    config: &ArqConfig,
    size: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Statistics, Error> {
    if let Some(problem) = config.validate().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    let sender = PatternSender {
        size,
        written: false,
        acknowledged: 0,
    };
    let mut tick = |_: Instant, _: &Session<PatternSender>| match go_on() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let session = client::run(to, config, sender, true, &mut tick)?;
    Ok(session.connection().statistics().clone())
}

/// Checks the pattern and counts its bytes.
#[derive(Debug, Default)]
struct PatternReceiver {
    received: u64,
    wrong: bool,
    ended: bool,
}

impl Application for PatternReceiver {
    fn fill(&mut self, _: StreamRange, _: &mut [u8]) {}

    fn acknowledged(&mut self, _: u64) {}

    fn has_room(&self) -> bool {
        true
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.wrong |= !pattern::matches(self.received, bytes);
        self.received += bytes.len() as u64;
    }

    fn peer_finished(&mut self) {
        self.ended = true;
    }

    fn work(&mut self, _: Instant, _: u64) -> Result<Work, String> {
        if self.wrong {
            return Err("the bytes that arrived are not those that were sent".to_owned());
        }
        Ok(Work {
            finish: self.ended,
            ..Work::default()
        })
    }

    fn is_complete(&self) -> bool {
        self.ended && !self.wrong
    }
}

/// What a [`receive_pattern`] has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Connections without anything wrong.
    pub connections: u64,
    /// Payload bytes, each counted once.
    pub bytes: u64,
    /// What went wrong last, in one line.
    pub error: Option<String>,
}

struct PatternService<'a> {
    received: Received,
    go_on: &'a mut dyn FnMut() -> bool,
}

impl Service for PatternService<'_> {
    type Application = PatternReceiver;

    fn accept(&mut self, _: Instant, _: Peer, _: u64) -> Result<PatternReceiver, String> {
        Ok(PatternReceiver::default())
    }

    fn turn(&mut self, _: Instant, sessions: &mut Sessions<PatternReceiver>) -> ControlFlow<()> {
        if (self.go_on)() {
            return ControlFlow::Continue(());
        }
        for (_, session) in sessions.iter_mut() {
            self.account(session);
        }
        ControlFlow::Break(())
    }

    fn ended(&mut self, _: Instant, _: u64, session: Session<PatternReceiver>) -> ControlFlow<()> {
        self.account(&session);
        ControlFlow::Continue(())
    }
}

impl PatternService<'_> {
    fn account(&mut self, session: &Session<PatternReceiver>) {
        self.received.bytes += session.application().received;
        let error = match session.end() {
            _ if session.application().is_complete() => None,
            None | Some(End::Finished) => None,
            Some(End::Failed(error)) => Some(error.to_string()),
            Some(End::Abandoned(reason)) => Some(reason.clone()),
        };
        self.received.connections += u64::from(error.is_none());
        self.received.error = error.or(self.received.error.take());
    }
}

/// Listens at `address`, tells `listening` where, and checks the pattern that senders send, until `go_on`
/// says no; it is asked in every turn of the loop and must be quick.
///
/// # Errors
/// [`Error`] if the address is not to be had or the socket fails.
pub fn receive_pattern(
    address: SocketAddr,
    listening: impl FnOnce(SocketAddr),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Received, Error> {
    let server = Server::bind(address, 8)?;
    listening(server.address());
    let mut service = PatternService {
        received: Received::default(),
        go_on,
    };
    server.serve(&mut service)?;
    Ok(service.received)
}
