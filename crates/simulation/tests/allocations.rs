//! Allocations of a running simulation. Counted per thread, so other tests do not count.

use allocation_counter::measure;
use experiment::TrialSpec;
use simulation::trial::run;

/// Returns the allocations of a trial of `seconds` and its data packets.
fn of_trial(protocol: &str, seconds: u32) -> (f64, f64) {
    let json = format!(
        r#"{{"topology": {{"kind": "dumbbell", "pairs": 4,
            "bottleneck": {{"rate": "50Mbit/s", "delay": "10ms", "queue": "60pkt"}}}},
            "workload": {{"kind": "bulk", "duration": "{seconds}s", "start_jitter": "100ms"}},
            "protocol": {protocol}, "seed": 1}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap();
    let mut packets = 0.0;
    let counts = measure(|| {
        let metrics = run(&spec, None).unwrap().metrics.unwrap();
        packets = metrics["packets_sent"].unwrap();
    });
    (counts.count_total as f64, packets)
}

/// Buffers grow in the first seconds; later packets need no allocations. Each goodput sample (every 100 ms) needs some.
#[test]
fn a_packet_needs_no_allocation_in_steady_state() {
    let protocols = [
        r#"{"kind": "tcp", "congestion": "cubic"}"#,
        r#"{"kind": "tcp", "congestion": "bbr"}"#,
        r#"{"kind": "mptcp", "congestion": "lia"}"#,
        r#"{"kind": "selective-repeat", "window": 64}"#,
    ];
    for protocol in protocols {
        let (short, few) = of_trial(protocol, 8);
        let (long, many) = of_trial(protocol, 16);
        let per_packet = (long - short) / (many - few);
        assert!(
            per_packet < 0.01,
            "{protocol}: {per_packet} allocations per packet"
        );
    }
}
