//! FQ-CoDel: a queue for each flow, served in turns of equal bytes, each under CoDel; a flow that has just begun goes first
//! (RFC 8290).

use std::collections::VecDeque;

use foundation::{Duration, Instant, Problem, Size};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::{CoDel, Control, Law};
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::packet::RouteId;
use crate::queue::{Discipline, DisciplineConfig, Line, Place, QueueLimit, Verdicts, Waiting};

/// Flows in turn, each with a queue under CoDel; flows that send little do not wait for those that send much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FqCoDel {
    /// How much all queues hold together, the packet that is being sent included; default "10240pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub limit: Option<QueueLimit>,
    /// Number of queues, among which flows are spread by a hash; from 1 to 65536; default 1024.
    pub flows: u32,
    /// Bytes that a flow may send in its turn; default "1514B".
    pub quantum: Size,
    /// Wait that is accepted as standing; default "5ms".
    pub target: Duration,
    /// How long packets wait above the target until the first is dropped, about the longest round-trip time; default "100ms".
    pub interval: Duration,
    /// Marks packets of ECN-capable transports instead of dropping them; default false.
    pub ecn: bool,
}

impl Default for FqCoDel {
    /// RFC 8290, sections 5.2.3 to 5.2.5.
    fn default() -> Self {
        let CoDel { target, interval, .. } = CoDel::default();
        Self {
            limit: None,
            flows: 1024,
            quantum: Size::from_bytes(1514),
            target,
            interval,
            ecn: false,
        }
    }
}

const MAX_FLOWS: u32 = 65_536;
/// A turn of more than a second at 1 Gbit/s was not meant.
const MAX_QUANTUM: u64 = 1 << 27;

impl DisciplineConfig for FqCoDel {
    /// RFC 8290, section 5.2.3.
    const LIMIT: QueueLimit = QueueLimit::Packets(10_240);

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            problems.push(Problem::new(
                "flows",
                format!("{} is out of range: 1 to {MAX_FLOWS}", self.flows),
            ));
        }
        if !(1..=MAX_QUANTUM).contains(&self.quantum.bytes()) {
            problems.push(Problem::new(
                "quantum",
                format!("\"{}\" is out of range: \"1B\" to \"128MiB\"", self.quantum),
            ));
        }
        problems.extend(self.law().validate());
        problems
    }

    fn build(&self, place: &Place) -> Box<dyn Discipline + Send> {
        Box::new(Queue {
            bounds: Bounds::new(self.limit.unwrap_or(Self::LIMIT)),
            law: self.law(),
            quantum: self.quantum.bytes() as i64,
            // Nobody who writes a workload can aim at another flow's queue (RFC 8290, section 4.1.1).
            perturbation: place.streams.stream("fq-codel").next_u64(),
            slots: vec![UNUSED; self.flows as usize].into(),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: Count::default(),
            largest: 0,
        })
    }
}

impl FqCoDel {
    const fn law(&self) -> Law {
        Law {
            target: self.target,
            interval: self.interval,
            ecn: self.ecn,
        }
    }
}

/// A slot that no flow has fallen into yet.
const UNUSED: u32 = u32::MAX;

/// One of the queues.
#[derive(Debug, Default)]
struct Flow {
    fifo: Fifo,
    control: Control,
    /// Bytes that it may still send in this turn.
    credits: i64,
    /// Whether it stands in one of the lists.
    listed: bool,
}

struct Queue {
    bounds: Bounds,
    law: Law,
    quantum: i64,
    perturbation: u64,
    /// From a hash to a place in `flows`, which come into being when first needed.
    slots: Box<[u32]>,
    flows: Vec<Flow>,
    /// Flows that have just begun, and the others that have packets, each in order of turn (RFC 8290, section 3).
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    waiting: Count,
    largest: u32,
}

impl Queue {
    /// The queue of a packet's flow. Two flows may fall into one (RFC 8290, section 5.3: of 100 flows in 1024 queues, one in eleven).
    fn flow_of(&mut self, packet: &Waiting) -> u32 {
        let slot = slot(self.perturbation, packet.route, packet.flow, self.slots.len());
        if self.slots[slot] == UNUSED {
            self.slots[slot] = self.flows.len() as u32;
            self.flows.push(Flow::default());
        }
        self.slots[slot]
    }

