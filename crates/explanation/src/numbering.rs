//! Sequence numbers without wrap.

/// Unwraps 32-bit sequence numbers of one sender into 64 bits, relative to the first one.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    first: u32,
    /// Highest number so far.
    highest: u64,
}

/// Numbers start here, so that those shortly before the first one are not negative.
const START: u64 = 1 << 32;

impl Numbering {
    /// Starts with a number.
    pub const fn starting_with(first: u32) -> Self {
        Self {
            first,
            highest: START,
        }
    }

    /// Returns the number nearest to the highest one so far.
    pub const fn unwrapped(&self, number: u32) -> u64 {
        let near = self.highest;
        let expected = self.first.wrapping_add((near - START) as u32);
        let distance = number.wrapping_sub(expected) as i32;
        near.saturating_add_signed(distance as i64)
    }

    /// Returns the unwrapped number, and takes it as the highest if it is.
    pub fn advance(&mut self, number: u32) -> u64 {
        let found = self.unwrapped(number);
        self.highest = self.highest.max(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_after_a_wrap() {
        let mut numbers = Numbering::starting_with(u32::MAX - 10);
        let first = numbers.advance(u32::MAX - 10);
        assert_eq!(numbers.advance(9) - first, 20);
        assert_eq!(numbers.unwrapped(u32::MAX - 11), first - 1);
    }

    #[test]
    fn numbers_continue_over_several_wraps() {
        let mut numbers = Numbering::starting_with(7);
        let first = numbers.advance(7);
        let last = (0..10).map(|_| 1u64 << 30).scan(7u32, |at, step| {
            *at = at.wrapping_add(step as u32);
            Some(*at)
        });
        let unwrapped = last.fold(0, |_, number| numbers.advance(number));
        assert_eq!(unwrapped - first, 10 << 30);
    }
}
