//! Two connections on virtual time; the test decides the treatment of each packet on the path.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use foundation::{Duration, Instant};
use transport::Machine;
use transport::tcp::{
    Connection, Ecn, Event, Flags, HostMemory, Outgoing, Segment, SequenceNumber, State, TcpConfig,
};

/// End of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }

    const fn address(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, self as u8))
    }
}

/// Fate of a packet.
#[derive(Clone, Debug)]
pub struct Fate {
    /// One-way delays of the arriving copies; empty for a loss.
    pub delays: Vec<Duration>,
    pub marked: bool,
}

impl Fate {
    pub fn arrives(delay: Duration) -> Self {
        Self {
            delays: vec![delay],
            marked: false,
        }
    }

    pub const fn lost() -> Self {
        Self {
            delays: Vec::new(),
            marked: false,
        }
    }
}

/// Sent segment, for tests of the wire format.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: Side,
    pub packet: Outgoing,
}

/// One end: the connection and its application.
pub struct End {
    pub connection: Option<Connection>,
    pub config: TcpConfig,
    pub initial: u32,
    /// Bytes that the application has yet to write before it closes its stream.
    pub to_write: u64,
    pub finish: bool,
    finished_writing: bool,
    /// Whether the application reads everything, or nothing.
    pub reads: bool,
    pub received: u64,
    pub events: Vec<Event>,
    /// The host's cache between connections.
    pub memory: HostMemory,
    /// Size of the request after which the application sends a reply and closes its stream, and size of the reply.
    pub answer: Option<(u64, u64)>,
}

impl End {
    fn new(config: &TcpConfig, initial: u32) -> Self {
        Self {
            memory: HostMemory::new([initial as u8; 32], initial),
            answer: None,
            connection: None,
            config: config.clone(),
            initial,
            to_write: 0,
            finish: false,
            finished_writing: false,
            reads: true,
            received: 0,
            events: Vec::new(),
        }
    }

    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("open")
    }

    pub fn state(&self) -> State {
        self.connection.as_ref().map_or(State::Closed, Connection::state)
    }

    pub fn saw(&self, event: Event) -> bool {
        self.events.contains(&event)
    }
}

/// Ranges of received bytes, in any order.
#[derive(Default)]
struct Ranges(Vec<Range<i64>>);

impl Ranges {
    fn add(&mut self, range: Range<i64>) {
        if self.0.last().is_none_or(|last| *last != range) {
            self.0.push(range);
        }
        if self.0.len() > 4096 {
            self.compact();
        }
    }

