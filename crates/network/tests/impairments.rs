//! Loss, jitter, reordering, duplication and corruption, compared with their definitions and papers.
//!
//! Statistical tests have fixed seeds and are deterministic. Intervals are ± 3.3 standard deviations, which one
//! correct implementation in a thousand exceeds.

use crate::common::{self, lost, numbers, run_train};
use network::{LinkId, LossConfig};

const Z: f64 = 3.3;
const MS: u64 = 1_000_000;

/// Asserts that `hits` of `trials` independent trials match a probability (binomial, normal approximation).
#[track_caller]
fn assert_binomial(hits: u64, trials: u64, probability: f64) {
    let (mean, n) = (probability * trials as f64, trials as f64);
    let deviation = (n * probability * (1.0 - probability)).sqrt();
    let off = (hits as f64 - mean).abs();
    assert!(
        off <= Z * deviation,
        "{hits} of {trials} at {probability}: off by {:.1} deviations",
        off / deviation
    );
}

#[test]
fn bernoulli_loses_the_configured_share() {
    for (seed, percent) in [(1, 0.1), (2, 2.0), (3, 10.0), (4, 50.0)] {
        let lost = lost(&format!(r#"{{"loss": "{percent}%"}}"#), seed, 200_000, 1, 100);
        assert_binomial(lost.len() as u64, 200_000, percent / 100.0);
    }
    assert!(lost(r#"{"loss": "0%"}"#, 1, 1000, 1, 100).is_empty());
    assert_eq!(lost(r#"{"loss": "100%"}"#, 1, 1000, 1, 100).len(), 1000);
}

#[test]
fn bernoulli_losses_are_independent() {
    // The loss probability after a loss is that of any packet.
    let lost = lost(r#"{"loss": "20%"}"#, 9, 200_000, 1, 100);
    let pairs = lost.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert_binomial(pairs as u64, lost.len() as u64, 0.2);
}

#[test]
fn a_higher_loss_probability_loses_a_superset() {
    let loses = |percent: u64| lost(&format!(r#"{{"loss": "{percent}%"}}"#), 5, 5000, 1, 100);
    let (two, ten) = (loses(2), loses(10));
    assert!(two.iter().all(|number| ten.contains(number)) && ten.len() > 3 * two.len());
}

#[test]
fn directions_and_trials_lose_different_packets() {
    let one = lost(r#"{"loss": "10%"}"#, 1, 1000, 1, 100);
    let two = lost(r#"{"loss": "10%"}"#, 2, 1000, 1, 100);
    assert_ne!(one, two);
    let path = common::path(r#"{"loss": "10%"}"#);
    let mut network = network::Network::two_hosts(&path, foundation::Streams::new(1, 0));
    let back = common::train(1000, 1, 100).map(|(at, mut packet)| {
        packet.route = network::REVERSE;
        (at, packet)
    });
    let arrived = numbers(&common::drive(&mut network, back));
    let other: Vec<u64> = (1..=1000).filter(|number| !arrived.contains(number)).collect();
    assert_ne!(one, other);
}

/// Mean loss and mean burst of the stationary chain: with p = enter_bad and r = leave_bad, the bad state has
/// probability p / (p + r) (Gilbert 1960, equation for P(B)) and mean duration 1 / r. Consecutive packets have
/// correlation 1 - p - r, which widens the binomial interval by (2 - p - r) / (p + r).
#[test]
fn gilbert_elliott_has_the_expected_mean_and_burst_length() {
    for (seed, p, r) in [(1, 0.01, 0.25), (2, 0.005, 0.5), (3, 0.05, 0.1)] {
        let json = format!(
            r#"{{"loss": {{"model": "gilbert-elliott", "enter_bad": "{}%", "leave_bad": "{}%"}}}}"#,
            p * 100.0,
            r * 100.0
        );
        let n = 400_000;
        let lost = lost(&json, seed, n, 1, 100);
        let share = p / (p + r);
        let deviation = (share * (1.0 - share) / n as f64 * (2.0 - p - r) / (p + r)).sqrt();
        let measured = lost.len() as f64 / n as f64;
        assert!(
            (measured - share).abs() <= Z * deviation,
            "{measured} against {share}"
        );
        // Bursts are geometric: mean 1 / r, deviation sqrt(1 - r) / r.
        let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        let mean = lost.len() as f64 / bursts as f64;
        let deviation = (1.0 - r).sqrt() / r / (bursts as f64).sqrt();
        assert!(
            (mean - 1.0 / r).abs() <= Z * deviation,
            "burst of {mean} against {}",
            1.0 / r
        );
    }
}

/// Elliott's generalization: both states lose packets, with different probabilities.
#[test]
fn elliott_loses_in_both_states() {
    let json = r#"{"model": "gilbert-elliott", "enter_bad": "2%", "leave_bad": "20%", "loss_good": "1%", "loss_bad": "40%"}"#;
    let config: LossConfig = serde_json::from_str(json).unwrap();
    let n = 400_000;
    let lost = lost(&format!(r#"{{"loss": {json}}}"#), 7, n, 1, 100);
    // 1/11 bad: 0.4 / 11 + 0.01 * 10 / 11.
    let mean = 0.5 / 11.0;
    assert!((config.mean() - mean).abs() < 1e-12);
    // The autocovariance of losses at lag k is that of the state: (0.39)² share (1 - share) 0.78^k.
    let share = 1.0 / 11.0;
    let state = 0.39 * 0.39 * share * (1.0 - share);
    let variance = mean * (1.0 - mean) + 2.0 * state * 0.78 / 0.22;
    let deviation = (variance / n as f64).sqrt();
    let measured = lost.len() as f64 / n as f64;
    assert!(
        (measured - mean).abs() <= Z * deviation,
        "{measured} against {mean}"
    );
}

#[test]
fn gilbert_elliott_starts_in_the_stationary_distribution() {
    // The first packet meets the bad state with probability p / (p + r); a chain that starts in the good state would
    // lose none.
    let json = r#"{"loss": {"model": "gilbert-elliott", "enter_bad": "10%", "leave_bad": "30%"}}"#;
    let losers = (0..4000)
        .filter(|&seed| !lost(json, seed, 1, 1, 100).is_empty())
        .count();
    assert_binomial(losers as u64, 4000, 0.25);
}

#[test]
fn every_nth_and_listed_packets_are_lost() {
    assert_eq!(lost(r#"{"loss": {"every": 4}}"#, 1, 13, 1, 100), [4, 8, 12]);
    assert_eq!(lost(r#"{"loss": {"every": 1}}"#, 1, 3, 1, 100), [1, 2, 3]);
    assert_eq!(
        lost(r#"{"loss": {"packets": [7, 3, 3, 1, 99]}}"#, 1, 10, 1, 100),
        [1, 3, 7]
    );
    assert!(lost(r#"{"loss": {"packets": []}}"#, 1, 10, 1, 100).is_empty());
}

/// Returns the delay of each packet of a train with gaps wide enough to avoid queueing.
fn delays(jitter: &str) -> Vec<f64> {
    let json = format!(r#"{{"delay": "20ms", "jitter": {jitter}}}"#);
    let (arrivals, _) = run_train(&json, 3, 50_000, 100 * MS, 100);
    assert_eq!(arrivals.len(), 50_000);
    let sent = |number: u64| (number - 1) * 100 * MS;
    let delay = |arrival: &common::Arrival<common::Mark>| {
        (arrival.at - sent(arrival.packet.body.number)) as f64 / 1e6
    };
    arrivals.iter().map(delay).collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

#[test]
fn uniform_jitter_fills_its_range() {
    let delays = delays(r#""6ms""#);
    assert!(delays.iter().all(|delay| (14.0..=26.0).contains(delay)));
    let (mean, deviation) = mean_and_deviation(&delays);
    // A half-width of 6 has deviation 6 / sqrt(3); its error is below 1 % for this number of samples.
    let expected = 6.0 / 3.0_f64.sqrt();
    assert!((mean - 20.0).abs() < Z * expected / 50_000.0_f64.sqrt(), "{mean}");
    assert!((deviation - expected).abs() < 0.01 * expected, "{deviation}");
    // Each eighth of the range has an eighth of the samples.
    for eighth in 0..8 {
        let from = 14.0 + 1.5 * f64::from(eighth);
        let inside = delays
            .iter()
            .filter(|&&delay| delay >= from && delay < from + 1.5)
            .count();
        assert_binomial(inside as u64, 50_000, 0.125);
    }
}

#[test]
fn uniform_jitter_includes_both_ends() {
    let (arrivals, _) = run_train(r#"{"delay": "10ns", "jitter": "1ns"}"#, 3, 30_000, 100, 100);
    for delay in [9, 10, 11] {
        let has_delay = |arrival: &&common::Arrival<common::Mark>| arrival.at % 100 == delay;
        assert_binomial(
            arrivals.iter().filter(has_delay).count() as u64,
            30_000,
            1.0 / 3.0,
        );
    }
}

#[test]
fn normal_jitter_has_the_configured_deviation() {
    let delays = delays(r#"{"spread": "4ms", "distribution": "normal"}"#);
    let (mean, deviation) = mean_and_deviation(&delays);
    assert!((mean - 20.0).abs() < Z * 4.0 / 50_000.0_f64.sqrt(), "{mean}");
    assert!(
        (deviation - 4.0).abs() < Z * 4.0 / 100_000.0_f64.sqrt(),
        "{deviation}"
    );
    let within = delays.iter().filter(|&&delay| (delay - 20.0).abs() < 4.0).count();
    assert_binomial(within as u64, 50_000, 0.682_689_5);
}

#[test]
fn normal_jitter_has_no_negative_delays() {
    let json = r#"{"delay": "1ms", "jitter": {"spread": "10ms", "distribution": "normal"}}"#;
    let (arrivals, _) = run_train(json, 3, 2000, 500 * MS, 100);
    assert!(
        arrivals
            .iter()
            .all(|arrival| arrival.at >= (arrival.packet.body.number - 1) * 500 * MS)
    );
    assert!(
        arrivals
            .iter()
            .any(|arrival| arrival.at == (arrival.packet.body.number - 1) * 500 * MS)
    );
}

#[test]
fn jitter_reorders_only_without_keep_order() {
    let (arrivals, network) = run_train(r#"{"delay": "10ms", "jitter": "9ms"}"#, 1, 1000, MS, 100);
    assert!(numbers(&arrivals).is_sorted());
    assert_eq!(network.counters(LinkId(0)).reordered.packets, 0);
    let free = r#"{"delay": "10ms", "jitter": {"spread": "9ms", "keep_order": false}}"#;
    let (arrivals, network) = run_train(free, 1, 1000, MS, 100);
    let order = numbers(&arrivals);
    // RFC 4737: a packet is reordered if a later one arrives before it.
    let mut highest = 0;
    let mut reordered = 0;
    for &number in &order {
        reordered += u64::from(number < highest);
        highest = highest.max(number);
    }
    assert!(reordered > 300, "{reordered}");
    assert_eq!(network.counters(LinkId(0)).reordered.packets, reordered);
    // Without order, each packet has exactly its random delay.
    let delay = |arrival: &common::Arrival<common::Mark>| arrival.at - (arrival.packet.body.number - 1) * MS;
    assert!(
        arrivals
            .iter()
            .all(|arrival| (MS..=19 * MS).contains(&delay(arrival)))
    );
}

#[test]
fn delayed_packets_are_overtaken() {
    let json = r#"{"delay": "10ms", "reorder": {"probability": "10%", "delay": "2.5ms"}}"#;
    let (arrivals, network) = run_train(json, 1, 10_000, MS, 100);
    let delay = |arrival: &common::Arrival<common::Mark>| arrival.at - (arrival.packet.body.number - 1) * MS;
    let held = arrivals
        .iter()
        .filter(|arrival| delay(arrival) == 12_500_000)
        .count();
    let straight = arrivals
        .iter()
        .filter(|arrival| delay(arrival) == 10_000_000)
        .count();
    assert_eq!(held + straight, 10_000);
    assert_binomial(held as u64, 10_000, 0.1);
    // At least one of the next two packets overtakes it, unless both are delayed, too.
    let reordered = network.counters(LinkId(0)).reordered.packets;
    assert!(
        reordered as f64 > 0.97 * held as f64 && reordered <= held as u64,
        "{reordered} of {held}"
    );
}

#[test]
fn duplicates_arrive_after_their_originals() {
    let json = r#"{"rate": "8Mbit/s", "delay": "1ms", "duplicate": "25%"}"#;
    let (arrivals, network) = run_train(json, 1, 4000, 10 * MS, 1000);
    let copies = network.counters(LinkId(0)).duplicated.packets;
    assert_binomial(copies, 4000, 0.25);
    assert_eq!(arrivals.len() as u64, 4000 + copies);
    for pair in arrivals
        .windows(2)
        .filter(|pair| pair[0].packet.body == pair[1].packet.body)
    {
        // The copy occupies the link for another millisecond and keeps its number.
        assert_eq!(pair[1].at - pair[0].at, MS);
        assert_eq!(pair[1].packet.id, pair[0].packet.id);
    }
}

#[test]
fn a_full_queue_drops_the_copy() {
    let json = r#"{"rate": "8Mbit/s", "duplicate": "100%", "queue": "1pkt"}"#;
    let (arrivals, network) = run_train(json, 1, 10, 10 * MS, 1000);
    assert_eq!(arrivals.len(), 10);
    assert_eq!(network.counters(LinkId(0)).queue_dropped.packets, 10);
}

#[test]
fn corruption_flips_one_bit_of_the_original() {
    let (arrivals, network) = run_train(r#"{"corrupt": "5%", "duplicate": "100%"}"#, 1, 20_000, 1, 100);
    let flipped = arrivals
        .iter()
        .filter(|arrival| arrival.packet.body.flips == 1)
        .count() as u64;
    let whole = arrivals
        .iter()
        .filter(|arrival| arrival.packet.body.flips == 0)
        .count() as u64;
    assert_eq!(
        (flipped + whole, flipped),
        (40_000, network.counters(LinkId(0)).corrupted.packets)
    );
    assert_binomial(flipped, 20_000, 0.05);
}

#[test]
fn every_bit_of_a_datagram_can_be_flipped() {
    use network::Body;
    let mut seen = [0_u32; 24];
    for choice in 0..24 * 10 {
        let mut bytes = vec![0_u8; 3];
        bytes.flip_bit(choice);
        let flipped: Vec<usize> = (0..24)
            .filter(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1)
            .collect();
        assert_eq!(flipped.len(), 1);
        seen[flipped[0]] += 1;
    }
    assert_eq!(seen, [10; 24]);
    let mut nothing: Vec<u8> = Vec::new();
    nothing.flip_bit(5);
    assert!(nothing.is_empty());
}
