//! Two connections on virtual time with a path between them that a test decides about, packet by packet.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use foundation::{Duration, Instant};
use transport::Machine;
use transport::tcp::{
    Connection, Ecn, Event, Flags, HostMemory, Outgoing, Segment, SequenceNumber, State, TcpConfig,
};

/// Which end.
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

/// What becomes of a packet.
#[derive(Clone, Debug)]
pub struct Fate {
    /// One-way delays of the copies that arrive: none for a loss.
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

/// A segment as it left, for tests that look at the wire.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: Side,
    pub packet: Outgoing,
}

/// One end: the connection and the application on top of it.
pub struct End {
    pub connection: Option<Connection>,
    pub config: TcpConfig,
    pub initial: u32,
    /// Bytes that the application still wants to write; then it ends its stream.
    pub to_write: u64,
    pub finish: bool,
    finished_writing: bool,
    /// The application reads all that there is, or nothing.
    pub reads: bool,
    pub received: u64,
    pub events: Vec<Event>,
    /// What the host remembers between connections.
    pub memory: HostMemory,
    /// The application answers so many bytes, once it has read so many and the peer's stream has ended; then it ends its own.
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

/// What arrived, in no order.
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

    /// How far the stream is whole from its start.
    fn whole(&mut self) -> i64 {
        self.compact();
        self.0
            .first()
            .filter(|first| first.start <= 0)
            .map_or(0, |first| first.end)
    }
}

/// Decides about each packet as it leaves.
pub type Path = Box<dyn FnMut(Instant, Side, &Segment) -> Fate>;

/// The two ends and the path between them.
pub struct Pair {
    pub now: Instant,
    pub ends: [End; 2],
    path: Path,
    /// From this time on, longer packets (IP header included) are dropped and their senders are told.
    pub mtu: (Instant, u32),
    on_the_way: BTreeMap<(Instant, u64), (Side, Segment)>,
    sequence: u64,
    pub trace: Option<Vec<Sent>>,
    /// The payload that arrived at each end, as ranges of stream offsets, to check what it delivers.
    holds: [Ranges; 2],
    /// The position after the highest that each end was allowed to send.
    allowed: [u64; 2],
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
            mtu: (Instant::MAX, u32::MAX),
            on_the_way: BTreeMap::new(),
            sequence: 0,
            trace: None,
            holds: Default::default(),
            allowed: [0; 2],
            shifts: [None; 2],
        };
        pair.trace = Some(Vec::new());
        pair
    }

    /// A path that delays by `delay` each way and loses nothing.
    pub fn kind(config: &TcpConfig, delay: Duration) -> Self {
        Self::new(config, config, Box::new(move |_, _, _| Fate::arrives(delay)))
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side.index()]
    }

    /// The connection of one side, and after the call whatever follows from it.
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

    /// The application acts, events are told, segments leave.
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
            while let Some(lesson) = connection.take_lesson() {
                end.memory.learn(now, side.other().address(), lesson);
            }
            if end.reads {
                end.received += connection.read(now, u64::MAX);
            }
            if let Some((_, answer)) = end.answer.filter(|&(asked, _)| end.received >= asked)
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

    /// Gives `false` where the packet is too big for the path.
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

    /// The offset beside a segment and its sequence number name the same bytes, and they fit the peer's window.
    fn check_numbers(&self, from: Side, segment: &Segment, offset: i64) {
        let initial = self.ends[from.index()].initial;
        let syn = u32::from(segment.has(Flags::SYN));
        let expected = (offset as u32).wrapping_add(initial).wrapping_add(1 - syn);
        assert_eq!(segment.sequence.0, expected, "sequence number of offset {offset}");
        let end = offset as u64 + u64::from(segment.length) + 1;
        let allowed = self.allowed[from.index()];
        if syn == 1 && !segment.has(Flags::ACK) {
            // No window is known yet.
            return;
        }
        assert!(
            end <= allowed,
            "{from:?} sends up to {end}, the window ends at {allowed}"
        );
    }

    /// What an arriving segment allows its receiver to send.
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

    /// What an end delivered has arrived, from the first byte on without a gap.
    pub fn check_stream(&mut self, side: Side) {
        let whole = self.holds[side.index()].whole();
        let delivered = self.ends[side.index()].received as i64;
        assert!(
            delivered <= whole,
            "{side:?} delivered {delivered}, but only {whole} arrived in order"
        );
    }

    /// When something happens next.
    pub fn next_time(&self) -> Option<Instant> {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let timeouts = self
            .ends
            .iter()
            .filter_map(|end| end.connection.as_ref()?.poll_timeout());
        arrival.into_iter().chain(timeouts).min()
    }

    /// One step; `false` where nothing will ever happen.
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

    /// Runs until `done`, but not beyond `limit`; whether it was done.
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
            // Time that stands still is a machine that asks again and again for nothing.
            steps = if self.now == last { steps + 1 } else { 0 };
            last = self.now;
            assert!(steps < 1_000_000, "time stands still at {:?}", self.now);
        }
        true
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Forgets the connections, but not what the hosts remember; the next ones begin at other numbers.
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
        self.shifts = [None; 2];
        self.trace = Some(Vec::new());
    }

    /// A first connection on a kind path, so that both hosts remember each other; then it is the beginning of time again.
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

    /// Both ends connected, and all quiet.
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
