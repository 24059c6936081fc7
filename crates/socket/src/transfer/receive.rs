//! `receive`: takes files from whoever sends them, into one directory.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use foundation::{Duration, Instant};

use super::claims::Claims;
use super::directory::{Directory, plain};
use super::incoming::{Contended, Happened, Incoming};
use super::writer::Writer;
use crate::client::TICK;
use crate::datagrams::Peer;
use crate::error::Error;
use crate::server::{Server, Service, Sessions};
use crate::session::{End, Session};

/// How long a connection that receives a file may be silent before another one that offers a file of
/// the same name takes its place: its sender was killed and started again, most likely.
const CONTEST: Duration = Duration::from_millis(1500);
/// Within the contest the connection is asked for a sign of life this often.
const ASK: Duration = Duration::from_millis(300);
/// A connection heard this late in the contest is alive.
const ALIVE: Duration = Duration::from_millis(900);

/// A sender that says nothing for so long, though it is there, gives its place to others. (It may
/// have to read much before it can say whether what is here is how its file begins.)
const IDLE: Duration = Duration::from_secs(600);

/// How to receive.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Where to listen. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where files go. It must exist.
    pub directory: PathBuf,
    /// End after the first connection that ends.
    pub once: bool,
    /// Connections at a time, default 32: further ones are told that the receiver is busy.
    pub max_connections: usize,
}

impl ReceiveOptions {
    /// Receives files at `listen` into `directory` until told to stop.
    #[must_use]
    pub const fn new(listen: SocketAddr, directory: PathBuf) -> Self {
        Self {
            listen,
            directory,
            once: false,
            max_connections: 32,
        }
    }
}

/// What the caller is told while receiving. `peer` is the sender's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiveEvent {
    /// Senders can come, to this address.
    Listening(SocketAddr),
    /// A sender has come.
    Connected(SocketAddr),
    /// Something happened to a file.
    File(SocketAddr, Happened),
    /// So much of a file is there. Told at most 20 times a second.
    Progress {
        /// The sender.
        peer: SocketAddr,
        /// The number of the sender's offer.
        file: u32,
        /// The file.
        name: String,
        /// Bytes of it that are there.
        done: u64,
        /// Its size.
        size: u64,
    },
    /// A sender has left; with the reason if not in peace.
    Disconnected(SocketAddr, Option<String>),
    /// Nothing; a chance to stop. Told at least 20 times a second.
    Tick,
}

/// What was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveReport {
    /// Files that are whole and in their place.
    pub files: u64,
    /// Of these, the ones that were there already.
    pub already: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Files that were not received, and connections that failed.
    pub failures: u64,
}

/// Receives files until `on_event` breaks, or with [`ReceiveOptions::once`] until a connection has ended.
///
/// A file appears under its name when it is whole, its BLAKE3 agrees with the sender's, and it is on
/// the disk. Until then it is `.NAME.longfat-part`, from which a later transfer resumes; a transfer that fills the disk
/// removes what it wrote. A file that
/// exists is never replaced: one with the same content counts as received, beside another one the
/// new one gets a number ("notes (1).txt").
///
/// # Errors
/// [`Error`] if the directory or the address is not to be had, or the socket fails.
pub fn receive(
    options: &ReceiveOptions,
    on_event: &mut dyn FnMut(ReceiveEvent) -> ControlFlow<()>,
) -> Result<ReceiveReport, Error> {
    let directory = Directory::new(&options.directory).map_err(|error| Error::File {
        path: options.directory.clone(),
        reason: plain(&error),
    })?;
    let server = Server::bind(options.listen, options.max_connections)?;
    let listening = on_event(ReceiveEvent::Listening(server.address()));
    let mut receiver = FileReceiver {
        directory: Arc::new(directory),
        claims: Claims::default(),
        once: options.once,
        threads: Vec::new(),
        arrivals: Vec::new(),
        next_tick: Instant::ZERO,
        report: ReceiveReport::default(),
        on_event,
    };
    if listening.is_continue() {
        server.serve(&mut receiver)?;
    }
    let report = receiver.report;
    for thread in receiver.threads {
        // What has arrived goes to the disk before this ends.
        let _ = thread.join();
    }
    Ok(report)
}

struct FileReceiver<'a> {
    directory: Arc<Directory>,
    claims: Claims,
    once: bool,
    threads: Vec<JoinHandle<()>>,
    arrivals: Vec<SocketAddr>,
    next_tick: Instant,
    report: ReceiveReport,
    on_event: &'a mut dyn FnMut(ReceiveEvent) -> ControlFlow<()>,
}

