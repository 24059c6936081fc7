//! Waiting to the microsecond, without burning a processor.

use foundation::{Duration, Instant};

/// So long before a departure the relay stops sleeping: the system wakes a sleeper up to so much late.
const LEAD: Duration = Duration::from_micros(70);
/// One part in so many of all time may be spent awake and waiting.
const SHARE: u64 = 4;
/// What can be saved up of it.
const MOST: Duration = Duration::from_millis(2);

/// What a relay may spend on waiting awake.
#[derive(Debug)]
pub struct SpinBudget {
    credit: Duration,
    updated_at: Instant,
    spinning_since: Option<Instant>,
}

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Sleep for at most this long.
    Sleep(Duration),
    /// Stay awake.
    Spin,
}

impl SpinBudget {
    /// A full budget.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            credit: MOST,
            updated_at: Instant::ZERO,
            spinning_since: None,
        }
    }

    /// How to wait from `now` until `due`, or for at most `longest`.
    pub fn pause(&mut self, now: Instant, due: Option<Instant>, longest: Duration) -> Pause {
        let earned = (now - self.updated_at) / SHARE;
        self.credit = (self.credit + earned).min(MOST);
        self.updated_at = now;
        if let Some(since) = self.spinning_since.take() {
            self.credit -= now - since;
        }
        let Some(due) = due else {
            return Pause::Sleep(longest);
        };
        let left = due - now;
        if self.credit <= LEAD {
            return Pause::Sleep(left.min(longest));
        }
        if left <= LEAD {
            self.spinning_since = Some(now);
            return Pause::Spin;
        }
        Pause::Sleep((left - LEAD).min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spins for as long as it is told to, sleeps as long as it is told to; gives the share of time spun.
    fn share_spun(gap: Duration) -> f64 {
        let mut budget = SpinBudget::new();
        let (mut now, mut due, mut spun) = (Instant::ZERO, Instant::ZERO + gap, Duration::ZERO);
        while now < Instant::from_nanos(1_000_000_000) {
            let step = match budget.pause(now, Some(due), Duration::from_millis(50)) {
                Pause::Spin => {
                    spun += Duration::from_micros(1);
                    Duration::from_micros(1)
                }
                Pause::Sleep(span) => span,
            };
            now += step;
            if now >= due {
                due = now + gap;
            }
        }
        spun.as_secs_f64()
    }

    #[test]
    fn spinning_is_a_bounded_share_of_all_time() {
        let rare = share_spun(Duration::from_millis(5));
        assert!((0.012..0.016).contains(&rare), "{rare}");
        let frequent = share_spun(Duration::from_micros(80));
        assert!((0.15..=0.26).contains(&frequent), "{frequent}");
    }

    #[test]
    fn nobody_spins_when_nothing_is_due() {
        let mut budget = SpinBudget::new();
        let longest = Duration::from_millis(50);
        assert_eq!(budget.pause(Instant::ZERO, None, longest), Pause::Sleep(longest));
        let far = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(
            budget.pause(Instant::ZERO, Some(far), longest),
            Pause::Sleep(longest)
        );
    }
}
