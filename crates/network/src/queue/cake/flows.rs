//! CAKE's queues: a hash table with eight ways, and the loads of hosts.

use crate::link::Count;
use crate::packet::HostId;
use crate::queue::QueuedPacket;
use crate::queue::fifo::Fifo;
use crate::queue::flow_hash::flow_hash;

use super::Isolation;
use super::cobalt::Cobalt;

/// Linux: `CAKE_QUEUES` and `CAKE_SET_WAYS`.
const QUEUES: usize = 1024;
const WAYS: usize = 8;
/// A slot without a queue.
const UNUSED: u32 = u32::MAX;

/// The rotation in which a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rotation {
    /// In no list.
    #[default]
    None,
    /// New, with priority.
    Sparse,
    /// Among the old ones, but counted as sparse until its next packet: it was empty at the end of its round.
    SparseWait,
    /// Old.
    Bulk,
    /// Empty, until the state of its AQM has decayed.
    Decaying,
}

/// The queue of a flow.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) fifo: Fifo,
    pub(super) cobalt: Cobalt,
    /// Bytes left in this round.
    pub(super) deficit: i64,
    pub(super) rotation: Rotation,
    /// Hash of the flow that it belongs to.
    tag: u64,
    hosts: [HostId; 2],
}

/// Number of bulk queues of each source and each destination.
#[derive(Debug, Default)]
struct Loads([Vec<u32>; 2]);

impl Loads {
    fn of(&mut self, direction: usize, host: HostId) -> &mut u32 {
        let loads = &mut self.0[direction];
        // The first place is for packets from outside of the network's hosts.
        let index = host.0.wrapping_add(1) as usize;
        if index >= loads.len() {
            loads.resize(index + 1, 0);
        }
        &mut loads[index]
    }

    /// Adds a bulk queue to both hosts, or removes it.
    fn add(&mut self, hosts: [HostId; 2], change: i32) {
        for (direction, host) in hosts.into_iter().enumerate() {
            let load = self.of(direction, host);
            *load = load.saturating_add_signed(change);
        }
    }
}

/// All queues.
pub(super) struct Flows {
    perturbation: u64,
    isolation: Isolation,
    /// From a hash to an index of `flows`, which are created on first use.
    slots: Box<[u32]>,
    flows: Vec<Flow>,
    loads: Loads,
}

impl Flows {
    pub(super) fn new(perturbation: u64, isolation: Isolation) -> Self {
        Self {
            perturbation,
            isolation,
            slots: vec![UNUSED; QUEUES].into(),
            flows: Vec::new(),
            loads: Loads::default(),
        }
    }

    pub(super) fn get(&mut self, number: u32) -> &mut Flow {
        &mut self.flows[number as usize]
    }

    /// Returns the queue of a packet's flow: its own, or else an unused one of its set, or else the one of its hash, which it
    /// shares.
    pub(super) fn number_of(&mut self, packet: &QueuedPacket, hosts: [HostId; 2]) -> u32 {
        let tag = flow_hash(self.perturbation, packet.route, packet.flow);
        let slot = (tag % QUEUES as u64) as usize;
        let (set, first) = (slot - slot % WAYS, slot % WAYS);
        let ways = || (0..WAYS).map(|way| set + (first + way) % WAYS);
        let flow = |slot: usize| self.flows.get(self.slots[slot] as usize);
        let own = ways().find(|&slot| flow(slot).is_some_and(|flow| flow.tag == tag));
        let free = |&slot: &usize| flow(slot).is_none_or(|flow| flow.rotation == Rotation::None);
        let slot = own.or_else(|| ways().find(free)).unwrap_or(slot);
        if self.slots[slot] == UNUSED {
            self.slots[slot] = self.flows.len() as u32;
            self.flows.push(Flow::default());
        }
        let number = self.slots[slot];
        if own.is_none() {
            self.assign(number, tag, hosts);
        }
        number
    }

    /// Gives a queue to another flow.
    fn assign(&mut self, number: u32, tag: u64, hosts: [HostId; 2]) {
        let flow = &mut self.flows[number as usize];
        if flow.rotation == Rotation::Bulk {
            self.loads.add(flow.hosts, -1);
            self.loads.add(hosts, 1);
        }
        (flow.tag, flow.hosts) = (tag, hosts);
    }

    /// Moves a queue to another rotation.
    pub(super) fn rotate(&mut self, number: u32, rotation: Rotation) {
        let flow = &mut self.flows[number as usize];
        let (before, hosts) = (flow.rotation, flow.hosts);
        flow.rotation = rotation;
        let change = i32::from(rotation == Rotation::Bulk) - i32::from(before == Rotation::Bulk);
        self.loads.add(hosts, change);
    }

    /// Returns the number of bulk queues of the busier host of a queue, of those that the isolation considers; at least 1.
    pub(super) fn load(&mut self, number: u32) -> u32 {
        let [source, destination] = self.flows[number as usize].hosts;
        let mut load = 1;
        if self.isolation.is_by_source() {
            load = load.max(*self.loads.of(0, source));
        }
        if self.isolation.is_by_destination() {
            load = load.max(*self.loads.of(1, destination));
        }
        load
    }

    /// Returns the queue with the most bytes; the first of several. The order of queues follows from the packets.
    pub(super) fn fattest(&self) -> Option<u32> {
        let mut fattest: Option<(u32, Count)> = None;
        for (number, flow) in (0..).zip(&self.flows) {
            let count = flow.fifo.count();
            if count.packets > 0 && fattest.is_none_or(|(_, most)| count.bytes > most.bytes) {
                fattest = Some((number, count));
            }
        }
        fattest.map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairment::Lag;
    use crate::packet::RouteId;
    use crate::packet_store::Ticket;
    use foundation::{Instant, Streams};
    use rand::Rng;
    use std::collections::BTreeSet;

    /// Returns the number of queues of this many active flows.
    fn used(flows: u64, trial: u64) -> usize {
        let perturbation = Streams::new(1, trial).stream("cake").next_u64();
        let mut table = Flows::new(perturbation, Isolation::Flows);
        let numbers = (0..flows).map(|flow| {
            let packet = QueuedPacket {
                since: Instant::ZERO,
                route: RouteId(0),
                flow,
                ticket: Ticket::default(),
                lag: Lag::default(),
            };
            let number = table.number_of(&packet, [HostId(0); 2]);
            table.rotate(number, Rotation::Bulk);
            assert_eq!(table.number_of(&packet, [HostId(0); 2]), number);
            number
        });
        numbers.collect::<BTreeSet<_>>().len()
    }

    /// A flow shares a queue only if eight others are in its set: of 100 flows, in a direct table 4.7 share on average (1024
    /// queues), and here none; of 512, 109 share in a direct table. The load of a set of eight is Poisson with mean 4, so
    /// 0.84 % of the flows find it full (the sum of (n - 8) P(n) over n > 8, divided by 4).
    #[test]
    fn flows_rarely_share_a_queue() {
        assert!((0..200).all(|trial| used(100, trial) == 100));
        let trials = 100;
        let all: usize = (0..trials).map(|trial| used(512, trial)).sum();
        let shared = 1.0 - all as f64 / (512 * trials) as f64;
        assert!((0.006..0.011).contains(&shared), "{shared}");
    }
}
