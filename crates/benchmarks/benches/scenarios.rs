//! Simulations for comparison with other simulators: data packets per second of CPU time on one core, in the
//! [scenarios](benchmarks::SCENARIOS) A, B, C, M and F. The time includes the setup; values are medians.
//!
//! `cargo bench --bench scenarios -- A linux` runs one scenario with one profile.

use benchmarks::{SCENARIOS, Scenario};
use rustix::time::{ClockId, clock_gettime};
use simulation::trial::run_watched;

const REPEATS: usize = 5;

/// Returns the CPU time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // Cargo passes `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|text| !text.starts_with("--"))
        .collect();
    let is_wanted = |name: &str, at: usize| wanted.get(at).is_none_or(|text| text == name);
    println!(
        "{:<3} {:<8} {:>8} {:>13} {:>13} {:>10} {:>8} {:>14} {:>10}",
        "", "profile", "CPU s", "data packets", "packet-hops", "ns/hop", "Mpkt/s", "goodput Mbit/s", "FCT ms"
    );
    for scenario in SCENARIOS.iter().filter(|scenario| is_wanted(scenario.name, 0)) {
        for profile in scenario.profiles().iter().filter(|profile| is_wanted(profile, 1)) {
            run(scenario, profile);
        }
    }
}

fn run(scenario: &Scenario, profile: &str) {
    let spec = scenario.trial(profile, scenario.seconds);
    let mut seconds = Vec::new();
    let (mut packets, mut hops, mut goodput, mut completion) = (0.0, 0, 0.0, f64::NAN);
    for _ in 0..REPEATS {
        let before = cpu_seconds();
        let (record, world) = run_watched(&spec, None, (), None).unwrap();
        seconds.push(cpu_seconds() - before);
        let metrics = record.metrics.unwrap();
        let figure = |name: &str| metrics.get(name).copied().flatten().unwrap_or(f64::NAN);
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
