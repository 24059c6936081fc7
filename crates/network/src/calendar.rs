//! The event queue of links: a tournament tree with one leaf per link (Knuth, TAOCP vol. 3, 5.4.1).
//!
//! It contains only the head of each link, so its size is the number of links, not the number of
//! packets in flight. An update replays all matches on the path to the root, without data-dependent branches:
//! an early exit when the winner stays the same would add an unpredictable branch.

/// The time of an event: nanoseconds, then the sequence number that breaks ties in order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DueTime(u128);

impl DueTime {
    pub(crate) const NEVER: Self = Self(u128::MAX);

    #[inline]
    pub(crate) const fn new(nanos: u64, sequence: u64) -> Self {
        Self((nanos as u128) << 64 | sequence as u128)
    }

    #[inline]
    pub(crate) const fn nanos(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    pub(crate) const fn sequence(self) -> u64 {
        self.0 as u64
    }

    #[inline]
    pub(crate) const fn is_never(self) -> bool {
        self.0 == u128::MAX
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    due: DueTime,
    link: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// `tree[1]` is the overall winner; `tree[leaves + link]` is the entry of a link.
    tree: Vec<Entry>,
    leaves: usize,
}

impl Calendar {
    pub(crate) fn new(links: usize) -> Self {
        let leaves = links.next_power_of_two();
        let never = Entry {
            due: DueTime::NEVER,
            link: u32::MAX,
        };
        Self {
            tree: vec![never; 2 * leaves],
            leaves,
        }
    }

    /// Returns the earliest event and its link; [`DueTime::NEVER`] if there is none.
    #[inline]
    pub(crate) fn first(&self) -> (DueTime, u32) {
        let winner = self.tree[1];
        (winner.due, winner.link)
    }

    /// Sets the time of the next event of `link`.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, due: DueTime) {
        let mut at = self.leaves + link as usize;
        let mut winner = Entry { due, link };
        self.tree[at] = winner;
        while at > 1 {
            // Only the sibling is read: the entry just written stays in registers.
            let other = self.tree[at ^ 1];
            winner = if other.due < winner.due { other } else { winner };
            at /= 2;
            self.tree[at] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn first_returns_the_minimum(links in 1_usize..40, updates in proptest::collection::vec((0_usize..40, 0_u64..50), 1..200)) {
            let mut calendar = Calendar::new(links);
            let mut model = vec![DueTime::NEVER; links];
            for (sequence, (link, nanos)) in updates.into_iter().enumerate() {
                let link = link % links;
                // 49 represents a link that becomes idle.
                let due = if nanos == 49 { DueTime::NEVER } else { DueTime::new(nanos, sequence as u64) };
                calendar.set(link as u32, due);
                model[link] = due;
                let least = *model.iter().min().unwrap();
                let (first, at) = calendar.first();
                proptest::prop_assert_eq!(first, least);
                if !least.is_never() {
                    proptest::prop_assert_eq!(model[at as usize], least);
                }
            }
        }
    }

    #[test]
    fn breaks_ties_by_sequence() {
        let mut calendar = Calendar::new(3);
        calendar.set(0, DueTime::new(7, 2));
        calendar.set(2, DueTime::new(7, 1));
        assert_eq!(calendar.first(), (DueTime::new(7, 1), 2));
        assert_eq!(calendar.first().0.nanos(), 7);
    }
}