impl FileReceiver<'_> {
    fn tell(&mut self, peer: SocketAddr, happened: Happened) -> ControlFlow<()> {
        match &happened {
            Happened::Started { .. } => {}
            Happened::Stored { size, already, .. } => {
                self.report.files += 1;
                self.report.already += u64::from(*already);
                self.report.bytes += size;
            }
            Happened::Failed { .. } => self.report.failures += 1,
        }
        (self.on_event)(ReceiveEvent::File(peer, happened))
    }

    /// Decides about offers of names that other connections are receiving.
    fn arbitrate(&self, now: Instant, sessions: &mut Sessions<Incoming>) {
        let mut ask = Vec::new();
        let mut doomed = Vec::new();
        let heard: Vec<(u64, Instant)> = sessions.iter_mut().map(|(n, s)| (n, s.heard_at())).collect();
        let is_alive = |session: u64, since: Instant| {
            heard
                .iter()
                .any(|&(number, at)| number == session && at >= since + ALIVE)
        };
        for (number, session) in sessions.iter_mut() {
            let incoming = session.application_mut();
            for offer in std::mem::take(&mut incoming.new_offers) {
                incoming.contended.push(Contended {
                    offer,
                    since: now,
                    asked: 0,
                });
            }
            if incoming.contended.is_empty() {
                continue;
            }
            for mut contended in std::mem::take(&mut incoming.contended) {
                let holders = self.claims.others(&contended.offer.name, number);
                let waited = now - contended.since;
                let all_alive = holders.iter().all(|&holder| is_alive(holder, contended.since));
                if holders.is_empty() || all_alive || waited > CONTEST * 4 {
                    incoming.prepare(contended.offer);
                    continue;
                }
                if waited >= CONTEST {
                    let dead = holders
                        .iter()
                        .filter(|&&holder| !is_alive(holder, contended.since));
                    doomed.extend(dead.copied());
                } else if waited >= ASK * contended.asked {
                    contended.asked += 1;
                    ask.extend(holders);
                }
                incoming.contended.push(contended);
            }
        }
        for number in ask {
            if let Some(session) = sessions.get_mut(number) {
                session.connection_mut().ping();
            }
        }
        for number in doomed {
            if let Some(session) = sessions.get_mut(number).filter(|session| session.end().is_none()) {
                session.abandon("silent, and its file is being sent anew".to_owned());
            }
        }
    }
}

impl Service for FileReceiver<'_> {
    type Application = Incoming;

    fn accept(&mut self, now: Instant, peer: Peer, number: u64) -> Result<Incoming, String> {
        let started = Writer::start(Arc::clone(&self.directory), self.claims.clone(), number);
        let (writer, thread) =
            started.map_err(|error| format!("cannot start a thread: {}", plain(&error)))?;
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread);
        self.arrivals.push(peer.address);
        Ok(Incoming::new(writer, now))
    }

    fn turn(&mut self, now: Instant, sessions: &mut Sessions<Incoming>) -> ControlFlow<()> {
        for peer in std::mem::take(&mut self.arrivals) {
            (self.on_event)(ReceiveEvent::Connected(peer))?;
        }
        self.arbitrate(now, sessions);
        for (_, session) in sessions.iter_mut() {
            let peer = session.peer().address;
            while let Some(happened) = session.application_mut().happened.pop_front() {
                self.tell(peer, happened)?;
            }
        }
        if now < self.next_tick {
            return ControlFlow::Continue(());
        }
        self.next_tick = now + TICK;
        if self.once {
            // No need to stay for the farewells of the connection itself.
            for (_, session) in sessions.iter_mut() {
                if session.end() == Some(&End::Finished) {
                    (self.on_event)(ReceiveEvent::Disconnected(session.peer().address, None))?;
                    return ControlFlow::Break(());
                }
            }
        }
        for (_, session) in sessions.iter_mut() {
            let peer = session.peer().address;
            if now - session.application().moved_at() > IDLE && session.end().is_none() {
                session.abandon(format!("it has sent nothing for {IDLE}"));
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

    fn ended(&mut self, _: Instant, _: u64, mut session: Session<Incoming>) -> ControlFlow<()> {
        let peer = session.peer().address;
        let reason = match session.end() {
            None | Some(End::Finished) => None,
            Some(End::Failed(error)) => Some(error.to_string()),
            Some(End::Abandoned(reason)) => Some(reason.clone()),
        };
        let incoming = session.application_mut();
        let complete = crate::session::Application::is_complete(incoming);
        let reason = reason.filter(|_| !complete);
        incoming.give_up(reason.as_deref().unwrap_or("the sender left"));
        let happened = std::mem::take(&mut incoming.happened);
        for happened in happened {
            self.tell(peer, happened)?;
        }
        self.report.failures += u64::from(reason.is_some());
        (self.on_event)(ReceiveEvent::Disconnected(peer, reason))?;
        if self.once {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
