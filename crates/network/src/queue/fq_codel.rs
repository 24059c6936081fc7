//! FQ-CoDel: one CoDel queue per flow, served round-robin with a byte quantum; new flows have priority (RFC 8290).

use std::collections::VecDeque;

use foundation::{Duration, Instant, Problem, Size};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::{CoDel, CoDelState, ControlLaw};
use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use super::flow_hash::flow_hash;
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedLink, QueuedPacket,
    Transmitter,
};

/// FQ-CoDel: one CoDel queue per flow, served round-robin; sparse flows do not wait behind bulk flows (RFC 8290).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FqCoDel {
    /// Limit of all queues together in packets or bytes, the packet in transmission included; default "10240pkt" (RFC 8290, section 5.2.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
    /// Number of queues, to which flows are hashed, from 1 to 65536; default 1024.
    pub flows: u32,
    /// Bytes of a flow per round, from "1B" to "128MiB"; default "1514B".
    pub quantum: Size,
    /// Acceptable standing queueing delay; above "0s", at most interval; default "5ms".
    pub target: Duration,
    /// Time above the target before the first drop, about the largest round-trip time; above "0s"; default "100ms".
    pub interval: Duration,
    /// Marking of ECN-capable packets instead of dropping; default false.
    pub ecn: bool,
    /// Delay above which every ECN-capable packet is marked, whatever the control law decides; at most the delay of a full queue; default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
    /// Packets to drop when the limit is reached: "fattest" (half of the longest queue, RFC 8290) or "arriving" (the arriving packet, as Linux's fq); default "fattest".
    #[serde(skip_serializing_if = "Overflow::is_default")]
    pub overflow: Overflow,
    /// Restriction of ce_threshold to packets with ECT(1), for L4S; default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ce_ect1_only: bool,
}

/// Packets that are dropped when a limit of all queues is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Half of the queue with the most bytes, from its head (RFC 8290, section 4.1).
    #[default]
    Fattest,
    /// The arriving packet.
    Arriving,
}

impl Overflow {
    fn is_default(&self) -> bool {
        *self == Self::Fattest
    }
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
            ce_threshold: None,
            overflow: Overflow::Fattest,
            ce_ect1_only: false,
        }
    }
}

const MAX_FLOWS: u32 = 65_536;
/// A larger quantum takes more than a second at 1 Gbit/s.
const MAX_QUANTUM: u64 = 1 << 27;

impl DisciplineConfig for FqCoDel {
    limit_key!();

    /// RFC 8290, section 5.2.3.
    fn limit(&self) -> QueueLimit {
        self.limit.unwrap_or(QueueLimit::Packets(10_240))
    }

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
        if self.ce_ect1_only && self.ce_threshold.is_none() {
            problems.push(Problem::new("ce_ect1_only", "requires ce_threshold"));
        }
        problems.extend(self.law().validate());
        problems
    }

    fn validate_on(&self, link: &QueuedLink) -> Vec<Problem> {
        self.law().validate_on(link, self.limit())
    }

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            overflow: self.overflow,
            law: self.law(),
            quantum: self.quantum.bytes() as i64,
            perturbation: context.streams.stream("fq-codel").next_u64(),
            slots: vec![UNUSED; self.flows as usize].into(),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: Count::default(),
            largest: 0,
        }))
    }
}

impl FqCoDel {
    const fn law(&self) -> ControlLaw {
        ControlLaw {
            target: self.target,
            interval: self.interval,
            ecn: self.ecn,
            ce_threshold: self.ce_threshold,
            ect1_only: self.ce_ect1_only,
        }
    }
}

/// A slot without a flow.
const UNUSED: u32 = u32::MAX;

/// The queue of a flow.
#[derive(Debug, Default)]
struct Flow {
    fifo: Fifo,
    state: CoDelState,
    /// Bytes left in this round.
    credits: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

struct Queue {
    bounds: Bounds,
    overflow: Overflow,
    law: ControlLaw,
    quantum: i64,
    perturbation: u64,
    /// From a hash to an index of `flows`, which are created on first use.
    slots: Box<[u32]>,
    flows: Vec<Flow>,
    /// New flows and old flows with packets, each in round-robin order (RFC 8290, section 3).
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    waiting: Count,
    largest: u32,
}

impl Queue {
    /// Returns the queue of a packet's flow. Flows may share a queue (RFC 8290, section 5.3: of 100 flows in 1024 queues, one
    /// in eleven).
    fn flow_of(&mut self, packet: &QueuedPacket) -> u32 {
        let hash = flow_hash(self.perturbation, packet.route, packet.flow);
        let slot = (hash % self.slots.len() as u64) as usize;
        if self.slots[slot] == UNUSED {
            self.slots[slot] = self.flows.len() as u32;
            self.flows.push(Flow::default());
        }
        self.slots[slot]
    }

    /// Clears both lists after the link found all queues empty: the next packet of any flow makes it a new flow.
    fn clear_lists(&mut self) {
        for number in self.new.drain(..).chain(self.old.drain(..)) {
            self.flows[number as usize].listed = false;
        }
    }

    /// Drops half of the queue with the most bytes from its head, at most 64 packets, to amortize the search for that queue
    /// (RFC 8290, section 4.1). Returns whether it dropped any packet.
    fn drop_from_fattest(&mut self, actions: &mut dyn QueueActions) -> bool {
        const BATCH: u64 = 64;
        // Ties select the first flow; the order of flows follows from the packets.
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
            actions.drop(packet);
        }
        self.waiting = self.waiting - dropped;
        dropped.packets > 0
    }
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        _: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        if self.waiting.packets == 0 && transmitter.sending.packets == 0 {
            self.clear_lists();
        }
        if self.overflow == Overflow::Arriving
            && !self
                .bounds
                .admit(self.waiting + transmitter.sending, arriving.size())
        {
            return actions.drop(arriving);
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
        while !self.bounds.contain(self.waiting + transmitter.sending) {
            if !self.drop_from_fattest(actions) {
                break;
            }
        }
    }

    /// RFC 8290, section 4.2.
    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
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
            let packet = flow
                .state
                .dequeue(now.as_nanos(), &self.law, self.largest, &mut flow.fifo, actions);
            self.waiting = self.waiting - (before - flow.fifo.count());
            let Some(packet) = packet else {
                list.pop_front();
                if from_new {
                    // Moves to the old flows, so that a flow that sends single packets cannot starve them.
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
    use crate::packet::RouteId;
    use foundation::Streams;
    use std::collections::BTreeSet;

    /// Consecutive flow numbers hash uniformly: `n` flows in 1024 queues use 1024 (1 - (1 - 1/1024)^n) queues.
    #[test]
    fn hashes_flows_uniformly() {
        for (flows, used) in [(4, 3.994), (100, 95.28), (1000, 638.9)] {
            let runs = 2000;
            let total: usize = (0..runs)
                .map(|trial| {
                    let perturbation = Streams::new(1, trial).stream("fq-codel").next_u64();
                    let hash =
                        |flow: u32| flow_hash(perturbation, RouteId(flow % 7), u64::from(flow / 7) << 1);
                    let slots = (0..flows).map(|flow| hash(flow) % 1024);
                    slots.collect::<BTreeSet<_>>().len()
                })
                .sum();
            let mean = total as f64 / runs as f64;
            assert!((mean / used - 1.0).abs() < 0.002, "{flows}: {mean}");
        }
    }
}
