//! Applications on top of protocol machines, independent of the clock: the sources and sinks of all workloads.

use foundation::{Duration, Generator, Instant, Rate};

use crate::frames::{self, FrameSink, FrameSource};
use crate::outcome::Transaction;
use crate::parallel::{self, ParallelClient, ParallelServer};
use crate::plan::Group;
use crate::random::exponential;
use crate::workload::WorkloadKind;

/// The outgoing byte stream of a protocol machine.
pub trait Stream {
    /// Adds bytes.
    fn write(&mut self, now: Instant, bytes: u64);
    /// Ends the stream; of a protocol with streams, the connection once all messages are answered.
    fn finish(&mut self, now: Instant);
    /// Sends a message on stream `number`, which the client opens in this order; without streams, after all before.
    fn send_message(&mut self, now: Instant, _number: u32, bytes: u64) {
        self.write(now, bytes);
    }
    /// Ends the stream early: discards the written data that the protocol has not accepted.
    fn stop(&mut self, now: Instant) {
        self.finish(now);
    }
}

/// An event of a protocol machine for its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The connection is established.
    Connected,
    /// The application read this number of bytes in order.
    Read(u64),
    /// The application read this number of bytes in order of the message on the stream of this number.
    ReadMessage(u32, u64),
    /// The peer's stream has ended and has been read completely.
    PeerFinished,
    /// Both streams have ended and are acknowledged.
    Finished,
    /// The machine is closed.
    Closed,
    /// The flow failed.
    Failed(String),
    /// The response to a request did not arrive in time and will be ignored.
    Unanswered,
}

/// The progress of an application.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// `FINISHED`, `CLOSED` and others. One byte, so that a world reads nothing else after most events.
    flags: u8,
    /// What most flows lack: bulk transfers neither fail nor exchange messages.
    records: Option<Box<Records>>,
}

/// What an end reports besides its state.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Reason of a failure.
    pub failure: Option<Box<str>>,
    /// Answered requests.
    pub transactions: Vec<Transaction>,
    /// Number of unanswered requests.
    pub unanswered: u64,
    /// By number of the frame: when the source sent it, or when it was complete at the sink, [`Instant::MAX`] if it was not.
    pub frames: Vec<Instant>,
}

/// Flag: both streams have ended and are acknowledged.
const FINISHED: u8 = 1;
/// Flag: the machine is closed.
const CLOSED: u8 = 2;
/// Flag: the flow failed.
const FAILED: u8 = 4;
/// Flag: the next request waits for other flows.
const WAITS: u8 = 8;
/// Flag: the end reads the parts of an all-reduce.
const COLLECTIVE: u8 = 16;

impl Progress {
    /// Returns whether any of the following is true: after an event of most ends, all are false.
    #[inline]
    #[must_use]
    pub const fn is_notable(&self) -> bool {
        self.flags != 0
    }

    /// Returns whether this end is done: finished, closed or failed.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.flags & (FINISHED | CLOSED | FAILED) != 0
    }

    /// Returns whether both streams have ended and are acknowledged.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.flags & FINISHED != 0
    }

    /// Returns whether the next request waits for other flows (`barrier`).
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.flags & WAITS != 0
    }

    /// Returns whether the end reads the parts of an all-reduce.
    #[must_use]
    pub const fn is_collective(&self) -> bool {
        self.flags & COLLECTIVE != 0
    }

    /// Makes this the progress of an end that reads the parts of an all-reduce.
    pub const fn set_collective(&mut self) {
        self.flags |= COLLECTIVE;
    }

    /// Returns the records, if there are any.
    #[must_use]
    pub fn records(&self) -> Option<&Records> {
        self.records.as_deref()
    }

    /// Returns the records, to add to them.
    pub fn records_mut(&mut self) -> &mut Records {
        self.records.get_or_insert_default()
    }

    /// Takes the records, empty ones if there are none.
    pub fn take_records(&mut self) -> Records {
        self.records.take().map(|records| *records).unwrap_or_default()
    }

    /// Returns whether the flow failed.
    #[must_use]
    pub const fn is_failed(&self) -> bool {
        self.flags & FAILED != 0
    }

    fn fail(&mut self, reason: String) {
        self.flags |= FAILED;
        self.records_mut().failure = Some(reason.into());
    }
}

/// More bytes than any transport sends in a trial, and far from overflow.
const ENDLESS: u64 = 1 << 56;

/// An application.
#[derive(Debug)]
pub enum Application {
    /// Reads, and ends its own stream after the peer's.
    Sink,
    /// Sends this number of bytes and ends its stream.
    File(u64),
    /// Sends as fast as the transport accepts data, without end.
    Endless,
    /// Sends at a rate.
    Paced(Box<Paced>),
    /// Sends requests and waits for the responses.
    Client(Box<Client>),
    /// Responds to requests.
    Server(Server),
    /// Sends this number of bytes in parts, each when the steps of an all-reduce allow it.
    Member(u64),
    /// Has several requests in progress at once.
    ParallelClient(Box<ParallelClient>),
    /// Responds to them.
    ParallelServer(Box<ParallelServer>),
    /// Sends real-time frames.
    FrameSource(Box<FrameSource>),
    /// Receives them.
    FrameSink(Box<FrameSink>),
}

