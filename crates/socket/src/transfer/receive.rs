//! `receive`: receives files from any sender into one directory.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use foundation::{Duration, Instant};
use security::{Code, Credentials};
use transport::arq::{self, ArqConfig};

use super::approvals::Approvals;
use super::budget::Budget;
use super::claims::Claims;
use super::directory::Directory;
use super::file_event::FileEvent;
use super::incoming::{ContendedOffer, Incoming, OfferRules};
use super::one_time::OneTimeCodes;
use super::pace::Pace;
use super::refusals::Refusals;
use super::writer::{Store, Writer};
use crate::client::TICK;
use crate::error::Error;
use crate::server::{Refused, Server, Service, Sessions, Visitor};
use crate::session::{End, Session};
use crate::system_error::plain;
use crate::wire::Protection;

/// How long a connection that receives a file may be silent before another one that offers the same name replaces it:
/// most likely its sender was killed and restarted.
const CONTEST: Duration = Duration::from_millis(1500);
/// Interval of the probes on both connections.
const PROBE_INTERVAL: Duration = Duration::from_millis(300);
/// A connection is alive if a frame arrived this long after the start of the contest or later.
const ALIVE: Duration = Duration::from_millis(900);

/// How long a receiver that stops waits for pending writes. A disk that needs longer loses them, as with a killed
/// receiver: the sender resumes.
const LAST_WRITES: std::time::Duration = std::time::Duration::from_millis(1200);

/// Options of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// The address to listen at. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// Target directory. It must exist.
    pub directory: PathBuf,
    /// Most bytes that are written in all, default no limit but the free space of the disk.
    pub max_bytes: Option<u64>,
    /// Accept names that start with a dot, default no.
    pub dotfiles: bool,
    /// Make files executable that are executable at the sender, default no.
    pub executables: bool,
    /// Ask before the first file of each sender; decisions come from here.
    pub ask: Option<Approvals>,
    /// Whether connections are encrypted and authenticated.
    pub protection: Protection,
    /// Replace the code when a sender finishes, default no. It requires protection by a code.
    pub one_time: bool,
    /// Stop after the first connection.
    pub once: bool,
    /// Connections at a time, default 32. Further ones are refused as busy.
    pub max_connections: usize,
}

impl ReceiveOptions {
    /// Receives files at `listen` into `directory` until stopped.
    #[must_use]
    pub const fn new(listen: SocketAddr, directory: PathBuf, protection: Protection) -> Self {
        Self {
            listen,
            directory,
            max_bytes: None,
            dotfiles: false,
            executables: false,
            ask: None,
            protection,
            one_time: false,
            once: false,
            max_connections: 32,
        }
    }
}

/// Events of a receiver. `peer` is the sender's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiveEvent {
    /// The receiver listens at this address.
    Listening(SocketAddr),
    /// A sender has connected; with the name of its key, if it has one.
    Connected(SocketAddr, Option<String>),
    /// A sender was refused before it connected; at most one report a second. Its address is not authenticated.
    Refused {
        /// The sender.
        peer: SocketAddr,
        /// Why.
        reason: &'static str,
        /// Refusals before it without a report.
        others: u64,
    },
    /// With [`ReceiveOptions::ask`]: a sender waits for a decision.
    Request {
        /// The sender.
        peer: SocketAddr,
        /// The number of the request.
        number: u64,
        /// The number of its files.
        files: u32,
        /// Their bytes, if the sender knows them.
        bytes: Option<u64>,
        /// The name of the first, made printable.
        first: String,
    },
    /// Progress of a file.
    File(SocketAddr, FileEvent),
    /// Bytes received of a file; at most 20 times a second.
    Progress {
        /// The sender.
        peer: SocketAddr,
        /// The number of the sender's offer.
        file: u32,
        /// The file.
        name: String,
        /// Bytes received.
        done: u64,
        /// Its size, if the sender knows it.
        size: Option<u64>,
    },
    /// A sender has disconnected; with the reason unless it finished.
    Disconnected(SocketAddr, Option<String>),
    /// With [`ReceiveOptions::one_time`]: the code of the next sender.
    NextCode(Code),
    /// An opportunity to stop; at least 20 times a second.
    Tick,
}

/// Totals of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveReport {
    /// Complete files.
    pub files: u64,
    /// Of these, files that existed already.
    pub already: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Files that were not received, and connections that failed.
    pub failures: u64,
}

