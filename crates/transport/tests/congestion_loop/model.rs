//! A small closed loop: senders with selective ACKs over one bottleneck each, packet by packet.
//!
//! Every transmission has its own number (a retransmission counts as a new packet), the receiver acknowledges each
//! packet, an ACK covers everything that has arrived (so that a lost ACK costs only time), and a packet is lost once
//! one sent three later has arrived (RFC 9002, section 6.1.1). There are no spurious retransmissions, so that packets
//! sent over packets delivered is the cost of losses.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use foundation::{Duration, Instant, Rate, Streams};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use transport::congestion::{Controller, Sibling, Siblings};

pub use crate::congestion_loop::flow::{Flow, SEGMENT, Workload};

/// Path of one or more flows.
#[derive(Clone, Debug)]
pub struct Path {
    /// Payload capacity from each time on; empty for a path without bottleneck.
    pub rates: Vec<(Instant, Rate)>,
    /// Round-trip time without queue.
    pub rtt: Duration,
    /// Queue size in packets, the one in transmission included.
    pub queue: usize,
    /// Queue length above which packets are marked, the arriving one included.
    pub mark: usize,
    pub loss: Dropping,
    /// Loss of ACKs.
    pub ack_loss: f64,
    /// ACKs arrive at multiples of this only (aggregation); zero for none.
    pub ack_slots: Duration,
    /// Delay of the sender's timers.
    pub timer_lateness: Duration,
}

/// Data packets lost by the path, apart from queue overflows.
#[derive(Clone, Debug)]
pub enum Dropping {
    Bernoulli(f64),
    /// The first packet, then every n-th.
    EveryNth(u64),
    /// Packets with these numbers, from 1 and ascending.
    Numbers(Arc<[u64]>),
}

impl Path {
    pub fn new(mbit: f64, rtt_ms: f64, queue: usize, loss: f64) -> Self {
        let rate = Rate::from_bits_per_second((mbit * 1e6) as u64).unwrap();
        Self {
            rates: vec![(Instant::ZERO, rate)],
            rtt: Duration::from_secs_f64(rtt_ms / 1e3),
            queue,
            mark: usize::MAX,
            loss: Dropping::Bernoulli(loss),
            ack_loss: loss,
            ack_slots: Duration::ZERO,
            timer_lateness: Duration::ZERO,
        }
    }

    fn rate_at(&self, now: Instant) -> Option<Rate> {
        self.rates
            .iter()
            .rev()
            .find(|(from, _)| *from <= now)
            .map(|(_, rate)| *rate)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival {
        flow: usize,
        number: u64,
        is_marked: bool,
    },
    Ack {
        flow: usize,
        count: usize,
    },
    Wake {
        flow: usize,
    },
    Resume {
        flow: usize,
    },
}

/// A path and its state.
pub struct Link {
    path: Path,
    departures: VecDeque<Instant>,
    forward: Xoshiro256PlusPlus,
    reverse: Xoshiro256PlusPlus,
    entered: u64,
    overflowed: u64,
    queue_sum: f64,
    queue_samples: u64,
    /// Smallest and largest queue that an arriving packet found.
    pub queue_range: (usize, usize),
}

impl Link {
    fn new(path: Path, streams: &Streams, index: usize) -> Self {
        let name = |way: &str| match index {
            0 => format!("{way}/loss"),
            _ => format!("{way}/loss/{index}"),
        };
        Self {
            path,
            departures: VecDeque::new(),
            forward: streams.stream(&name("forward")),
            reverse: streams.stream(&name("reverse")),
            entered: 0,
            overflowed: 0,
            queue_sum: 0.0,
            queue_samples: 0,
            queue_range: (usize::MAX, 0),
        }
    }

    /// Returns the mean number of packets that an arriving packet finds in the queue.
    pub fn mean_queue(&self) -> f64 {
        self.queue_sum / self.queue_samples.max(1) as f64
    }

    /// Returns when a packet that enters now arrives at the other end, if it does, and whether it is marked.
    fn enter(&mut self, now: Instant) -> Option<(Instant, bool)> {
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
        self.queue_sum += self.departures.len() as f64;
        self.queue_samples += 1;
        let length = self.departures.len();
        self.queue_range = (self.queue_range.0.min(length), self.queue_range.1.max(length));
        self.entered += 1;
        let lost = match &self.path.loss {
            Dropping::Bernoulli(p) => self.forward.random::<f64>() < *p,
            Dropping::EveryNth(n) => self.entered % n == 1,
            Dropping::Numbers(numbers) => numbers.binary_search(&self.entered).is_ok(),
        };
        let departure = match self.path.rate_at(now) {
            None => now,
            Some(_) if self.departures.len() >= self.path.queue => {
                self.overflowed += 1;
                return None;
            }
            Some(rate) => {
                let start = self.departures.back().map_or(now, |&last| last.max(now));
                let departure = start + rate.time_for(SEGMENT);
                self.departures.push_back(departure);
                departure
            }
        };
        (!lost).then_some((departure + self.path.rtt / 2, length >= self.path.mark))
    }