impl Application {
    /// Returns the applications at both ends of flow `number` of a group, the opener's first. `size` is the size of the flow,
    /// if it has one.
    ///
    /// # Panics
    /// For an invalid workload.
    #[must_use]
    pub fn of(group: &Group, number: u32, size: Option<u64>) -> [Self; 2] {
        let workload = &group.workload;
        if let Some(exchanges) = workload.exchanges() {
            let (client, server) = parallel::ends(exchanges);
            return [
                Self::ParallelClient(Box::new(client)),
                Self::ParallelServer(Box::new(server)),
            ];
        }
        match (workload.kind, workload.rate) {
            (WorkloadKind::File | WorkloadKind::Arrivals, _) => [Self::File(size.unwrap_or(0)), Self::Sink],
            (WorkloadKind::Bulk, None) => [size.map_or(Self::Endless, Self::File), Self::Sink],
            (WorkloadKind::Bulk | WorkloadKind::OnOff, rate) => {
                let second = Duration::from_secs(1);
                let pauses = (workload.kind == WorkloadKind::OnOff).then(|| Pauses {
                    on: workload.on.unwrap_or(second),
                    off: workload.off.unwrap_or(second),
                    random: group.streams.stream(&format!("pauses/{number}")),
                    on_until: Instant::MAX,
                });
                let rate = rate.expect("validation requires a rate");
                let paced = Paced::new(group.payload(), rate, pauses, group.stop_at());
                [Self::Paced(Box::new(paced)), Self::Sink]
            }
            (WorkloadKind::AllReduce, _) => [Self::Member(size.unwrap_or(0)), Self::Sink],
            (WorkloadKind::WebPage, _) => unreachable!("a page has exchanges"),
            (WorkloadKind::Frames, _) => {
                let (source, sink) = frames::ends(workload, group.stop_at());
                [
                    Self::FrameSource(Box::new(source)),
                    Self::FrameSink(Box::new(sink)),
                ]
            }
            (WorkloadKind::RequestResponse, _) => {
                let (request, response) = workload.exchange();
                let each = if workload.reconnect == Some(true) {
                    1
                } else {
                    workload.requests.unwrap_or(1)
                };
                let think = workload.think.unwrap_or_default();
                let client = Client {
                    waits: workload.barrier == Some(true),
                    ..Client::new(each, request, response, think)
                };
                let server = Server::new(request, response);
                [Self::Client(Box::new(client)), Self::Server(server)]
            }
        }
    }

    /// Starts the application of the end that opens the flow.
    pub fn start(&mut self, now: Instant, machine: &mut impl Stream) {
        match self {
            Self::Sink | Self::Server(_) | Self::Member(_) | Self::ParallelServer(_) | Self::FrameSink(_) => {
            }
            Self::File(bytes) => {
                machine.write(now, *bytes);
                machine.finish(now);
            }
            Self::Endless => machine.write(now, ENDLESS),
            Self::Paced(paced) => paced.start(now),
            Self::Client(client) => client.send_request(now, machine),
            Self::ParallelClient(client) => client.start(now, machine),
            Self::FrameSource(source) => source.start(now),
        }
    }

    /// Handles an event of the machine.
    #[inline]
    pub fn on_notice(
        &mut self,
        now: Instant,
        notice: Notice,
        machine: &mut impl Stream,
        progress: &mut Progress,
    ) {
        // Most events are reads of a sink, which only its end counts.
        if !matches!((&*self, &notice), (Self::Sink, Notice::Read(_))) {
            self.react(now, notice, machine, progress);
        }
    }

