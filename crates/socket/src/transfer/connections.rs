//! The connections of a sender: another one follows when a receiver disappears.

use std::ops::ControlFlow;

use foundation::{Duration, Instant};
use security::{HandshakeError, Reason};
use transport::Statistics;
use transport::arq;

use super::batch::{Batch, State};
use super::outgoing::Outgoing;
use super::reader::FileReader;
use super::send::SendOptions;
use crate::client::{self, Failed, TICK};
use crate::clock::Clock;
use crate::error::Error;
use crate::session::Session;
use crate::system_error::plain;

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// The sum of a sender's connections.
#[derive(Debug)]
pub struct Connections<'a> {
    options: &'a SendOptions,
    /// Number of connections that were opened.
    pub count: u64,
    /// Their counters; times are those of the last one.
    pub statistics: Statistics,
    /// Smoothed round-trip time of the last one.
    pub rtt: Duration,
    /// When the receiver had confirmed everything.
    pub completed_at: Option<Instant>,
}

/// Whether a later attempt may succeed, after one that did.
fn is_temporary(error: &Error) -> bool {
    match error {
        Error::Gone { .. } | Error::Restarted { .. } | Error::Refused(_) | Error::Send { .. } => true,
        Error::Connection { source, .. } => !matches!(source, arq::Error::Aborted | arq::Error::Protected),
        Error::Handshake { source, .. } => matches!(
            source,
            HandshakeError::Silent(_)
                | HandshakeError::Refused(Reason::Busy | Reason::Closed | Reason::Unknown)
        ),
        _ => false,
    }
}

impl<'a> Connections<'a> {
    /// Creates an empty sum.
    #[must_use]
    pub fn new(options: &'a SendOptions) -> Self {
        Self {
            options,
            count: 0,
            statistics: Statistics::default(),
            rtt: Duration::ZERO,
            completed_at: None,
        }
    }

    /// Sends `batch`, over as many connections as necessary.
    ///
    /// # Errors
    /// The last connection's, if waiting does not help or takes too long.
    pub fn run(
        &mut self,
        batch: &mut Batch,
        clock: &Clock,
        report: &mut dyn FnMut(State<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let (mut progress_at, mut most) = (clock.now(), 0);
        loop {
            let Err(error) = self.connect(batch, clock, &mut |state| {
                if state.done > most {
                    (progress_at, most) = (clock.now(), state.done);
                }
                report(state)
            }) else {
                return Ok(());
            };
            let until = progress_at + self.options.wait;
            if self.count == 0 || !batch.is_repeatable() || !is_temporary(&error) || clock.now() >= until {
                return Err(error);
            }
            let next = clock.now() + PAUSE;
            while clock.now() < next {
                let files = batch.open();
                if report(batch.state(&files, None)).is_break() {
                    return Err(Error::Cancelled);
                }
                std::thread::sleep(TICK.into());
            }
        }
    }

    /// Sends the rest of `batch` over one connection.
    fn connect(
        &mut self,
        batch: &mut Batch,
        clock: &Clock,
        report: &mut dyn FnMut(State<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let files = batch.open();
        let (sources, names) = batch.select(&files);
        let reader = FileReader::start(sources.clone(), !self.options.protection.is_secure())
            .map_err(|error| Error::Abandoned(format!("cannot start a thread: {}", plain(&error))))?;
        let outgoing = Outgoing::new(sources, names, reader);
        let options = self.options;
        let again = self.count > 0;
        let mut tick = |_: Instant, session: Option<&Session<Outgoing>>| match session {
            // Before the first connection nothing is known about the receiver.
            None if !again => report(State {
                waiting: false,
                ..batch.state(&files, None)
            }),
            None => report(batch.state(&files, None)),
            Some(session) => report(batch.state(&files, Some(session.application()))),
        };
        let result = client::run(
            options.to,
            &options.protection,
            &options.protocol,
            outgoing,
            client::Options {
                record_round_trips: false,
                search_path_mtu: options.search_path_mtu,
            },
            *clock,
            &mut tick,
        );
        let (session, error) = match result {
            Ok(session) => (session, None),
            Err(Failed {
                error,
                session: Some(session),
            }) => (*session, Some(error)),
            Err(Failed { error, session: None }) => return Err(error),
        };
        // Without protection, a session exists before the receiver answers.
        if session.connection().statistics().last_acknowledged_at.is_some() {
            self.count += 1;
        }
        self.add(&session);
        batch.update(&files, session.application());
        error.map_or(Ok(()), Err)
    }

    fn add(&mut self, session: &Session<Outgoing>) {
        let before = std::mem::replace(&mut self.statistics, session.connection().statistics().clone());
        self.statistics.packets_sent += before.packets_sent;
        self.statistics.bytes_sent += before.bytes_sent;
        self.statistics.retransmissions += before.retransmissions;
        self.statistics.timeouts += before.timeouts;
        self.rtt = session.connection().sender().timer().rtt().smoothed();
        self.completed_at = session.completed_at();
    }
}
