//! Two ends with a delay between them, and a path that may drop datagrams.

use std::collections::VecDeque;
use std::net::SocketAddr;

use foundation::{Duration, Generator, Instant};
use quic::{Connection, Datagram, Event, QuicConfig};
use rand::SeedableRng;
use transport::Machine as _;

/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(10);

/// A datagram that an end sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub at: Instant,
    /// 0 for the client.
    pub from: usize,
    pub datagram: Datagram,
}

/// Two ends.
pub struct Pair {
    pub now: Instant,
    pub ends: [Connection; 2],
    /// All datagrams, dropped ones included.
    pub sent: Vec<Sent>,
    /// Datagrams that each end sent.
    counts: [usize; 2],
    pub events: [Vec<Event>; 2],
    pub read: [u64; 2],
    /// Bytes that an end has yet to write, before it ends its stream.
    left: [Option<u64>; 2],
    on_the_way: [VecDeque<(Instant, Datagram)>; 2],
    /// Returns whether the datagram of this number from this end is lost.
    drops: fn(usize, usize) -> bool,
    /// Address of the client outside of a translator next to the server, which drops datagrams to any other one.
    pub client: Option<SocketAddr>,
}

impl Pair {
    /// Opens a connection whose client sends `bytes`; the server ends its stream when it has read everything.
    pub fn new(config: &QuicConfig, seed: u64, bytes: u64, drops: fn(usize, usize) -> bool) -> Self {
        let now = Instant::default();
        let client = Connection::open(now, config, Generator::seed_from_u64(seed));
        let server = Connection::listen(now, config, Generator::seed_from_u64(seed + 1));
        Self {
            now,
            ends: [client, server],
            sent: Vec::new(),
            counts: [0; 2],
            events: [Vec::new(), Vec::new()],
            read: [0; 2],
            left: [Some(bytes), None],
            on_the_way: [VecDeque::new(), VecDeque::new()],
            drops,
            client: None,
        }
    }

    /// Opens a connection whose client sends nothing of its own.
    pub fn idle(config: &QuicConfig, seed: u64) -> Self {
        let mut pair = Self::new(config, seed, 0, |_, _| false);
        pair.left[0] = None;
        pair
    }

    /// Loses the datagrams for which `drops` returns true, by the number of the end and of its datagram.
    pub fn drop_if(&mut self, drops: fn(usize, usize) -> bool) {
        self.drops = drops;
    }

    /// Runs until `at`; then an end sends `bytes`.
    pub fn send(&mut self, side: usize, at: Instant, bytes: u64) {
        self.run(at);
        self.now = at;
        assert_eq!(self.ends[side].write(bytes), bytes);
        self.drain(side);
    }

    fn write(&mut self, side: usize) {
        if let Some(left) = &mut self.left[side] {
            *left -= self.ends[side].write(*left);
            if *left == 0 {
                self.ends[side].finish();
                self.left[side] = None;
            }
        }
    }

    fn drain(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            match &event {
                Event::Connected | Event::Writable => self.write(side),
                Event::Readable => self.read[side] += self.ends[side].read_all(self.now),
                Event::PeerFinished if side == 1 => self.ends[side].finish(),
                _ => {}
            }
            self.events[side].push(event);
        }
        while let Some(mut datagram) = self.ends[side].poll_transmit(self.now) {
            if side == 0 && self.client.is_some() {
                datagram.client = self.client;
            }
            let number = self.counts[side];
            self.counts[side] += 1;
            self.sent.push(Sent {
                at: self.now,
                from: side,
                datagram: datagram.clone(),
            });
            let is_addressed = side == 0 || self.client.is_none() || datagram.client == self.client;
            if is_addressed && !(self.drops)(side, number) {
                self.on_the_way[1 - side].push_back((self.now + DELAY, datagram));
            }
        }
    }

    /// Runs until nothing happens any more or `until`.
    pub fn run(&mut self, until: Instant) {
        self.drain(0);
        loop {
            let arrivals = self
                .on_the_way
                .iter()
                .filter_map(|way| way.front().map(|&(at, _)| at));
            let timeouts = self.ends.iter().filter_map(Connection::poll_timeout);
            let Some(next) = arrivals.chain(timeouts).min().filter(|&next| next <= until) else {
                return;
            };
            self.now = self.now.max(next);
            for side in [0, 1] {
                while self.on_the_way[side]
                    .front()
                    .is_some_and(|&(at, _)| at <= self.now)
                {
                    let (_, datagram) = self.on_the_way[side].pop_front().unwrap();
                    self.ends[side].handle_frame(self.now, datagram);
                    self.drain(side);
                }
                if self.ends[side].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.ends[side].handle_timeout(self.now);
                    self.drain(side);
                }
            }
        }
    }
}

/// Returns the settings of this JSON, with `kind`.
pub fn config(json: &str) -> QuicConfig {
    let config: QuicConfig = serde_json::from_str(json).unwrap();
    assert_eq!(config.validate(), []);
    config
}

/// A minute of virtual time.
pub fn minute() -> Instant {
    Instant::default() + Duration::from_secs(60)
}
