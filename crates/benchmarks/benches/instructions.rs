//! Instruction counts of simulations by Valgrind's callgrind, which are equal for all runs on the same type of machine.
//! The [scenarios](benchmarks::SCENARIOS) are shortened, because a count takes 50 times as long as the run.
//!
//! `make bench-instructions` compares the counts with `benchmarks/instructions.csv`.

#![expect(missing_docs, reason = "the macros generate public items")]

use std::hint::black_box;

use benchmarks::Scenario;
use experiment::TrialSpec;
use gungraun::{library_benchmark, library_benchmark_group, main};
use simulation::trial::run;

fn trial(name: &str, profile: &str, seconds: f64) -> TrialSpec {
    let scenario = Scenario::named(name).expect("a scenario");
    scenario.trial(profile, seconds)
}

#[library_benchmark(setup = trial)]
#[bench::a_linux("A", "linux", 6.0)]
#[bench::a_rfc("A", "rfc", 6.0)]
#[bench::a_ns3("A", "ns3", 6.0)]
#[bench::b_linux("B", "linux", 0.3)]
#[bench::c_linux("C", "linux", 1.0)]
#[bench::m("M", "-", 6.0)]
#[bench::f("F", "-", 2.0)]
fn scenario(spec: TrialSpec) -> Option<f64> {
    let record = run(black_box(&spec), None).expect("a valid trial");
    record.metrics?.get("packets_sent").copied()?
}

library_benchmark_group!(name = whole_simulations; benchmarks = scenario);
main!(library_benchmark_groups = whole_simulations);
