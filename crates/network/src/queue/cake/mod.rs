//! CAKE, common applications kept enhanced: a shaper in front of fair queueing by flow and by host, with an AQM per flow
//! (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home Gateways", LANMAN
//! 2018, arXiv 1804.07617). Constants are those of Linux's `sch_cake`, with one tin ("besteffort").

mod ack_filter;
mod cobalt;
mod flows;
mod shaper;

use std::collections::VecDeque;

use foundation::{Duration, Generator, Instant, Problem, Rate, Size, omit_unset};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::ControlLaw;
use super::discipline::limit_key;
use super::fifo::Bounds;
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedLink, QueuedPacket,
    RouteHosts, Transmitter,
};

use cobalt::Parameters;
use flows::{Flows, Rotation};
use shaper::{Overhead, Shaper};

pub use shaper::Framing;

omit_unset! {
    /// CAKE: a shaper with fair queueing by flow and host, and an AQM per flow (Linux's sch_cake; LANMAN 2018).
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Cake {
        /// Limit of all queues together in packets or bytes, the packet in transmission included; default "4MiB" (Linux).
        pub limit: Option<QueueLimit>,
        /// Rate of the shaper, at most that of the link; default: none, packets leave at the rate of the link.
        pub rate: Option<Rate>,
        /// Round-trip time of most flows: the interval of the AQM, whose target is a twentieth; at least "20us"; default "100ms". With rate, the target is at least the time of 1.5 packets of 1514 bytes.
        pub rtt: Duration,
        /// Fairness between hosts before that between flows: "triple-isolate" (sources and destinations), "dual-srchost" (sources), "dual-dsthost" (destinations) or "flows" (none); default "triple-isolate".
        #[serde(skip_serializing_if = "Isolation::is_default")]
        pub isolation: Isolation,
        /// Bytes that the link layer adds to each packet, at most "256B"; default "0B". Requires rate.
        pub overhead: Option<Size>,
        /// Smallest size of a packet on the link layer, at most "256B"; default "0B". Requires rate.
        pub mpu: Option<Size>,
        /// Framing of the link layer: "none", "atm" (cells of 53 bytes, 48 of them payload) or "ptm" (one byte per 64); default "none". Requires rate.
        #[serde(skip_serializing_if = "Framing::is_default")]
        pub framing: Framing,
        /// Drop ACKs that later ones in the queue make redundant, as the conservative filter of Linux; default false.
        #[serde(skip_serializing_if = "is_off")]
        pub ack_filter: bool,
    }
}

fn is_off(value: &bool) -> bool {
    !value
}

/// Hosts that receive equal shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Each flow has the share of its busier host divided by that host's flows.
    #[default]
    TripleIsolate,
    /// Sources.
    DualSrchost,
    /// Destinations.
    DualDsthost,
    /// Flows only.
    Flows,
}

impl Isolation {
    fn is_default(&self) -> bool {
        *self == Self::TripleIsolate
    }

    const fn is_by_source(self) -> bool {
        matches!(self, Self::TripleIsolate | Self::DualSrchost)
    }

    const fn is_by_destination(self) -> bool {
        matches!(self, Self::TripleIsolate | Self::DualDsthost)
    }
}

impl Default for Cake {
    fn default() -> Self {
        Self {
            limit: None,
            rate: None,
            rtt: Duration::from_millis(100),
            isolation: Isolation::TripleIsolate,
            overhead: None,
            mpu: None,
            framing: Framing::None,
            ack_filter: false,
        }
    }
}

const DEFAULT_LIMIT: u64 = 4 << 20;
/// Largest overhead and smallest size of packets (tc-cake).
const MAX_OVERHEAD: u64 = 256;
/// Shortest interval, with a target of 1 us.
const MIN_RTT: Duration = Duration::from_micros(20);
/// A large Ethernet frame without its check sequence, in bytes: the quantum, and the packet of the AQM's target.
const FRAME: u64 = 1514;
/// Smallest quantum, in bytes, for rates of the shaper below 10 Mbit/s.
const MIN_QUANTUM: u64 = 300;

impl Cake {
    /// Returns the quantum in bytes: with a shaper, the bytes of 1/4096 s within limits (Linux).
    fn quantum(&self) -> i64 {
        let bytes = |rate: Rate| (rate.bits_per_second() / 8) >> 12;
        let quantum = self
            .rate
            .map_or(FRAME, |rate| bytes(rate).clamp(MIN_QUANTUM, FRAME));
        quantum as i64
    }