    fn react(&mut self, now: Instant, notice: Notice, machine: &mut impl Stream, progress: &mut Progress) {
        match (self, notice) {
            (_, Notice::Finished) => progress.flags |= FINISHED,
            (_, Notice::Closed) => progress.flags |= CLOSED,
            (_, Notice::Failed(reason)) => progress.fail(reason),
            (Self::Member(_), Notice::Connected) => progress.flags |= WAITS,
            (Self::Client(client), Notice::Read(bytes)) => client.read(now, bytes, machine, progress),
            (Self::Client(client), Notice::Unanswered) => client.give_up(now, machine, progress),
            (Self::Server(server), Notice::Read(bytes)) => server.read(now, bytes, machine),
            (Self::ParallelClient(client), Notice::Read(bytes)) => client.read(now, bytes, machine, progress),
            (Self::ParallelClient(client), Notice::ReadMessage(number, bytes)) => {
                client.read_message(now, number, bytes, machine, progress);
            }
            (Self::ParallelServer(server), Notice::Read(bytes)) => server.read(now, bytes, machine),
            (Self::ParallelServer(server), Notice::ReadMessage(number, bytes)) => {
                server.read_message(now, number, bytes, machine);
            }
            (Self::FrameSink(sink), Notice::Read(bytes)) => {
                sink.read(now, bytes, &mut progress.records_mut().frames)
            }
            (Self::FrameSink(sink), Notice::ReadMessage(number, bytes)) => {
                sink.read_message(now, number, bytes, &mut progress.records_mut().frames);
            }
            (Self::ParallelServer(server), Notice::PeerFinished) => server.peer_finished(now, machine),
            (Self::Sink | Self::Server(_) | Self::FrameSink(_), Notice::PeerFinished) => machine.finish(now),
            _ => {}
        }
    }

    /// Returns the next expiry of [`handle_timeout`](Self::handle_timeout).
    #[inline]
    #[must_use]
    pub fn timeout(&self) -> Instant {
        match self {
            Self::Paced(paced) => paced.next,
            Self::Client(client) => client.next_request_at,
            Self::ParallelClient(client) => client.timeout(),
            Self::ParallelServer(server) => server.timeout(),
            Self::FrameSource(source) => source.timeout(),
            _ => Instant::MAX,
        }
    }

    /// Sends the request that waits for other flows, after the pause of the workload.
    pub fn release(&mut self, now: Instant, machine: &mut impl Stream, progress: &mut Progress) {
        let waited = progress.waits();
        progress.flags &= !WAITS;
        if waited && let Self::Client(client) = self {
            client.request_after_pause(now, machine);
        }
    }

    /// Sends a part of an all-reduce.
    pub fn send_part(&mut self, now: Instant, bytes: u64, machine: &mut impl Stream) {
        if let Self::Member(left) = self {
            machine.write(now, bytes);
            *left -= bytes;
            if *left == 0 {
                machine.finish(now);
            }
        }
    }

    /// Handles an expired timer.
    pub fn handle_timeout(&mut self, now: Instant, machine: &mut impl Stream, progress: &mut Progress) {
        match self {
            Self::Paced(paced) => paced.handle_timeout(now, machine),
            Self::Client(client) if client.next_request_at <= now => client.send_request(now, machine),
            Self::ParallelClient(client) => client.send_due(now, machine),
            Self::ParallelServer(server) => server.send_due(now, machine),
            Self::FrameSource(source) => {
                source.handle_timeout(now, machine, &mut progress.records_mut().frames)
            }
            _ => {}
        }
    }
}

/// A source of constant rate, optionally with on and off periods.
#[derive(Debug)]
pub struct Paced {
    chunk: u64,
    rate: Rate,
    pauses: Option<Pauses>,
    next: Instant,
    /// End of sending.
    stop_at: Instant,
}

/// On and off periods, exponentially distributed (as in Willinger et al. 1997, with light tails).
#[derive(Debug)]
struct Pauses {
    on: Duration,
    off: Duration,
    random: Generator,
    /// End of the current on period.
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

/// Sends requests and waits for each response.
#[derive(Debug)]
pub struct Client {
    requests: u32,
    request: u64,
    response: u64,
    think: Duration,
    next_request_at: Instant,
    requested_at: Instant,
    awaited: u64,
    /// Whether each request waits for other flows.
    waits: bool,
}

impl Client {
    fn new(requests: u32, request: u64, response: u64, think: Duration) -> Self {
        Self {
            requests,
            request,
            response,
            think,
            next_request_at: Instant::MAX,
            requested_at: Instant::MAX,
            awaited: 0,
            waits: false,
        }
    }

    fn send_request(&mut self, now: Instant, machine: &mut impl Stream) {
        self.next_request_at = Instant::MAX;
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
        progress.records_mut().transactions.push(Transaction {
            requested_at: self.requested_at,
            responded_at: now,
            on_wire: None,
        });
        self.schedule_next(now, machine, progress);
    }

    fn give_up(&mut self, now: Instant, machine: &mut impl Stream, progress: &mut Progress) {
        progress.records_mut().unanswered += 1;
        self.schedule_next(now, machine, progress);
    }

    fn schedule_next(&mut self, now: Instant, machine: &mut impl Stream, progress: &mut Progress) {
        self.requested_at = Instant::MAX;
        if self.requests > 0 {
            if self.waits {
                progress.flags |= WAITS;
            } else {
                self.request_after_pause(now, machine);
            }
        }
    }

    fn request_after_pause(&mut self, now: Instant, machine: &mut impl Stream) {
        if self.think.is_zero() {
            self.send_request(now, machine);
        } else {
            self.next_request_at = now + self.think;
        }
    }
}

/// Responds to each complete request.
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
