//! Which link is due next: a tournament tree with one leaf a link (Knuth, TAOCP vol. 3, 5.4.1).
//!
//! Only the head of each link stands here, so its size is the number of links and not that of
//! packets in flight. An update plays all matches on one path to the root, without a branch that depends on the
//! data: stopping at the first match whose winner stays the same would be such a branch.

/// When something is due: nanoseconds, then the sequence number that breaks ties in order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(u128);

impl Due {
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
    due: Due,
    link: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// `tree[1]` is the winner of all, `tree[leaves + link]` the entry of a link.
    tree: Vec<Entry>,
    leaves: usize,
}

impl Calendar {
    pub(crate) fn new(links: usize) -> Self {
        let leaves = links.next_power_of_two();
        let never = Entry {
            due: Due::NEVER,
            link: u32::MAX,
        };
        Self {
            tree: vec![never; 2 * leaves],
            leaves,
        }
    }

    /// When the first link is due, and which one it is. [`Due::NEVER`] where none is.
    #[inline]
    pub(crate) fn first(&self) -> (Due, u32) {
        let winner = self.tree[1];
        (winner.due, winner.link)
    }

    /// Sets when `link` is due.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, due: Due) {
        let mut at = self.leaves + link as usize;
        let mut winner = Entry { due, link };
        self.tree[at] = winner;
        while at > 1 {
            // Only the other side is read: what was just written stays in registers.
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
        fn the_first_is_the_least(links in 1_usize..40, updates in proptest::collection::vec((0_usize..40, 0_u64..50), 1..200)) {
            let mut calendar = Calendar::new(links);
            let mut model = vec![Due::NEVER; links];
            for (sequence, (link, nanos)) in updates.into_iter().enumerate() {
                let link = link % links;
                // 49 stands for a link that falls idle.
                let due = if nanos == 49 { Due::NEVER } else { Due::new(nanos, sequence as u64) };
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
    fn ties_go_by_sequence() {
        let mut calendar = Calendar::new(3);
        calendar.set(0, Due::new(7, 2));
        calendar.set(2, Due::new(7, 1));
        assert_eq!(calendar.first(), (Due::new(7, 1), 2));
        assert_eq!(calendar.first().0.nanos(), 7);
    }
}
