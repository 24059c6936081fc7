//! The two ends of a trial on real sockets: one writes a known pattern, the other checks it.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::Instant;
use transport::Statistics;
use transport::arq::{ArqConfig, StreamRange};

use crate::client;
use crate::clock::Clock;
use crate::error::Error;
use crate::pattern;
use crate::server::{Server, Service, Sessions, Visitor};
use crate::session::{Application, End, Session, Work};
use crate::wire::Protection;

/// Writes `size` bytes of the pattern.
#[derive(Debug)]
struct PatternSender {
    size: u64,
    written: bool,
    acknowledged: u64,
}

impl Application for PatternSender {
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>) {
        pattern::append(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        self.acknowledged = offset;
    }

    fn receive(&mut self, _: &[u8]) {}

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

/// Sends `size` bytes of the pattern to a [`receive_pattern`] at `to`. Returns the sender's statistics with a
/// histogram of round-trip times. `go_on` is called about 20 times a second; the transfer stops when it returns false.
///
/// # Errors
/// [`Error`] if the connection cannot be opened, breaks, or `go_on` returns false.
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
    let mut tick = |_: Instant, _: Option<&Session<PatternSender>>| match go_on() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let options = client::Options {
        record_round_trips: true,
        search_path_mtu: false,
    };
    let session = client::run(
        to,
        &Protection::None,
        config,
        sender,
        options,
        Clock::new(),
        &mut tick,
    )?;
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
    fn append(&mut self, _: StreamRange, _: &mut Vec<u8>) {}

    fn acknowledged(&mut self, _: u64) {}

    fn receive(&mut self, bytes: &[u8]) {
        self.wrong |= !pattern::matches(self.received, bytes);
        self.received += bytes.len() as u64;
    }

    fn peer_finished(&mut self) {
        self.ended = true;
    }

    fn work(&mut self, _: Instant, _: u64) -> Result<Work, String> {
        if self.wrong {
            return Err("the received bytes differ from those that were sent".to_owned());
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

/// The result of [`receive_pattern`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternReport {
    /// Connections without an error.
    pub connections: u64,
    /// Payload bytes, each counted once.
    pub bytes: u64,
    /// The last error, in one line.
    pub error: Option<String>,
}

struct PatternServer<'a> {
    received: PatternReport,
    go_on: &'a mut dyn FnMut() -> bool,
}

impl Service for PatternServer<'_> {
    type Application = PatternReceiver;

    fn accept(&mut self, _: Instant, _: &Visitor, _: u64) -> Result<PatternReceiver, String> {
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

impl PatternServer<'_> {
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

/// Listens at `address` and checks the pattern that senders send. Calls `listening` with the bound address, and
/// `go_on`, which must be quick, in every turn of the loop; stops when `go_on` returns false.
///
/// # Errors
/// [`Error`] if the address is not available or the socket fails.
pub fn receive_pattern(
    address: SocketAddr,
    listening: impl FnOnce(SocketAddr),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<PatternReport, Error> {
    let server = Server::bind(address, 8, &Protection::None, ArqConfig::for_files())?;
    listening(server.address());
    let mut service = PatternServer {
        received: PatternReport::default(),
        go_on,
    };
    server.serve(&mut service)?;
    Ok(service.received)
}
