//! Connection counts (RFC 1644, section 3.1).

use std::num::NonZeroU32;

/// A connection count, as the options CC, CC.NEW and CC.ECHO carry it; 0 stands for none (RFC 1644, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count(NonZeroU32);

impl Count {
    /// The count of an option; `None` for 0.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        match NonZeroU32::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Whether it is a later one, modulo 2^32 (RFC 1644, section 3.1: as with sequence numbers).
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        (self.get().wrapping_sub(other.get()) as i32) > 0
    }
}

/// A host's counter, CCgen: every connection gets the next number, whatever its peer.
#[derive(Clone, Copy, Debug)]
pub struct Counter(u32);

impl Counter {
    /// A counter whose first number is the one after `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The number of the next connection.
    pub const fn take(&mut self) -> Count {
        loop {
            self.0 = self.0.wrapping_add(1);
            if let Some(count) = Count::new(self.0) {
                return count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_round_and_leave_out_zero() {
        let mut counter = Counter::new(u32::MAX - 1);
        let (last, first) = (counter.take(), counter.take());
        assert_eq!((last.get(), first.get()), (u32::MAX, 1));
        assert!(first.is_after(last) && !last.is_after(first) && !first.is_after(first));
    }
}
