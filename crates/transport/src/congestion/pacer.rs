//! Pacing: packets leave at a rate instead of in bursts (draft-ietf-ccwg-bbr, section 5.6.2; RFC 9002, section 7.7).
//!
//! A leaky bucket: every packet fills it, the pacing rate drains it, and a packet may leave while it fits. The mean rate is exact
//! with any timer resolution: a sender that wakes late finds half a burst more room, because it waits for half a burst only, or,
//! if it sends whole bursts, because it has credit for the time (`tcp_update_skb_after_send` of Linux). An idle period gives no more
//! than that.

use foundation::{Duration, Instant, Rate};

/// How a controller's packets leave: at most 64 KiB at once unless that is less than 100 µs, and at least two packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bursts {
    /// Up to 1 ms at the pacing rate (`send_quantum` of draft-ietf-ccwg-bbr, section 5.6.3); a sender waits for half of that.
    #[default]
    Usual,
    /// As [`Usual`](Self::Usual), but a sender waits for the whole burst (`tcp_tso_autosize` of Linux).
    Whole,
    /// Up to a quarter of that (`prague_burst_shift` of Linux: 12).
    Short,
}

impl Bursts {
    /// Returns the usual bursts, or whole ones.
    #[must_use]
    pub const fn usual(is_whole: bool) -> Self {
        if is_whole { Self::Whole } else { Self::Usual }
    }

    const fn time(self) -> Duration {
        match self {
            Self::Usual | Self::Whole => Duration::from_millis(1),
            Self::Short => Duration::from_nanos(1_000_000_000 >> 12),
        }
    }

    /// Returns the bytes of a burst at `rate` of packets of `packet` bytes.
    #[must_use]
    pub fn bytes(self, rate: Rate, packet: u64) -> u64 {
        let bits = rate.bits_per_second();
        let in_span = |span: Duration| bits.saturating_mul(span.as_nanos()) / UNITS_PER_BYTE;
        in_span(self.time())
            .min(MAX_BURST)
            .max(in_span(TIMER_GRAIN))
            .max(packet.saturating_mul(2))
    }
}

/// Bucket of one connection.
///
/// Exact in integers: the level is in units of 1/8e9 byte, so that bit/s times ns is a whole number of units.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// Negative while there is credit.
    level: i64,
    updated_at: Instant,
    /// Rate of the last call in bit/s, 0 before the first; negative while the sender waits for the departure that it returned, which
    /// takes no memory of its own.
    rate: i64,
}

/// Units per byte: bits per byte times nanoseconds per second.
const UNITS_PER_BYTE: u64 = 8_000_000_000;
/// Maximum burst for a packet train passed to the system at once (GSO's limit), if time allows.
const MAX_BURST: u64 = 65_536;
/// Minimum duration of a burst, the resolution of operating system timers.
const TIMER_GRAIN: Duration = Duration::from_micros(100);

impl Pacer {
    /// Creates the pacer of a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns when a packet of `bytes` may leave at `rate`: `None` for at once, else a time after `now`.
    ///
    /// At that time half a burst may leave, or a whole one, so that a sleeping sender wakes once per packet train, not once per
    /// packet. At low rates half a burst is one packet.
    #[inline]
    pub fn next_departure(
        &mut self,
        now: Instant,
        rate: Rate,
        bursts: Bursts,
        bytes: u64,
    ) -> Option<Instant> {
        let burst = units(bursts.bytes(rate, bytes));
        let (left, credit) = match bursts {
            Bursts::Whole if self.rate < 0 => (0, burst / 2),
            Bursts::Whole => (0, 0),
            Bursts::Usual | Bursts::Short => (burst / 2, 0),
        };
        self.rate = i64::try_from(rate.bits_per_second()).unwrap_or(i64::MAX);
        self.drain(now, credit);
        if self.level.saturating_add(units(bytes)) <= burst {
            return None;
        }
        let excess = self.level.saturating_sub(left).max(0).unsigned_abs();
        let span = excess.div_ceil(self.rate.unsigned_abs());
        self.rate = -self.rate;
        Some(now + Duration::from_nanos(span))
    }

    /// Records the transmission of `bytes`.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.drain(now, 0);
        self.level = self.level.saturating_add(units(bytes));
    }

    /// Drains the bucket until `now`, with at most `credit` for the time since it was empty, or what there was.
    fn drain(&mut self, now: Instant, credit: i64) {
        let nanos = (now - self.updated_at).as_nanos();
        let drained = i64::try_from(nanos.saturating_mul(self.rate.unsigned_abs())).unwrap_or(i64::MAX);
        let lowest = self.level.min(-credit).min(0);
        self.level = self.level.saturating_sub(drained).max(lowest);
        self.updated_at = self.updated_at.max(now);
    }
}

