//! ECN code points.

/// The ECN code point of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable: dropped on congestion.
    #[default]
    NotEct,
    /// ECN-capable transport, ECT(0): a mark is a congestion signal like a loss (RFC 3168).
    Ect0,
    /// ECN-capable transport, ECT(1): a scalable flow, which responds to the rate of marks (RFC 9331).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Returns the code point with these two bits, the lowest of the traffic class; other bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns whether a queue may mark the packet instead of dropping it.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Returns whether the packet belongs to the low-latency service: ECT(1), or CE, whose original code point is unknown
    /// (RFC 9331, section 5.1).
    #[must_use]
    pub const fn is_scalable(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3168, figure 1, and RFC 9331, section 2.
    #[test]
    fn reads_the_bits_of_the_header() {
        let points = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!([0b00, 0b01, 0b10, 0b11].map(Ecn::from_bits), points);
        assert_eq!(Ecn::from_bits(0xfd), Ecn::Ect1);
        assert_eq!(points.map(Ecn::is_capable), [false, true, true, true]);
        assert_eq!(points.map(Ecn::is_scalable), [false, true, false, true]);
    }
}
