//! The networks between the two hosts: one for all connections, or one for each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use capture::CaptureTap;
use foundation::{Instant, Streams, duration_histogram};
use hdrhistogram::Histogram;
use network::{FORWARD, LinkCounters, LinkId, Network, Packet, PathSpec, REVERSE, RouteId};

use crate::datagram::Datagram;

/// The lane of all connections.
const SHARED: u64 = 0;
/// Buffers kept for reuse.
const POOL: usize = 4096;

/// Names of the hosts at both ends of the path, as the interfaces of a capture.
pub const HOSTS: [&str; 2] = ["clients", "targets"];

/// A direction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the clients to the targets.
    Forward,
    /// From the targets to the clients.
    Reverse,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Reverse];

    const fn route(self) -> RouteId {
        match self {
            Self::Forward => FORWARD,
            Self::Reverse => REVERSE,
        }
    }

    /// Returns the number of the host that sends, among [`HOSTS`].
    pub(crate) const fn source(self) -> usize {
        self as usize
    }

    /// Returns the number of the host that receives, among [`HOSTS`].
    pub(crate) const fn destination(self) -> usize {
        1 - self as usize
    }

    const fn link(self) -> LinkId {
        LinkId(self as u32)
    }

    fn of(route: RouteId) -> Self {
        match route {
            FORWARD => Self::Forward,
            _ => Self::Reverse,
        }
    }
}

struct Lane {
    network: Network<Datagram>,
    /// Its entry in `timers`.
    due: Option<Instant>,
}

/// The networks, with what applies to all of them.
pub(crate) struct Lanes {
    spec: PathSpec,
    streams: Streams,
    is_separate: bool,
    lanes: BTreeMap<u64, Lane>,
    timers: BTreeSet<(Instant, u64)>,
    /// Number of lanes so far, which names their random streams.
    count: u64,
    /// Counters of lanes that are closed.
    closed: [LinkCounters; 2],
    /// Packets to lose, by direction.
    to_lose: [u64; 2],
    /// The ends of outages, by direction.
    down_until: [Option<Instant>; 2],
    arrived: VecDeque<(Direction, Datagram)>,
    too_big: VecDeque<(Direction, u32, Vec<u8>)>,
    pool: Vec<Vec<u8>>,
    delays: [Histogram<u64>; 2],
    late: Histogram<u64>,
    capture: Option<CaptureTap>,
}

impl Lanes {
    pub(crate) fn new(spec: PathSpec, streams: Streams, is_separate: bool) -> Self {
        let mut lanes = Self {
            spec,
            streams,
            is_separate,
            lanes: BTreeMap::new(),
            timers: BTreeSet::new(),
            count: 0,
            closed: Default::default(),
            to_lose: [0; 2],
            down_until: [None; 2],
            arrived: VecDeque::new(),
            too_big: VecDeque::new(),
            pool: Vec::new(),
            delays: [duration_histogram::new(), duration_histogram::new()],
            late: duration_histogram::new(),
            capture: None,
        };
        if !is_separate {
            lanes.add(Instant::ZERO, SHARED, streams);
        }
        lanes
    }

    /// Passes packets to a capture, as the hosts at both ends send and receive them.
    pub(crate) fn capture(&mut self, tap: CaptureTap) {
        self.capture = Some(tap);
    }

    fn record(&self, now: Instant, host: usize, bytes: &[u8]) {
        if let Some(tap) = &self.capture {
            tap.record(now, host, bytes);
        }
    }

    fn add(&mut self, now: Instant, key: u64, streams: Streams) {
        let mut network = Network::two_hosts(&self.spec, streams);
        // Outages of the specification that have started or ended.
        network.handle_timeout(now);
        for direction in Direction::ALL {
            if self.down_until[direction as usize].is_some() {
                network.fail(now, direction.link());
            }
        }
        self.lanes.insert(key, Lane { network, due: None });
        self.settle(key);
    }

    /// Prepares the path of a client.
    pub(crate) fn open(&mut self, now: Instant, client: u64) {
        if self.is_separate && !self.lanes.contains_key(&client) {
            self.count += 1;
            let streams = self.streams.component(&format!("connection/{}", self.count));
            self.add(now, client, streams);
        }
    }

    /// Removes the path of a client, with the packets on it.
    pub(crate) fn close(&mut self, client: u64) {
        if !self.is_separate {
            return;
        }
        if let Some(lane) = self.lanes.remove(&client) {
            if let Some(due) = lane.due {
                self.timers.remove(&(due, client));
            }
            for direction in Direction::ALL {
                self.closed[direction as usize] += lane.network.counters(direction.link());
            }
        }
    }

    /// Number of networks.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Sends a packet. Without a lane of its client it is dropped: both ends are gone.
    pub(crate) fn send(&mut self, now: Instant, direction: Direction, bytes: Vec<u8>) {
        self.record(now, direction.source(), &bytes);
        let datagram = Datagram { bytes, sent: now };
        let key = match self.is_separate {
            true => datagram.client(direction == Direction::Forward),
            false => SHARED,
        };
        let Some(lane) = self.lanes.get_mut(&key) else {
            return;
        };
        let size = datagram.bytes.len() as u32;
        let id = lane
            .network
            .send(now, Packet::new(direction.route(), size, datagram));
        let to_lose = &mut self.to_lose[direction as usize];
        if *to_lose > 0 && lane.network.lose(id) {
            *to_lose -= 1;
        }
        self.settle(key);
    }