/// Returns the units of bytes.
fn units(bytes: u64) -> i64 {
    i64::try_from(bytes.saturating_mul(UNITS_PER_BYTE)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap()
    }

    /// Sends packets of `bytes` as early as allowed, waking `lateness` ns late each time. Returns the packets sent
    /// until `until` and the largest number sent at one instant.
    fn drive(pacer: &mut Pacer, bits: u64, bytes: u64, from: u64, until: u64, lateness: u64) -> (u64, u64) {
        drive_in(Bursts::Usual, pacer, bits, bytes, (from, until), lateness)
    }

    fn drive_in(
        bursts: Bursts,
        pacer: &mut Pacer,
        bits: u64,
        bytes: u64,
        (from, until): (u64, u64),
        lateness: u64,
    ) -> (u64, u64) {
        let (mut now, mut sent, mut largest, mut here) = (Instant::from_nanos(from), 0, 0, 0);
        loop {
            match pacer.next_departure(now, rate(bits), bursts, bytes) {
                None => {
                    pacer.on_sent(now, bytes);
                    sent += 1;
                    here += 1;
                    largest = here.max(largest);
                }
                Some(at) => {
                    assert!(at > now, "a past time would spin");
                    now = at + Duration::from_nanos(lateness);
                    here = 0;
                    if now.as_nanos() > until {
                        return (sent, largest);
                    }
                }
            }
        }
    }

    #[test]
    fn bursts_follow_the_rate() {
        // 1 ms at the rate, between two packets and 64 KiB (draft-ietf-ccwg-bbr, section 5.6.3).
        assert_eq!(Bursts::Usual.bytes(rate(1_000_000), 1460), 2920);
        assert_eq!(Bursts::Usual.bytes(rate(100_000_000), 1460), 12_500);
        assert_eq!(Bursts::Usual.bytes(rate(1_000_000_000), 1460), 65_536);
        // At 40 Gbit/s 64 KiB last 13 µs: no sleep is that short.
        assert_eq!(Bursts::Usual.bytes(rate(40_000_000_000), 1460), 500_000);
    }

    #[test]
    fn low_rates_are_exact() {
        // 64 kbit/s in packets of 1500 B is one per 187.5 ms: 320 packets per minute after the first two.
        let (sent, largest) = drive(&mut Pacer::new(), 64_000, 1500, 0, 60_000_000_000, 0);
        assert_eq!((sent, largest), (322, 2));
        // One bit per second: 1000 B per 8000 s.
        let (sent, _) = drive(&mut Pacer::new(), 1, 1000, 0, 80_000_000_000_000, 0);
        assert_eq!(sent, 12);
    }

    #[test]
    fn late_timer_does_not_reduce_rate() {
        // 100 Mbit/s with wake-ups 0.3 ms late: still 8562 packets of 1460 B per second.
        let (sent, _) = drive(&mut Pacer::new(), 100_000_000, 1460, 0, 1_000_000_000, 300_000);
        assert!((8562 - 8..=8562 + 8).contains(&sent), "{sent}");
    }

    #[test]
    fn idle_time_gives_no_credit() {
        let mut pacer = Pacer::new();
        drive(&mut pacer, 10_000_000, 1000, 0, 1_000_000_000, 0);
        let (_, largest) = drive(&mut pacer, 10_000_000, 1000, 60_000_000_000, 61_000_000_000, 0);
        assert_eq!(largest, 2);
    }

    #[test]
    fn whole_bursts_leave_with_credit_for_late_timers() {
        let whole = |pacer: &mut Pacer, from: u64, until: u64, lateness: u64| {
            drive_in(Bursts::Whole, pacer, 100_000_000, 1460, (from, until), lateness)
        };
        // 1 ms at 100 Mbit/s has 8 packets of 1460 B; half a burst has 4.
        let (sent, largest) = whole(&mut Pacer::new(), 1, 1_000_000_000, 0);
        assert!((8562..=8570).contains(&sent), "{sent}");
        assert_eq!(largest, 8);
        // 0.3 ms have 2.5 packets.
        let (sent, largest) = whole(&mut Pacer::new(), 1, 1_000_000_000, 300_000);
        assert!((8562 - 11..=8562 + 11).contains(&sent), "{sent}");
        assert_eq!(largest, 11);
        let mut idle = Pacer::new();
        whole(&mut idle, 1, 1_000_000, 0);
        let (_, largest) = whole(&mut idle, 60_000_000_000, 60_001_000_000, 0);
        assert_eq!(largest, 12, "a burst and half of one");
    }

    #[test]
    fn short_bursts_are_a_quarter() {
        assert_eq!(Bursts::Short.bytes(rate(100_000_000), 1460), 3051);
        assert_eq!(Bursts::Short.bytes(rate(10_000_000), 1460), 2920);
    }

    #[test]
    fn packet_larger_than_burst_leaves() {
        let mut pacer = Pacer::new();
        assert_eq!(
            pacer.next_departure(Instant::ZERO, rate(1000), Bursts::Usual, u64::MAX),
            None
        );
        pacer.on_sent(Instant::ZERO, u64::MAX);
        assert!(
            pacer
                .next_departure(Instant::from_nanos(1), rate(1000), Bursts::Usual, 1)
                .is_some()
        );
    }

    proptest! {
        #[test]
        fn sends_at_most_rate_and_burst(
            bits in 1_000_u64..200_000_000_000,
            bytes in 40_u64..9000,
            lateness in 0_u64..100_000,
        ) {
            let span = (bytes * UNITS_PER_BYTE / bits + 1) * 300;
            let (sent, _) = drive(&mut Pacer::new(), bits, bytes, 0, span, lateness);
            let allowed = rate(bits).bytes_in(Duration::from_nanos(span)) + Bursts::Usual.bytes(rate(bits), bytes);
            prop_assert!(sent * bytes <= allowed + bytes, "{} of {allowed}", sent * bytes);
            // Lateness below half a burst costs at most that half at the end.
            if Duration::from_nanos(lateness) < TIMER_GRAIN / 2 {
                prop_assert!((sent + 2) * bytes + Bursts::Usual.bytes(rate(bits), bytes) >= allowed - Bursts::Usual.bytes(rate(bits), bytes));
            }
        }
    }
}
