//! How evenly a sender sends: the times between its bursts.

use foundation::Duration;

/// Packets closer than this belong to one burst: large segments that were split, and the two packets that a kernel paces at once.
const BURST: Duration = Duration::from_micros(100);
/// Gaps that a judgement needs.
const ENOUGH: f64 = 8.0;
/// Coefficient of variation up to which gaps are even.
const EVEN: f64 = 0.75;

/// Sums of the times between bursts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Gaps {
    /// Adds the time between two packets.
    pub fn add(&mut self, gap: Duration) {
        if gap > BURST {
            let seconds = gap.as_secs_f64();
            self.count += 1.0;
            self.sum += seconds;
            self.squares += seconds * seconds;
        }
    }

    /// Adds the gaps of another part of the transfer.
    pub fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Whether the sender sends at regular intervals.
    #[must_use]
    pub fn are_even(&self) -> bool {
        if self.count < ENOUGH {
            return false;
        }
        let mean = self.sum / self.count;
        let variance = (self.squares / self.count - mean * mean).max(0.0);
        variance.sqrt() < EVEN * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_at_constant_intervals_are_even() {
        let mut gaps = Gaps::default();
        for _ in 0..10 {
            gaps.add(Duration::from_micros(20));
            gaps.add(Duration::from_millis(2));
        }
        assert!(gaps.are_even());
    }

    #[test]
    fn flights_with_pauses_are_not_even() {
        let mut gaps = Gaps::default();
        for number in 0..40 {
            gaps.add(Duration::from_millis(if number % 10 == 0 { 40 } else { 1 }));
        }
        assert!(!gaps.are_even());
    }
}
