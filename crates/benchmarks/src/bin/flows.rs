//! Runs concurrent TCP flows over a dumbbell with 500 kbit/s per flow and prints the CPU time per packet-hop and the peak memory:
//! `flows PAIRS FLOWS_PER_PAIR SECONDS`.

use benchmarks as _; // has the allocator
use experiment::TrialSpec;
use rustix::time::{ClockId, clock_gettime};
use simulation::trial::run_watched;

fn main() {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"))
        .collect();
    let &[pairs, flows, seconds] = arguments.as_slice() else {
        panic!("usage: flows PAIRS FLOWS_PER_PAIR SECONDS");
    };
    let all = pairs * flows;
    let (rate, queue) = ((all / 2).max(1), (all / 50).max(100));
    let spec = format!(
        r#"{{
            "topology": {{
                "kind": "dumbbell",
                "pairs": {pairs},
                "bottleneck": {{"rate": "{rate}Mbit/s", "delay": "10ms", "queue": "{queue}pkt"}},
                "access": {{"rate": "{rate}Mbit/s", "delay": "1ms"}}
            }},
            "protocol": {{"kind": "tcp"}},
            "workload": {{"kind": "bulk", "flows": {flows}, "start_jitter": "500ms", "duration": "{seconds}s"}},
            "seed": 1
        }}"#
    );
    let spec = TrialSpec::from_json(&spec).expect("a valid specification");
    let (_, world) = run_watched(&spec, None, (), None).expect("a valid trial");
    let network = world.network();
    let hops: u64 = network
        .links()
        .map(|link| network.counters(link).delivered.packets)
        .sum();
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = used.tv_sec as f64 * 1e9 + used.tv_nsec as f64;
    println!(
        "flows {all} hops {hops} CPU {:.2} s, {:.0} ns per packet-hop, {}",
        nanos / 1e9,
        nanos / hops as f64,
        peak_memory()
    );
}

/// Returns the peak of the resident memory, as Linux reports it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or_else(
        || "peak memory unknown".into(),
        |line| line.split_whitespace().collect::<Vec<_>>().join(" "),
    )
}
