//! Autotuning of the receive buffer by the data read per round trip: dynamic right-sizing (Fisk and Feng, "Dynamic
//! Right-Sizing in TCP", 2001), as in Linux 6.18 (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`).

use foundation::{Duration, Instant};

/// Initial data per round trip in full segments (`tcp_init_buffer_space`, `TCP_INIT_CWND`).
const INITIAL_SEGMENTS: u64 = 10;

/// Echoed timestamp of this end's clock, and the clock now, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampEcho {
    pub value: u32,
    pub clock: u32,
}

/// Measurements that size a receive buffer.
#[derive(Debug)]
pub struct Autotuning {
    /// Maximum bytes read in a round trip so far.
    space: u64,
    /// Start of the current round trip, and the read position then.
    since: Option<Instant>,
    from: u64,
    /// The receiver's estimate of the round trip; [`Duration::MAX`] before the first sample.
    round_trip: Duration,
    last_echo: Option<u32>,
    /// Without timestamps: position whose arrival completes a window.
    window_end: u64,
    window_since: Option<Instant>,
}

impl Default for Autotuning {
    fn default() -> Self {
        Self {
            space: 0,
            since: None,
            from: 0,
            round_trip: Duration::MAX,
            last_echo: None,
            window_end: 0,
            window_since: None,
        }
    }
}

impl Autotuning {
    /// Samples the round trip from the echoed timestamp of a data segment (`tcp_rcv_rtt_measure_ts`).
    #[inline]
    pub fn on_echo(&mut self, echo: TimestampEcho, unread: bool) {
        if self.last_echo == Some(echo.value) {
            return;
        }
        self.last_echo = Some(echo.value);
        let ticks = echo.clock.wrapping_sub(echo.value);
        if ticks < 1 << 24 {
            let sample = Duration::from_millis(u64::from(ticks.max(1)));
            match self.round_trip() {
                // With unread data, a late reader would look like a long path.
                Some(old) if sample >= old && unread => {}
                Some(old) if sample >= old => self.round_trip = old - old / 8 + sample / 8,
                _ => self.round_trip = sample,
            }
        }
    }

    /// Returns the receiver's estimate of the round trip.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.round_trip).filter(|&round_trip| round_trip != Duration::MAX)
    }

    /// Sets the round trip, measured by the subflows that deliver the data.
    pub const fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// Samples the round trip without timestamps: a window takes at least one to arrive (`tcp_rcv_rtt_measure`).
    pub fn on_window(&mut self, now: Instant, next: u64, window: u64) {
        if next < self.window_end {
            return;
        }
        if let Some(since) = self.window_since {
            let sample = now - since;
            self.round_trip = self.round_trip.min(sample);
        }
        (self.window_end, self.window_since) = (next + window, Some(now));
    }

    /// Records a read up to position `read` that leaves `unread` bytes; a full segment has `segment` bytes. Returns the
    /// window to provide if a round trip read more than any before, plus `beyond` bytes from the first gap to the end
    /// of the received data.
    #[inline]
    pub fn on_read(
        &mut self,
        now: Instant,
        read: u64,
        unread: u64,
        segment: u32,
        beyond: u64,
    ) -> Option<u64> {
        let Some(since) = self.since else {
            self.space = INITIAL_SEGMENTS * u64::from(segment);
            (self.since, self.from) = (Some(now), 1);
            return None;
        };
        if now - since < self.round_trip()? {
            return None;
        }
        let copied = (read - self.from).saturating_sub(unread);
        (self.since, self.from) = (Some(now), read);
        if copied <= self.space {
            return None;
        }
        let old = std::mem::replace(&mut self.space, copied);
        // Twice, because the measurement is a round trip late; plus twice its growth, for a sender in slow start.
        let base = 2 * copied;
        let growth = u128::from(base) * u128::from(copied - old) / u128::from(old.max(1));
        let window = u64::try_from(2 * growth).unwrap_or(u64::MAX).saturating_add(base);
        Some(window.saturating_add(beyond))
    }

    /// Returns the window that has room for `beyond` bytes above a gap.
    pub const fn on_gap(&self, beyond: u64) -> u64 {
        2 * self.space + beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn grows_as_linux_in_a_slow_start_over_240_ms() {
        // Linux 6.18 over 240 ms: `rcv_space` was 14480, 15928 and then 28960, and the buffer then 244316 bytes of
        // which 160/256 are window: 2 * 28960 * (1 + 2 * (28960 - 15928) / 15928) = 152,698.
        let mut tuning = Autotuning::default();
        tuning.on_echo(
            TimestampEcho {
                value: 1000,
                clock: 1240,
            },
            false,
        );
        assert_eq!(tuning.on_read(at(0), 1, 0, 1448, 0), None);
        assert_eq!(
            tuning.on_read(at(239), 14_481, 0, 1448, 0),
            None,
            "no round trip yet"
        );
        assert_eq!(tuning.on_read(at(240), 15_929, 0, 1448, 0), Some(38_226));
        assert_eq!(
            tuning.on_read(at(480), 15_929 + 28_960, 0, 1448, 0),
            Some(152_698)
        );
        assert_eq!(
            tuning.on_read(at(720), 15_929 + 2 * 28_960, 0, 1448, 0),
            None,
            "no increase"
        );
        assert_eq!(tuning.on_gap(1000), 58_920);
    }

    #[test]
    fn unread_data_does_not_count() {
        let mut tuning = Autotuning::default();
        tuning.on_echo(TimestampEcho { value: 0, clock: 100 }, false);
        tuning.on_read(at(0), 1, 0, 1000, 0);
        assert_eq!(tuning.on_read(at(100), 20_001, 10_000, 1000, 0), None);
        assert!(tuning.on_read(at(200), 40_001, 9_999, 1000, 0).is_some());
    }

    #[test]
    fn the_round_trip_is_smoothed_but_falls_at_once() {
        let mut tuning = Autotuning::default();
        let sample = |tuning: &mut Autotuning, start: u32, ticks: u32, unread: bool| {
            tuning.on_echo(
                TimestampEcho {
                    value: start,
                    clock: start + ticks,
                },
                unread,
            );
            tuning.round_trip().unwrap().as_nanos() / 1_000_000
        };
        assert_eq!(sample(&mut tuning, 0, 80, false), 80);
        assert_eq!(sample(&mut tuning, 1, 160, false), 90);
        assert_eq!(
            sample(&mut tuning, 1, 500, false),
            90,
            "a repeated echo is no sample"
        );
        assert_eq!(sample(&mut tuning, 2, 500, true), 90, "the reader was late");
        assert_eq!(sample(&mut tuning, 3, 20, true), 20);
    }

    #[test]
    fn without_timestamps_a_window_is_a_round_trip() {
        let mut tuning = Autotuning::default();
        tuning.on_window(at(0), 1, 10_000);
        tuning.on_window(at(30), 9_000, 10_000);
        assert_eq!(tuning.round_trip(), None);
        tuning.on_window(at(50), 10_001, 20_000);
        assert_eq!(tuning.round_trip(), Some(Duration::from_millis(50)));
        tuning.on_window(at(130), 30_001, 20_000);
        assert_eq!(
            tuning.round_trip(),
            Some(Duration::from_millis(50)),
            "never longer"
        );
    }
}
