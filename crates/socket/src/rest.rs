//! Rest periods of a real-time thread. The system prefers it to all others, so it must yield processor time itself.

use foundation::{Duration, Instant};

/// The thread sleeps at least one part in four of the time.
const AWAKE_PER_REST: u64 = 3;
/// Debt after which it rests. Shorter rests cost more in thread switches than they free; longer rests delay packets
/// that are due.
const OWED: Duration = Duration::from_micros(100);

/// Processor time that a real-time thread owes to the threads that share its processor.
#[derive(Debug)]
pub struct RestBudget {
    owed: Duration,
    updated_at: Instant,
}

impl RestBudget {
    /// Starts at `now` without debt.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self {
            owed: Duration::ZERO,
            updated_at: now,
        }
    }

    /// Records that the thread was awake until `now`, and returns the rest that it must take, if any.
    pub fn awake_until(&mut self, now: Instant) -> Option<Duration> {
        self.owed += now.saturating_since(self.updated_at) / AWAKE_PER_REST;
        self.updated_at = now;
        (self.owed >= OWED).then_some(self.owed)
    }

    /// Records that the thread slept until `now`. Sleep beyond the debt is no credit: after a quiet period the thread
    /// must still yield.
    pub fn slept_until(&mut self, now: Instant) {
        self.owed = self.owed.saturating_sub(now.saturating_since(self.updated_at));
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alternates `work` and `sleep`; returns the share of time spent asleep or resting.
    fn share_slept(work: Duration, sleep: Duration) -> f64 {
        let mut now = Instant::ZERO;
        let mut budget = RestBudget::new(now);
        let mut slept = Duration::ZERO;
        while now < Instant::from_nanos(1_000_000_000) {
            now += work;
            let span = budget.awake_until(now).unwrap_or(sleep);
            if !span.is_zero() {
                now += span;
                slept += span;
                budget.slept_until(now);
            }
        }
        slept.as_secs_f64() / now.as_secs_f64()
    }

    #[test]
    fn a_busy_thread_leaves_a_quarter_of_the_time() {
        let share = share_slept(Duration::from_micros(7), Duration::ZERO);
        assert!((0.24..0.26).contains(&share), "{share}");
    }

    #[test]
    fn a_thread_that_sleeps_enough_gets_no_extra_rest() {
        let (work, sleep) = (Duration::from_micros(20), Duration::from_micros(10));
        let share = share_slept(work, sleep);
        assert!((0.33..0.34).contains(&share), "{share}");
    }

    #[test]
    fn an_idle_second_gives_no_credit() {
        let mut now = Instant::ZERO;
        let mut budget = RestBudget::new(now);
        now += Duration::from_secs(1);
        budget.slept_until(now);
        now += Duration::from_micros(600);
        assert!(budget.awake_until(now).is_some());
    }
}