    /// Moves packets that are due by `now`, and ends outages. `actual` is the time on the clock: each move is that much later
    /// than it was due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, actual: Instant) {
        for direction in Direction::ALL {
            if self.down_until[direction as usize].is_some_and(|until| until <= now) {
                self.set_down(now, direction, None);
            }
        }
        while let Some(&(due, key)) = self.timers.first()
            && due <= now
        {
            self.timers.pop_first();
            duration_histogram::record(&mut self.late, actual.saturating_since(due));
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.due = None;
                lane.network.handle_timeout(now);
            }
            self.settle(key);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let next_move = self.timers.first().map(|&(due, _)| due);
        next_move
            .into_iter()
            .chain(self.down_until.iter().flatten().copied())
            .min()
    }

    /// Collects the output of a lane and sets its timer.
    fn settle(&mut self, key: u64) {
        let Some(lane) = self.lanes.get_mut(&key) else {
            return;
        };
        while let Some((_, packet)) = lane.network.poll_delivery() {
            self.arrived.push_back((Direction::of(packet.route), packet.body));
        }
        while let Some(refused) = lane.network.poll_too_big() {
            let direction = Direction::of(refused.packet.route);
            self.too_big
                .push_back((direction, refused.mtu, refused.packet.body.bytes));
        }
        let due = lane.network.poll_timeout();
        if due != lane.due {
            if let Some(before) = std::mem::replace(&mut lane.due, due) {
                self.timers.remove(&(before, key));
            }
            if let Some(due) = due {
                self.timers.insert((due, key));
            }
        }
    }

    /// Returns the next packet that has arrived at an end.
    pub(crate) fn poll_arrival(&mut self, now: Instant) -> Option<(Direction, Vec<u8>)> {
        let (direction, datagram) = self.arrived.pop_front()?;
        let delay = now.saturating_since(datagram.sent);
        duration_histogram::record(&mut self.delays[direction as usize], delay);
        self.record(now, direction.destination(), &datagram.bytes);
        Some((direction, datagram.bytes))
    }

    /// Returns the next packet that was larger than an MTU, with that MTU.
    pub(crate) fn poll_too_big(&mut self) -> Option<(Direction, u32, Vec<u8>)> {
        self.too_big.pop_front()
    }

    /// Whether packets have arrived.
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Returns an empty buffer for a packet.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Takes the buffer of a packet back.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.pool.len() < POOL {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Changes the links. Outages of the specification keep their times.
    pub(crate) fn change(&mut self, now: Instant, spec: &PathSpec) {
        self.spec = PathSpec {
            forward: network::LinkSpec {
                down: self.spec.forward.down.clone(),
                ..spec.forward.clone()
            },
            reverse: network::LinkSpec {
                down: self.spec.reverse.down.clone(),
                ..spec.reverse.clone()
            },
        };
        let keys: Vec<u64> = self.lanes.keys().copied().collect();
        for key in keys {
            if let Some(lane) = self.lanes.get_mut(&key) {
                for (direction, link) in [
                    (Direction::Forward, &self.spec.forward),
                    (Direction::Reverse, &self.spec.reverse),
                ] {
                    lane.network.change_link(now, direction.link(), link);
                }
            }
            self.settle(key);
        }
    }

    /// Takes a direction down until a time, or returns it to operation.
    pub(crate) fn set_down(&mut self, now: Instant, direction: Direction, until: Option<Instant>) {
        let was_down = std::mem::replace(&mut self.down_until[direction as usize], until).is_some();
        if was_down == until.is_some() {
            return;
        }
        let keys: Vec<u64> = self.lanes.keys().copied().collect();
        for key in keys {
            if let Some(lane) = self.lanes.get_mut(&key) {
                match until {
                    Some(_) => lane.network.fail(now, direction.link()),
                    None => lane.network.recover(now, direction.link()),
                }
            }
            self.settle(key);
        }
    }

    /// Loses the next packets of a direction that the loss model spares.
    pub(crate) const fn lose_next(&mut self, direction: Direction, count: u64) {
        let to_lose = &mut self.to_lose[direction as usize];
        *to_lose = to_lose.saturating_add(count);
    }

    /// Returns the counters of a direction.
    pub(crate) fn counters(&self, direction: Direction) -> LinkCounters {
        let mut all = self.closed[direction as usize];
        for lane in self.lanes.values() {
            all += lane.network.counters(direction.link());
        }
        all
    }

    /// Returns the delays of a direction, in nanoseconds.
    pub(crate) const fn delays(&self, direction: Direction) -> &Histogram<u64> {
        &self.delays[direction as usize]
    }

    /// Returns how late packets were moved, in nanoseconds.
    pub(crate) const fn late(&self) -> &Histogram<u64> {
        &self.late
    }
}
