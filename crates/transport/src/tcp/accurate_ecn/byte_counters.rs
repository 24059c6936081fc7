//! The AccECN option: counters of received payload bytes by code point (RFC 9768, section 3.2.3).

use crate::tcp::segment::Ecn;

/// A counter of the option, in the order in which this end sends them (kind 174).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Bytes of segments marked ECT(1).
    Ect1,
    /// Bytes of segments marked CE.
    Ce,
    /// Bytes of segments marked ECT(0).
    Ect0,
}

impl Field {
    /// All fields in the order of kind 174; kind 172 has the reverse order.
    pub const ALL: [Self; 3] = [Self::Ect1, Self::Ce, Self::Ect0];

    /// Returns the counter of a code point; `None` for segments that are not ECN-capable, which no counter counts.
    #[must_use]
    pub const fn of(ecn: Ecn) -> Option<Self> {
        match ecn {
            Ecn::NotEct => None,
            Ecn::Ect1 => Some(Self::Ect1),
            Ecn::Ce => Some(Self::Ce),
            Ecn::Ect0 => Some(Self::Ect0),
        }
    }

    /// Returns the initial value of the counter: not 0 where a middlebox might clear it (section 3.2.1).
    #[must_use]
    pub const fn initial(self) -> u32 {
        match self {
            Self::Ect1 | Self::Ect0 => 1,
            Self::Ce => 0,
        }
    }
}

/// Counters are modulo 2^24.
pub const MODULUS: u32 = 1 << 24;

/// The AccECN option of a segment: its first fields, in one of two orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounters {
    /// Kind 172, whose first field counts ECT(0), instead of kind 174, whose first field counts ECT(1).
    pub ect0_first: bool,
    fields: u8,
    values: [u32; 3],
}

impl ByteCounters {
    /// Returns an option with the first `values`, at most three and each modulo 2^24.
    #[must_use]
    pub fn new(ect0_first: bool, values: &[u32]) -> Self {
        let mut counters = Self {
            ect0_first,
            ..Self::default()
        };
        for (own, value) in counters.values.iter_mut().zip(values) {
            *own = value % MODULUS;
            counters.fields += 1;
        }
        counters
    }

    /// Returns the values in the order of the option.
    #[must_use]
    pub fn values(&self) -> &[u32] {
        &self.values[..usize::from(self.fields)]
    }

    /// Returns the fields with their values, in the order of the option.
    pub fn iter(&self) -> impl Iterator<Item = (Field, u32)> {
        let field = |at: usize| Field::ALL[if self.ect0_first { 2 - at } else { at }];
        self.values()
            .iter()
            .enumerate()
            .map(move |(at, value)| (field(at), *value))
    }

    /// Returns the bytes of the option without padding.
    #[must_use]
    pub const fn encoded_length(&self) -> u32 {
        2 + 3 * self.fields as u32
    }

    /// Returns nine bytes of values and one that describes them, never 0.
    pub(crate) fn pack(&self) -> ([u8; 9], u8) {
        let mut bytes = [0; 9];
        for (place, value) in bytes.chunks_mut(3).zip(self.values) {
            place.copy_from_slice(&value.to_be_bytes()[1..]);
        }
        (bytes, 0x80 | (u8::from(self.ect0_first) << 2) | self.fields)
    }

    /// Reverses [`pack`](Self::pack); `None` for a description of 0.
    pub(crate) fn unpack(bytes: [u8; 9], description: u8) -> Option<Self> {
        if description == 0 {
            return None;
        }
        let value = |at: usize| u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]]);
        let values = [value(0), value(3), value(6)];
        Some(Self::new(
            description & 0x4 != 0,
            &values[..usize::from(description & 0x3)],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_the_order_of_the_kind() {
        let fields = |counters: ByteCounters| counters.iter().collect::<Vec<_>>();
        let values = [5, 6, MODULUS + 7];
        assert_eq!(
            fields(ByteCounters::new(false, &values)),
            [(Field::Ect1, 5), (Field::Ce, 6), (Field::Ect0, 7)]
        );
        assert_eq!(
            fields(ByteCounters::new(true, &values[..2])),
            [(Field::Ect0, 5), (Field::Ce, 6)]
        );
        assert_eq!(ByteCounters::new(true, &[]).encoded_length(), 2);
        assert_eq!(ByteCounters::new(true, &values).encoded_length(), 11);
    }

    #[test]
    fn packing_keeps_everything() {
        for fields in 0..=3 {
            for ect0_first in [false, true] {
                let counters = ByteCounters::new(ect0_first, &[1, 0xff_ffff, 0x12_3456][..fields]);
                let (bytes, description) = counters.pack();
                assert_eq!(ByteCounters::unpack(bytes, description), Some(counters));
            }
        }
        assert_eq!(ByteCounters::unpack([7; 9], 0), None);
    }
}
