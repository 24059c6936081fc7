//! ACKs that the receiver delayed: their RTTs are not those of the path, and Nagle's algorithm waits for them.

use foundation::{Duration, Instant};

/// Time that an ACK waits at least at a receiver that delays it; the shortest timers are those of Linux, 40 ms.
pub const DELAYED: Duration = Duration::from_millis(25);

/// A sample of the RTT.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When the ACK reached the sender.
    pub at: Instant,
    /// Time from the data at the capture to the ACK.
    pub far: Duration,
    /// Smallest such time.
    pub least: Duration,
    /// Whether it acknowledges at most one segment. A receiver delays the ACK of a second segment only if the ACK of the
    /// first one was lost.
    pub is_segment: bool,
    /// Whether the sender paused after the newest segment that it acknowledges: no further segment caused the ACK.
    pub is_last: bool,
    /// Whether it acknowledges all data, which was one segment.
    pub is_everything: bool,
}

/// Delayed ACKs of one receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct DelayedAcks {
    /// The newest time that counted.
    last_far: Option<Duration>,
    /// Whether the sample after it was left out.
    is_late: bool,
    /// The newest ACK if it was delayed and acknowledged everything, and how long it was delayed.
    newest: Option<(Instant, Duration)>,
}

impl DelayedAcks {
    /// Returns whether the ACK of a sample was delayed, so that it does not show the RTT of the path.
    pub fn is_delayed(&mut self, sample: &Sample) -> bool {
        let wait = sample.far.saturating_sub(sample.least);
        if sample.is_everything && wait >= DELAYED {
            self.newest = Some((sample.at, wait));
            return true;
        }
        // No queue grows that much from one ACK to the next; a change of the path does, and shows it again.
        let growth = sample.far.saturating_sub(self.last_far.unwrap_or(sample.far));
        self.is_late = (sample.is_segment || sample.is_last) && growth >= DELAYED && !self.is_late;
        if !self.is_late {
            self.last_far = Some(sample.far);
        }
        self.is_late
    }

    /// Forgets the newest ACK: other packets arrived since.
    pub const fn forget(&mut self) {
        self.newest = None;
    }

    /// Returns how long data at a time waited for a delayed ACK, if it follows it within `gap`.
    pub fn wait_before(&mut self, time: Instant, gap: Duration) -> Option<Duration> {
        let (at, wait) = self.newest.take()?;
        (time.saturating_since(at) <= gap).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, is_everything: bool) -> Sample {
        Sample {
            at: Instant::from_nanos(1_000_000_000),
            far: Duration::from_millis(millis),
            least: Duration::from_millis(20),
            is_segment: true,
            is_last: false,
            is_everything,
        }
    }

    #[test]
    fn one_late_ack_is_delayed_and_two_are_a_longer_path() {
        let mut acks = DelayedAcks::default();
        for (millis, is_delayed) in [
            (20, false),
            (60, true),
            (20, false),
            (60, true),
            (60, false),
            (62, false),
        ] {
            assert_eq!(acks.is_delayed(&sample(millis, false)), is_delayed, "{millis}");
        }
    }

    #[test]
    fn the_ack_of_a_last_segment_is_delayed_although_it_covers_others() {
        for (is_last, is_delayed) in [(true, true), (false, false)] {
            let mut acks = DelayedAcks::default();
            let of_three = |millis| Sample {
                is_segment: false,
                is_last,
                ..sample(millis, false)
            };
            assert!(!acks.is_delayed(&of_three(20)));
            assert_eq!(acks.is_delayed(&of_three(60)), is_delayed);
        }
    }

    #[test]
    fn data_right_after_a_delayed_ack_waited_for_it() {
        let gap = Duration::from_millis(1);
        for (later, waited) in [(0, true), (5, false)] {
            let mut acks = DelayedAcks::default();
            assert!(acks.is_delayed(&sample(60, true)));
            let time = sample(0, true).at + Duration::from_millis(later);
            assert_eq!(acks.wait_before(time, gap).is_some(), waited);
        }
    }
}
