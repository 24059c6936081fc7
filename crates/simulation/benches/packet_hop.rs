//! CPU time a packet-hop of a whole simulation: selective repeat over a path of three links, ACK for
//! every packet. An element is one packet on one link, data and ACKs alike, so that elements a second
//! are hops a second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foundation::Streams;
use network::{PathConfig, PathSpec};
use simulation::world::World;
use transport::arq::ArqConfig;
use transport::arq::config::{Kind, Window};

const BYTES: u64 = 20_000_000;

fn paths(extra: &str) -> Vec<PathSpec> {
    let json = format!(r#"{{"rate": "100Mbit/s", "delay": "5ms", "queue": "2000pkt"{extra}}}"#);
    let plain: PathConfig = serde_json::from_str(r#"{"rate": "100Mbit/s", "delay": "5ms"}"#).unwrap();
    let first: PathConfig = serde_json::from_str(&json).unwrap();
    [&first, &plain, &plain]
        .map(|path| path.resolve(&mut |_| unreachable!("no traces")).unwrap())
        .to_vec()
}

/// Runs one transfer and gives its packet-hops.
fn transfer(paths: &[PathSpec], protocol: &ArqConfig) -> u64 {
    let mut world = World::new(paths, protocol, Streams::new(1, 0), ());
    world.transfer(BYTES, None).unwrap();
    let network = world.network();
    network
        .links()
        .map(|link| network.counters(link).delivered.packets)
        .sum()
}

fn packet_hop(criterion: &mut Criterion) {
    let window = Some(Window::Packets(400));
    let repeat = ArqConfig {
        window,
        gap_retransmit: Some(true),
        ..ArqConfig::new(Kind::SelectiveRepeat)
    };
    let back_n = ArqConfig {
        window,
        fast_retransmit: Some(true),
        ..ArqConfig::new(Kind::GoBackN)
    };
    let cases = [
        ("selective-repeat", &repeat, ""),
        ("selective-repeat, 1 % loss", &repeat, r#", "loss": "1%""#),
        ("go-back-n", &back_n, ""),
        ("files (BBR)", &ArqConfig::for_files(), ""),
        (
            "files (BBR), 1 % loss",
            &ArqConfig::for_files(),
            r#", "loss": "1%""#,
        ),
    ];
    let mut group = criterion.benchmark_group("packet_hop");
    group.sample_size(20);
    for (name, protocol, extra) in cases {
        let paths = paths(extra);
        group.throughput(Throughput::Elements(transfer(&paths, protocol)));
        group.bench_function(name, |bencher| bencher.iter(|| transfer(&paths, protocol)));
    }
    group.finish();
}

criterion_group!(benches, packet_hop);
criterion_main!(benches);
