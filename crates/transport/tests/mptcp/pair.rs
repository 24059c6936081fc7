//! Two multipath connections in simulated time, over paths on which a test decides the fate of each packet.

use std::collections::BTreeMap;
use std::sync::Arc;

use foundation::{Duration, Instant, Streams};
use transport::Machine;
use transport::mptcp::{
    Connection, HostPaths, MptcpConfig, MptcpOption, Outgoing, PathIndex, Segment, Setup,
};
use transport::tcp::{Event, Flags};

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A transmitted segment.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: Side,
    pub path: PathIndex,
    pub packet: Outgoing,
}

/// One end: a connection and its application.
pub struct End {
    pub connection: Option<Connection>,
    pub to_write: u64,
    pub finish: bool,
    finished_writing: bool,
    pub reads: bool,
    pub received: u64,
    pub events: Vec<Event>,
}

impl End {
    fn new() -> Self {
        Self {
            connection: None,
            to_write: 0,
            finish: true,
            finished_writing: false,
            reads: true,
            received: 0,
            events: Vec::new(),
        }
    }

    pub fn saw(&self, event: Event) -> bool {
        self.events.contains(&event)
    }
}

/// Fate of a packet: the one-way delays of the copies that arrive, empty for a loss.
pub type Paths = Box<dyn FnMut(Instant, Side, PathIndex, &mut Segment) -> Vec<Duration>>;

/// Two ends and the paths between them.
pub struct Pair {
    pub now: Instant,
    pub ends: [End; 2],
    pub host: HostPaths,
    setup: Arc<Setup>,
    size: Option<u64>,
    paths: Paths,
    on_the_way: BTreeMap<(Instant, u64), (Side, PathIndex, Segment)>,
    sequence: u64,
    pub trace: Vec<Sent>,
    /// Ranges of the data received at each end.
    holds: [transport::ranges::RangeSet; 2],
    seed: u64,
    /// Steps since time last advanced.
    at_once: u32,
}

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