    /// Returns the parameters of the AQM (`cake_set_rate` of Linux).
    fn parameters(&self) -> Parameters {
        let per_packet = |rate: Rate| FRAME * 8_000_000_000 / rate.bits_per_second();
        let packet_time = self.rate.map_or(0, per_packet);
        let base = self.rtt.as_nanos() / 20;
        let target = base.max(packet_time * 3 / 2);
        let interval = (self.rtt.as_nanos() + target - base).max(2 * target);
        Parameters {
            law: ControlLaw {
                target: Duration::from_nanos(target),
                interval: Duration::from_nanos(interval),
                ecn: true,
                ce_threshold: None,
                ect1_only: false,
            },
            packet_time,
        }
    }
}

impl DisciplineConfig for Cake {
    limit_key!();

    fn limit(&self) -> QueueLimit {
        let default = QueueLimit::Bytes(Size::from_bytes(DEFAULT_LIMIT));
        self.limit.unwrap_or(default)
    }

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        let rtt = format!("\"{}\"", self.rtt);
        problems.extend(Problem::range(
            "rtt",
            rtt,
            self.rtt >= MIN_RTT,
            "at least \"20us\"",
        ));
        for (key, size) in [("overhead", self.overhead), ("mpu", self.mpu)] {
            let Some(size) = size else { continue };
            let is_valid = size.bytes() <= MAX_OVERHEAD;
            problems.extend(Problem::range(
                key,
                format!("\"{size}\""),
                is_valid,
                "at most \"256B\"",
            ));
        }
        let accounted = [
            ("overhead", self.overhead.is_some()),
            ("mpu", self.mpu.is_some()),
            ("framing", self.framing != Framing::None),
        ];
        for (key, is_set) in accounted {
            if is_set && self.rate.is_none() {
                problems.push(Problem::new(key, "requires rate"));
            }
        }
        problems
    }

    fn validate_on(&self, link: &QueuedLink) -> Vec<Problem> {
        let mut problems = link.requires_rate("cake");
        if let (Some(rate), Some(fastest)) = (self.rate, link.rate)
            && rate > fastest
        {
            let message = format!("\"{rate}\" is out of range: at most \"{fastest}\", the rate of the link");
            problems.push(Problem::new("rate", message));
        }
        problems
    }

    fn shaper(&self) -> Option<Rate> {
        self.rate
    }

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        let mut stream = context.streams.stream("cake");
        let overhead = (self.overhead.unwrap_or_default(), self.mpu.unwrap_or_default());
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            filters_acks: self.ack_filter,
            parameters: self.parameters(),
            quantum: self.quantum(),
            overhead: Overhead::new(overhead.0, overhead.1, self.framing),
            shaper: self.rate.map(Shaper::new),
            hosts: context.hosts.clone(),
            flows: Flows::new(stream.next_u64(), self.isolation),
            lists: Default::default(),
            waiting: Count::default(),
            stream,
        }))
    }
}

/// Indices of lists.
const NEW: usize = 0;
const OLD: usize = 1;
const DECAYING: usize = 2;

struct Queue {
    bounds: Bounds,
    filters_acks: bool,
    parameters: Parameters,
    quantum: i64,
    overhead: Overhead,
    shaper: Option<Shaper>,
    hosts: RouteHosts,
    flows: Flows,
    /// Queues that are new, old and decaying, each in round-robin order.
    lists: [VecDeque<u32>; 3],
    waiting: Count,
    /// Draws of BLUE and of the rounding of deficits.
    stream: Generator,
}

impl Queue {
    /// Drops the first packet of the queue with the most bytes. Returns whether there was one.
    fn drop_from_fattest(&mut self, now: u64, actions: &mut dyn QueueActions) -> bool {
        let Some(number) = self.flows.fattest() else {
            return false;
        };
        let flow = self.flows.get(number);
        let Some(packet) = flow.fifo.pop() else {
            return false;
        };
        flow.cobalt.overflowed(now, &self.parameters);
        self.remove(&packet);
        actions.drop(packet);
        true
    }

    /// Drops the ACK of a queue that its last packet makes redundant.
    fn filter(&mut self, number: u32, actions: &mut dyn QueueActions) {
        let fifo = &mut self.flows.get(number).fifo;
        let position = ack_filter::droppable(fifo, actions);
        if let Some(packet) = position.and_then(|position| fifo.remove(position)) {
            self.remove(&packet);
            actions.drop(packet);
        }
    }

