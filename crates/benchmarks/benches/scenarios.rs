//! Whole TCP simulations as other simulators are timed with: data packets a second of CPU time on one core.
//!
//! - A: dumbbell, 10 bulk flows, bottleneck of 100 Mbit/s and 10 ms with 100 packets, access of 1 Gbit/s and 1 ms,
//!   60 s of virtual time.
//! - B: the same with a bottleneck of 10 Gbit/s and 10,000 packets, access of 40 Gbit/s, windows of at most 4 MB, 2 s.
//! - C: 1000 flows/s of 100 KB (Poisson) over one link of 1 Gbit/s, round trip 20 ms, 1000 packets, 10 s.
//!
//! SACK, delayed ACKs, segments of 1448 bytes in packets of 1500. The time includes setting up.

use experiment::TrialSpec;
use rustix::time::{ClockId, clock_gettime};
use simulation::trial::run_watched;

/// A scenario: its name and what it is made of.
struct Scenario {
    name: &'static str,
    network: &'static str,
    workload: &'static str,
    window: &'static str,
}

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "A",
        network: r#"{"kind": "dumbbell", "pairs": 10,
            "bottleneck": {"rate": "100Mbit/s", "delay": "10ms", "queue": "100pkt"},
            "access": {"rate": "1Gbit/s", "delay": "1ms", "queue": "1000pkt"},
            "exit": {"rate": "1Gbit/s", "delay": "1ms", "queue": "1000pkt"}}"#,
        workload: r#"{"kind": "bulk", "duration": "60s", "start_jitter": "100ms"}"#,
        window: "6MiB",
    },
    Scenario {
        name: "B",
        network: r#"{"kind": "dumbbell", "pairs": 10,
            "bottleneck": {"rate": "10Gbit/s", "delay": "10ms", "queue": "10000pkt"},
            "access": {"rate": "40Gbit/s", "delay": "1ms", "queue": "10000pkt"},
            "exit": {"rate": "40Gbit/s", "delay": "1ms", "queue": "10000pkt"}}"#,
        workload: r#"{"kind": "bulk", "duration": "2s", "start_jitter": "10ms"}"#,
        window: "4MB",
    },
    Scenario {
        name: "C",
        network: r#"{"kind": "free", "hosts": ["sender", "receiver"],
            "links": [{"from": "sender", "to": "receiver", "rate": "1Gbit/s", "delay": "10ms", "queue": "1000pkt"}]}"#,
        workload: r#"{"kind": "arrivals", "duration": "10s", "arrivals": "1000/s", "size": "100kB"}"#,
        window: "6MiB",
    },
];

/// CPU time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!(
        "{:<3} {:<8} {:>8} {:>13} {:>13} {:>10} {:>8} {:>14} {:>10}",
        "",
        "profile",
        "CPU s",
        "data packets",
        "packet-hops",
        "ns a hop",
        "Mpkt/s",
        "goodput Mbit/s",
        "FCT ms"
    );
    for scenario in &SCENARIOS {
        for profile in ["linux", "rfc", "ns3"] {
            run(scenario, profile);
        }
    }
}

fn run(scenario: &Scenario, profile: &str) {
    // The profile of ns-3 has that simulator's own Reno.
    let congestion = if profile == "ns3" {
        ""
    } else {
        r#""congestion": "reno","#
    };
    let json = format!(
        r#"{{"topology": {}, "workload": {}, "seed": 1, "protocol": {{"kind": "tcp", "profile": "{profile}",
            {congestion} "mss": "1460B", "send_buffer": "64MiB", "send_autotuning": false, "send_overhead": "0B",
            "receive_buffer": "{window}", "receive_autotuning": false, "receive_overhead": "0B",
            "initial_receive_window": "{window}"}}}}"#,
        scenario.network,
        scenario.workload,
        congestion = congestion,
        window = scenario.window,
    );
    let spec = TrialSpec::from_json(&json).unwrap();
    let mut seconds = Vec::new();
    let (mut packets, mut hops, mut goodput, mut completion) = (0.0, 0, 0.0, f64::NAN);
    for _ in 0..5 {
        let before = cpu_seconds();
        let (record, world) = run_watched(&spec, None, (), None).unwrap();
        seconds.push(cpu_seconds() - before);
        let metrics = record.metrics.unwrap();
        let figure = |name: &str| metrics[name].unwrap_or(f64::NAN);
        (packets, goodput) = (figure("packets_sent"), figure("goodput_bps"));
        completion = figure("fct_mean_s");
        let network = world.network();
        let delivered = |link| network.counters(link).delivered.packets;
        hops = network.links().map(delivered).sum::<u64>();
    }
    let cpu = median(seconds);
    println!(
        "{:<3} {profile:<8} {cpu:>8.3} {packets:>13.0} {hops:>13} {:>10.1} {:>8.2} {:>14.1} {:>10.1}",
        scenario.name,
        cpu * 1e9 / hops as f64,
        packets / cpu / 1e6,
        goodput / 1e6,
        completion * 1e3,
    );
}