impl Pair {
    pub fn new(config: &MptcpConfig, base_rtts: &[u64], size: u64, seed: u64, paths: Paths) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            ends: [End::new(), End::new()],
            host: HostPaths::new(base_rtts.iter().map(|&rtt| ms(rtt))),
            setup: Arc::new(Setup::new(config.clone())),
            size: Some(size),
            paths,
            on_the_way: BTreeMap::new(),
            sequence: 0,
            trace: Vec::new(),
            holds: Default::default(),
            seed,
            at_once: 0,
        };
        pair.ends[0].to_write = size;
        pair
    }

    /// Creates lossless paths with these round-trip times.
    pub fn lossless(config: &MptcpConfig, rtts: &'static [u64], size: u64) -> Self {
        let paths = move |_, _, path: PathIndex, _: &mut Segment| vec![ms(rtts[path.index()]) / 2];
        Self::new(config, rtts, size, 1, Box::new(paths))
    }

    /// Changes the settings of both ends.
    pub fn with_setup(mut self, change: impl FnOnce(Setup) -> Setup) -> Self {
        self.setup = Arc::new(change(Setup::new(self.setup.config().clone())));
        self
    }

    pub fn open(&mut self) {
        let streams = Streams::new(self.seed, 0);
        let mut draws = streams.stream("paths");
        let connection = Connection::open(
            self.now,
            &self.setup,
            self.size,
            &mut self.host,
            streams.stream("client"),
            &mut draws,
        );
        self.ends[0].connection = Some(connection);
        self.drain(Side::Client);
    }

    /// Calls `call` with the connection of one side, then processes its output.
    pub fn with<R>(&mut self, side: Side, call: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        let now = self.now;
        let connection = self.ends[side as usize].connection.as_mut().expect("open");
        let result = call(connection, now);
        self.drain(side);
        result
    }

    pub fn connection(&self, side: Side) -> &Connection {
        self.ends[side as usize].connection.as_ref().expect("open")
    }

    fn drain(&mut self, side: Side) {
        loop {
            self.serve_application(side);
            let now = self.now;
            let Some(connection) = &mut self.ends[side as usize].connection else {
                return;
            };
            let mut moved = false;
            while let Some((path, packet)) = connection.poll_transmit(now) {
                moved = true;
                self.trace.push(Sent {
                    at: now,
                    from: side,
                    path,
                    packet,
                });
                let mut segment = packet.segment;
                assert!(segment.header_length() <= 60, "{segment:?}");
                for delay in (self.paths)(now, side, path, &mut segment) {
                    self.sequence += 1;
                    self.on_the_way
                        .insert((now + delay, self.sequence), (side, path, segment));
                }
            }
            let settled = side == Side::Client && connection.update_host(now, &mut self.host);
            if !moved && !settled {
                return;
            }
        }
    }

    fn serve_application(&mut self, side: Side) {
        let now = self.now;
        let holds = &mut self.holds[side as usize];
        let end = &mut self.ends[side as usize];
        let Some(connection) = &mut end.connection else {
            return;
        };
        let half_open = connection.is_half_open();
        while let Some(event) = connection.poll_event() {
            if half_open && matches!(event, Event::Failed(_) | Event::Closed) {
                end.connection = None;
                return;
            }
            end.events.push(event);
        }
        if half_open {
            return;
        }
        if end.reads {
            let bytes = connection.read(now, u64::MAX);
            end.received += bytes;
            if bytes > 0 {
                let whole = holds
                    .first()
                    .map_or(0, |(start, end)| if start == 0 { end } else { 0 });
                assert!(
                    end.received <= whole,
                    "{} bytes were read, {whole} arrived",
                    end.received
                );
            }
        }
        if end.to_write > 0 {
            end.to_write -= connection.write(now, end.to_write);
        }
        if end.to_write == 0 && end.finish && !end.finished_writing {
            end.finished_writing = true;
            connection.finish(now);
        }
    }

    /// Handles the next event up to `until`. Returns whether there was one.
    fn step(&mut self, until: Instant) -> bool {
        let arrival = self.on_the_way.keys().next().map_or(Instant::MAX, |key| key.0);
        let timers = [0, 1].map(|side: usize| {
            let connection = self.ends[side].connection.as_ref();
            connection
                .and_then(Connection::poll_timeout)
                .unwrap_or(Instant::MAX)
        });
        let next = arrival.min(timers[0]).min(timers[1]);
        if next > until || next == Instant::MAX {
            return false;
        }
        // Expired timers without effect would loop forever.
        self.at_once = if next > self.now { 0 } else { self.at_once + 1 };
        assert!(
            self.at_once < 100_000,
            "time does not advance at {:?}: {:?}",
            self.now,
            self.ends.each_ref().map(|end| &end.connection)
        );
        self.now = self.now.max(next);
        if arrival <= next {
            let (_, (from, path, segment)) = self.on_the_way.pop_first().expect("one arrives");
            self.arrive(from, path, segment);
        } else {
            let side = if timers[0] <= next {
                Side::Client
            } else {
                Side::Server
            };
            self.with(side, |connection, now| connection.handle_timeout(now));
        }
        true
    }

    fn arrive(&mut self, from: Side, path: PathIndex, segment: Segment) {
        let to = if from == Side::Client {
            Side::Server
        } else {
            Side::Client
        };
        self.note(to, &segment);
        let accepted = self.ends[to as usize].connection.as_ref();
        if accepted.is_none_or(|half_open| half_open.is_replaced_by(&segment)) {
            if to == Side::Client || !segment.tcp.has(Flags::SYN) {
                return;
            }
            let random = Streams::new(self.seed, 0).stream("server");
            let connection = Connection::accept(self.now, &self.setup, random, path, &segment);
            self.ends[to as usize].connection = Some(connection);
            self.drain(to);
            return;
        }
        self.with(to, |connection, now| {
            connection.handle_frame(now, (path, segment))
        });
    }

    /// Delivers a segment to one side on `path`.
    pub fn deliver(&mut self, to: Side, path: PathIndex, segment: Segment) {
        self.holds[to as usize].insert(0, u64::MAX, |_, _| ());
        self.with(to, |connection, now| {
            connection.handle_frame(now, (path, segment))
        });
    }

    /// Records the data range of a segment's payload.
    fn note(&mut self, to: Side, segment: &Segment) {
        if segment.tcp.length == 0 {
            return;
        }
        let start = match segment.option {
            MptcpOption::Dss {
                mapping: Some(mapping),
                ..
            } => mapping.data - 1,
            MptcpOption::Capable { .. } => 0,
            _ => {
                // The sender may have fallen back first.
                let mut ends = self.ends.iter().filter_map(|end| end.connection.as_ref());
                assert!(ends.any(Connection::is_plain), "payload without a mapping");
                return self.holds[to as usize].insert(0, u64::MAX, |_, _| ());
            }
        };
        let end = start + u64::from(segment.tcp.length);
        self.holds[to as usize].insert(start, end, |_, _| ());
    }

    pub fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Runs until both ends are finished or one failed.
    pub fn run(&mut self, limit: Instant) {
        while !self.is_over() && self.step(limit) {}
    }

    pub fn is_over(&self) -> bool {
        let done =
            |end: &End| end.saw(Event::Finished) || end.events.iter().any(|e| matches!(e, Event::Failed(_)));
        self.ends.iter().all(done)
    }

    pub fn is_finished(&self) -> bool {
        self.ends.iter().all(|end| end.saw(Event::Finished))
    }
}