    fn remove(&mut self, packet: &QueuedPacket) {
        self.waiting = self.waiting
            - Count {
                packets: 1,
                bytes: u64::from(packet.size()),
            };
    }

    /// Returns the list with the next queue. Before the first packet of a turn, one decaying queue has priority, so that all
    /// of them decay.
    fn list(&self, is_first: bool) -> Option<usize> {
        let order = if is_first {
            [DECAYING, NEW, OLD]
        } else {
            [NEW, OLD, DECAYING]
        };
        order.into_iter().find(|&list| !self.lists[list].is_empty())
    }

    /// Starts another round of a queue, with the share of its host (DRR++ with the host's load).
    fn start_round(&mut self, number: u32) {
        let flow = self.flows.get(number);
        if flow.rotation == Rotation::Sparse {
            let is_empty = flow.fifo.count().packets == 0;
            let rotation = if is_empty {
                Rotation::SparseWait
            } else {
                Rotation::Bulk
            };
            self.flows.rotate(number, rotation);
        }
        // Rounded up or down at random, so that the errors of small shares do not add up.
        let share = (self.quantum << 16) / i64::from(self.flows.load(number));
        let dither = i64::from(self.stream.next_u32() >> 16);
        self.flows.get(number).deficit += (share + dither) >> 16;
        self.lists[OLD].push_back(number);
    }

    /// Moves a queue without packets to the decaying ones, or out of all lists.
    fn retire(&mut self, now: u64, number: u32) {
        let flow = self.flows.get(number);
        flow.cobalt.ran_empty(now, &self.parameters);
        if flow.cobalt.is_at_rest(now) {
            self.flows.rotate(number, Rotation::None);
        } else {
            self.flows.rotate(number, Rotation::Decaying);
            self.lists[DECAYING].push_back(number);
        }
    }

    /// Returns the next packet of a queue that its AQM keeps. The last packet is marked, but not dropped.
    fn take(&mut self, now: u64, number: u32, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        loop {
            let flow = self.flows.get(number);
            let packet = flow.fifo.pop()?;
            let drops = flow
                .cobalt
                .drops(now, &packet, &self.parameters, &mut self.stream, actions);
            let is_last = flow.fifo.count().packets == 0;
            self.remove(&packet);
            if !drops || is_last {
                return Some(packet);
            }
            actions.drop(packet);
        }
    }
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let now = now.as_nanos();
        if self.waiting.packets == 0
            && let Some(shaper) = &mut self.shaper
        {
            shaper.start(now);
        }
        let number = self.flows.number_of(&arriving, self.hosts.of(arriving.route));
        self.waiting.add(arriving.size());
        self.flows.get(number).fifo.push(arriving);
        if self.filters_acks {
            self.filter(number, actions);
        }
        match self.flows.get(number).rotation {
            rotation @ (Rotation::None | Rotation::Decaying) => {
                if rotation == Rotation::Decaying {
                    self.lists[DECAYING].retain(|&other| other != number);
                }
                self.flows.rotate(number, Rotation::Sparse);
                self.flows.get(number).deficit = self.quantum / i64::from(self.flows.load(number));
                self.lists[NEW].push_back(number);
            }
            Rotation::SparseWait => self.flows.rotate(number, Rotation::Bulk),
            Rotation::Sparse | Rotation::Bulk => {}
        }
        while !self.bounds.contain(self.waiting + transmitter.sending) {
            if !self.drop_from_fattest(now, actions) {
                break;
            }
        }
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        let now = now.as_nanos();
        let mut is_first = true;
        while self.waiting.packets > 0 {
            if self.shaper.as_ref().is_some_and(|shaper| shaper.next() > now) {
                return None;
            }
            let list = self.list(std::mem::take(&mut is_first))?;
            let number = *self.lists[list].front()?;
            if self.flows.get(number).deficit <= 0 {
                self.lists[list].pop_front();
                self.start_round(number);
                continue;
            }
            let Some(packet) = self.take(now, number, actions) else {
                self.lists[list].pop_front();
                self.retire(now, number);
                continue;
            };
            let size = self.overhead.of(packet.size());
            self.flows.get(number).deficit -= i64::from(size);
            if let Some(shaper) = &mut self.shaper {
                shaper.charge(size);
            }
            return Some(packet);
        }
        None
    }

    fn ready(&self) -> Option<Instant> {
        let shaper = self.shaper.as_ref();
        shaper.map(|shaper| Instant::from_nanos(shaper.next()))
    }

    fn waiting(&self) -> Count {
        self.waiting
    }
}
