//! CPU time per packet-hop of a simulation: ARQ over a path of three links with one ACK per packet.
//! An element is one data packet or ACK on one link, so elements per second are hops per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use experiment::TrialSpec;
use simulation::trial::run_watched;

fn spec(protocol: &str, extra: &str) -> TrialSpec {
    let json = format!(
        r#"{{
            "topology": {{
                "kind": "free", "hosts": ["sender", "receiver"], "routers": ["near", "far"],
                "links": [
                    {{"from": "sender", "to": "near", "rate": "100Mbit/s", "delay": "5ms", "queue": "2000pkt"{extra}}},
                    {{"from": "near", "to": "far", "rate": "100Mbit/s", "delay": "5ms"}},
                    {{"from": "far", "to": "receiver", "rate": "100Mbit/s", "delay": "5ms"}}
                ]
            }},
            "protocol": {{{protocol}}},
            "workload": {{"kind": "file", "size": "20MB"}}, "seed": 1
        }}"#
    );
    TrialSpec::from_json(&json).unwrap()
}

/// Runs one transfer; returns its packet-hops.
fn transfer(spec: &TrialSpec) -> u64 {
    let (record, world) = run_watched(spec, None, (), None).unwrap();
    assert_eq!(record.error, None);
    let network = world.network();
    network
        .links()
        .map(|link| network.counters(link).delivered.packets)
        .sum()
}

fn packet_hop(criterion: &mut Criterion) {
    let repeat = r#""kind": "selective-repeat", "window": 400, "gap_retransmit": true"#;
    let back_n = r#""kind": "go-back-n", "window": 400, "fast_retransmit": true"#;
    let paced = r#""kind": "selective-repeat", "mss": "1400B", "acknowledge_every": 16, "min_rto": "200ms",
        "congestion": {"kind": "bbr", "initial_window": 32}"#;
    let loss = r#", "loss": "1%""#;
    let cases = [
        ("selective-repeat", repeat, ""),
        ("selective-repeat, 1 % loss", repeat, loss),
        ("go-back-n", back_n, ""),
        ("files (BBR)", paced, ""),
        ("files (BBR), 1 % loss", paced, loss),
    ];
    let mut group = criterion.benchmark_group("packet_hop");
    group.sample_size(20);
    for (name, protocol, extra) in cases {
        let spec = spec(protocol, extra);
        group.throughput(Throughput::Elements(transfer(&spec)));
        group.bench_function(name, |bencher| bencher.iter(|| transfer(&spec)));
    }
    group.finish();
}

criterion_group!(benches, packet_hop);
criterion_main!(benches);
