//! What runs on top of a protocol machine, whatever its clock: the sources and sinks of all workloads.

use foundation::{Duration, Generator, Instant, Rate};

use crate::outcome::Transaction;
use crate::plan::Group;
use crate::random::exponential;
use crate::workload::WorkloadKind;

/// The outgoing byte stream of a protocol machine.
pub trait Stream {
    /// Adds so many bytes to it.
    fn write(&mut self, now: Instant, bytes: u64);
    /// Ends it.
    fn finish(&mut self, now: Instant);
}

/// What a machine tells its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Data may flow.
    Connected,
    /// The application read so many bytes, in order.
    Read(u64),
    /// The peer's stream has ended and all of it has been read.
    PeerFinished,
    /// Both streams have ended and were acknowledged.
    Finished,
    /// The machine needs no more calls.
    Closed,
    /// The flow failed.
    Failed(String),
    /// A request was not answered in time, and no answer will be taken for it any more.
    Unanswered,
}

/// How far an application has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Both streams have ended and were acknowledged.
    pub finished: bool,
    /// The machine needs no more calls.
    pub closed: bool,
    /// Why the flow failed, if it did.
    pub failure: Option<String>,
    /// Requests that were answered.
    pub transactions: Vec<Transaction>,
    /// Requests that were not.
    pub unanswered: u64,
}

impl Progress {
    /// Whether nothing more is expected of this end.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.finished || self.closed || self.failure.is_some()
    }
}

/// How long a request that is one datagram waits for its response, which is lost where it takes longer: nothing sends it
/// again.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// More than any transport sends in a trial, and far from overflow.
const ENDLESS: u64 = 1 << 56;

/// An application.
#[derive(Debug)]
pub enum Application {
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
    /// The applications at both ends of flow `number` of a group, the opener's first; `size` is what the flow sends, where
    /// that is known.
    ///
    /// # Panics
    /// For a workload that validation has refused.
    #[must_use]
    pub fn of(group: &Group, number: u32, size: Option<u64>) -> [Self; 2] {
        let workload = &group.workload;
        match (workload.kind, workload.rate) {
            (WorkloadKind::File | WorkloadKind::Arrivals, _) => [Self::File(size.unwrap_or(0)), Self::Sink],
            (WorkloadKind::Bulk, None) => [Self::Endless, Self::Sink],
            (WorkloadKind::Bulk | WorkloadKind::OnOff, rate) => {
                let second = Duration::from_secs(1);
                let pauses = (workload.kind == WorkloadKind::OnOff).then(|| Pauses {
                    on: workload.on.unwrap_or(second),
                    off: workload.off.unwrap_or(second),
                    random: group.streams.stream(&format!("pauses/{number}")),
                    on_until: Instant::MAX,
                });
                let rate = rate.expect("validation asks for a rate");
                let paced = Paced::new(group.payload(), rate, pauses, group.stop_at());
                [Self::Paced(Box::new(paced)), Self::Sink]
            }
            (WorkloadKind::RequestResponse, _) => {
                let (request, response) = workload.exchange();
                let each = if workload.reconnect == Some(true) {
                    1
                } else {
                    workload.requests.unwrap_or(1)
                };
                let think = workload.think.unwrap_or_default();
                let client = Client::new(each, request, response, think);
                let server = Server::new(request, response);
                [Self::Client(Box::new(client)), Self::Server(server)]
            }
        }
    }

    /// The flow opens; called at the end that opens it.
    pub fn start(&mut self, now: Instant, machine: &mut impl Stream) {
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
    pub fn on_notice(
        &mut self,
        now: Instant,
        notice: Notice,
        machine: &mut impl Stream,
        progress: &mut Progress,
    ) {
        match (self, notice) {
            (_, Notice::Finished) => progress.finished = true,
            (_, Notice::Closed) => progress.closed = true,
            (_, Notice::Failed(reason)) => progress.failure = Some(reason),
            (Self::Client(client), Notice::Read(bytes)) => client.read(now, bytes, machine, progress),
            (Self::Client(client), Notice::Unanswered) => client.give_up(now, machine, progress),
            (Self::Server(server), Notice::Read(bytes)) => server.read(now, bytes, machine),
            (Self::Sink | Self::Server(_), Notice::PeerFinished) => machine.finish(now),
            _ => {}
        }
    }

    /// When it wants [`handle_timeout`](Self::handle_timeout).
    #[inline]
    #[must_use]
    pub fn timeout(&self) -> Instant {
        match self {
            Self::Paced(paced) => paced.next,
            Self::Client(client) => client.ask_at,
            _ => Instant::MAX,
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant, machine: &mut impl Stream) {
        match self {
            Self::Paced(paced) => paced.handle_timeout(now, machine),
            Self::Client(client) if client.ask_at <= now => client.ask(now, machine),
            _ => {}
        }
    }
}

/// A source of constant rate, with times of silence if wanted.
#[derive(Debug)]
pub struct Paced {
    chunk: u64,
    rate: Rate,
    pauses: Option<Pauses>,
    next: Instant,
    /// From when on nothing more is sent.
    stop_at: Instant,
}

/// On and off times, exponentially distributed (as in Willinger et al. 1997, with light tails).
#[derive(Debug)]
struct Pauses {
    on: Duration,
    off: Duration,
    random: Generator,
    /// When the present time of sending ends.
    on_until: Instant,
}

impl Paced {
    fn new(chunk: u64, rate: Rate, pauses: Option<Pauses>, stop_at: Instant) -> Self {
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

    fn handle_timeout(&mut self, now: Instant, machine: &mut impl Stream) {
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
pub struct Client {
    requests: u32,
    request: u64,
    response: u64,
    think: Duration,
    ask_at: Instant,
    requested_at: Instant,
    awaited: u64,
}

impl Client {
    fn new(requests: u32, request: u64, response: u64, think: Duration) -> Self {
        Self {
            requests,
            request,
            response,
            think,
            ask_at: Instant::MAX,
            requested_at: Instant::MAX,
            awaited: 0,
        }
    }

    fn ask(&mut self, now: Instant, machine: &mut impl Stream) {
        self.ask_at = Instant::MAX;
        self.requested_at = now;
        self.awaited = self.response;
        self.requests -= 1;
        machine.write(now, self.request);
        if self.requests == 0 {
            machine.finish(now);
        }
    }

    fn read(&mut self, now: Instant, bytes: u64, machine: &mut impl Stream, progress: &mut Progress) {
        self.awaited = self.awaited.saturating_sub(bytes);
        if self.awaited > 0 || self.requested_at == Instant::MAX {
            return;
        }
        progress.transactions.push(Transaction {
            requested_at: self.requested_at,
            responded_at: now,
            on_wire: None,
        });
        self.go_on(now, machine);
    }

    fn give_up(&mut self, now: Instant, machine: &mut impl Stream, progress: &mut Progress) {
        progress.unanswered += 1;
        self.go_on(now, machine);
    }

    fn go_on(&mut self, now: Instant, machine: &mut impl Stream) {
        self.requested_at = Instant::MAX;
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
pub struct Server {
    request: u64,
    response: u64,
    read: u64,
}

impl Server {
    const fn new(request: u64, response: u64) -> Self {
        Self {
            request,
            response,
            read: 0,
        }
    }

    fn read(&mut self, now: Instant, bytes: u64, machine: &mut impl Stream) {
        self.read += bytes;
        while self.read >= self.request {
            self.read -= self.request;
            machine.write(now, self.response);
        }
    }
}