/// Receives files until `on_event` breaks, or with [`ReceiveOptions::once`] until a connection has ended.
///
/// A file gets its name when it is complete, on the disk, and authentic: in a protected connection every packet is,
/// otherwise its BLAKE3 hash must equal the sender's. Until then it
/// is `.NAME.longfat-part`, from which a later transfer resumes; a transfer that fills the disk removes what it wrote.
/// An existing file is never replaced: one with the same content counts as received, otherwise the new file gets a
/// number ("notes (1).txt").
///
/// # Errors
/// [`Error`] if the directory or the address is not available, or the socket fails.
pub fn receive(
    options: &ReceiveOptions,
    on_event: &mut dyn FnMut(ReceiveEvent) -> ControlFlow<()>,
) -> Result<ReceiveReport, Error> {
    if options.one_time && !matches!(options.protection, Protection::Secure(Credentials::Code(_))) {
        return Err(Error::Abandoned(
            "one_time requires protection by a code".to_owned(),
        ));
    }
    let directory = Directory::new(&options.directory).map_err(|error| Error::File {
        path: options.directory.clone(),
        reason: plain(&error),
    })?;
    let server = Server::bind(
        options.listen,
        options.max_connections,
        &options.protection,
        ArqConfig::for_files(),
    )?;
    let listening = on_event(ReceiveEvent::Listening(server.address()));
    let mut receiver = FileReceiver {
        store: Store {
            directory: Arc::new(directory),
            budget: Budget::new(options.max_bytes),
            executables: options.executables,
            checks: !options.protection.is_secure(),
        },
        claims: Claims::default(),
        rules: OfferRules {
            dotfiles: options.dotfiles,
            ask: options.ask.is_some(),
        },
        approvals: options.ask.clone().unwrap_or_default(),
        paces: HashMap::new(),
        // A receiver that stops after one sender needs no further code.
        codes: (options.one_time && !options.once).then(OneTimeCodes::default),
        next_code: None,
        failure: None,
        once: options.once,
        threads: Vec::new(),
        arrivals: Vec::new(),
        refusals: Refusals::default(),
        next_tick: Instant::ZERO,
        report: ReceiveReport::default(),
        on_event,
    };
    if listening.is_continue() {
        server.serve(&mut receiver)?;
    }
    let report = receiver.report;
    let until = std::time::Instant::now() + LAST_WRITES;
    for thread in receiver.threads {
        while !thread.is_finished() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    receiver.failure.map_or(Ok(report), Err)
}

/// Whether the sender has the result of each file and has confirmed it.
fn is_complete(session: &Session<Incoming>) -> bool {
    crate::session::Application::is_complete(session.application())
}

struct FileReceiver<'a> {
    store: Store,
    claims: Claims,
    rules: OfferRules,
    approvals: Approvals,
    paces: HashMap<u64, Pace>,
    /// With one-time codes.
    codes: Option<OneTimeCodes>,
    /// The code that replaces the current one.
    next_code: Option<Code>,
    failure: Option<Error>,
    once: bool,
    threads: Vec<JoinHandle<()>>,
    arrivals: Vec<(SocketAddr, Option<String>)>,
    refusals: Refusals,
    next_tick: Instant,
    report: ReceiveReport,
    on_event: &'a mut dyn FnMut(ReceiveEvent) -> ControlFlow<()>,
}

