//! A small closed loop: senders with selective ACKs over one bottleneck, packet by packet.
//!
//! Every transmission has a number of its own (a retransmission counts as a new packet), the receiver
//! acknowledges each packet, an ACK carries all that has arrived (so a lost one costs nothing but time),
//! and a packet is lost when one sent three later has arrived (RFC 9002, section 6.1.1). Data is never
//! sent twice without need, so packets sent over packets delivered is the cost of losses alone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use foundation::{Duration, Instant, Rate, Streams};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use transport::congestion::{Acknowledgement, Controller, Estimator, Loss, Pacer, Snapshot};

pub const SEGMENT: u64 = 1460;
const REORDERING: u64 = 3;

/// The path that all flows share.
#[derive(Clone, Debug)]
pub struct Path {
    /// Capacity for payload from a time on; empty for a path without bottleneck.
    pub rates: Vec<(Instant, Rate)>,
    /// Round-trip time without queue.
    pub rtt: Duration,
    /// Packets that the queue holds, the one on the wire included.
    pub queue: usize,
    pub loss: Dropping,
    /// Loss of ACKs.
    pub ack_loss: f64,
    /// ACKs arrive only at multiples of this (aggregation); zero for none.
    pub ack_slots: Duration,
    /// Timers of the sender fire this much late.
    pub timer_lateness: Duration,
}

/// Which data packets the path loses apart from those that find the queue full.
#[derive(Clone, Copy, Debug)]
pub enum Dropping {
    Bernoulli(f64),
    /// The first one, and then every n-th.
    EveryNth(u64),
}

