//! Maximum over two cycles of bandwidth probing.

/// Maximum over this and the last cycle of bandwidth probing (draft-ietf-ccwg-bbr, section 5.5.5: two virtual time
/// slots are sufficient for delivery rates).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoCycleMax {
    previous: u64,
    current: u64,
}

impl TwoCycleMax {
    pub(super) fn update(&mut self, value: u64) {
        self.current = self.current.max(value);
    }

    /// Starts a cycle and discards the one before the last. A cycle without any measurement changes nothing.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }

    pub(super) fn max(&self) -> u64 {
        self.previous.max(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_maximum_for_two_cycles() {
        let mut filter = TwoCycleMax::default();
        filter.update(10);
        filter.advance();
        filter.update(7);
        assert_eq!(filter.max(), 10);
        filter.advance();
        assert_eq!(filter.max(), 7);
        filter.advance();
        assert_eq!(filter.max(), 7, "an empty cycle keeps the maximum");
    }
}