    fn compact(&mut self) {
        self.0.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<i64>> = Vec::new();
        for range in self.0.drain(..) {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.0 = merged;
    }

    /// Returns the bytes received without a gap.
    fn whole(&mut self) -> i64 {
        self.compact();
        self.0
            .first()
            .filter(|first| first.start <= 0)
            .map_or(0, |first| first.end)
    }
}

/// Decides the fate of each sent packet.
pub type Path = Box<dyn FnMut(Instant, Side, &Segment) -> Fate>;

/// Changes the headers of packets on the path.
pub type Rewrite = Box<dyn FnMut(Side, &mut Segment)>;

/// Two ends and the path between them.
pub struct Pair {
    pub now: Instant,
    pub ends: [End; 2],
    path: Path,
    pub rewrite: Option<Rewrite>,
    /// Time from which longer packets (IP header included) are dropped and reported to their senders.
    pub mtu: (Instant, u32),
    on_the_way: BTreeMap<(Instant, u64), (Side, Segment)>,
    sequence: u64,
    pub trace: Option<Vec<Sent>>,
    /// Payload that arrived at each end, as ranges of stream offsets.
    holds: [Ranges; 2],
    /// End of the window that each end may use.
    allowed: [u64; 2],
    /// End of the data that each end's SYN carried.
    early: [u64; 2],
    /// Each end's window shift.
    shifts: [Option<u8>; 2],
}

impl Pair {
    pub fn new(client: &TcpConfig, server: &TcpConfig, path: Path) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            ends: [
                End::new(client, u32::MAX - 2000),
                End::new(server, u32::MAX - 100_000),
            ],
            path,
            rewrite: None,
            mtu: (Instant::MAX, u32::MAX),
            on_the_way: BTreeMap::new(),
            sequence: 0,
            trace: None,
            holds: Default::default(),
            allowed: [0; 2],
            early: [0; 2],
            shifts: [None; 2],
        };
        pair.trace = Some(Vec::new());
        pair
    }

    /// Returns a pair with a lossless path of one-way delay `delay`.
    pub fn lossless(config: &TcpConfig, delay: Duration) -> Self {
        Self::new(config, config, Box::new(move |_, _, _| Fate::arrives(delay)))
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side.index()]
    }

    /// Calls `call` with the connection of one side, and then processes its output.
    pub fn with<R>(&mut self, side: Side, call: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        let now = self.now;
        let connection = self.ends[side.index()].connection.as_mut().expect("open");
        let result = call(connection, now);
        self.drain(side);
        result
    }

    pub fn open(&mut self, side: Side) {
        let now = self.now;
        let end = self.end(side);
        let opening = end.memory.opening(now, &end.config, side.other().address());
        end.connection = Some(Connection::open_with(now, &end.config, end.initial, opening));
        self.drain(side);
    }

    /// Runs the application, processes events and sends segments.
    fn drain(&mut self, side: Side) {
        let now = self.now;
        loop {
            let end = &mut self.ends[side.index()];
            let Some(connection) = &mut end.connection else {
                return;
            };
            while let Some(event) = connection.poll_event() {
                end.events.push(event);
            }
            while let Some(update) = connection.take_peer_update() {
                end.memory.apply(now, side.other().address(), update);
            }
            if end.reads {
                end.received += connection.read(now, u64::MAX);
            }
            if let Some((_, answer)) = end.answer.filter(|&(request, _)| end.received >= request)
                && end.events.contains(&Event::PeerFinished)
            {
                end.answer = None;
                end.to_write = answer;
                end.finish = true;
            }
            if end.to_write > 0 {
                end.to_write -= connection.write(now, end.to_write);
            }
            if end.to_write == 0 && end.finish && !end.finished_writing {
                end.finished_writing = true;
                connection.finish(now);
            }
            let mut left = VecDeque::new();
            while let Some(packet) = connection.poll_transmit(now) {
                left.push_back(packet);
            }
            if left.is_empty() {
                return;
            }
            let mut too_big = false;
            for packet in left {
                too_big |= !self.send(side, packet);
            }
            if too_big && let Some(connection) = &mut self.ends[side.index()].connection {
                connection.handle_path_mtu(now, self.mtu.1);
            }
        }
    }

    /// Returns `false` for a packet too large for the path.
    fn send(&mut self, from: Side, packet: Outgoing) -> bool {
        if let Some(trace) = &mut self.trace {
            trace.push(Sent {
                at: self.now,
                from,
                packet,
            });
        }
        let mut segment = packet.segment;
        if segment.length > 0 {
            let start = i64::try_from(packet.offset).unwrap();
            self.check_numbers(from, &segment, start);
        }
        if self.now >= self.mtu.0 && segment.length + segment.header_length() + 20 > self.mtu.1 {
            return false;
        }
        let fate = (self.path)(self.now, from, &segment);
        if let Some(rewrite) = &mut self.rewrite {
            rewrite(from, &mut segment);
        }
        if fate.marked && segment.ecn != Ecn::NotEct {
            segment.ecn = Ecn::Ce;
        }
        for delay in fate.delays {
            self.sequence += 1;
            self.on_the_way
                .insert((self.now + delay, self.sequence), (from.other(), segment));
        }
        true
    }

    /// Asserts that a segment's offset and sequence number agree, and that it fits the peer's window.
    fn check_numbers(&mut self, from: Side, segment: &Segment, offset: i64) {
        let initial = self.ends[from.index()].initial;
        let syn = u32::from(segment.has(Flags::SYN));
        let expected = (offset as u32).wrapping_add(initial).wrapping_add(1 - syn);
        assert_eq!(segment.sequence.0, expected, "sequence number of offset {offset}");
        let end = offset as u64 + u64::from(segment.length) + 1;
        let allowed = self.allowed[from.index()];
        if syn == 1 && !segment.has(Flags::ACK) {
            // The window is still unknown.
            let early = &mut self.early[from.index()];
            *early = end.max(*early);
            return;
        }
        // At a closed window, data of the SYN leaves again as a probe (`tcp_retransmit_skb` of Linux).
        let probes = offset as u64 + 1 == allowed && end <= self.early[from.index()];
        assert!(
            end <= allowed || probes,
            "{from:?} sends up to {end}, the window ends at {allowed}"
        );
    }

    /// Updates the window that an arriving segment advertises.
    fn note_window(&mut self, to: Side, segment: &Segment) {
        let sender = to.other().index();
        if segment.has(Flags::SYN) {
            self.shifts[sender] = segment.options.window_scale;
        }
        let scaled = self.shifts.iter().all(Option::is_some) && !segment.has(Flags::SYN);
        let shift = if scaled {
            self.shifts[sender].unwrap_or(0)
        } else {
            0
        };
        let index = to.index();
        let acknowledged = if segment.has(Flags::ACK) {
            let initial = SequenceNumber(self.ends[index].initial);
            segment.acknowledgement.expand(initial, self.allowed[index])
        } else {
            Some(1)
        };
        let Some(acknowledged) = acknowledged else { return };
        let edge = acknowledged + (u64::from(segment.window) << shift);
        self.allowed[index] = self.allowed[index].max(edge);
    }

    fn arrive(&mut self, to: Side, segment: Segment) {
        let now = self.now;
        self.note_window(to, &segment);
        let end = &mut self.ends[to.index()];
        match &mut end.connection {
            Some(connection) => {
                let is_known = connection.state() != State::SynSent || segment.has(Flags::SYN);
                if segment.length > 0 && is_known && connection.state() != State::Closed {
                    let offset = connection.payload_offset(&segment);
                    self.holds[to.index()].add(offset..offset + i64::from(segment.length));
                }
                connection.handle_frame(now, segment);
            }
            None if segment.has(Flags::SYN) && !segment.has(Flags::ACK) => {
                let opening = end
                    .memory
                    .admission(now, &end.config, to.other().address(), &segment);
                let connection = Connection::accept_with(now, &end.config, end.initial, &segment, opening);
                if connection.took_payload() {
                    self.holds[to.index()].add(0..i64::from(segment.length));
                }
                end.connection = Some(connection);
            }
            None => {}
        }
        self.drain(to);
    }

    /// Asserts that the delivered bytes have arrived without a gap.
    pub fn check_stream(&mut self, side: Side) {
        let whole = self.holds[side.index()].whole();
        let delivered = self.ends[side.index()].received as i64;
        assert!(
            delivered <= whole,
            "{side:?} delivered {delivered}, but only {whole} arrived in order"
        );
    }

    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<Instant> {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let timeouts = self
            .ends
            .iter()
            .filter_map(|end| end.connection.as_ref()?.poll_timeout());
        arrival.into_iter().chain(timeouts).min()
    }

    /// Processes the next event; returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next_time() else { return false };
        self.now = self.now.max(at);
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        if arrival.is_some_and(|at| at <= self.now) {
            let (_, (to, segment)) = self.on_the_way.pop_first().unwrap();
            self.arrive(to, segment);
            return true;
        }
        for side in [Side::Client, Side::Server] {
            let now = self.now;
            if let Some(connection) = &mut self.ends[side.index()].connection
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.handle_timeout(now);
                self.drain(side);
            }
        }
        true
    }

    /// Runs until `done` or `limit`, and returns whether it was done.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let limit = self.now + limit;
        let mut steps = 0_u64;
        let mut last = self.now;
        while !done(self) {
            if self.next_time().is_none_or(|at| at > limit) {
                self.now = limit;
                return done(self);
            }
            self.step();
            // Steps without progress of time indicate a timer that is due forever.
            steps = if self.now == last { steps + 1 } else { 0 };
            last = self.now;
            assert!(steps < 1_000_000, "no progress of time at {:?}", self.now);
        }
        true
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Removes the connections, but keeps the hosts' caches; the next ones have other initial numbers.
    pub fn forget(&mut self) {
        self.run_for(Duration::from_secs(1));
        for end in &mut self.ends {
            let number = end.initial.wrapping_add(1 << 20);
            *end = End {
                memory: end.memory.clone(),
                ..End::new(&end.config, number)
            };
        }
        self.on_the_way.clear();
        self.holds = Default::default();
        self.allowed = [0; 2];
        self.early = [0; 2];
        self.shifts = [None; 2];
        self.trace = Some(Vec::new());
    }

    /// Runs a first connection on a lossless path, so that both hosts cache each other, and resets the time.
    pub fn warm_up(&mut self) {
        let path = std::mem::replace(
            &mut self.path,
            Box::new(|_, _, _| Fate::arrives(Duration::from_millis(1))),
        );
        self.connect();
        self.forget();
        self.path = path;
        self.now = Instant::ZERO;
    }

    /// Connects both ends and waits until they are idle.
    pub fn connect(&mut self) {
        self.open(Side::Client);
        let connected = self.run_until(Duration::from_secs(60), |pair| {
            pair.ends.iter().all(|end| end.saw(Event::Connected))
        });
        assert!(connected);
    }

    pub fn sent(&self) -> &[Sent] {
        self.trace.as_deref().unwrap_or_default()
    }
}
