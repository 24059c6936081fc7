//! Maximum over a window of rounds, shared by both versions of BBR.

/// Maximum over the last `length` rounds, from three samples: the best, the second best after it and the third best
/// after that (K. Nichols' windowed filter, as the draft suggests).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundFilter {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    value: u64,
}

impl RoundFilter {
    /// Adds a value of `round` and returns the maximum over the last `length` rounds.
    pub(super) fn update(&mut self, round: u64, value: u64, length: u64) -> u64 {
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
            // A quarter of the window without a second best: it restarts from here.
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

    proptest! {
        /// The filter returns at least the newest value and at most the true maximum of the window.
        #[test]
        fn round_filter_is_windowed_maximum(
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
