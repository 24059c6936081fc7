//! Pacing: packets leave at a rate instead of in bursts (draft-ietf-ccwg-bbr, section 5.6.2;
//! RFC 9002, section 7.7).
//!
//! A leaky bucket: every packet fills it, the pacing rate drains it, and a packet may leave while
//! it fits. A departure that comes late (a coarse timer) leaves the bucket emptier, so that the mean
//! rate is met exactly whatever the timer's grain; a sender that was idle finds the bucket empty, not
//! owed the packets of its silence.

use foundation::{Duration, Instant, Rate};

/// The bucket of one connection.
///
/// Exact in integers: the level counts in 1/8e9 of a byte, so that a rate in bit/s times
/// nanoseconds is a whole number of units.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    level: u64,
    updated_at: Instant,
    /// The rate asked for last, 0 before the first question.
    bits_per_second: u64,
}

/// Units of the level in a byte: bits a byte times nanoseconds a second.
const UNITS_PER_BYTE: u64 = 8_000_000_000;
/// The largest burst for a packet train handed to the system at once (GSO's limit), while time allows.
const MAX_BURST: u64 = 65_536;
/// A burst lasts up to this long at the pacing rate…
const BURST_TIME: Duration = Duration::from_millis(1);
/// …and at least this long, whatever its size: no timer of an operating system is finer.
const TIMER_GRAIN: Duration = Duration::from_micros(100);

/// Bytes that may leave at once at `rate` in packets of `packet` bytes: what passes in 1 ms, but
/// not above 64 KiB unless that is less than 100 µs; always two packets.
#[must_use]
pub fn burst(rate: Rate, packet: u64) -> u64 {
    let bits = rate.bits_per_second();
    let in_span = |span: Duration| bits.saturating_mul(span.as_nanos()) / UNITS_PER_BYTE;
    in_span(BURST_TIME)
        .min(MAX_BURST)
        .max(in_span(TIMER_GRAIN))
        .max(packet.saturating_mul(2))
}

impl Pacer {
    /// A pacer of a connection that has sent nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When a packet of `bytes` may leave at `rate`: `None` for at once, else a time after `now`.
    ///
    /// The time given is when half a burst may leave together, so that a sender that sleeps until
    /// then wakes once a train of packets and not once a packet; at low rates half a burst is one packet.
    #[inline]
    pub fn next_departure(&mut self, now: Instant, rate: Rate, bytes: u64) -> Option<Instant> {
        self.bits_per_second = rate.bits_per_second();
        self.drain(now);
        let size = bytes.saturating_mul(UNITS_PER_BYTE);
        let burst = burst(rate, bytes).saturating_mul(UNITS_PER_BYTE);
        if self.level.saturating_add(size) <= burst {
            return None;
        }
        let excess = self.level.saturating_sub(burst / 2);
        Some(now + Duration::from_nanos(excess.div_ceil(self.bits_per_second)))
    }

    /// A packet of `bytes` left.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.drain(now);
        self.level = self.level.saturating_add(bytes.saturating_mul(UNITS_PER_BYTE));
    }

    fn drain(&mut self, now: Instant) {
        let nanos = (now - self.updated_at).as_nanos();
        self.level = self
            .level
            .saturating_sub(nanos.saturating_mul(self.bits_per_second));
        self.updated_at = self.updated_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap()
    }

    /// Sends packets of `bytes` as early as allowed, waking `lateness` ns late each time; gives
    /// the packets sent until `until` and the largest number sent at one instant.
    fn drive(pacer: &mut Pacer, bits: u64, bytes: u64, from: u64, until: u64, lateness: u64) -> (u64, u64) {
        let (mut now, mut sent, mut largest, mut here) = (Instant::from_nanos(from), 0, 0, 0);
        loop {
            match pacer.next_departure(now, rate(bits), bytes) {
                None => {
                    pacer.on_sent(now, bytes);
                    sent += 1;
                    here += 1;
                    largest = here.max(largest);
                }
                Some(at) => {
                    assert!(at > now, "a time that has passed would spin");
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
        // draft-ietf-ccwg-bbr, section 5.6.3: 1 ms of the rate, within two packets and 64 KiB.
        assert_eq!(burst(rate(1_000_000), 1460), 2920);
        assert_eq!(burst(rate(100_000_000), 1460), 12_500);
        assert_eq!(burst(rate(1_000_000_000), 1460), 65_536);
        // At 40 Gbit/s 64 KiB last 13 us: no sleep is that short.
        assert_eq!(burst(rate(40_000_000_000), 1460), 500_000);
    }

    #[test]
    fn low_rates_are_exact() {
        // 64 kbit/s in packets of 1500 B is one each 187.5 ms: 320 packets a minute after the first two.
        let (sent, largest) = drive(&mut Pacer::new(), 64_000, 1500, 0, 60_000_000_000, 0);
        assert_eq!((sent, largest), (322, 2));
        // One bit a second: 1000 B each 8000 s.
        let (sent, _) = drive(&mut Pacer::new(), 1, 1000, 0, 80_000_000_000_000, 0);
        assert_eq!(sent, 12);
    }

    #[test]
    fn a_late_timer_costs_no_rate() {
        // 100 Mbit/s, each wake-up 0.3 ms late: still 8562 packets of 1460 B a second.
        let (sent, _) = drive(&mut Pacer::new(), 100_000_000, 1460, 0, 1_000_000_000, 300_000);
        assert!((8562 - 8..=8562 + 8).contains(&sent), "{sent}");
    }

    #[test]
    fn silence_is_not_caught_up() {
        let mut pacer = Pacer::new();
        drive(&mut pacer, 10_000_000, 1000, 0, 1_000_000_000, 0);
        let (_, largest) = drive(&mut pacer, 10_000_000, 1000, 60_000_000_000, 61_000_000_000, 0);
        assert_eq!(largest, 2);
    }

    #[test]
    fn a_packet_larger_than_any_burst_leaves() {
        let mut pacer = Pacer::new();
        assert_eq!(pacer.next_departure(Instant::ZERO, rate(1000), u64::MAX), None);
        pacer.on_sent(Instant::ZERO, u64::MAX);
        assert!(
            pacer
                .next_departure(Instant::from_nanos(1), rate(1000), 1)
                .is_some()
        );
    }

    proptest! {
        #[test]
        fn no_more_leaves_than_rate_and_burst_allow(
            bits in 1_000_u64..200_000_000_000,
            bytes in 40_u64..9000,
            lateness in 0_u64..100_000,
        ) {
            let span = (bytes * UNITS_PER_BYTE / bits + 1) * 300;
            let (sent, _) = drive(&mut Pacer::new(), bits, bytes, 0, span, lateness);
            let allowed = rate(bits).bytes_in(Duration::from_nanos(span)) + burst(rate(bits), bytes);
            prop_assert!(sent * bytes <= allowed + bytes, "{} of {allowed}", sent * bytes);
            // Lateness below half a burst never costs more than that half at the end.
            if Duration::from_nanos(lateness) < TIMER_GRAIN / 2 {
                prop_assert!((sent + 2) * bytes + burst(rate(bits), bytes) >= allowed - burst(rate(bits), bytes));
            }
        }
    }
}
