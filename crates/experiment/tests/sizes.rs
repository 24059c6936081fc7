//! The distributions of flow sizes match their sources.

use experiment::WorkloadConfig;
use experiment::sizes::SizeDistribution;
use foundation::Streams;
use serde_json::json;

const DRAWS: usize = 400_000;

fn distribution(keys: serde_json::Value) -> SizeDistribution {
    let mut table = json!({"kind": "arrivals", "arrivals": "1/s", "duration": "1s"});
    table
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    let workload: WorkloadConfig = serde_json::from_value(table).unwrap();
    assert_eq!(workload.validate(), []);
    let mut no_files = |_: &str| Err("no files here".to_owned());
    SizeDistribution::of(&workload, &mut no_files).unwrap().unwrap()
}

fn draws(keys: serde_json::Value) -> Vec<u64> {
    let sizes = distribution(keys);
    let mut random = Streams::new(7, 0).stream("sizes");
    (0..DRAWS).map(|_| sizes.draw(&mut random)).collect()
}

fn mean(sizes: &[u64]) -> f64 {
    sizes.iter().map(|&size| size as f64).sum::<f64>() / sizes.len() as f64
}

fn share(sizes: &[u64], holds: impl Fn(u64) -> bool) -> f64 {
    sizes.iter().filter(|&&size| holds(size)).count() as f64 / sizes.len() as f64
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value / expected - 1.0).abs() < tolerance,
        "{value} is not {expected}"
    );
}

#[test]
fn means_in_closed_form_match_draws() {
    for keys in [
        json!({"sizes": "fixed", "size": "10kB"}),
        json!({"sizes": "exponential", "size": "10kB"}),
        json!({"sizes": "exponential", "size": "10kB", "largest": "8kB"}),
        json!({"sizes": "bounded-pareto", "shape": 2.0}),
        json!({"sizes": "bounded-pareto", "size": "1kB", "largest": "10kB", "shape": 1.0}),
        json!({"sizes": "campus", "largest": "1MB"}),
        json!({"sizes": "web-search"}),
        json!({"sizes": "web-search", "largest": "100kB"}),
        json!({"sizes": "data-mining", "largest": "1MB"}),
    ] {
        let sizes = draws(keys.clone());
        let drawn = mean(&sizes);
        let variance = sizes
            .iter()
            .map(|&size| (size as f64 - drawn).powi(2))
            .sum::<f64>()
            / sizes.len() as f64;
        let error = (variance / sizes.len() as f64).sqrt();
        // Draws are rounded up to whole bytes, by at most 1.
        let closed = distribution(keys.clone()).mean();
        assert!(
            (closed - drawn).abs() <= 4.0 * error + 1.0,
            "{keys}: {closed}, drawn {drawn} ± {error}"
        );
    }
}

#[test]
fn campus_sizes_match_their_mixture() {
    // The truncated mixture in closed form: mean 25,664 B, 99.36 % at most 800 KB, 65.9 % of the bytes in larger ones.
    let sizes = draws(json!({"sizes": "campus", "largest": "10MB"}));
    assert_near(mean(&sizes), 25_664.0, 0.05);
    assert_near(share(&sizes, |size| size <= 800_000), 0.9936, 0.001);
    let long: u64 = sizes.iter().filter(|&&size| size > 800_000).sum();
    assert_near(long as f64 / sizes.iter().sum::<u64>() as f64, 0.659, 0.05);
    assert!(sizes.iter().all(|&size| (1..=10_000_000).contains(&size)));
}

#[test]
fn bounded_pareto_matches_its_closed_form() {
    // Closed form with shape 1.1 between 12,214 B and 100 MB: mean 79.8 KB, 99 % at most 800 KB.
    let sizes = draws(json!({"sizes": "bounded-pareto"}));
    assert_near(share(&sizes, |size| size <= 800_000), 0.99, 0.001);
    assert_near(mean(&sizes), 79_800.0, 0.1);
    assert_eq!(sizes.iter().min(), Some(&12_215));
    // Shape and bounds are configurable: F(2) = (1 - 1/4) / (1 - 1/100) with shape 2 from 1 kB to 10 kB.
    let sizes = draws(json!({"sizes": "bounded-pareto", "size": "1kB", "largest": "10kB", "shape": 2.0}));
    assert_near(share(&sizes, |size| size <= 2000), 0.75 / 0.99, 0.01);
    assert!(sizes.iter().all(|&size| (1000..=10_000).contains(&size)));
}

#[test]
fn published_tables_match_their_shares() {
    let sizes = draws(json!({"sizes": "web-search"}));
    assert_near(share(&sizes, |size| size <= 80_000), 0.53, 0.01);
    assert_near(share(&sizes, |size| size > 10_000_000), 0.03, 0.05);
    assert_near(mean(&sizes), 1.71e6, 0.02);
    let sizes = draws(json!({"sizes": "data-mining"}));
    assert_near(share(&sizes, |size| size == 1460), 0.5, 0.01);
    assert_near(share(&sizes, |size| size <= 7 * 1460), 0.8, 0.01);
    assert_near(mean(&sizes), 7.47e6, 0.1);
}

#[test]
fn exponential_and_fixed_sizes_match_their_means() {
    let sizes = draws(json!({"sizes": "exponential", "size": "20kB"}));
    assert_near(mean(&sizes), 20_000.0, 0.01);
    assert_near(share(&sizes, |size| size > 20_000), (-1.0_f64).exp(), 0.01);
    assert!(draws(json!({"size": "5kB"})).iter().all(|&size| size == 5000));
}

#[test]
fn contradictory_keys_are_refused() {
    let problems = |keys: serde_json::Value| {
        let mut table = json!({"kind": "arrivals", "arrivals": "1/s", "duration": "1s"});
        table
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        let workload: WorkloadConfig = serde_json::from_value(table).unwrap();
        let reported = workload.validate();
        reported
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert!(problems(json!({"sizes": "campus", "size": "5kB"})).contains("has no such key"));
    assert!(problems(json!({"sizes": "table"})).contains("sizes_file"));
    assert!(problems(json!({"sizes": "exponential"})).contains("size"));
    assert!(problems(json!({"size": "5kB", "largest": "9kB"})).contains("largest"));
    assert!(problems(json!({"sizes": "bounded-pareto", "largest": "9kB"})).contains("12214B"));
    assert!(problems(json!({"size": "5kB", "classes": ["9kB", "3kB"]})).contains("classes"));
}

#[test]
fn a_class_includes_its_upper_bound() {
    let workload: WorkloadConfig = serde_json::from_value(json!({
        "kind": "arrivals", "arrivals": "1/s", "duration": "1s", "size": "1B",
        "classes": ["100kB", "300kB", "800kB"],
    }))
    .unwrap();
    let classes =
        [1, 100_000, 100_001, 300_000, 800_000, 800_001].map(|size| workload.class_of(size).unwrap());
    assert_eq!(classes, [0, 0, 1, 1, 2, 3]);
}
