//! Wi-Fi: a half-duplex channel on which stations contend, with aggregation of frames (A-MPDU).
//!
//! A station with data waits until the channel has been idle for DIFS and its backoff, a random number of slots, has passed. It
//! sends as many packets as an aggregate may contain, and the receiver answers with one block ACK; all packets arrive with the
//! end of the aggregate. Stations whose backoffs end at the same time collide: the channel is busy for the longer aggregate, no
//! packet arrives, and both send again after a backoff from a window of twice the size (IEEE 802.11-2016, section 10.3). There
//! is no limit of attempts: a collision alone never drops a packet.
//!
//! Times and headers are those of Høiland-Jørgensen et al., "Ending the Anomaly: Achieving Low Latency and Airtime Fairness in
//! WiFi", USENIX ATC 2017, section 2.2.1 and table 1: a preamble of 32 µs, DIFS of 34 µs, SIFS of 16 µs, slots of 9 µs, a block
//! ACK of 58 bytes, and 42 bytes per packet (delimiter, MAC header, FCS), padded to a multiple of 4.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foundation::{Duration, Generator, Instant, Problem, Rate, omit_unset};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::Count;
use crate::queue::{Discipline, QueueActions, QueueConfig, QueueContext, QueuedPacket, Transmitter};

const PREAMBLE: u64 = 32_000;
const DIFS: u64 = 34_000;
const SIFS: u64 = 16_000;
const SLOT: u64 = 9_000;
/// Bytes of a block ACK, sent at the rate of the data.
const BLOCK_ACK: u64 = 58;
/// Bytes of the delimiter, the MAC header and the FCS of a frame.
const HEADERS: u64 = 42;
/// Frames that one block ACK of 802.11ax can acknowledge.
const MOST_FRAMES: u32 = 256;
/// The window of a block ACK of 802.11n and 802.11ac.
const DEFAULT_FRAMES: u32 = 64;
/// Limit of the duration of an aggregate: Linux's rate control limits aggregates to 4 ms; the standard permits 5.484 ms.
const DEFAULT_TXOP: Duration = Duration::from_millis(4);
const MAX_TXOP: Duration = Duration::from_millis(10);
/// The contention window in slots, at first and at most, minus 1.
const CW_MIN: u32 = 15;
const CW_MAX: u32 = 1023;

omit_unset! {
    /// A Wi-Fi channel that both directions share: `{ rate = "144.4Mbit/s", frames = 32 }`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, expecting = "a table such as { rate = \"144.4Mbit/s\", frames = 32 }")]
    #[schemars(rename = "Wifi")]
    pub struct WifiConfig {
        /// Rate of the physical layer, e.g. "144.4Mbit/s".
        pub rate: Rate,
        /// Maximum number of packets in an aggregate, 1 (no aggregation) to 256; default 64.
        pub frames: Option<u32>,
        /// Maximum duration of an aggregate, above "0s", at most "10ms"; default "4ms". One packet is always possible.
        pub txop: Option<Duration>,
    }
}

impl WifiConfig {
    /// Returns all values out of range.
    #[must_use]
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let frames = self.frames.unwrap_or(DEFAULT_FRAMES);
        let txop = self.txop.unwrap_or(DEFAULT_TXOP);
        let is_txop = !txop.is_zero() && txop <= MAX_TXOP;
        let range = format!("1 to {MOST_FRAMES}");
        let problems = [
            Problem::range("frames", frames, (1..=MOST_FRAMES).contains(&frames), &range),
            Problem::range(
                "txop",
                format!("\"{txop}\""),
                is_txop,
                "above \"0s\", at most \"10ms\"",
            ),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the direction of the channel with these keys.
    #[must_use]
    pub(crate) fn resolve(&self) -> Wifi {
        Wifi {
            rate: self.rate,
            frames: self.frames.unwrap_or(DEFAULT_FRAMES),
            txop: self.txop.unwrap_or(DEFAULT_TXOP),
        }
    }
}

/// The capacity of a link that is one direction of a Wi-Fi channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wifi {
    /// Rate of the physical layer.
    pub rate: Rate,
    /// Maximum number of packets in an aggregate.
    pub frames: u32,
    /// Maximum duration of an aggregate.
    pub txop: Duration,
}

