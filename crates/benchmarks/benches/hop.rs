//! CPU time per packet-hop: a closed loop keeps a window of packets on a path of links by sending one packet per
//! arrival. The time includes the loop. Each element is one packet on one link, so elements per second are hops per
//! second.

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use foundation::{Instant, Streams};
use network::{Body, FORWARD, Network, Packet, PathConfig, PathSpec};

/// The size of a typed frame in simulation.
#[derive(Clone)]
struct Frame([u64; 6]);

impl Body for Frame {
    fn flip_bit(&mut self, choice: u64) {
        self.0[0] ^= 1 << (choice % 64);
    }
}

const PACKETS: u64 = 20_000;

/// Returns the path's links; the first one has the keys `impaired`.
fn paths(links: usize, impaired: &str) -> Vec<PathSpec> {
    let plain = r#""rate": "1Gbit/s", "delay": "5ms", "mtu": "1500B""#;
    (0..links)
        .map(|number| {
            let extra = if number == 0 { impaired } else { "" };
            let config: PathConfig = serde_json::from_str(&format!("{{ {plain}{extra} }}")).unwrap();
            config.resolve(&mut |_| Err("no traces here".into())).unwrap()
        })
        .collect()
}

struct Loop {
    network: Network<Frame>,
    now: Instant,
}

impl Loop {
    fn new(links: usize, impaired: &str, window: usize) -> Self {
        let mut network = Network::chain(&paths(links, impaired), Streams::new(1, 0));
        for number in 0..window {
            network.send(
                Instant::ZERO,
                Packet::new(FORWARD, 1500, Frame([number as u64; 6])),
            );
        }
        Self {
            network,
            now: Instant::ZERO,
        }
    }

    /// Runs until `packets` packets were sent. After a loss, the next arrival triggers two packets.
    fn run(&mut self, packets: u64) -> u64 {
        let mut sent = 0;
        let mut lost = self.lost();
        while sent < packets {
            self.now = self.network.poll_timeout().unwrap();
            self.network.handle_timeout(self.now);
            while let Some((_, packet)) = self.network.poll_delivery() {
                let again = 1 + self.lost() - lost;
                lost += again - 1;
                for _ in 0..again {
                    self.network
                        .send(self.now, Packet::new(FORWARD, 1500, packet.body.clone()));
                    sent += 1;
                }
            }
        }
        sent
    }

    fn lost(&self) -> u64 {
        let first = self.network.route_links(FORWARD).next().unwrap();
        let counters = self.network.counters(first);
        counters.lost.packets + counters.queue_dropped.packets
    }
}

fn hop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hop");
    for (name, links, impaired, window) in [
        ("plain", 3, "", 100),
        ("plain, window 1250", 3, "", 1250),
        ("plain, 9 links", 9, "", 300),
        ("loss 1%", 3, r#", "loss": "1%""#, 100),
        ("jitter", 3, r#", "jitter": "1ms""#, 100),
        (
            "reorder",
            3,
            r#", "reorder": { "probability": "1%", "delay": "1ms" }"#,
            100,
        ),
        ("drop-head", 3, r#", "queue": { "kind": "drop-head" }"#, 100),
    ] {
        measure(&mut group, name, links, impaired, window);
    }
    group.finish();
}

/// One link per discipline with about fifty packets in its queue.
fn discipline(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("discipline");
    for kind in ["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"] {
        let queue = format!(r#", "queue": {{ "kind": "{kind}" }}"#);
        measure(&mut group, kind, 1, &queue, 470);
    }
    group.finish();
}

fn measure(
    group: &mut BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    links: usize,
    impaired: &str,
    window: usize,
) {
    group.throughput(Throughput::Elements(PACKETS * links as u64));
    group.bench_function(name, |bencher| {
        let mut run = Loop::new(links, impaired, window);
        run.run(10 * PACKETS);
        bencher.iter(|| run.run(PACKETS));
    });
}

criterion_group!(benches, hop, discipline);
criterion_main!(benches);
