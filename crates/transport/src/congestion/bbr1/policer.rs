//! Detection of a policer: two intervals with many losses and about the same delivery rate (`bbr_lt_bw_sampling` of
//! Linux). The flow then sends at that rate, and probes again after some rounds.

use foundation::Instant;

/// Rounds of an interval, at least.
const LEAST_ROUNDS: u32 = 4;
/// Rounds after which an interval without enough losses is discarded.
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Share of lost packets that indicates a policer, in 1/256.
const LOSSES: u64 = 50;
/// Rates are about the same within this fraction, or within this difference in bit/s.
const RATIO: u64 = 8;
const DIFFERENCE: u64 = 4000;
/// Rounds at the rate of a policer.
const ROUNDS_IN_USE: u32 = 48;

/// What the sender knows at an ACK or a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub now: Instant,
    /// Bytes delivered and bytes declared lost since the start of the connection.
    pub delivered: u64,
    pub lost: u64,
    pub starts_round: bool,
    /// Packets were lost since the last ACK.
    pub loses: bool,
    pub application_limited: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Rate in bit/s of the last interval, or of the policer.
    rate: u64,
    in_use: bool,
    is_sampling: bool,
    /// Rounds in this interval, or at the rate of the policer.
    rounds: u32,
    /// Start of the interval: time, bytes delivered and lost.
    started: Instant,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// Returns the rate of a detected policer in bit/s.
    pub(super) fn rate(&self) -> Option<u64> {
        self.in_use.then_some(self.rate)
    }

    /// Handles an ACK or a timeout. Returns whether the use of a policer's rate ends with it.
    pub(super) fn update(&mut self, progress: &Progress, probes_bandwidth: bool) -> bool {
        if self.in_use {
            self.rounds += u32::from(probes_bandwidth && progress.starts_round);
            let ends = self.rounds >= ROUNDS_IN_USE;
            if ends {
                *self = Self::default();
            }
            return ends;
        }
        if !self.is_sampling {
            // The first loss shows that the tokens of a policer are used up.
            if !progress.loses {
                return false;
            }
            self.start(progress);
            self.is_sampling = true;
        }
        if progress.application_limited {
            *self = Self::default();
            return false;
        }
        self.rounds += u32::from(progress.starts_round);
        if self.rounds > MOST_ROUNDS {
            *self = Self::default();
        } else if self.rounds >= LEAST_ROUNDS && progress.loses {
            self.finish(progress);
        }
        false
    }

    fn start(&mut self, progress: &Progress) {
        self.rounds = 0;
        (self.started, self.delivered, self.lost) = (progress.now, progress.delivered, progress.lost);
    }

    /// Ends the interval if it has lost enough.
    fn finish(&mut self, progress: &Progress) {
        let (delivered, lost) = (progress.delivered - self.delivered, progress.lost - self.lost);
        let millis = (progress.now - self.started).as_nanos() / 1_000_000;
        if delivered == 0 || lost * 256 < LOSSES * delivered || millis == 0 {
            return;
        }
        let rate = delivered.saturating_mul(8000) / millis;
        let difference = rate.abs_diff(self.rate);
        if self.rate > 0 && (difference * RATIO <= self.rate || difference <= DIFFERENCE) {
            self.rate = self.rate.midpoint(rate);
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.start(progress);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 10 ms, each with bytes delivered and lost, and the loss at its end.
    fn run(policer: &mut Policer, rounds: impl IntoIterator<Item = (u64, u64)>) -> Vec<bool> {
        let mut progress = Progress {
            now: Instant::ZERO,
            delivered: 0,
            lost: 0,
            starts_round: true,
            loses: true,
            application_limited: false,
        };
        let mut ends = Vec::new();
        for (delivered, lost) in rounds {
            ends.push(policer.update(&progress, true));
            progress.now += foundation::Duration::from_millis(10);
            progress.delivered += delivered;
            progress.lost += lost;
            progress.loses = lost > 0;
        }
        ends
    }

    #[test]
    fn two_similar_intervals_with_losses_reveal_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        // 10 kB in 10 ms are 8 Mbit/s; a quarter as much is lost.
        let ends = run(&mut policer, [(10_000, 2500); 8]);
        assert!(policer.rate() == Some(8_000_000) && !ends.contains(&true));
        let ends = run(&mut policer, [(10_000, 0); 48]);
        assert_eq!(ends.iter().position(|&end| end), Some(47));
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn few_losses_and_different_rates_reveal_none() {
        for rounds in [
            vec![(10_000, 1900); 40],
            [vec![(10_000, 2500); 4], vec![(13_000, 3250); 6]].concat(),
        ] {
            let mut policer = Policer::default();
            run(&mut policer, rounds.clone());
            assert_eq!(policer.rate(), None, "{rounds:?}");
        }
    }
}
