//! Time per packet in the congestion controller: departure, delivery-rate estimate, ACK, pacing.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foundation::{Duration, Instant};
use transport::congestion::{
    Acknowledgement, CongestionConfig, ConnectionContext, Controller, Estimator, Loss, Pacer, Registry,
    Rules, Snapshot,
};

const SEGMENT: u64 = 1460;
/// Packets in flight: 96 Mbit/s at a round-trip time of 20 ms.
const FLIGHT: usize = 164;
const GAP: Duration = Duration::from_nanos(121_667);
const RTT: Duration = Duration::from_millis(20);

/// A sender in steady state that sends one packet per ACK.
struct Sender {
    controller: Box<dyn Controller>,
    estimator: Estimator,
    pacer: Pacer,
    flight: VecDeque<(Instant, Snapshot)>,
    now: Instant,
    packets: u64,
}

impl Sender {
    fn new(controller: Box<dyn Controller>) -> Self {
        let mut sender = Self {
            controller,
            estimator: Estimator::new(),
            pacer: Pacer::new(),
            flight: VecDeque::with_capacity(2 * FLIGHT),
            now: Instant::from_nanos(1),
            packets: 0,
        };
        for _ in 0..FLIGHT {
            sender.depart();
        }
        sender
    }

    fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * SEGMENT
    }

    fn depart(&mut self) {
        if let Some(rate) = self.controller.pacing_rate() {
            black_box(
                self.pacer
                    .next_departure(self.now, rate, self.controller.bursts(), SEGMENT),
            );
        }
        let in_flight = self.in_flight() + SEGMENT;
        self.pacer.on_sent(self.now, SEGMENT);
        self.controller.on_sent(self.now, SEGMENT, in_flight);
        let snapshot = self.estimator.on_sent(self.now, SEGMENT, in_flight);
        self.flight.push_back((self.now, snapshot));
    }

    /// Acknowledges one packet and sends one; one packet in a hundred is lost.
    fn step(&mut self) {
        self.now += GAP;
        self.packets += 1;
        let (sent_at, snapshot) = self.flight.pop_front().unwrap();
        if self.packets.is_multiple_of(100) {
            self.estimator.on_lost(SEGMENT);
            self.controller.on_lost(&Loss {
                now: self.now,
                bytes: SEGMENT,
                newest_sent_at: sent_at,
                prior_in_flight: self.in_flight() + SEGMENT,
                bytes_in_flight: self.in_flight(),
                in_flight_at_send: snapshot.in_flight(),
                lost_since_send: self.estimator.lost_since(&snapshot),
                application_limited: snapshot.application_limited(),
                in_recovery: false,
            });
        } else {
            self.estimator
                .on_packet_acknowledged(self.now, &snapshot, SEGMENT, sent_at);
            let rate_sample = self.estimator.finish_ack(RTT);
            self.controller.on_acknowledged(&Acknowledgement {
                now: self.now,
                bytes: SEGMENT,
                marked_bytes: 0,
                rtt: Some(self.now - sent_at),
                newest_sent_at: sent_at,
                smoothed_rtt: RTT,
                bytes_in_flight: self.in_flight(),
                delivered: self.estimator.delivered(),
                rate_sample,
                window_limited: true,
                in_recovery: false,
            });
        }
        self.depart();
    }
}

fn congestion(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("congestion");
    group.throughput(Throughput::Elements(1));
    for entry in Registry::builtin().iter() {
        let config = CongestionConfig::named(entry.name()).unwrap();
        for (rules, suffix) in [(Rules::Rfc, ""), (Rules::Linux, "/linux")] {
            let context = ConnectionContext {
                rules,
                ..ConnectionContext::new(SEGMENT)
            };
            let mut sender = Sender::new(config.build_for(&context));
            let name = format!("{}{suffix}", entry.name());
            group.bench_function(name, |bencher| bencher.iter(|| sender.step()));
        }
    }
    group.finish();
}

criterion_group!(benches, congestion);
criterion_main!(benches);