    /// Returns when the ACK of a packet that arrives now returns, if it does.
    fn acknowledge(&mut self, now: Instant) -> Option<Instant> {
        if self.reverse.random::<f64>() < self.path.ack_loss {
            return None;
        }
        let at = (now + self.path.rtt / 2).as_nanos();
        Some(Instant::from_nanos(match self.path.ack_slots.as_nanos() {
            0 => at,
            slot => at.div_ceil(slot) * slot,
        }))
    }
}

/// A flow, its link and its connection.
pub struct Subflow {
    pub controller: Box<dyn Controller>,
    pub workload: Workload,
    pub link: usize,
    pub connection: usize,
}

pub struct Loop {
    pub links: Vec<Link>,
    pub flows: Vec<Flow>,
    /// Link and connection of each flow.
    places: Vec<(usize, usize)>,
    pub now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    sequence: u64,
}

impl Loop {
    /// Independent flows over one path.
    pub fn new(path: Path, seed: u64, flows: Vec<(Box<dyn Controller>, Workload)>) -> Self {
        let subflow = |(connection, (controller, workload))| Subflow {
            controller,
            workload,
            link: 0,
            connection,
        };
        let flows = flows.into_iter().enumerate().map(subflow).collect();
        Self::over(vec![path], seed, flows)
    }

    /// Flows over several paths.
    pub fn over(paths: Vec<Path>, seed: u64, flows: Vec<Subflow>) -> Self {
        let streams = Streams::new(seed, 0);
        let link = |(index, path)| Link::new(path, &streams, index);
        let mut this = Self {
            links: paths.into_iter().enumerate().map(link).collect(),
            flows: Vec::new(),
            places: Vec::new(),
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            sequence: 0,
        };
        for (index, flow) in flows.into_iter().enumerate() {
            this.flows.push(Flow::new(flow.controller, flow.workload));
            this.places.push((flow.link, flow.connection));
            this.wake(index, flow.workload.start);
        }
        this
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn wake(&mut self, flow: usize, at: Instant) {
        self.flows[flow].wake_at = at;
        self.schedule(at, Event::Wake { flow });
    }

    /// Runs until `until`.
    pub fn run(&mut self, until: Instant) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > until {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Arrival {
                    flow,
                    number,
                    is_marked,
                } => self.arrive(flow, number, is_marked),
                Event::Ack { flow, count } => {
                    self.update_siblings(flow);
                    if self.flows[flow].acknowledge(at, count) {
                        self.send(flow);
                    }
                }
                Event::Resume { flow } => self.send(flow),
                Event::Wake { flow } => {
                    if self.flows[flow].wake_at == at {
                        self.flows[flow].wake_at = Instant::MAX;
                        self.flows[flow].time_out(at);
                        self.send(flow);
                    }
                }
            }
        }
        self.now = until;
    }

    fn arrive(&mut self, flow: usize, number: u64, is_marked: bool) {
        self.flows[flow].arrived.push((number, is_marked));
        let count = self.flows[flow].arrived.len();
        if let Some(at) = self.links[self.places[flow].0].acknowledge(self.now) {
            self.schedule(at, Event::Ack { flow, count });
        }
    }

    /// Passes the state of the connection's subflows to a coupled controller.
    fn update_siblings(&mut self, flow: usize) {
        if !self.flows[flow].controller.is_coupled() {
            return;
        }
        let connection = self.places[flow].1;
        let members = (0..self.flows.len()).filter(|&index| self.places[index].1 == connection);
        let members: Vec<usize> = members.collect();
        let all: Vec<Sibling> = members.iter().map(|&index| self.flows[index].sibling()).collect();
        let own_index = members.iter().position(|&index| index == flow).unwrap();
        self.flows[flow]
            .controller
            .on_siblings(&Siblings { all: &all, own_index });
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            if flow.bulk_at.is_none() && flow.delivered() >= flow.workload.bytes / 100 * 99 {
                flow.bulk_at = Some(now);
            }
            if flow.delivered() >= flow.workload.bytes {
                return;
            }
            let wake = match flow.may_send(now) {
                Ok(()) => None,
                Err(None) => break,
                Err(Some(at)) => Some(at),
            };
            if let Some(at) = wake {
                let at = at + self.links[self.places[index].0].path.timer_lateness;
                self.wake(index, at.min(self.flows[index].deadline()));
                return;
            }
            let number = flow.transmit(now);
            self.enter_queue(index, number);
        }
        let deadline = self.flows[index].deadline();
        if deadline != self.flows[index].wake_at && deadline != Instant::MAX {
            self.wake(index, deadline);
        }
    }

    fn enter_queue(&mut self, flow: usize, number: u64) {
        if let Some((at, is_marked)) = self.links[self.places[flow].0].enter(self.now) {
            let arrival = Event::Arrival {
                flow,
                number,
                is_marked,
            };
            self.schedule(at, arrival);
        }
    }

    /// Pauses the application of a flow until `until`.
    pub fn pause(&mut self, flow: usize, until: Instant) {
        self.flows[flow].paused_until = until;
        self.schedule(until, Event::Resume { flow });
    }

    /// Restarts the measurements.
    pub fn reset(&mut self) {
        for link in &mut self.links {
            (link.queue_sum, link.queue_samples, link.overflowed) = (0.0, 0, 0);
            link.queue_range = (usize::MAX, 0);
        }
        for flow in &mut self.flows {
            (flow.sent, flow.lost, flow.timeouts) = (0, 0, 0);
        }
    }

    /// Returns the mean number of packets that an arriving packet finds in the first link's queue.
    pub fn mean_queue(&self) -> f64 {
        self.links[0].mean_queue()
    }

    /// Returns the packets dropped by the first link's queue.
    pub fn overflowed(&self) -> u64 {
        self.links[0].overflowed
    }
}
