//! Rests of a real-time thread: the system prefers it to all others, so it must leave them processor time by itself.

use foundation::{Duration, Instant};

/// The thread sleeps for at least one part in four of all time.
const AWAKE_PER_REST: u64 = 3;
/// It rests once it owes this much. Shorter rests cost more in switches between threads than they leave; longer ones let
/// what is due wait.
const OWED: Duration = Duration::from_micros(100);

/// What a thread owes to the others that share its processor.
#[derive(Debug)]
pub struct RestBudget {
    owed: Duration,
    updated_at: Instant,
}

impl RestBudget {
    /// Begins `now` with nothing owed.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self {
            owed: Duration::ZERO,
            updated_at: now,
        }
    }

    /// Notes that the thread was awake until `now`, and returns the rest that it must take, if any.
    pub fn awake_until(&mut self, now: Instant) -> Option<Duration> {
        self.owed += now.saturating_since(self.updated_at) / AWAKE_PER_REST;
        self.updated_at = now;
        (self.owed >= OWED).then_some(self.owed)
    }

    /// Notes that the thread slept until `now`. Sleep beyond what it owes is no credit: after a quiet time, too, it must
    /// leave room to others.
    pub fn slept_until(&mut self, now: Instant) {
        self.owed = self.owed.saturating_sub(now.saturating_since(self.updated_at));
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works for `work` at a time and sleeps for `sleep` after it; gives the share of time that it slept or rested.
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
    fn a_thread_that_is_always_busy_leaves_a_quarter_of_the_time() {
        let share = share_slept(Duration::from_micros(7), Duration::ZERO);
        assert!((0.24..0.26).contains(&share), "{share}");
    }

    #[test]
    fn a_thread_that_sleeps_enough_by_itself_is_left_alone() {
        let (work, sleep) = (Duration::from_micros(20), Duration::from_micros(10));
        let share = share_slept(work, sleep);
        assert!((0.33..0.34).contains(&share), "{share}");
    }

    #[test]
    fn a_quiet_second_does_not_pay_for_a_busy_one() {
        let mut now = Instant::ZERO;
        let mut budget = RestBudget::new(now);
        now += Duration::from_secs(1);
        budget.slept_until(now);
        now += Duration::from_micros(600);
        assert!(budget.awake_until(now).is_some());
    }
}
