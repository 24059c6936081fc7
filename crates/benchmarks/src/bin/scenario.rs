//! Runs one scenario once: `scenario NAME [PROFILE] [SECONDS]`. For profilers.

use benchmarks::Scenario;
use simulation::trial::run_watched;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenario = arguments.first().and_then(|name| Scenario::named(name));
    let scenario = scenario.expect("usage: scenario A|B|C|M|F [PROFILE] [SECONDS]");
    let profile = arguments.get(1).map_or("linux", String::as_str);
    let seconds = arguments
        .get(2)
        .map_or(scenario.seconds, |text| text.parse().expect("seconds"));
    let (record, world) =
        run_watched(&scenario.trial(profile, seconds), None, (), None).expect("a valid trial");
    let network = world.network();
    let hops: u64 = network
        .links()
        .map(|link| network.counters(link).delivered.packets)
        .sum();
    let metrics = record.metrics.expect("metrics");
    let figure = |name: &str| metrics.get(name).copied().flatten().unwrap_or(f64::NAN);
    println!(
        "packets {:.0} hops {hops} goodput {:.2} Mbit/s fct {:.2} ms",
        figure("packets_sent"),
        figure("goodput_bps") / 1e6,
        figure("fct_mean_s") * 1e3
    );
}
