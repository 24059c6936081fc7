//! CAKE's shaper: a virtual clock that advances by the transmission time of each packet at the rate of the shaper. It runs
//! behind the link without bursts, and makes up for packets that the link delayed (Høiland-Jørgensen, Täht and Morton,
//! "Piece of CAKE", LANMAN 2018, section III.A).

use foundation::{Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::link_rate::Serializer;

/// The framing of a link layer, whose bytes a shaper accounts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// No bytes that depend on the size.
    #[default]
    None,
    /// ATM: cells of 53 bytes with 48 bytes of payload each (ADSL).
    Atm,
    /// PTM: one byte per 64 (VDSL2).
    Ptm,
}

impl Framing {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::None
    }
}

/// The bytes of a packet on the link layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    pub(super) bytes: u32,
    pub(super) least: u32,
    pub(super) framing: Framing,
}

impl Overhead {
    pub(super) fn new(overhead: Size, least: Size, framing: Framing) -> Self {
        Self {
            bytes: overhead.bytes() as u32,
            least: least.bytes() as u32,
            framing,
        }
    }

    /// Returns the bytes that a packet of `size` bytes takes.
    pub(super) fn of(&self, size: u32) -> u32 {
        let size = size.saturating_add(self.bytes).max(self.least);
        match self.framing {
            Framing::None => size,
            Framing::Atm => size.div_ceil(48).saturating_mul(53),
            Framing::Ptm => size.saturating_add(size.div_ceil(64)),
        }
    }
}

/// The virtual clock.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    clock: Serializer,
    /// Start of the busy period.
    start: u64,
    /// When the next packet may leave.
    next: u64,
}

impl Shaper {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            clock: Serializer::new(rate),
            start: 0,
            next: 0,
        }
    }

    /// Starts a busy period: time without packets earns no credit.
    pub(super) const fn start(&mut self, now: u64) {
        if self.next < now {
            self.start = now;
            self.next = now;
        }
    }

    /// Returns when the next packet may leave, in nanoseconds.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Accounts for a packet of `size` bytes on the link layer.
    pub(super) fn charge(&mut self, size: u32) {
        self.next = self.clock.departure(self.start, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1500 bytes with 40 bytes of overhead are 33 cells (1749 bytes) on ATM and 25 bytes more on PTM; 40 bytes with 8 are
    /// exactly one cell.
    #[test]
    fn packets_take_their_bytes_on_the_link_layer() {
        let overhead = |bytes, framing| Overhead {
            bytes,
            least: 64,
            framing,
        };
        assert_eq!(overhead(40, Framing::Atm).of(1500), 1749);
        assert_eq!(overhead(40, Framing::Ptm).of(1500), 1540 + 25);
        assert_eq!(overhead(40, Framing::None).of(1500), 1540);
        assert_eq!(overhead(8, Framing::None).of(40), 64);
        let cell = Overhead {
            bytes: 8,
            least: 0,
            framing: Framing::Atm,
        };
        assert_eq!((cell.of(40), cell.of(41)), (53, 106));
    }

    /// At 8 Mbit/s, 1000 bytes take 1 ms. A packet that leaves 3 ms late does not delay the next ones; an idle time does.
    #[test]
    fn the_clock_makes_up_for_delays_but_not_for_idle_times() {
        const MILLI: u64 = 1_000_000;
        let mut shaper = Shaper::new("8Mbit/s".parse().unwrap());
        shaper.start(10 * MILLI);
        shaper.charge(1000);
        assert_eq!(shaper.next(), 11 * MILLI);
        // The link is busy until 14 ms: these packets follow each other at its rate.
        for due in [12, 13, 14, 15] {
            shaper.charge(1000);
            assert_eq!(shaper.next(), due * MILLI);
        }
        shaper.start(14 * MILLI);
        assert_eq!(shaper.next(), 15 * MILLI);
        shaper.start(20 * MILLI);
        shaper.charge(1000);
        assert_eq!(shaper.next(), 21 * MILLI);
    }
}
