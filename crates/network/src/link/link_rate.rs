//! The rate of a link: unlimited, constant, or recorded in a trace.

use std::sync::Arc;

use foundation::Rate;

use crate::config::Capacity;
use crate::trace::Cursor;

/// Computes departure times.
#[derive(Clone, Debug)]
pub(crate) enum LinkRate {
    /// Packets leave immediately.
    Unlimited,
    /// Packets leave at a constant rate.
    Constant(Serializer),
    /// Packets leave at the opportunities of a trace.
    Traced(Cursor),
}

impl LinkRate {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        match capacity {
            // The discipline of a shared medium holds each packet until it has been sent.
            Capacity::Unlimited | Capacity::Cell(_) | Capacity::Wifi(_) => Self::Unlimited,
            Capacity::Rate(rate) => Self::Constant(Serializer::new(*rate)),
            Capacity::Trace(trace) => Self::Traced(Cursor::new(Arc::clone(trace))),
        }
    }

    /// Returns the rate of a new capacity, behind packets that the link finishes sending at `busy`.
    pub(crate) fn after(capacity: &Capacity, busy: u64) -> Self {
        let mut rate = Self::new(capacity);
        rate.pause(busy);
        rate
    }

    /// Starts no transmission before a time.
    pub(crate) fn pause(&mut self, until: u64) {
        match self {
            Self::Unlimited => {}
            Self::Constant(serializer) => {
                serializer.busy = until;
                serializer.end = until;
                serializer.fraction = 0;
            }
            // A packet of 0 bytes moves the cursor to that time.
            Self::Traced(cursor) => {
                cursor.departure(until, 0);
            }
        }
    }

    /// Returns the end of transmission of a packet of `size` bytes that joins at `now`, behind all earlier ones.
    #[inline]
    pub(crate) fn departure(&mut self, now: u64, size: u32) -> u64 {
        match self {
            Self::Unlimited => now,
            Self::Constant(serializer) => serializer.departure(now, size),
            Self::Traced(cursor) => cursor.departure(now, size),
        }
    }
}

/// Exact transmission at a constant rate: the end of a busy period of any length is off by less than a
/// nanosecond, because fractions are carried from packet to packet.
#[derive(Clone, Debug)]
pub(crate) struct Serializer {
    bits_per_second: u64,
    /// End of transmission of all packets so far: `busy` whole nanoseconds and `fraction / bits_per_second` of one, and
    /// the same rounded up to the nanosecond.
    busy: u64,
    fraction: u64,
    end: u64,
    /// The last packet size and its transmission time. Most packets of a link have one size, and divisions are slow.
    size: u32,
    whole: u64,
    rest: u64,
}

impl Serializer {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            bits_per_second: rate.bits_per_second(),
            busy: 0,
            fraction: 0,
            end: 0,
            size: 0,
            whole: 0,
            rest: 0,
        }
    }

    /// Returns the end of transmission of a packet of `size` bytes that joins at `now`, behind all earlier ones.
    #[inline]
    pub(crate) fn departure(&mut self, now: u64, size: u32) -> u64 {
        if size != self.size {
            // 2^32 bytes times 8e9 is above u64 by a factor of two.
            self.change_size(size);
        }
        if now >= self.end {
            self.busy = now;
            self.fraction = 0;
        }
        self.busy = self.busy.saturating_add(self.whole);
        self.fraction += self.rest;
        if self.fraction >= self.bits_per_second {
            self.fraction -= self.bits_per_second;
            self.busy = self.busy.saturating_add(1);
        }
        self.end = self.busy.saturating_add((self.fraction > 0) as u64);
        self.end
    }

    /// Computes the transmission time of packets of another size.
    fn change_size(&mut self, size: u32) {
        // 2^32 bytes times 8e9 is above u64 by a factor of two.
        let scaled = u128::from(size) * 8_000_000_000;
        let rate = u128::from(self.bits_per_second);
        self.size = size;
        match u64::try_from(scaled) {
            Ok(scaled) => {
                self.whole = scaled / self.bits_per_second;
                self.rest = scaled % self.bits_per_second;
            }
            Err(_) => {
                self.whole = u64::try_from(scaled / rate).unwrap_or(u64::MAX);
                self.rest = (scaled % rate) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serializer(rate: &str) -> Serializer {
        Serializer::new(rate.parse().unwrap())
    }

    #[test]
    fn a_busy_link_does_not_drift() {
        // A byte takes 2666.67 ns at 3 Mbit/s and 80 ps at 100 Gbit/s: rounded up each time,
        // the first would lose 0.01 % and the second would be 12 times too slow.
        let mut slow = serializer("3Mbit/s");
        let mut fast = serializer("100Gbit/s");
        let (mut slow_end, mut fast_end) = (0, 0);
        for _ in 0..3_000_000 {
            slow_end = slow.departure(0, 1);
            fast_end = fast.departure(0, 1);
        }
        assert_eq!(slow_end, 8_000_000_000);
        assert_eq!(fast_end, 240_000);
    }

    #[test]
    fn a_new_rate_starts_after_the_packets_already_accepted() {
        let capacity = Capacity::Rate("10Mbit/s".parse().unwrap());
        let mut rate = LinkRate::after(&capacity, 1_000);
        assert_eq!(rate.departure(0, 1250), 1_001_000);
        let mut late = LinkRate::after(&capacity, 1_000);
        assert_eq!(late.departure(5_000, 1250), 1_005_000);
    }

    #[test]
    fn an_idle_link_starts_immediately() {
        let mut link = serializer("10Mbit/s");
        assert_eq!(link.departure(5, 1500), 5 + 1_200_000);
        assert_eq!(link.departure(600_000, 1000), 5 + 1_200_000 + 800_000);
        assert_eq!(link.departure(9_000_000, 1000), 9_800_000);
    }

    #[test]
    fn sizes_and_rates_at_the_limit_do_not_overflow() {
        assert_eq!(serializer("1bit/s").departure(0, u32::MAX), u64::MAX);
        assert_eq!(serializer("9000000000Gbit/s").departure(0, u32::MAX), 4);
    }
}