    /// The link has found all queues empty: whoever comes now is new.
    fn forget_turns(&mut self) {
        for number in self.new.drain(..).chain(self.old.drain(..)) {
            self.flows[number as usize].listed = false;
        }
    }

    /// Drops from the head of the queue with the most bytes: half of it, at most 64 packets, so that the search for it pays off
    /// (RFC 8290, section 4.1).
    fn drop_from_fattest(&mut self, verdicts: &mut dyn Verdicts) -> bool {
        const BATCH: u64 = 64;
        // Of equals the first: the order of flows follows from the packets.
        let mut fattest = 0;
        for (number, flow) in self.flows.iter().enumerate() {
            if flow.fifo.count().bytes > self.flows[fattest].fifo.count().bytes {
                fattest = number;
            }
        }
        let Some(flow) = self.flows.get_mut(fattest) else {
            return false;
        };
        let all = flow.fifo.count();
        let half = all.bytes / 2;
        let mut dropped = Count::default();
        while dropped.packets < BATCH && (dropped.packets == 0 || dropped.bytes < half) {
            let Some(packet) = flow.fifo.pop() else { break };
            dropped.add(packet.size());
            verdicts.drop(packet);
        }
        self.waiting = self.waiting - dropped;
        dropped.packets > 0
    }
}

/// Where among `slots` a flow falls.
const fn slot(perturbation: u64, route: RouteId, flow: u64, slots: usize) -> usize {
    let hash = mix(mix(perturbation ^ route.0 as u64) ^ flow);
    (hash % slots as u64) as usize
}

/// A finalizer that mixes all bits (Stafford's variant 13 of MurmurHash3's).
const fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Discipline for Queue {
    fn enqueue(&mut self, _: Instant, arriving: Waiting, line: &Line, verdicts: &mut dyn Verdicts) {
        if self.waiting.packets == 0 && line.sending.packets == 0 {
            self.forget_turns();
        }
        self.largest = self.largest.max(arriving.size());
        let number = self.flow_of(&arriving);
        let flow = &mut self.flows[number as usize];
        self.waiting.add(arriving.size());
        flow.fifo.push(arriving);
        if !flow.listed {
            flow.listed = true;
            flow.credits = self.quantum;
            self.new.push_back(number);
        }
        while !self.bounds.hold(self.waiting + line.sending) {
            if !self.drop_from_fattest(verdicts) {
                break;
            }
        }
    }

    /// RFC 8290, section 4.2.
    fn dequeue(&mut self, now: Instant, verdicts: &mut dyn Verdicts) -> Option<Waiting> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.flows[number as usize];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = flow.fifo.count();
            let packet =
                flow.control
                    .dequeue(now.as_nanos(), &self.law, self.largest, &mut flow.fifo, verdicts);
            self.waiting = self.waiting - (before - flow.fifo.count());
            let Some(packet) = packet else {
                list.pop_front();
                if from_new {
                    // Once more at the end of the others, lest a flow that sends one packet at a time starve them.
                    self.old.push_back(number);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            flow.credits -= i64::from(packet.size());
            return Some(packet);
        }
    }

    fn waiting(&self) -> Count {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::Streams;
    use std::collections::BTreeSet;

    /// Flows fall into queues as if at random, though their numbers are close to one another: of `n` flows in 1024 queues,
    /// 1024 (1 - (1 - 1/1024)^n) queues are used.
    #[test]
    fn flows_are_spread_evenly() {
        for (flows, used) in [(4, 3.994), (100, 95.28), (1000, 638.9)] {
            let runs = 2000;
            let total: usize = (0..runs)
                .map(|trial| {
                    let perturbation = Streams::new(1, trial).stream("fq-codel").next_u64();
                    let slots = (0..flows)
                        .map(|flow| slot(perturbation, RouteId(flow % 7), u64::from(flow / 7) << 1, 1024));
                    slots.collect::<BTreeSet<_>>().len()
                })
                .sum();
            let mean = total as f64 / runs as f64;
            assert!((mean / used - 1.0).abs() < 0.002, "{flows}: {mean}");
        }
    }
}