impl FileReceiver<'_> {
    fn report_file(&mut self, peer: SocketAddr, event: FileEvent) -> ControlFlow<()> {
        match &event {
            FileEvent::Started { .. } => {}
            FileEvent::Stored { size, already, .. } => {
                self.report.files += 1;
                self.report.already += u64::from(*already);
                self.report.bytes += size;
            }
            FileEvent::Failed { .. } => self.report.failures += 1,
        }
        (self.on_event)(ReceiveEvent::File(peer, event))
    }

    /// Passes requests to a person, and their decisions back.
    fn ask(&mut self, sessions: &mut Sessions<Incoming>) -> ControlFlow<()> {
        for (number, accept) in self.approvals.take() {
            if let Some(session) = sessions.get_mut(number) {
                session.application_mut().decide(accept);
            }
        }
        for (number, session) in sessions.iter_mut() {
            let peer = session.peer().address;
            if let Some((files, bytes, first)) = session.application_mut().take_request() {
                (self.on_event)(ReceiveEvent::Request {
                    peer,
                    number,
                    files,
                    bytes,
                    first,
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Replaces the code of connection `number`, whose sender has finished.
    fn renew_code(&mut self, number: u64) -> ControlFlow<()> {
        let Some(codes) = &mut self.codes else {
            return ControlFlow::Continue(());
        };
        match codes.finish(number) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(code)) => {
                self.next_code = Some(code.clone());
                (self.on_event)(ReceiveEvent::NextCode(code))
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Decides on offers of names that other connections are receiving.
    fn resolve_conflicts(&self, now: Instant, sessions: &mut Sessions<Incoming>) {
        let mut probed = Vec::new();
        let mut silent = Vec::new();
        let arrivals: Vec<(u64, Instant)> = sessions.iter_mut().map(|(n, s)| (n, s.last_arrival())).collect();
        let is_alive = |session: u64, since: Instant| {
            arrivals
                .iter()
                .any(|&(number, at)| number == session && at >= since + ALIVE)
        };
        for (number, session) in sessions.iter_mut() {
            let incoming = session.application_mut();
            for offer in incoming.take_offers() {
                incoming.contended.push(ContendedOffer {
                    offer,
                    since: now,
                    probes: 0,
                });
            }
            if incoming.contended.is_empty() {
                continue;
            }
            for mut contended in std::mem::take(&mut incoming.contended) {
                let holders = self.claims.others(&contended.offer.name, number);
                let waited = now - contended.since;
                let all_alive = holders.iter().all(|&holder| is_alive(holder, contended.since));
                // A sender that was killed while it waited must not start now, in the way of its successor.
                let ready = contended.probes == 0 || is_alive(number, contended.since);
                if ready && (holders.is_empty() || all_alive || waited > CONTEST * 4) {
                    let claim = self.claims.claim(&contended.offer.name, number);
                    incoming.prepare(contended.offer, claim);
                    continue;
                }
                if waited >= CONTEST {
                    let dead = holders
                        .iter()
                        .filter(|&&holder| !is_alive(holder, contended.since));
                    silent.extend(dead.copied());
                }
                if waited >= PROBE_INTERVAL * contended.probes {
                    contended.probes += 1;
                    probed.extend(holders);
                    probed.push(number);
                }
                incoming.contended.push(contended);
            }
        }
        for number in probed {
            if let Some(session) = sessions.get_mut(number) {
                session.connection_mut().ping();
            }
        }
        for number in silent {
            if let Some(session) = sessions.get_mut(number).filter(|session| session.end().is_none()) {
                session.abandon("silent while another connection sends the same file".to_owned());
            }
        }
    }
}

impl Service for FileReceiver<'_> {
    type Application = Incoming;

    fn accept(&mut self, now: Instant, visitor: &Visitor, number: u64) -> Result<Incoming, String> {
        let started = Writer::start(self.store.clone());
        let (writer, thread) =
            started.map_err(|error| format!("cannot start a thread: {}", plain(&error)))?;
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread);
        self.arrivals.push((visitor.peer.address, visitor.name.clone()));
        if let Some(codes) = &mut self.codes {
            codes.admit(number);
        }
        Ok(Incoming::new(writer, self.rules, now))
    }

    fn turn(&mut self, now: Instant, sessions: &mut Sessions<Incoming>) -> ControlFlow<()> {
        for (peer, name) in std::mem::take(&mut self.arrivals) {
            (self.on_event)(ReceiveEvent::Connected(peer, name))?;
        }
        if let Some(report) = self.refusals.take() {
            (self.on_event)(ReceiveEvent::Refused {
                peer: report.peer,
                reason: report.reason,
                others: report.others,
            })?;
        }
        self.ask(sessions)?;
        self.resolve_conflicts(now, sessions);
        for (_, session) in sessions.iter_mut() {
            let peer = session.peer().address;
            while let Some(event) = session.application_mut().events.pop_front() {
                self.report_file(peer, event)?;
            }
        }
        for (number, session) in sessions.iter_mut() {
            if is_complete(session) {
                self.renew_code(number)?;
            }
        }
        if self.once {
            // Do not wait for the closing handshake of the connection itself.
            for (_, session) in sessions.iter_mut() {
                if session.end() == Some(&End::Finished) {
                    (self.on_event)(ReceiveEvent::Disconnected(session.peer().address, None))?;
                    return ControlFlow::Break(());
                }
            }
        }
        if now < self.next_tick {
            return ControlFlow::Continue(());
        }
        self.next_tick = now + TICK;
        for (number, session) in sessions.iter_mut() {
            let peer = session.peer().address;
            let seen = session.application().observation();
            if session.end().is_none()
                && let Some(reason) = self.paces.entry(number).or_default().check(now, seen)
            {
                session.abandon(reason);
            }
            if let Some((file, name, done, size)) = session.application().progress() {
                let name = name.to_owned();
                (self.on_event)(ReceiveEvent::Progress {
                    peer,
                    file,
                    name,
                    done,
                    size,
                })?;
            }
        }
        (self.on_event)(ReceiveEvent::Tick)
    }

    fn refused(&mut self, now: Instant, from: SocketAddr, reason: Refused) {
        self.refusals.record(now, from, reason);
    }

    fn next_credentials(&mut self) -> Option<Credentials> {
        self.next_code.take().map(Credentials::Code)
    }

    fn ended(&mut self, _: Instant, number: u64, mut session: Session<Incoming>) -> ControlFlow<()> {
        self.paces.remove(&number);
        let peer = session.peer().address;
        let reason = match session.end() {
            None | Some(End::Finished) => None,
            Some(End::Failed(arq::Error::Aborted)) => {
                Some("the sender was stopped: send again to resume".to_owned())
            }
            Some(End::Failed(error)) => Some(error.to_string()),
            Some(End::Abandoned(reason)) => Some(reason.clone()),
        };
        let complete = is_complete(&session);
        let incoming = session.application_mut();
        let reason = reason.filter(|_| !complete);
        incoming.give_up(reason.as_deref().unwrap_or("the sender left"));
        let event = std::mem::take(&mut incoming.events);
        for event in event {
            self.report_file(peer, event)?;
        }
        self.report.failures += u64::from(reason.is_some());
        if complete {
            self.renew_code(number)?;
        }
        if let Some(codes) = &mut self.codes {
            codes.forget(number);
        }
        (self.on_event)(ReceiveEvent::Disconnected(peer, reason))?;
        if self.once {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
