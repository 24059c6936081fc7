//! Two ends joined by two paths of different delays, each of which may fail.

use std::collections::VecDeque;

use foundation::{Duration, Generator, Instant};
use quic::wire::{self, PacketType};
use quic::{Connection, Datagram, Event, QuicConfig};
use rand::SeedableRng;
use transport::Machine as _;
use transport::mptcp::{ConnectionPlan, PathIndex};

/// One-way delays.
const DELAYS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(30)];
/// Time of a full packet on either path, 11.8 Mbit/s.
const TRANSMISSION: Duration = Duration::from_millis(1);
/// Longest wait at a link.
const QUEUE: Duration = Duration::from_millis(60);

/// A datagram that an end sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub at: Instant,
    /// 0 for the client.
    pub from: usize,
    pub way: u8,
    pub datagram: Datagram,
}

/// Two ends and two paths with drop-tail queues.
pub struct TwoPaths {
    pub now: Instant,
    pub ends: [Connection; 2],
    pub sent: Vec<Sent>,
    pub events: [Vec<Event>; 2],
    pub read: [u64; 2],
    left: Option<u64>,
    /// Arrivals by sender and path.
    on_the_way: [[VecDeque<(Instant, Datagram)>; 2]; 2],
    /// Time until which each link transmits.
    busy: [[Instant; 2]; 2],
    /// Time from which a path loses everything.
    pub fails: [Instant; 2],
    /// Path and number of the first of the client's packets with new keys that arrived, and the packets that it overtook.
    update: Option<(u8, u64)>,
    overtaken: usize,
}

impl TwoPaths {
    /// Opens a connection whose client sends `bytes`, first over the path with this number.
    pub fn new(config: &QuicConfig, seed: u64, bytes: u64, first: u8) -> Self {
        let now = Instant::default();
        let config = config.between(2);
        let plan = ConnectionPlan::over([PathIndex(first), PathIndex(1 - first)]);
        let client = Connection::open(now, &config, Generator::seed_from_u64(seed)).with_plan(plan);
        let server = Connection::listen(now, &config, Generator::seed_from_u64(seed + 1));
        Self {
            now,
            ends: [client, server],
            sent: Vec::new(),
            events: [Vec::new(), Vec::new()],
            read: [0; 2],
            left: Some(bytes),
            on_the_way: Default::default(),
            busy: Default::default(),
            fails: [Instant::MAX; 2],
            update: None,
            overtaken: 0,
        }
    }

    fn write(&mut self) {
        if let Some(left) = &mut self.left {
            *left -= self.ends[0].write(*left);
            if *left == 0 {
                self.ends[0].finish();
                self.left = None;
            }
        }
    }

    fn send(&mut self, side: usize, way: u8, datagram: Datagram) {
        let path = usize::from(way);
        self.sent.push(Sent {
            at: self.now,
            from: side,
            way,
            datagram: datagram.clone(),
        });
        let busy = &mut self.busy[side][path];
        let starts = self.now.max(*busy);
        if self.now >= self.fails[path] || starts > self.now + QUEUE {
            return;
        }
        *busy = starts + TRANSMISSION;
        self.on_the_way[side][path].push_back((*busy + DELAYS[path], datagram));
    }

    /// Compares the key phase of a 1-RTT packet (RFC 9001, section 6) with the newest one.
    fn note_keys(&mut self, way: u8, datagram: &Datagram) {
        let is_new = datagram.bytes[0] & 0x04 != 0;
        wire::packets(&datagram.bytes, |packet| {
            if packet.kind != PacketType::OneRtt {
                return;
            }
            let number = u64::from(packet.number);
            match self.update {
                None if is_new => self.update = Some((way, number)),
                Some((other, first)) if !is_new && other != way && number >= first => self.overtaken += 1,
                _ => {}
            }
        });
    }

    fn drain(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            match &event {
                Event::Connected | Event::Writable if side == 0 => self.write(),
                Event::Readable => self.read[side] += self.ends[side].read_all(self.now),
                Event::PeerFinished if side == 1 => self.ends[side].finish(),
                _ => {}
            }
            self.events[side].push(event);
        }
        while let Some((way, datagram)) = self.ends[side].poll_datagram(self.now) {
            self.send(side, way, datagram);
        }
    }

    /// Runs until nothing happens any more or `until`.
    pub fn run(&mut self, until: Instant) {
        self.drain(0);
        loop {
            let arrivals = self.on_the_way.iter().flatten();
            let arrivals = arrivals.filter_map(|way| way.front().map(|&(at, _)| at));
            let timeouts = self.ends.iter().filter_map(Connection::poll_timeout);
            let Some(next) = arrivals.chain(timeouts).min().filter(|&next| next <= until) else {
                return;
            };
            self.now = self.now.max(next);
            for (side, path) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                while self.on_the_way[side][path]
                    .front()
                    .is_some_and(|&(at, _)| at <= self.now)
                {
                    let (_, datagram) = self.on_the_way[side][path].pop_front().unwrap();
                    if side == 0 {
                        self.note_keys(path as u8, &datagram);
                    }
                    self.ends[1 - side].handle_datagram(self.now, path as u8, datagram);
                    self.drain(1 - side);
                }
            }
            for side in [0, 1] {
                if self.ends[side].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.ends[side].handle_timeout(self.now);
                    self.drain(side);
                }
            }
        }
    }

    /// Returns the client's packets that arrive after one with new keys on the other path and a smaller packet number.
    pub fn overtaken(&self) -> usize {
        self.overtaken
    }

    /// Returns the payload bytes that the client sent on each path.
    pub fn carried(&self) -> [u64; 2] {
        let mut carried = [0; 2];
        for path in self.ends[0].paths() {
            carried[usize::from(path.way)] += path.bytes_sent;
        }
        carried
    }
}
