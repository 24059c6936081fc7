//! Time per data segment in TCP: two connections without a network.
//!
//! An element is the transmission, arrival and read of one data segment, with an ACK for every other one.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foundation::{Duration, Instant, Size};
use transport::Machine;
use transport::congestion::CongestionConfig;
use transport::tcp::{Connection, Event, Outgoing, Profile, TcpConfig};

/// One segment of 1448 bytes per 12 us: 1 Gbit/s.
const GAP: Duration = Duration::from_micros(12);

/// Two connections and the data segments in flight.
struct Pair {
    client: Connection,
    server: Connection,
    flight: VecDeque<Outgoing>,
    now: Instant,
    /// One in this many data segments is lost; 0 for no loss.
    lose: u64,
    packets: u64,
}

impl Pair {
    fn new(config: &TcpConfig, lose: u64) -> Self {
        let mut now = Instant::from_nanos(1);
        let mut client = Connection::open(now, config, 1);
        let syn = client.poll_transmit(now).expect("a SYN");
        now += Duration::from_millis(10);
        let mut server = Connection::accept(now, config, 2, &syn.segment);
        let answer = server.poll_transmit(now).expect("a SYN, ACK");
        now += Duration::from_millis(10);
        client.handle_frame(now, answer.segment);
        client.write(now, u64::MAX / 2);
        let mut pair = Self {
            client,
            server,
            flight: VecDeque::new(),
            now,
            lose,
            packets: 0,
        };
        pair.drain_client();
        // Reaches steady state.
        for _ in 0..200_000 {
            pair.step();
        }
        pair
    }

    #[inline]
    fn drain_client(&mut self) {
        while let Some(packet) = self.client.poll_transmit(self.now) {
            self.flight.push_back(packet);
        }
        while let Some(event) = self.client.poll_event() {
            assert!(!matches!(event, Event::Failed(_)), "{event:?}");
        }
        black_box(self.client.poll_timeout());
    }

    /// Delivers one data segment.
    #[inline]
    fn step(&mut self) {
        self.now += GAP;
        let Some(packet) = self.flight.pop_front() else {
            let at = [self.client.poll_timeout(), self.server.poll_timeout()];
            self.now = at.into_iter().flatten().min().expect("a timer");
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.answer();
            self.drain_client();
            return;
        };
        if self.client.poll_timeout().is_some_and(|at| at <= self.now) {
            self.client.handle_timeout(self.now);
            self.drain_client();
        }
        self.packets += 1;
        if self.lose != 0 && self.packets.is_multiple_of(self.lose) {
            return;
        }
        self.server.handle_frame(self.now, packet.segment);
        self.answer();
    }

    #[inline]
    fn answer(&mut self) {
        while self.server.poll_event().is_some() {}
        self.server.read(self.now, u64::MAX);
        while let Some(answer) = self.server.poll_transmit(self.now) {
            self.client.handle_frame(self.now, answer.segment);
            self.drain_client();
        }
        black_box(self.server.poll_timeout());
    }
}

fn config(profile: Profile, congestion: Option<&str>, window: u64) -> TcpConfig {
    TcpConfig {
        congestion: congestion.map(|name| CongestionConfig::named(name).expect("built in")),
        receive_buffer: Some(Size::from_bytes(window)),
        send_buffer: Some(Size::from_bytes(u64::MAX / 4)),
        ..TcpConfig::new(profile)
    }
}

fn segments(criterion: &mut Criterion) {
    const BATCH: u64 = 1000;
    let mut group = criterion.benchmark_group("tcp_segment");
    group.throughput(Throughput::Elements(BATCH));
    for (name, config, lose) in [
        ("linux, 164 segments", config(Profile::Linux, None, 240_000), 0),
        ("linux, 2762 segments", config(Profile::Linux, None, 4_000_000), 0),
        ("ns3, 164 segments", config(Profile::Ns3, None, 240_000), 0),
        ("rfc, 164 segments", config(Profile::Rfc, None, 240_000), 0),
        ("linux, bbr", config(Profile::Linux, Some("bbr"), 240_000), 0),
        ("linux, 1 % lost", config(Profile::Linux, None, 240_000), 100),
        (
            "linux, 2762 segments, 0.1 % lost",
            config(Profile::Linux, Some("fixed"), 4_000_000),
            1000,
        ),
    ] {
        let mut pair = Pair::new(&config, lose);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..BATCH {
                    pair.step();
                }
            });
        });
    }
    group.finish();
}

fn connections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tcp_connection");
    let config = TcpConfig::new(Profile::Linux);
    group.bench_function("open and accept", |bencher| {
        let now = Instant::from_nanos(1);
        bencher.iter(|| {
            let mut client = Connection::open(now, &config, 7);
            let syn = client.poll_transmit(now).expect("a SYN");
            let server = Connection::accept(now, &config, 9, &syn.segment);
            black_box((client, server));
        });
    });
    group.finish();
}

criterion_group!(benches, segments, connections);
criterion_main!(benches);
