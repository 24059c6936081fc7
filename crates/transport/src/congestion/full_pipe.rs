//! Detection of a full pipe, shared by both versions of BBR.

/// Growth in percent below which a round counts as a plateau.
const GROWTH_PERCENT: u64 = 125;
/// Rounds of plateau until the pipe is full.
const FULL_ROUNDS: u32 = 3;

/// Detects a plateau of the delivery rate while the sending rate grows (draft-ietf-ccwg-bbr, section 5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Rate that the following rates are compared with.
    pub baseline: u64,
    rounds: u32,
    /// The pipe is full since the last restart.
    pub now: bool,
    /// The pipe was full at any time.
    pub ever: bool,
}

impl FullPipe {
    /// Restarts the detection with this baseline.
    pub(super) fn restart(&mut self, baseline: u64) {
        (self.baseline, self.rounds, self.now) = (baseline, 0, false);
    }

    /// Evaluates the delivery `rate` if a round with enough data starts.
    pub(super) fn check(&mut self, starts: bool, rate: u64) {
        if self.now || !starts {
            return;
        }
        if rate.saturating_mul(100) >= self.baseline.saturating_mul(GROWTH_PERCENT) {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.ever |= self.now;
    }
}
