//! Waiting to the microsecond, without burning a processor.

use foundation::{Duration, Instant};

/// So long before a departure the relay stops sleeping: the system wakes a sleeper up to so much late.
const LEAD: Duration = Duration::from_micros(50);
/// One part in so many of all time may be spent awake and waiting: many relays share a machine when the
/// trials of a study run side by side, and without any of this a departure is 25 to 60 µs late.
const SHARE: u64 = 16;
/// What can be saved up of it.
const MOST: Duration = Duration::from_millis(2);

/// With so many packets in a millisecond there is no time to sleep: whoever does loses its processor to
/// somebody else for longer than until the next packet.
const BUSY: u64 = 50;
const MILLISECOND: Duration = Duration::from_millis(1);

/// What a relay may spend on waiting awake.
#[derive(Debug)]
pub struct SpinBudget {
    /// The millisecond at hand: when it began, and packets in it.
    counting_since: Instant,
    packets: u64,
    /// Whether the one before was busy.
    busy: bool,
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
            counting_since: Instant::ZERO,
            packets: 0,
            busy: false,
            credit: MOST,
            updated_at: Instant::ZERO,
            spinning_since: None,
        }
    }

    /// So many packets came or went.
    pub fn count(&mut self, now: Instant, packets: u64) {
        self.packets += packets;
        let elapsed = now - self.counting_since;
        if elapsed >= MILLISECOND {
            self.busy = self.packets >= BUSY && elapsed < MILLISECOND * 2;
            self.packets = 0;
            self.counting_since = now;
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
        if self.busy {
            return Pause::Spin;
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
        assert!((0.009..0.012).contains(&rare), "{rare}");
        let frequent = share_spun(Duration::from_micros(80));
        assert!((0.04..=0.07).contains(&frequent), "{frequent}");
    }

    #[test]
    fn a_busy_relay_stays_awake_until_it_is_busy_no_more() {
        let mut budget = SpinBudget::new();
        let longest = Duration::from_millis(50);
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        for micros in (0..=2000).step_by(10) {
            budget.count(at(micros), 1);
        }
        assert_eq!(budget.pause(at(2000), None, longest), Pause::Spin);
        for micros in (2010..=5000).step_by(10) {
            budget.count(at(micros), 0);
        }
        assert_eq!(budget.pause(at(5000), None, longest), Pause::Sleep(longest));
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
