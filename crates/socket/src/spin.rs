//! Waiting with microsecond precision at a bounded processor load.

use foundation::{Duration, Instant};

/// Packets per millisecond above which sleeping is too slow: a sleeping thread loses its processor for longer than the
/// time to the next packet.
const BUSY: u64 = 50;
const MILLISECOND: Duration = Duration::from_millis(1);

/// Limits of busy waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinLimits {
    /// How long before a departure sleeping stops: the system wakes a thread up to this much late.
    pub lead: Duration,
    /// One part in `share` of the time may be spent on busy waiting.
    pub share: u64,
    /// Maximum saved-up budget.
    pub most: Duration,
    /// Whether the thread spins continuously under load; otherwise it does not spin at all then.
    pub awake_when_busy: bool,
}

impl SpinLimits {
    /// An ordinary thread, of which many share a machine when trials run side by side. Without busy waiting,
    /// departures are 25 to 60 µs late.
    pub const SHARED: Self = Self {
        lead: Duration::from_micros(50),
        share: 16,
        most: Duration::from_millis(2),
        awake_when_busy: true,
    };

    /// A real-time thread. It must not spin continuously: the system throttles such threads (`sched(7)`, "Limiting the
    /// CPU usage of real-time and deadline processes"), and a real-time thread wakes without delay anyway. Under load
    /// the programs whose packets it moves need the processor.
    pub const REAL_TIME: Self = Self {
        lead: Duration::from_micros(60),
        share: 4,
        most: Duration::from_millis(2),
        awake_when_busy: false,
    };
}

/// Busy-waiting budget of a thread.
#[derive(Debug)]
pub struct SpinBudget {
    limits: SpinLimits,
    /// Start of the current millisecond, and packets in it.
    counting_since: Instant,
    packets: u64,
    /// Whether the previous millisecond was busy.
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
    /// Keep polling.
    Spin,
}

impl SpinBudget {
    /// Returns a full budget within these limits.
    #[must_use]
    pub const fn new(limits: SpinLimits) -> Self {
        Self {
            limits,
            counting_since: Instant::ZERO,
            packets: 0,
            busy: false,
            credit: limits.most,
            updated_at: Instant::ZERO,
            spinning_since: None,
        }
    }

    /// Counts packets sent or received.
    pub fn count(&mut self, now: Instant, packets: u64) {
        self.packets += packets;
        let elapsed = now - self.counting_since;
        if elapsed >= MILLISECOND {
            self.busy = self.packets >= BUSY && elapsed < MILLISECOND * 2;
            self.packets = 0;
            self.counting_since = now;
        }
    }

    /// Whether the last whole millisecond had many packets.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.busy
    }

    /// Returns how to wait from `now` until `due`, at most for `longest`.
    pub fn pause(&mut self, now: Instant, due: Option<Instant>, longest: Duration) -> Pause {
        let earned = (now - self.updated_at) / self.limits.share;
        self.credit = (self.credit + earned).min(self.limits.most);
        self.updated_at = now;
        if let Some(since) = self.spinning_since.take() {
            self.credit -= now - since;
        }
        if self.busy && self.limits.awake_when_busy {
            return Pause::Spin;
        }
        let Some(due) = due else {
            return Pause::Sleep(longest);
        };
        let (left, lead) = (due - now, self.limits.lead);
        if self.busy || self.credit <= lead {
            return Pause::Sleep(left.min(longest));
        }
        if left <= lead {
            self.spinning_since = Some(now);
            return Pause::Spin;
        }
        Pause::Sleep((left - lead).min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the budget's decisions; returns the share of time spent spinning.
    fn share_spun(gap: Duration) -> f64 {
        let mut budget = SpinBudget::new(SpinLimits::SHARED);
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
    fn spinning_is_bounded() {
        let rare = share_spun(Duration::from_millis(5));
        assert!((0.009..0.012).contains(&rare), "{rare}");
        let frequent = share_spun(Duration::from_micros(80));
        assert!((0.04..=0.07).contains(&frequent), "{frequent}");
    }

    #[test]
    fn spins_only_while_busy() {
        let mut budget = SpinBudget::new(SpinLimits::SHARED);
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
    fn a_real_time_thread_sleeps_under_load() {
        let mut budget = SpinBudget::new(SpinLimits::REAL_TIME);
        let longest = Duration::from_millis(50);
        for micros in (0..=2000).step_by(5) {
            budget.count(Instant::ZERO + Duration::from_micros(micros), 1);
        }
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        assert_eq!(budget.pause(at(2000), None, longest), Pause::Sleep(longest));
        // Its credit is full.
        let soon = Duration::from_micros(20);
        assert_eq!(
            budget.pause(at(2000), Some(at(2020)), longest),
            Pause::Sleep(soon)
        );
        budget.count(at(6000), 0);
        assert_eq!(budget.pause(at(6000), Some(at(6020)), longest), Pause::Spin);
    }

    #[test]
    fn sleeps_when_nothing_is_due() {
        let mut budget = SpinBudget::new(SpinLimits::SHARED);
        let longest = Duration::from_millis(50);
        assert_eq!(budget.pause(Instant::ZERO, None, longest), Pause::Sleep(longest));
        let far = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(
            budget.pause(Instant::ZERO, Some(far), longest),
            Pause::Sleep(longest)
        );
    }
}
