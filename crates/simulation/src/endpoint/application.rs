//! What runs on top of a protocol machine: the sources and sinks of all workloads.

use experiment::outcome::Transaction;
use experiment::random::exponential;
use foundation::{Duration, Generator, Instant, Rate};

use super::{Machine, Notice};

/// How far an application has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Both streams have ended and were acknowledged.
    pub finished: bool,
    /// The machine needs no more calls.
    pub closed: bool,
    /// Why the flow failed, if it did.
    pub failure: Option<String>,
    /// Requests that were answered.
    pub transactions: Vec<Transaction>,
}

impl Progress {
    /// Whether nothing more is expected of this end.
    pub(crate) const fn is_settled(&self) -> bool {
        self.finished || self.closed || self.failure.is_some()
    }
}

/// More than any transport sends in a trial, and far from overflow.
const ENDLESS: u64 = 1 << 56;

/// An application.
#[derive(Debug)]
pub(crate) enum Application {
    /// Reads; ends its own stream when the peer's has ended.
    Sink,
    /// Sends so many bytes and ends its stream.
    File(u64),
    /// Sends for ever, as fast as the transport takes it.
    Endless,
    /// Sends at a rate.
    Paced(Box<Paced>),
    /// Asks and waits for the answer.
    Client(Box<Client>),
    /// Answers.
    Server(Server),
}

impl Application {
    /// The flow opens; called at the end that opens it.
    pub(crate) fn start(&mut self, now: Instant, machine: &mut Machine) {
        match self {
            Self::Sink | Self::Server(_) => {}
            Self::File(bytes) => {
                machine.write(now, *bytes);
                machine.finish(now);
            }
            Self::Endless => machine.write(now, ENDLESS),
            Self::Paced(paced) => paced.start(now),
            Self::Client(client) => client.ask(now, machine),
        }
    }

    /// The machine told something.
    pub(crate) fn on_notice(
        &mut self,
        now: Instant,
        notice: Notice,
        machine: &mut Machine,
        progress: &mut Progress,
    ) {
        match (self, notice) {
            (_, Notice::Finished) => progress.finished = true,
            (_, Notice::Closed) => progress.closed = true,
            (_, Notice::Failed(reason)) => progress.failure = Some(reason),
            (Self::Client(client), Notice::Read(bytes)) => client.read(now, bytes, machine, progress),
            (Self::Server(server), Notice::Read(bytes)) => server.read(now, bytes, machine),
            (Self::Sink | Self::Server(_), Notice::PeerFinished) => machine.finish(now),
            _ => {}
        }
    }

    /// When it wants [`handle_timeout`](Self::handle_timeout).
    #[inline]
    pub(crate) fn timeout(&self) -> Instant {
        match self {
            Self::Paced(paced) => paced.next,
            Self::Client(client) => client.ask_at,
            _ => Instant::MAX,
        }
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, machine: &mut Machine) {
        match self {
            Self::Paced(paced) => paced.handle_timeout(now, machine),
            Self::Client(client) if client.ask_at <= now => client.ask(now, machine),
            _ => {}
        }
    }
}

/// A source of constant rate, with times of silence if wanted.
#[derive(Debug)]
pub(crate) struct Paced {
    chunk: u64,
    rate: Rate,
    pauses: Option<Pauses>,
    next: Instant,
    /// From when on nothing more is sent.
    stop_at: Instant,
}

/// On and off times, exponentially distributed (as in Willinger et al. 1997, with light tails).
#[derive(Debug)]
pub(crate) struct Pauses {
    pub on: Duration,
    pub off: Duration,
    pub random: Generator,
    /// When the present time of sending ends.
    pub on_until: Instant,
}

impl Paced {
    pub(crate) fn new(chunk: u64, rate: Rate, pauses: Option<Pauses>, stop_at: Instant) -> Self {
        Self {
            chunk,
            rate,
            pauses,
            next: Instant::MAX,
            stop_at,
        }
    }

    fn start(&mut self, now: Instant) {
        self.next = now;
        if let Some(pauses) = &mut self.pauses {
            pauses.on_until = now + exponential(&mut pauses.random, pauses.on);
        }
    }

    fn handle_timeout(&mut self, now: Instant, machine: &mut Machine) {
        while self.next <= now {
            if self.next >= self.stop_at {
                machine.finish(now);
                self.next = Instant::MAX;
                return;
            }
            if let Some(pauses) = &mut self.pauses
                && self.next >= pauses.on_until
            {
                self.next = pauses.on_until + exponential(&mut pauses.random, pauses.off);
                pauses.on_until = self.next + exponential(&mut pauses.random, pauses.on);
                continue;
            }
            machine.write(now, self.chunk);
            self.next += self.rate.time_for(self.chunk);
        }
    }
}

/// Sends requests and waits for each answer.
#[derive(Debug)]
pub(crate) struct Client {
    pub requests: u32,
    pub request: u64,
    pub response: u64,
    pub think: Duration,
    ask_at: Instant,
    asked_at: Instant,
    awaited: u64,
}

impl Client {
    pub(crate) fn new(requests: u32, request: u64, response: u64, think: Duration) -> Self {
        Self {
            requests,
            request,
            response,
            think,
            ask_at: Instant::MAX,
            asked_at: Instant::MAX,
            awaited: 0,
        }
    }

    fn ask(&mut self, now: Instant, machine: &mut Machine) {
        self.ask_at = Instant::MAX;
        self.asked_at = now;
        self.awaited = self.response;
        self.requests -= 1;
        machine.write(now, self.request);
        if self.requests == 0 {
            machine.finish(now);
        }
    }

    fn read(&mut self, now: Instant, bytes: u64, machine: &mut Machine, progress: &mut Progress) {
        self.awaited = self.awaited.saturating_sub(bytes);
        if self.awaited > 0 || self.asked_at == Instant::MAX {
            return;
        }
        progress.transactions.push(Transaction {
            asked_at: self.asked_at,
            answered_at: now,
        });
        self.asked_at = Instant::MAX;
        if self.requests > 0 {
            if self.think.is_zero() {
                self.ask(now, machine);
            } else {
                self.ask_at = now + self.think;
            }
        }
    }
}

/// Answers each whole request.
#[derive(Debug)]
pub(crate) struct Server {
    pub request: u64,
    pub response: u64,
    read: u64,
}

impl Server {
    pub(crate) const fn new(request: u64, response: u64) -> Self {
        Self {
            request,
            response,
            read: 0,
        }
    }

    fn read(&mut self, now: Instant, bytes: u64, machine: &mut Machine) {
        self.read += bytes;
        while self.read >= self.request {
            self.read -= self.request;
            machine.write(now, self.response);
        }
    }
}
