//! The two maxima that BBR remembers.

/// The largest value of this and the last cycle of bandwidth probing
/// (draft-ietf-ccwg-bbr, section 5.5.5: two virtual time slots are all that delivery rates need).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoCycleMax {
    previous: u64,
    current: u64,
}

impl TwoCycleMax {
    pub(super) fn update(&mut self, value: u64) {
        self.current = self.current.max(value);
    }

    /// A cycle ends; what was measured in the one before it is forgotten. A cycle without any
    /// measurement leaves things as they are.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }

    pub(super) fn max(&self) -> u64 {
        self.previous.max(self.current)
    }
}

/// A maximum over the last `length` rounds, from three samples: the best, the second best after it
/// and the third best after that (K. Nichols' windowed filter, as the draft suggests).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::congestion) struct RoundFilter {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    value: u64,
}

impl RoundFilter {
    /// Takes a value of `round` and gives the maximum over the last `length` rounds.
    pub(in crate::congestion) fn update(&mut self, round: u64, value: u64, length: u64) -> u64 {
        let new = Sample { round, value };
        if value >= self.best[0].value || round.saturating_sub(self.best[2].round) >= length {
            self.best = [new; 3];
            return value;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        if round - self.best[0].round >= length {
            self.best = [self.best[1], self.best[2], new];
            if round - self.best[0].round >= length {
                self.best = [self.best[1], new, new];
            }
        } else if self.best[1].round == self.best[0].round && round - self.best[0].round >= length / 4 {
            // A quarter of the window without a second best: take one from now on.
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].round == self.best[1].round && round - self.best[1].round >= length / 2 {
            self.best[2] = new;
        }
        self.best[0].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_maximum_is_remembered_for_two_cycles() {
        let mut filter = TwoCycleMax::default();
        filter.update(10);
        filter.advance();
        filter.update(7);
        assert_eq!(filter.max(), 10);
        filter.advance();
        assert_eq!(filter.max(), 7);
        filter.advance();
        assert_eq!(filter.max(), 7, "an empty cycle forgets nothing");
    }

    proptest! {
        /// The filter never gives less than the newest value nor more than the true maximum, and
        /// forgets what is older than the window.
        #[test]
        fn the_round_filter_is_a_windowed_maximum(
            steps in prop::collection::vec((0_u64..3, 0_u64..1000), 1..200),
            length in 1_u64..12,
        ) {
            let mut filter = RoundFilter::default();
            let (mut round, mut seen) = (0, Vec::new());
            for (step, value) in steps {
                round += step;
                seen.push((round, value));
                let got = filter.update(round, value, length);
                let most = seen.iter().filter(|(r, _)| r + length > round).map(|(_, v)| *v).max().unwrap();
                prop_assert!(got >= value && got <= most, "{value} <= {got} <= {most}");
            }
        }
    }
}
