//! Connection counts (RFC 1644, section 3.1).

use std::num::NonZeroU32;

/// Connection count of the options CC, CC.NEW and CC.ECHO (RFC 1644, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count(NonZeroU32);

impl Count {
    /// Returns the count of an option; `None` for 0, which RFC 1644 reserves.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        match NonZeroU32::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// Returns the value on the wire.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Whether it is higher than `other`, modulo 2^32 (RFC 1644, section 3.1).
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        (self.get().wrapping_sub(other.get()) as i32) > 0
    }
}

/// Counter of all connections of a host (CCgen).
#[derive(Clone, Copy, Debug)]
pub struct Counter(u32);

impl Counter {
    /// Returns a counter whose first count is the one after `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// Returns the count of the next connection.
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
    fn counts_wrap_and_skip_zero() {
        let mut counter = Counter::new(u32::MAX - 1);
        let (last, first) = (counter.take(), counter.take());
        assert_eq!((last.get(), first.get()), (u32::MAX, 1));
        assert!(first.is_after(last) && !last.is_after(first) && !first.is_after(first));
    }
}