impl Wifi {
    fn time(&self, bytes: u64) -> u64 {
        let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(self.rate.bits_per_second());
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// Returns the bytes that a packet takes in an aggregate.
    const fn frame(size: u32) -> u64 {
        (size as u64 + HEADERS).next_multiple_of(4)
    }

    /// Returns the duration of an aggregate, in nanoseconds.
    fn airtime(&self, bytes: u64) -> u64 {
        PREAMBLE.saturating_add(self.time(bytes))
    }

    /// Returns the time from the end of an aggregate to the end of its block ACK, in nanoseconds, with the SIFS before it and
    /// another one, as in the model of the paper.
    fn acknowledgement(&self) -> u64 {
        (2 * SIFS).saturating_add(self.time(BLOCK_ACK))
    }

    /// Returns the largest number of packets of `size` bytes (headers included) in an aggregate, from 1 to 256: that of `frames`, or
    /// fewer if they take longer than `txop`.
    #[must_use]
    pub fn most(&self, size: u32) -> u32 {
        let fits =
            |frames: &u32| self.airtime(u64::from(*frames) * Self::frame(size)) <= self.txop.as_nanos();
        let frames = (1..=self.frames).take_while(fits).last();
        frames.unwrap_or(1)
    }

    /// Returns the mean rate, in bit/s, at which a station sends aggregates of `frames` packets of `size` bytes if no other
    /// one contends: the base rate of the paper, with a mean backoff of half the contention window.
    #[must_use]
    pub fn base_rate(&self, frames: f64, size: u32) -> f64 {
        let data = frames * Self::frame(size) as f64 * 8e9 / self.rate.bits_per_second() as f64;
        let backoff = SLOT as f64 * f64::from(CW_MIN) / 2.0;
        let overhead = (PREAMBLE + DIFS + self.acknowledgement()) as f64 + backoff;
        frames * f64::from(size) * 8e9 / (data + overhead)
    }

    /// Returns the rate of 1500-byte packets in the largest aggregates if no other station contends.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        const PACKET: u32 = 1500;
        Rate::from_bits_per_second(self.base_rate(f64::from(self.most(PACKET)), PACKET) as u64)
    }

    pub(super) fn discipline(
        &self,
        queue: &QueueConfig,
        context: &QueueContext,
        station: Station,
    ) -> Box<dyn Discipline + Send> {
        Box::new(WifiQueue {
            wifi: *self,
            queue: queue.discipline_or_tail(context),
            station,
            stream: context.streams.stream("backoff"),
            aggregate: VecDeque::new(),
            bytes: 0,
            following: None,
            held: Count::default(),
            arrival: None,
            next: 0,
        })
    }
}

/// The contention of a station.
#[derive(Clone, Copy, Debug)]
struct Contention {
    /// Slots of the backoff that are left; `None` if it has passed without data.
    slots: Option<u32>,
    /// Contention window in slots, minus 1.
    window: u32,
    /// Start of the contention, while the station has data.
    since: Option<u64>,
    /// Whether another station started to send at the same time.
    collides: bool,
}

impl Contention {
    const fn new() -> Self {
        Self {
            slots: None,
            window: CW_MIN,
            since: None,
            collides: false,
        }
    }

    /// Draws a backoff.
    fn draw(&mut self, stream: &mut Generator) {
        let slots = (u64::from(stream.next_u32()) * (u64::from(self.window) + 1)) >> 32;
        self.slots = Some(slots as u32);
    }
}

/// The state of a channel.
#[derive(Debug, Default)]
struct ChannelState {
    /// End of the last use.
    busy_until: u64,
    stations: Vec<Contention>,
}

impl ChannelState {
    /// Returns when backoffs start.
    const fn idle(&self) -> u64 {
        self.busy_until.saturating_add(DIFS)
    }

    /// Returns when a station with data starts to send if no other one does before.
    fn access(&self, station: &Contention) -> Option<u64> {
        let slots = u64::from(station.slots.unwrap_or(0));
        let passed = self.idle().saturating_add(slots * SLOT);
        Some(station.since?.max(passed))
    }

    /// Starts the contention of a station with data. It sends immediately on an idle channel if its backoff has passed, and
    /// draws another one on a busy channel.
    fn start(&mut self, number: usize, now: u64, stream: &mut Generator) {
        let idle = self.idle();
        let station = &mut self.stations[number];
        if station.since.is_none() {
            station.since = Some(now);
            if station.slots.is_none() && now < idle {
                station.draw(stream);
            }
        }
    }

    /// Occupies the channel from `now` to `until`. The other stations keep the slots of their backoffs that have not passed,
    /// and those that start to send at the same time collide. Returns whether there is such a station.
    fn occupy(&mut self, number: usize, now: u64, until: u64) -> bool {
        let passed = now.saturating_sub(self.idle()) / SLOT;
        let mut collides = self.stations[number].collides;
        for other in 0..self.stations.len() {
            let station = self.stations[other];
            if other == number || station.collides {
                continue;
            }
            if self.access(&station).is_some_and(|access| access <= now) {
                self.stations[other].collides = true;
                collides = true;
                continue;
            }
            let left = station
                .slots
                .and_then(|slots| u64::from(slots).checked_sub(passed));
            self.stations[other].slots = match station.since {
                Some(_) => left.map(|left| left as u32).or(Some(0)),
                None => left.filter(|&left| left > 0).map(|left| left as u32),
            };
        }
        self.busy_until = self.busy_until.max(until);
        collides
    }
}

