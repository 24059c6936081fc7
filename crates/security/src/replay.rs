//! Detection of replayed records: a window of record numbers, as in IPsec (RFC 4303, section 3.4.3).

/// Numbers below the highest one that may still arrive. The window covers the packets of 10 ms at 10 Gbit/s.
pub const WINDOW: u64 = 8192;
const WORDS: usize = WINDOW as usize / 64;

/// The record numbers that have arrived.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// The number after the highest one.
    next: u64,
    seen: Box<[u64; WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self {
            next: 0,
            seen: Box::new([0; WORDS]),
        }
    }
}

const fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW / 64) as usize, 1 << (number % 64))
}

impl ReplayWindow {
    /// Returns the number after the highest one that has arrived.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether `number` has not arrived and is not too old.
    pub fn is_new(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        number >= self.next || (number + WINDOW >= self.next && self.seen[word] & bit == 0)
    }

    /// Records that `number` has arrived. Call it only after the record was authenticated.
    pub fn record(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= WINDOW {
                self.seen.fill(0);
            } else {
                for skipped in self.next..number {
                    let (word, bit) = place(skipped);
                    self.seen[word] &= !bit;
                }
            }
            self.next = number + 1;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_each_number_once() {
        let mut window = ReplayWindow::default();
        for number in [0, 5, 3, 5 + WINDOW, 9000, 1 << 40] {
            assert!(window.is_new(number), "{number}");
            window.record(number);
            assert!(!window.is_new(number), "{number}");
        }
        assert!(!window.is_new(4), "too old");
        assert!(window.is_new((1 << 40) - WINDOW + 1));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(numbers in prop::collection::vec(0_u64..40_000, 1..400)) {
            let (mut window, mut set) = (ReplayWindow::default(), std::collections::BTreeSet::new());
            for number in numbers {
                let highest = set.last().copied().unwrap_or(0);
                let fresh = !set.contains(&number) && (set.is_empty() || number + WINDOW > highest);
                prop_assert_eq!(window.is_new(number), fresh, "{} after {}", number, highest);
                if fresh {
                    window.record(number);
                    set.insert(number);
                }
            }
        }
    }
}