impl Path {
    pub fn new(mbit: f64, rtt_ms: f64, queue: usize, loss: f64) -> Self {
        let rate = Rate::from_bits_per_second((mbit * 1e6) as u64).unwrap();
        Self {
            rates: vec![(Instant::ZERO, rate)],
            rtt: Duration::from_secs_f64(rtt_ms / 1e3),
            queue,
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

/// When a flow starts, how fast its application writes (`None`: as fast as can be) and how much.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub start: Instant,
    pub application: Option<Rate>,
    pub bytes: u64,
}

impl Workload {
    pub const BULK: Self = Self {
        start: Instant::ZERO,
        application: None,
        bytes: u64::MAX,
    };
}

struct InFlight {
    sent_at: Instant,
    snapshot: Snapshot,
    open: bool,
}

pub struct Flow {
    pub controller: Box<dyn Controller>,
    workload: Workload,
    estimator: Estimator,
    pacer: Pacer,
    /// Packets sent and not yet cleared, the first of which has number `first`.
    flight: VecDeque<InFlight>,
    first: u64,
    in_flight: u64,
    /// Numbers in the order in which they arrived, and how many of them the sender knows.
    arrived: Vec<u64>,
    known: usize,
    limited: bool,
    smoothed: Duration,
    variation: Duration,
    least: Duration,
    heard_at: Instant,
    backoff: u32,
    wake_at: Instant,
    paused_until: Instant,
    /// When 99 % had arrived: what comes after depends on how the sender repairs its last packets.
    pub bulk_at: Option<Instant>,
    pub sent: u64,
    pub lost: u64,
    pub timeouts: u64,
    pub rtt_sum: f64,
    pub rtts: u64,
    /// Time integral of the window, in segments, since `reset`.
    window_area: f64,
    window_since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival { flow: usize, number: u64 },
    Ack { flow: usize, count: usize },
    Wake { flow: usize },
    Resume { flow: usize },
}

pub struct Loop {
    pub path: Path,
    pub flows: Vec<Flow>,
    pub now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    sequence: u64,
    departures: VecDeque<Instant>,
    forward: Xoshiro256PlusPlus,
    reverse: Xoshiro256PlusPlus,
    entered: u64,
    pub overflowed: u64,
    queue_sum: f64,
    queue_samples: u64,
}

impl Loop {
    pub fn new(path: Path, seed: u64, flows: Vec<(Box<dyn Controller>, Workload)>) -> Self {
        let streams = Streams::new(seed, 0);
        let mut this = Self {
            path,
            flows: Vec::new(),
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            sequence: 0,
            departures: VecDeque::new(),
            forward: streams.stream("forward/loss"),
            reverse: streams.stream("reverse/loss"),
            entered: 0,
            overflowed: 0,
            queue_sum: 0.0,
            queue_samples: 0,
        };
        for (index, (controller, workload)) in flows.into_iter().enumerate() {
            this.flows.push(Flow::new(controller, workload));
            this.wake(index, workload.start);
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
                Event::Arrival { flow, number } => self.arrive(flow, number),
                Event::Ack { flow, count } => {
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

    fn arrive(&mut self, flow: usize, number: u64) {
        self.flows[flow].arrived.push(number);
        let count = self.flows[flow].arrived.len();
        if self.reverse.random::<f64>() < self.path.ack_loss {
            return;
        }
        let mut at = (self.now + self.path.rtt / 2).as_nanos();
        let slot = self.path.ack_slots.as_nanos();
        if slot > 0 {
            at = at.div_ceil(slot) * slot;
        }
        self.schedule(Instant::from_nanos(at), Event::Ack { flow, count });
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
                let at = at + self.path.timer_lateness;
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
        let now = self.now;
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
        self.queue_sum += self.departures.len() as f64;
        self.queue_samples += 1;
        self.entered += 1;
        let lost = match self.path.loss {
            Dropping::Bernoulli(p) => self.forward.random::<f64>() < p,
            Dropping::EveryNth(n) => self.entered % n == 1,
        };
        let Some(rate) = self.path.rate_at(now) else {
            if !lost {
                self.schedule(now + self.path.rtt / 2, Event::Arrival { flow, number });
            }
            return;
        };
        if self.departures.len() >= self.path.queue {
            self.overflowed += 1;
            return;
        }
        let start = self.departures.back().map_or(now, |&last| last.max(now));
        let departure = start + rate.time_for(SEGMENT);
        self.departures.push_back(departure);
        if !lost {
            self.schedule(departure + self.path.rtt / 2, Event::Arrival { flow, number });
        }
    }

    /// The application of a flow has nothing to send until `until`.
    pub fn pause(&mut self, flow: usize, until: Instant) {
        self.flows[flow].paused_until = until;
        self.schedule(until, Event::Resume { flow });
    }

    /// Starts the measurements over.
    pub fn reset(&mut self) {
        (self.queue_sum, self.queue_samples, self.overflowed) = (0.0, 0, 0);
        for flow in &mut self.flows {
            (flow.sent, flow.lost, flow.timeouts) = (0, 0, 0);
            (flow.rtt_sum, flow.rtts) = (0.0, 0);
            (flow.window_area, flow.window_since) = (0.0, self.now);
        }
    }

    /// Packets found in the queue by one that arrives, on average.
    pub fn mean_queue(&self) -> f64 {
        self.queue_sum / self.queue_samples.max(1) as f64
    }
}

impl Flow {
    fn new(controller: Box<dyn Controller>, workload: Workload) -> Self {
        Self {
            controller,
            workload,
            estimator: Estimator::new(),
            pacer: Pacer::new(),
            flight: VecDeque::new(),
            first: 0,
            in_flight: 0,
            arrived: Vec::new(),
            known: 0,
            limited: false,
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            least: Duration::ZERO,
            heard_at: Instant::ZERO,
            backoff: 0,
            wake_at: Instant::MAX,
            paused_until: Instant::ZERO,
            bulk_at: None,
            sent: 0,
            lost: 0,
            timeouts: 0,
            rtt_sum: 0.0,
            rtts: 0,
            window_area: 0.0,
            window_since: Instant::ZERO,
        }
    }

    /// Payload bytes delivered since the start.
    pub fn delivered(&self) -> u64 {
        self.estimator.delivered()
    }

    /// A metric of the controller.
    #[allow(dead_code)]
    pub fn metric(&self, wanted: &str) -> f64 {
        let mut found = f64::NAN;
        self.controller.metrics(&mut |name, value| {
            if name == wanted {
                found = value;
            }
        });
        found
    }

    /// The time average of the window in segments since the last reset.
    #[allow(dead_code)]
    pub fn mean_window(&self, from: Instant, until: Instant) -> f64 {
        self.window_area / (until - from).as_secs_f64()
    }

    /// `Err` with the time at which it may, if a time will do.
    fn may_send(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        let wanted = self.delivered() + self.in_flight + SEGMENT;
        let written = match self.workload.application {
            None => self.workload.bytes,
            Some(rate) => rate.bytes_in(now - self.workload.start).min(self.workload.bytes),
        };
        let room = self.in_flight == 0 || self.in_flight + SEGMENT <= self.controller.window();
        self.limited = !room;
        if !room {
            return Err(None);
        }
        if now < self.paused_until {
            self.estimator.set_application_limited(self.in_flight);
            return Err(None);
        }
        if wanted > written.saturating_add(SEGMENT - 1) {
            self.estimator.set_application_limited(self.in_flight);
            let rate = self
                .workload
                .application
                .filter(|_| wanted <= self.workload.bytes);
            return Err(rate.map(|rate| {
                let at = self.workload.start + rate.time_for(wanted);
                at.max(now + Duration::from_nanos(1))
            }));
        }
        if let Some(rate) = self.controller.pacing_rate()
            && let Some(at) = self.pacer.next_departure(now, rate, SEGMENT)
        {
            return Err(Some(at));
        }
        Ok(())
    }

    fn transmit(&mut self, now: Instant) -> u64 {
        if self.in_flight == 0 {
            self.heard_at = now;
        }
        self.in_flight += SEGMENT;
        self.sent += 1;
        let snapshot = self.estimator.on_sent(now, SEGMENT, self.in_flight);
        self.pacer.on_sent(now, SEGMENT);
        self.controller.on_sent(now, SEGMENT, self.in_flight);
        self.flight.push_back(InFlight {
            sent_at: now,
            snapshot,
            open: true,
        });
        self.first + self.flight.len() as u64 - 1
    }

    /// The first `count` arrivals are acknowledged; whether that was news.
    fn acknowledge(&mut self, now: Instant, count: usize) -> bool {
        if count <= self.known {
            return false;
        }
        let span = (now - self.window_since).as_secs_f64();
        self.window_area += self.controller.window() as f64 / SEGMENT as f64 * span;
        self.window_since = now;
        let prior_in_flight = self.in_flight;
        let mut newest = 0;
        let mut bytes = 0;
        let mut rtt = Duration::ZERO;
        let mut newest_sent_at = Instant::ZERO;
        for position in self.known..count {
            let number = self.arrived[position];
            if number < self.first {
                continue;
            }
            let packet = &mut self.flight[(number - self.first) as usize];
            let late = !packet.open;
            packet.open = false;
            newest = newest.max(number);
            self.estimator
                .on_packet_acknowledged(now, &packet.snapshot, SEGMENT, packet.sent_at);
            newest_sent_at = newest_sent_at.max(packet.sent_at);
            rtt = now - packet.sent_at;
            bytes += SEGMENT;
            if !late {
                self.in_flight -= SEGMENT;
            }
        }
        self.known = count;
        if bytes == 0 {
            return false;
        }
        self.measure(now, rtt);
        self.detect_losses(now, newest, prior_in_flight);
        let rate_sample = self.estimator.finish_ack(self.least);
        self.controller.on_acknowledged(&Acknowledgement {
            now,
            bytes,
            rtt: Some(rtt),
            newest_sent_at,
            smoothed_rtt: self.smoothed,
            bytes_in_flight: self.in_flight,
            delivered: self.delivered(),
            rate_sample,
            window_limited: self.limited,
        });
        true
    }

    fn measure(&mut self, now: Instant, rtt: Duration) {
        self.heard_at = now;
        self.backoff = 0;
        self.rtt_sum += rtt.as_secs_f64();
        self.rtts += 1;
        if self.smoothed.is_zero() {
            (self.smoothed, self.variation, self.least) = (rtt, rtt / 2, rtt);
            return;
        }
        let error = rtt.max(self.smoothed) - rtt.min(self.smoothed);
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
        self.least = self.least.min(rtt);
    }

    fn detect_losses(&mut self, now: Instant, newest: u64, prior_in_flight: u64) {
        let mut lost = 0;
        let mut last = None;
        while self
            .flight
            .front()
            .is_some_and(|p| !p.open || self.first + REORDERING <= newest)
        {
            let packet = self.flight.pop_front().unwrap();
            self.first += 1;
            if packet.open {
                lost += SEGMENT;
                last = Some(packet);
            }
        }
        let Some(packet) = last else { return };
        self.in_flight -= lost;
        self.lost += lost / SEGMENT;
        self.estimator.on_lost(lost);
        self.controller.on_lost(&Loss {
            now,
            bytes: lost,
            newest_sent_at: packet.sent_at,
            prior_in_flight,
            bytes_in_flight: self.in_flight,
            in_flight_at_send: packet.snapshot.in_flight(),
            lost_since_send: self.estimator.lost_since(&packet.snapshot),
            application_limited: packet.snapshot.application_limited(),
        });
    }

    /// When the retransmission timer runs out (RFC 6298, least 200 ms).
    fn deadline(&self) -> Instant {
        if self.in_flight == 0 {
            return Instant::MAX;
        }
        let base = if self.smoothed.is_zero() {
            Duration::from_secs(1)
        } else {
            (self.smoothed + self.variation * 4).max(Duration::from_millis(200))
        };
        self.heard_at + base.doubled(self.backoff.min(6))
    }

    fn time_out(&mut self, now: Instant) {
        if now < self.deadline() {
            return;
        }
        self.controller.on_timeout(now, self.in_flight);
        self.timeouts += 1;
        self.backoff += 1;
        self.heard_at = now;
        self.estimator.on_lost(self.in_flight);
        self.lost += self.in_flight / SEGMENT;
        self.in_flight = 0;
        for packet in &mut self.flight {
            packet.open = false;
        }
    }
}
