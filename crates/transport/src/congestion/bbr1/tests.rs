//! Linux's rules in the controller: a policer.

use foundation::{Duration, Instant};

use super::Bbr1Settings;
use super::settings::Bbr1Rules;
use crate::congestion::settings::{ConnectionContext, ControllerSettings};
use crate::congestion::tests::{ack, loss};
use crate::congestion::{Acknowledgement, RateSample};

/// Returns the pacing rates in bit/s after each round of 10 ms, each with bytes delivered and packets of 1000 bytes lost.
fn pacing(rules: Bbr1Rules, rounds: impl IntoIterator<Item = (u64, u64)>) -> Vec<u64> {
    let settings = Bbr1Settings {
        rules: Some(rules),
        ..Bbr1Settings::default()
    };
    let mut controller = settings.build_for(&ConnectionContext::new(1000));
    let (mut now, mut total) = (Instant::ZERO, 0);
    let round = Duration::from_millis(10);
    rounds
        .into_iter()
        .map(|(delivered, lost)| {
            now += round;
            for _ in 0..lost {
                controller.on_lost(&loss(now, now - round, 0));
            }
            let sample = RateSample {
                delivered,
                interval: round,
                prior_delivered: total,
                lost: 0,
                in_flight_at_send: 0,
                application_limited: false,
            };
            total += delivered;
            controller.on_acknowledged(&Acknowledgement {
                rtt: Some(round),
                delivered: total,
                rate_sample: Some(sample),
                ..ack(now, delivered)
            });
            controller.pacing_rate().unwrap().bits_per_second()
        })
        .collect()
}

#[test]
fn a_policer_sets_the_pace_for_48_rounds() {
    // Tokens for 16 Mbit/s, then 8 Mbit/s with a loss of a fifth, then no losses.
    let rounds = || {
        let policed = [vec![(20_000, 0); 6], vec![(8000, 2); 8]].concat();
        policed.into_iter().chain([(8000, 0); 40])
    };
    let found = pacing(Bbr1Rules::Linux, rounds());
    let policed = 6_400_000 * 99 / 100;
    assert_eq!(found.iter().position(|&rate| rate == policed), Some(13));
    assert!(found[13..].iter().all(|&rate| rate == policed), "{found:?}");
    let draft = pacing(Bbr1Rules::Draft, rounds());
    assert!(draft[13..].windows(2).any(|two| two[0] != two[1]), "{draft:?}");
}