/// A channel. The links of a network belong to one thread, so the lock is never contended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel(Arc<Mutex<ChannelState>>);

impl Channel {
    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a station.
    pub(crate) fn station(&self) -> Station {
        let mut state = self.lock();
        state.stations.push(Contention::new());
        Station {
            channel: self.clone(),
            number: state.stations.len() - 1,
        }
    }
}

/// A station on a channel: the sender of a link.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    channel: Channel,
    number: usize,
}

impl Default for Station {
    /// Returns the only station of a channel.
    fn default() -> Self {
        Channel::default().station()
    }
}

/// A queue whose packets leave in aggregates.
struct WifiQueue {
    wifi: Wifi,
    queue: Box<dyn Discipline + Send>,
    station: Station,
    /// Draws of backoffs.
    stream: Generator,
    /// The packets of the aggregate, and their bytes with headers.
    aggregate: VecDeque<QueuedPacket>,
    bytes: u64,
    /// A packet that did not fit into the aggregate.
    following: Option<QueuedPacket>,
    /// All packets outside of the queue.
    held: Count,
    /// Arrival of the aggregate, while it is sent.
    arrival: Option<u64>,
    /// When the state may change next.
    next: u64,
}

impl WifiQueue {
    /// Fills the aggregate. One that collided is complete. Returns whether it has packets.
    fn fill(&mut self, now: Instant, actions: &mut dyn QueueActions) -> bool {
        if !self.aggregate.is_empty() {
            return true;
        }
        self.bytes = 0;
        while self.aggregate.len() < self.wifi.frames as usize {
            let Some(packet) = self.following.take().or_else(|| {
                let packet = self.queue.dequeue(now, actions)?;
                self.held.add(packet.size());
                Some(packet)
            }) else {
                break;
            };
            let bytes = self.bytes + Wifi::frame(packet.size());
            if !self.aggregate.is_empty() && self.wifi.airtime(bytes) > self.wifi.txop.as_nanos() {
                self.following = Some(packet);
                break;
            }
            self.bytes = bytes;
            self.aggregate.push_back(packet);
        }
        !self.aggregate.is_empty()
    }

    /// Contends for the channel, and sends an aggregate at its turn.
    fn contend(&mut self, now: u64, actions: &mut dyn QueueActions) {
        let number = self.station.number;
        let channel = self.station.channel.clone();
        let mut channel = channel.lock();
        channel.start(number, now, &mut self.stream);
        let own = channel.stations[number];
        let access = channel.access(&own).unwrap_or(now);
        if access > now && !own.collides {
            self.next = access;
            return;
        }
        if !self.fill(Instant::from_nanos(now), actions) {
            // The discipline dropped its packets, or holds them back.
            channel.stations[number] = Contention {
                since: None,
                collides: false,
                ..own
            };
            let ready = self.queue.ready();
            self.next = ready.map_or(now, |ready| ready.as_nanos()).max(now + 1);
            return;
        }
        let arrival = now.saturating_add(self.wifi.airtime(self.bytes));
        let until = arrival.saturating_add(self.wifi.acknowledgement());
        let collides = channel.occupy(number, now, until);
        let station = &mut channel.stations[number];
        station.collides = false;
        station.window = if collides {
            (2 * own.window + 1).min(CW_MAX)
        } else {
            CW_MIN
        };
        station.draw(&mut self.stream);
        if collides {
            station.since = Some(now);
            self.next = until;
        } else {
            station.since = None;
            self.arrival = Some(arrival);
            self.next = arrival;
        }
    }
}

impl Discipline for WifiQueue {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        _: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let transmitter = Transmitter {
            sending: self.held,
            free: now,
        };
        self.queue.enqueue(now, arriving, &transmitter, actions);
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        let at = now.as_nanos();
        if let Some(arrival) = self.arrival {
            self.next = arrival;
            if at < arrival {
                return None;
            }
            if let Some(packet) = self.aggregate.pop_front() {
                self.held = self.held
                    - Count {
                        packets: 1,
                        bytes: u64::from(packet.size()),
                    };
                return Some(packet);
            }
            self.arrival = None;
        }
        if self.waiting().packets > 0 {
            self.contend(at, actions);
        }
        None
    }

    fn ready(&self) -> Option<Instant> {
        Some(Instant::from_nanos(self.next))
    }

    fn withdraw(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Vec<QueuedPacket> {
        let mut all: Vec<QueuedPacket> = self.aggregate.drain(..).collect();
        all.extend(self.following.take());
        all.extend(self.queue.withdraw(now, actions));
        self.held = Count::default();
        self.arrival = None;
        let mut channel = self.station.channel.lock();
        let station = &mut channel.stations[self.station.number];
        (station.since, station.collides) = (None, false);
        all
    }

    fn waiting(&self) -> Count {
        self.queue.waiting() + self.held
    }
}
